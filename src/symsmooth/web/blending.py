"""Files between a picture and its result, to be taken home: strength after the fact."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..app.blend import BlendJob, blend_files
from ..io import limit_decoded_size
from .worker import Reporter


def blend(
    noisy: Sequence[Path], denoised: Sequence[Path], strength: float, colour: float, max_bytes: int,
    reporter: Reporter,
) -> list[Path]:  # fmt: skip
    """Write the blend of each file beside its result, as the command line would; return where they are."""
    return [
        _blend(*pair, strength, colour, max_bytes) for pair in zip(noisy, denoised, strict=True)
    ]


def _blend(noisy: Path, denoised: Path, strength: float, colour: float, max_bytes: int) -> Path:
    ending = ".nii.gz" if denoised.name.lower().endswith(".nii.gz") else denoised.suffix
    stem = denoised.name[: len(denoised.name) - len(ending)]
    target = denoised.with_name(f"{stem}-blend{ending}")
    colour_strength = None if colour == strength else colour
    with limit_decoded_size(2 * max_bytes):
        blend_files(BlendJob(noisy, denoised, target, strength, colour_strength))
    return target
