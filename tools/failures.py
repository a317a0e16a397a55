"""Make docs/images/failure_*.jpg: what denoising cannot do, shown.

Usage: python tools/failures.py [--out FOLDER].

Photographs are those of scikit-image (free to use); what is wrong with them is made here, so that the truth
is known.  Shown are the truth, what came in, and what came out with no settings, enlarged twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from before_after import OUT, ZOOM, beside
from PIL import Image
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr

Array = np.ndarray[Any, Any]
SIDE = 256
SHOWN = 200, 130  # width and height of the part that is shown
QUALITY = 80  # dots of a print take many bytes


def cases(rng: np.random.Generator) -> Iterator[tuple[str, Array, Array, tuple[int, int]]]:
    """Yield names, the truth, what came in (both 0 to 255), and the corner of what is shown."""
    y, x = np.mgrid[:SIDE, :SIDE]
    gravel = data.gravel()[:SIDE, :SIDE].astype(float)
    camera = data.camera()[40 : 40 + SIDE, 120 : 120 + SIDE].astype(float)
    astronaut = data.astronaut()[:SIDE, 60 : 60 + SIDE].astype(float)
    yield "texture", gravel, gravel + rng.normal(0, 25, gravel.shape), (20, 90)
    grid = np.sin(2 * np.pi * (0.46 * x + 0.03 * y))[..., np.newaxis]  # almost two pixels long
    moire = astronaut + 18 * grid + rng.normal(0, 8, astronaut.shape)
    yield "moire", astronaut, moire, (40, 10)
    period = 3.2 * np.sqrt(2)
    dots = 127.5 + 63 * (
        np.cos(2 * np.pi * (x + y) / period) + np.cos(2 * np.pi * (x - y) / period)
    )
    printed = 255 / (1 + np.exp((dots - camera) / 12))
    yield "halftone", camera, printed + rng.normal(0, 10, camera.shape), (20, 20)
    lines = camera + rng.normal(0, 9, (SIDE, 1)) + rng.normal(0, 8, camera.shape)
    yield "streaks", camera, lines, (20, 20)


def part(pixels: Array, corner: tuple[int, int]) -> Image.Image:
    """Return a part of a picture, enlarged."""
    width, height = SHOWN
    left, top = corner
    shown = (
        Image.fromarray(_whole(pixels)).convert("RGB").crop((left, top, left + width, top + height))
    )
    return shown.resize((ZOOM * width, ZOOM * height), Image.Resampling.NEAREST)


def _whole(pixels: Array) -> Array:
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def main() -> None:
    """Write the pictures, say how far from the truth they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    for name, clean, seen, corner in cases(np.random.default_rng(0)):
        noisy = _whole(seen)
        made = symsmooth.denoise(noisy, channel_axis=-1 if noisy.ndim == 3 else None)
        before, after = (psnr(each, clean, 255) for each in (noisy, made))
        print(f"{name}: {before:.2f} -> {after:.2f} dB")
        shown = beside(*(part(each, corner) for each in (clean, noisy, made)))
        shown.save(given.out / f"failure_{name}.jpg", quality=QUALITY)


if __name__ == "__main__":
    main()
