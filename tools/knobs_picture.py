"""Draw docs/images/knobs.png: what strength, colour strength and grain do to a photograph.

Usage: python tools/knobs_picture.py docs/images/knobs.png
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from PIL import Image, ImageDraw
from skimage import data

import symsmooth
from symsmooth_repro.camera import CAMERAS, photograph

CROP = slice(90, 218), slice(170, 298)
KNOBS: dict[str, dict[str, Any] | None] = {
    "camera": None,
    "denoise": {},
    "grain 0.4": {"grain": 0.4},
    "strength (0, 1)": {"strength": (0, 1)},
}


def main(target: str) -> None:
    """Take a picture, denoise it in several ways, and set crops side by side."""
    taken, _ = photograph(data.astronaut()[:384, :384] / 255.0, CAMERAS["B"])
    noisy = np.rint(255 * taken).astype(np.uint8)
    strips = []
    for label, options in KNOBS.items():
        shown = noisy
        if options is not None:
            shown = symsmooth.denoise(noisy, channel_axis=-1, **options)
        crop = Image.fromarray(np.ascontiguousarray(shown[CROP]))
        ImageDraw.Draw(crop).text((4, 3), label, fill="white", stroke_width=1, stroke_fill="black")
        strips.append(np.asarray(crop))
    Image.fromarray(np.concatenate(strips, axis=1)).save(target, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1])
