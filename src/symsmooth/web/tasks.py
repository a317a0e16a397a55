"""All that workers can be asked to do, by name.

They get what they need, write into folders, and return what came of it in plain numbers and words.
"""

from __future__ import annotations

from .comparing import compare, report
from .denoising import denoise
from .looking import (
    draw,
    example,
    get_ready_to_look,
    get_ready_to_run,
    look,
    look_at_reference,
)
from .mosaics import develop

__all__ = [
    "compare",
    "denoise",
    "develop",
    "draw",
    "example",
    "get_ready_to_look",
    "get_ready_to_run",
    "look",
    "look_at_reference",
    "report",
]
