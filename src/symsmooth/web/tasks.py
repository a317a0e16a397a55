"""All that workers can be asked to do, by name.

They get what they need, write into folders, and return what came of it in plain numbers and words.
"""

from __future__ import annotations

from .blending import blend
from .comparing import compare, report
from .denoising import denoise
from .inspecting import (
    draw,
    example,
    inspect_file,
    inspect_reference,
    warm_up_reader,
    warm_up_runner,
)
from .mosaics import develop
from .noise_files import inspect_noise
from .series import inspect_series

__all__ = [
    "blend",
    "compare",
    "denoise",
    "develop",
    "draw",
    "example",
    "inspect_file",
    "inspect_noise",
    "inspect_reference",
    "inspect_series",
    "report",
    "warm_up_reader",
    "warm_up_runner",
]
