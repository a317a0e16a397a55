"""Noisy pictures for those who have none at hand, with what they were before."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core.image import Array
from ..io import write_image

EXAMPLES = ("Photograph, 8 bit", "Colour photograph, 8 bit", "Few photons, 16 bit")
_SEED = 0


def write_example(name: str, folder: Path) -> tuple[Path, Path]:
    """Write an example into a folder; return the noisy picture and the clean one."""
    stem, clean, noisy = _make(name)
    paths = folder / f"{stem}.tif", folder / f"{stem}-clean.tif"
    if noisy.dtype == np.uint8:
        paths = folder / f"{stem}.png", folder / f"{stem}-clean.png"
    for path, pixels in zip(paths, (noisy, clean), strict=True):
        write_image(path, pixels)
    return paths


def _make(name: str) -> tuple[str, Array, Array]:
    """Return a name for the file, the clean and the noisy pixels; scikit-image brings the pictures."""
    from skimage import data

    rng = np.random.default_rng(_SEED)
    if name == EXAMPLES[0]:
        clean = data.camera()[64:320, 128:384]
        return "camera", clean, _rounded(clean + rng.normal(0, 25, clean.shape), np.uint8)
    if name == EXAMPLES[1]:
        clean = data.astronaut()[:320, 64:384]
        return "astronaut", clean, _rounded(clean + rng.normal(0, 20, clean.shape), np.uint8)
    if name == EXAMPLES[2]:
        photons = 40.0 * (data.moon()[96:352, 128:384] / 255.0) ** 2
        gain, offset = 60.0, 400.0
        counted = rng.poisson(photons) * gain + offset + rng.normal(0, 30.0, photons.shape)
        clean = _rounded(photons * gain + offset, np.uint16)
        return "moon", clean, _rounded(counted, np.uint16)
    raise ValueError(f"there is no example {name!r}; use one of {', '.join(EXAMPLES)}")


def _rounded(pixels: Array, dtype: type[np.unsignedinteger]) -> Array:
    return np.clip(np.rint(pixels), 0, np.iinfo(dtype).max).astype(dtype)
