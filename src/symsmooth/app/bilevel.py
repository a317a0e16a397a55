"""Pictures of one bit a pixel, which have no noise level and stay what they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .job_warnings import JobWarning

if TYPE_CHECKING:
    from ..io import ImageFile


def bilevel_warning(are: Sequence[bool]) -> list[JobWarning]:
    """Say that images of a file were left alone: ``are`` tells which of them have one bit a pixel."""
    n_left = sum(are)
    if not n_left:
        return []
    text = (
        "one bit a pixel, black or white, has no noise level, so nothing was changed; "
        "to smooth it, save it as grey first"
    )
    if n_left < len(are):
        have, left = ("has", "was") if n_left == 1 else ("have", "were")
        some = f"{n_left} of {len(are)} images {have}"
        text = f"{some} one bit a pixel, which has no noise level, and {left} left alone"
    return [JobWarning("bilevel", text)]


def is_copy(image: ImageFile, target: Path) -> bool:
    """Whether a file that nothing was done to can be copied: its format is the one asked for."""
    from ..io.formats import format_of

    return format_of(target) == image.format
