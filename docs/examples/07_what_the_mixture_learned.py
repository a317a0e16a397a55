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

clean = data.astronaut()[20:212, 120:312].mean(axis=-1)
noisy = clean + np.random.default_rng(0).normal(0, 30, clean.shape)
learned = symsmooth.fit_gsf(noisy, 30.0)
print(f"k = {learned.n_clusters}, then {learned.refined_clusters}; lambda = {learned.fidelity:.2f}")
figure = learned.plot()

# %%
# The clusters themselves: each has a place and a patch. Here are the patches of 60 clusters, brightest
# first, each where its mean is: they are denoised patches, learned from this picture alone.

places, patches = learned.mixture.means[:, :2], learned.mixture.means[:, 2:]
side = round(patches.shape[1] ** 0.5)
chosen = np.argsort(-patches.std(axis=1))[:: max(len(patches) // 60, 1)][:60]

fig, axes = plt.subplots(4, 15, figsize=(9, 2.5), layout="constrained")
for ax, index in zip(axes.flat, chosen, strict=True):
    ax.imshow(patches[index].reshape(side, side), vmin=patches.min(), vmax=patches.max())
    ax.axis("off")
