"""
A volume
========

In a stack of slices the neighbours above and below are worth as much as those to the left and right.
A 3-D array is a volume: all methods then use cubes instead of squares.
"""

# %%
# Blobs in a box, brighter here and dimmer there, with noise of half their contrast.

import matplotlib.pyplot as plt
import numpy as np
import scipy.ndimage
from skimage import data

import symsmooth

rng = np.random.default_rng(0)
blobs = data.binary_blobs(length=64, n_dim=3, blob_size_fraction=0.25, volume_fraction=0.35, rng=1)
texture = scipy.ndimage.gaussian_filter(rng.normal(0, 1, blobs.shape), 3)
clean = scipy.ndimage.gaussian_filter(blobs * (1.0 + 0.35 * texture / texture.std()), 0.7)[:32]
noisy = clean + rng.normal(0, 0.5, clean.shape)

# %%
# Slice by slice, and as a volume.

slices = np.stack([symsmooth.denoise(piece, 0.5, quality="fast") for piece in noisy])
volume = symsmooth.denoise(noisy, 0.5, quality="fast")


def error(image):
    """Return the root of the mean squared error."""
    return np.sqrt(np.mean((image - clean) ** 2))


fig, axes = plt.subplots(2, 4, figsize=(9, 3.5), layout="constrained", height_ratios=[2, 1])
for column, (name, image) in zip(
    axes.T,
    {"noisy": noisy, "slice by slice": slices, "volume": volume, "truth": clean}.items(),
    strict=True,
):
    column[0].imshow(image[16], vmin=-0.2, vmax=1.6)
    column[0].set_title(name if image is clean else f"{name}\nerror {error(image):.3f}")
    column[1].imshow(image[:, 32], vmin=-0.2, vmax=1.6)
    for ax in column:
        ax.axis("off")

# %%
# Above a slice, below a cut across the slices. On the command line, ``symsmooth denoise stack.tif -o
# out.tif --volume``.
