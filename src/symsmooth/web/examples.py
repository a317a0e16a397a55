"""Noisy pictures for those who have none at hand, with what they were before."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..app.samples import sample
from ..core.image import Array
from ..io import write_image

_SEED = 0
_SPOTS = 60  # of the stack: like vesicles in a cell


def write_example(name: str, folder: Path, clean_folder: Path) -> tuple[Path, Path]:
    """Write an example of ``catalogue.EXAMPLES``; return the noisy picture and the clean one."""
    stem, clean, noisy = _make(name)
    ending = ".png" if noisy.dtype == np.uint8 else ".tif"
    paths = folder / f"{stem}{ending}", clean_folder / f"{stem}-clean{ending}"
    for path, pixels in zip(paths, (noisy, clean), strict=True):
        if name == "stack":
            import tifffile

            tifffile.imwrite(path, pixels, imagej=True, metadata={"axes": "ZYX"})
        else:
            write_image(path, pixels)
    return paths


def _make(name: str) -> tuple[str, Array, Array]:
    """Return a name for the file, the clean and the noisy pixels."""
    rng = np.random.default_rng(_SEED)
    if name == "photograph":
        clean = sample("camera")[:256]
        return "camera", clean, _rounded(clean + rng.normal(0, 25, clean.shape), np.uint8)
    if name == "colour":
        clean = sample("astronaut")
        return "astronaut", clean, _rounded(clean + rng.normal(0, 20, clean.shape), np.uint8)
    if name == "photons":
        return "galaxies", *_counted(40.0 * sample("galaxies") / 255.0, rng)
    if name == "stack":
        return "cell", *_counted(_cell(rng), rng)
    raise ValueError(f"there is no example {name!r}")


def _cell(rng: np.random.Generator) -> Array:
    """Return photons of bright spots in a round cell, (depth, height, width)."""
    z, y, x = np.ogrid[:12, :192, :192]
    round_cell = np.exp(-((((z - 6) / 6) ** 2 + ((y - 96) / 70) ** 2 + ((x - 96) / 80) ** 2) ** 2))
    photons = 3.0 + 12.0 * round_cell
    for _ in range(_SPOTS):
        at = rng.normal((6, 96, 96), (2, 26, 30))
        wide = rng.uniform(1.5, 5.0)
        distance = ((z - at[0]) * 3) ** 2 + (y - at[1]) ** 2 + (x - at[2]) ** 2
        photons = photons + rng.uniform(10, 60) * np.exp(-distance / (2 * wide**2))
    return np.asarray(photons)


def _counted(photons: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return what a camera sees of photons, without and with noise, in 16 bits."""
    gain, offset = 60.0, 400.0
    counted = rng.poisson(photons) * gain + offset + rng.normal(0, 30.0, photons.shape)
    return _rounded(photons * gain + offset, np.uint16), _rounded(counted, np.uint16)


def _rounded(pixels: Array, dtype: type[np.unsignedinteger]) -> Array:
    return np.clip(np.rint(pixels), 0, np.iinfo(dtype).max).astype(dtype)
