"""
How sure is each pixel?
=======================

:func:`symsmooth.fit_gsfw` returns more than a picture: ``std`` is the standard deviation that the clusters
themselves claim for their estimate, pixel by pixel.
"""

# %%
# The estimate is sure of itself where many patches look alike, and less so at edges and in texture.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import symsmooth

clean = data.coins()[20:220, 60:320].astype(float)
noisy = clean + np.random.default_rng(0).normal(0, 25, clean.shape)
found = symsmooth.fit_gsfw(noisy, 25.0)
error = np.abs(found.image - clean)

fig, axes = plt.subplots(1, 3, figsize=(9, 2.7), layout="constrained")
axes[0].imshow(found.image, vmin=0, vmax=255)
axes[0].set_title("denoised")
for ax, image, title in [(axes[1], found.std, "claimed std"), (axes[2], error, "true error")]:
    shown = ax.imshow(image, cmap="inferno", vmin=0, vmax=20)
    ax.set_title(title)
for ax in axes:
    ax.axis("off")
fig.colorbar(shown, ax=axes, label="grey levels", shrink=0.8)

# %%
# Is the claim honest? Pixels in twenty groups of equal size, by what they claim: the true error of each
# group should be on the line. Here flat parts are better than they claim.

order = np.argsort(found.std.ravel())
groups = np.array_split(order, 20)
claimed = [np.sqrt(np.mean(found.std.ravel()[group] ** 2)) for group in groups]
true = [np.sqrt(np.mean(error.ravel()[group] ** 2)) for group in groups]
ratios = np.array(claimed) / true
print(f"claimed over true, by group: {ratios.min():.2f} to {ratios.max():.2f}")

fig, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
limit = 1.05 * max(*claimed, *true)
ax.plot([0, limit], [0, limit], color="#8a93a0", linewidth=1)
ax.plot(claimed, true, "o")
ax.set(
    xlabel="claimed standard deviation", ylabel="true error (rms)", xlim=(0, limit), ylim=(0, limit)
)
