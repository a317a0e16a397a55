"""A file between a picture and its result, to be taken home: strength after the fact."""

from __future__ import annotations

from pathlib import Path

from ..app.blend import BlendJob, blend_files
from ..io import limit_decoded_size
from .worker import Reporter


def blend(
    noisy: Path, denoised: Path, strength: float, colour: float, max_bytes: int, reporter: Reporter
) -> Path:
    """Write the blend beside the result, as the command line would; return where it is."""
    ending = ".nii.gz" if denoised.name.lower().endswith(".nii.gz") else denoised.suffix
    stem = denoised.name[: len(denoised.name) - len(ending)]
    target = denoised.with_name(f"{stem}-blend{ending}")
    colour_strength = None if colour == strength else colour
    with limit_decoded_size(2 * max_bytes):
        blend_files(BlendJob(noisy, denoised, target, strength, colour_strength))
    return target
