"""
One noisy photograph
====================

You have one noisy picture and nothing else: no training set, no second shot, no idea how strong the
noise is. That is all :func:`symsmooth.denoise` needs.
"""

# %%
# A photograph with white noise of 25 grey levels. The noise is ours, so that we can tell how close the
# result comes to the truth.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr

clean = data.camera()[40:296, 120:376].astype(float)
noisy = clean + np.random.default_rng(0).normal(0, 25, clean.shape)

# %%
# One call. The noise level is estimated, the clusters of patches are learned from the picture itself.

denoised = symsmooth.denoise(noisy)


print(f"estimated noise level {symsmooth.estimate_sigma(noisy):.1f} (true: 25)")
before, after = psnr(noisy, clean, 255), psnr(denoised, clean, 255)  # in decibel: more is better
print(f"{before:.2f} dB before, {after:.2f} dB after")

# %%
# The right panel is the *method noise*: what was taken away. It should look like noise; outlines of
# the subject in it would be detail that was lost.

fig, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for ax, image, title in zip(
    axes,
    [noisy, denoised, noisy - denoised + 128],
    [f"noisy, {before:.1f} dB", f"denoised, {after:.1f} dB", "what was removed"],
    strict=True,
):
    ax.imshow(image, vmin=0, vmax=255)
    ax.set_title(title)
    ax.axis("off")
