"""
What the mixture learned
========================

The paper's GSF learns a mixture of patches and chooses its two parameters from the data: the number of
clusters *k* and the weight lambda of the noisy picture. :func:`symsmooth.fit_gsf` tells all of it.
"""

# %%
# The secant search looks for the *k* whose clusters are as wide as they should be, ``delta(k) = 1``.
# Stein's unbiased risk estimate (SURE) follows the true error without knowing the truth; its minimum gives
# lambda.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import symsmooth

clean = data.coffee()[100:292, 200:392].mean(axis=-1)
noisy = clean + np.random.default_rng(0).normal(0, 30, clean.shape)
learned = symsmooth.fit_gsf(noisy, 30.0)
print(f"k = {learned.n_clusters}, then {learned.refined_clusters}; lambda = {learned.fidelity:.2f}")
figure = learned.plot()

# %%
# The clusters themselves: each has a place and a patch, in the mixture's own coordinates. Here are 60 of
# the patches, those with most contrast first: edges and corners, learned from this picture alone. Most of
# the others are flat.

patches = learned.mixture.means[:, 2:]  # behind the two coordinates of the place
side = round(patches.shape[1] ** 0.5)
chosen = np.argsort(-patches.std(axis=1))[: len(patches) // 4]
chosen = chosen[:: len(chosen) // 60][:60]

fig, axes = plt.subplots(4, 15, figsize=(9, 2.5), layout="constrained")
for ax, index in zip(axes.flat, chosen, strict=True):
    ax.imshow(patches[index].reshape(side, side))
    ax.axis("off")
