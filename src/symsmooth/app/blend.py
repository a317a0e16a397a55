"""Two files, noisy and denoised, become one between them, without denoising again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import __version__
from ..core.blend import blend
from ..io import ImageFile
from ..io.formats import check_writable, copy_file, format_of, write_checked
from .job import open_file
from .messages import UsageError


@dataclass(frozen=True)
class BlendJob:
    """How much of what denoising changed is kept: 0 is the noisy file, 1 the denoised one."""

    noisy: Path
    denoised: Path
    target: Path
    strength: float
    colour_strength: float | None = None  # None: as strength

    def __post_init__(self) -> None:
        given = {"strength": self.strength, "colour_strength": self.colour_strength}
        for name, value in given.items():
            if value is not None and not (math.isfinite(value) and 0 <= value <= 1):
                words = "the strength" if name == "strength" else "the strength of colour"
                raise UsageError(f"{words} must be a number from 0 to 1, got {value:g}", name)

    @property
    def untouched(self) -> Path | None:
        """The file that is the result already, if one is."""
        if self.colour_strength not in (None, self.strength):
            return None
        return {0.0: self.noisy, 1.0: self.denoised}.get(self.strength)

    @property
    def words(self) -> str:
        """What was done."""
        colour = "" if self.colour_strength is None else f", {self.colour_strength:g} in colour"
        return f"{self.strength:g}{colour} of the noise reduction"


def blend_files(job: BlendJob) -> None:
    """Read both files, blend their pixels, and write them as the noisy file was.

    Where one of them is the result already and has the format that is asked for, it is copied byte for
    byte: a JPEG that is written again would not be the same.
    """
    noisy, denoised = (open_file(path, "auto") for path in (job.noisy, job.denoised))
    _check_alike(job, noisy, denoised)
    check_writable(job.target, noisy)
    chosen = denoised if job.untouched == job.denoised else noisy
    if job.untouched is not None and chosen[0].format == format_of(job.target):
        copy_file(job.untouched, job.target)
        return
    blended = [
        replace(
            a, pixels=blend(a.pixels, b.pixels, job.strength, job.colour_strength, a.channel_axis)
        )
        for a, b in zip(noisy, denoised, strict=True)
    ]
    write_checked(job.target, blended, f"symsmooth {__version__}: blend, {job.words}")


def _check_alike(job: BlendJob, noisy: Sequence[ImageFile], denoised: Sequence[ImageFile]) -> None:
    """Refuse files that are not one picture before and after."""
    names = f"{job.noisy} and {job.denoised}"
    if len(noisy) != len(denoised):
        counts = f"{len(noisy)} and {len(denoised)} images"
        raise UsageError(f"{names} hold {counts}; blend a file with what was made of it")
    for a, b in zip(noisy, denoised, strict=True):
        if a.pixels.shape != b.pixels.shape:
            shapes = f"{_size(a)} and {_size(b)}"
            raise UsageError(f"{names} are {shapes}; blend a file with what was made of it")
        if a.pixels.dtype != b.pixels.dtype:
            dtypes = f"{a.pixels.dtype} and {b.pixels.dtype}"
            raise UsageError(
                f"{names} are {dtypes}; denoise again in its own dtype, or convert one", "dtype"
            )
        if a.channel_axis != b.channel_axis:
            raise UsageError(f"{names} differ in their channels; write both in one format")
        if a.n_channels == 1 and job.colour_strength is not None:
            raise UsageError(
                f"{job.noisy} has no colour; leave its strength out", "colour_strength"
            )
        if a.is_bilevel and job.untouched is None:
            raise UsageError(
                f"{job.noisy} has one bit a pixel, with nothing between; save it as grey"
            )


def _size(image: ImageFile) -> str:
    return f"{image.size} with {image.n_channels} channels" if image.n_channels > 1 else image.size
