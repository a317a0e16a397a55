"""Together or apart: what two channels gain, or lose, from each other against how alike they are.

    SYMSMOOTH_IMAGES=... python benchmarks/channels.py

The second channel is a mixture of another colour of the first channel's picture and of another picture.
Prints how alike their structures are (``symsmooth.core.channels``) and by how much together is better than
apart, in dB, with white noise of a known level.  The threshold of that module is where the two are equal.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image

import symsmooth
from symsmooth.core.channels import compare_channels
from symsmooth.core.metrics import psnr

SHARES = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)
PICTURES = range(0, 24, 4)


def main() -> None:
    files = sorted((Path(os.environ["SYMSMOOTH_IMAGES"]) / "kodak24").iterdir())
    pictures = [np.asarray(Image.open(file))[100:356, 100:356].astype(np.float32) for file in files]
    found = []
    for sigma in (10.0, 30.0):
        for k in PICTURES:
            one, other = pictures[k], pictures[(k + 7) % len(pictures)]
            for share in SHARES:
                second = share * one[..., 1] + (1 - share) * other[..., 1]
                clean = np.stack([one[..., 0], second], axis=-1)
                noisy = clean + np.random.default_rng(k).normal(0, sigma, clean.shape)
                decibels = {
                    how: psnr(
                        symsmooth.denoise(
                            noisy, sigma, channel_axis=-1, channels=how, quality="fast", rng=0
                        ),
                        clean,
                        peak=255.0,
                    )
                    for how in ("together", "apart", "auto")
                }
                alike = compare_channels(noisy)[0][0, 1]
                gain = decibels["together"] - decibels["apart"]
                lost = max(decibels["together"], decibels["apart"]) - decibels["auto"]
                found.append((alike, gain, lost))
                print(
                    f"sigma {sigma:.0f}, kodim{k + 1:02d}, {share:4.0%} shared: alike {alike:.2f}, "
                    f"together {gain:+.2f} dB, auto loses {lost:.2f}"
                )
    table = np.array(found)
    for low, high in ((0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 9)):
        own = (table[:, 0] >= low) & (table[:, 0] < high)
        gain, lost = table[own, 1:].mean(axis=0)
        print(f"alike {low:.1f} to {high:.1f}: together {gain:+.2f} dB, auto loses {lost:.2f}")


if __name__ == "__main__":
    main()
