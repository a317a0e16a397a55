"""All that processes can be asked to do, by name: the larger tasks, and those that are a few lines.

They get what they need, write into folders, and return what came of it in plain numbers and words.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..io.noise_files import load_noise
from . import bridge, drawing
from .comparing import compare as compare
from .comparing import report as report
from .denoising import denoise as denoise
from .inspecting import example as example
from .inspecting import inspect_file as inspect_file
from .inspecting import inspect_reference as inspect_reference
from .inspecting import inspect_series as inspect_series
from .worker import Reporter


def draw(wanted: dict[str, Any], reporter: Reporter) -> bytes:
    """Draw a slice, or a part of one, as a PNG file."""
    return drawing.draw_view(wanted)


def develop(path: Path, reporter: Reporter) -> Path:
    """Write the developed picture of a DNG of ours beside it."""
    return bridge.write_developed(path)


def blend(
    noisy: Sequence[Path], denoised: Sequence[Path], strength: float, colour: float, max_bytes: int,
    reporter: Reporter,
) -> list[Path]:  # fmt: skip
    """Write the blend of each file beside its result: strength after the fact."""
    pairs = zip(noisy, denoised, strict=True)
    return [bridge.blend(*pair, strength, colour, max_bytes) for pair in pairs]


def inspect_noise(path: Path, reporter: Reporter) -> str:
    """Return what a noise model says, or refuse what is none."""
    return str(load_noise(path))


def warm_up(workers: int | None, reporter: Reporter) -> None:
    """Load what inspecting and denoising a picture take."""
    bridge.warm_up(workers)
