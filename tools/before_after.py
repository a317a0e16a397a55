"""Make docs/images/before_after.jpg: a free photograph through the simulated camera, and denoised.

The photograph is scikit-image's cat (CC0); the camera's noise is of the sensor, before demosaicing, white
balance, tone curve and JPEG.  Nothing is told to ``denoise``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

from symsmooth import fit_denoise
from symsmooth.core.metrics import psnr
from symsmooth_repro.camera import Camera, photograph

OUT = Path(__file__).parents[1] / "docs" / "images" / "before_after.jpg"
CAMERA = Camera(gain=0.008, read=0.008, luma_blur=0.6, chroma_blur=1.2, quality=92)
CROP = slice(20, 260), slice(60, 380)
GAP = 6  # pixels between the two


def main() -> None:
    """Make the picture, say what was found."""
    scene = data.chelsea()[:300, :450] / 255.0
    exposed, ideal = photograph(scene, CAMERA)
    noisy = np.rint(255 * exposed).astype(np.uint8)
    found = fit_denoise(noisy, channel_axis=-1)
    before, after = (psnr(each, 255 * ideal, 255) for each in (noisy, found.image))
    print(f"{found.noise}: {before:.2f} -> {after:.2f} dB")
    pair = [np.repeat(np.repeat(each[CROP], 2, 0), 2, 1) for each in (noisy, found.image)]
    gap = np.full((pair[0].shape[0], GAP, 3), 255, np.uint8)
    Image.fromarray(np.hstack([pair[0], gap, pair[1]])).save(OUT, quality=88)


if __name__ == "__main__":
    main()
