"""
A denoiser as a prior
=====================

A picture is blurred, has holes, or is too small. Algorithms for such problems need to know what pictures
look like; a denoiser knows. In *half-quadratic splitting* two steps alternate: one towards the data, one of
:func:`symsmooth.denoise`, whose noise level falls from iteration to iteration.
"""

# %%
# The step of the prior is one call: the level is known, so nothing is estimated, and nothing is a speck.
# The step towards the data is the only thing that a problem has of its own.

import matplotlib.pyplot as plt
import numpy as np
from scipy import fft, ndimage
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr

TRUST = 0.23  # weight of the prior


def restore(start, nearest, sigma, levels):
    """Alternate between data and prior; return all estimates."""
    estimates = [start]
    for level in levels:
        towards_data = nearest(estimates[-1], TRUST * (sigma / level) ** 2)
        estimates.append(symsmooth.denoise(towards_data, level, quality="fast", specks="keep"))
    return estimates


clean = data.camera()[40:168, 180:308].astype(float)
rng = np.random.default_rng(0)

# %%
# **Deblurring.** The blur is known; without noise it could be divided by. The minimum of
# :math:`\|Ax - y\|^2 + w \|x - z\|^2` is a division, too, and a safe one.

squares = [np.fft.fftfreq(n) ** 2 for n in clean.shape]
blur = np.exp(-2 * np.pi**2 * 1.6**2 * np.add.outer(*squares))  # Gaussian, 1.6 pixels
blurred = fft.ifft2(blur * fft.fft2(clean)).real + rng.normal(0, 2, clean.shape)


def sharpen(guess, weight):
    """Return what is nearest to the blurred picture and to a guess."""
    return fft.ifft2(
        (blur * fft.fft2(blurred) + weight * fft.fft2(guess)) / (blur**2 + weight)
    ).real


sharp = restore(blurred, sharpen, 2.0, np.geomspace(40, 2, 8))

# %%
# **Inpainting.** Three quarters of the pixels are missing. It begins with the nearest pixel that is there.

holes = rng.random(clean.shape) < 0.75
seen = clean + rng.normal(0, 5, clean.shape)
nearest_seen = ndimage.distance_transform_edt(holes, return_distances=False, return_indices=True)


def fill(guess, weight):
    """Return what is nearest to the pixels that are there and to a guess."""
    return np.where(holes, guess, (seen + weight * guess) / (1 + weight))


filled = restore(seen[tuple(nearest_seen)], fill, 5.0, np.geomspace(30, 2, 24))

# %%
# **Super-resolution.** Every second pixel of every second line of a blurred picture. Frequencies fall
# together in the small picture; the division takes those together that do.

small = fft.ifft2(blur * fft.fft2(clean)).real[::2, ::2] + rng.normal(0, 1, (64, 64))
zeros_between = np.zeros(clean.shape)
zeros_between[::2, ::2] = small


def fold(spectrum):
    """Return the mean of frequencies that fall together."""
    return spectrum.reshape(2, 64, 2, 64).mean((0, 2))


def enlarge(guess, weight):
    """Return what is nearest to the small picture and to a guess."""
    top = blur * fft.fft2(zeros_between) + weight * fft.fft2(guess)
    folded = fold(blur * top) / (fold(blur**2) + weight)
    return fft.ifft2((top - blur * np.tile(folded, (2, 2))) / weight).real


between = np.mgrid[0:64:0.5, 0:64:0.5]
spline = ndimage.map_coordinates(small, between, order=3, mode="grid-wrap")
large = restore(spline, enlarge, 1.0, np.geomspace(30, 2, 8))

# %%
# What came in, and what came out.

results = {
    "deblurring": (blurred, sharp),
    "inpainting": (np.where(holes, 0, seen), filled),
    "super-resolution": (np.kron(small, np.ones((2, 2))), large),
}
fig, axes = plt.subplots(2, 3, figsize=(9, 6.4), layout="constrained")
for (before, after), (name, (given, estimates)) in zip(axes.T, results.items(), strict=True):
    before.imshow(given, vmin=0, vmax=255)
    before.set_title(name)
    after.imshow(estimates[-1], vmin=0, vmax=255)
    after.set_title(f"{psnr(estimates[-1], clean, 255):.1f} dB")
    before.axis("off")
    after.axis("off")

# %%
# How it gets there.

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, (_, estimates) in results.items():
    ax.plot([psnr(each, clean, 255) for each in estimates], label=name)
ax.set(xlabel="iteration", ylabel="PSNR, dB")
ax.legend()

for name, (_, estimates) in results.items():
    print(
        f"{name}: {psnr(estimates[0], clean, 255):.2f} -> {psnr(estimates[-1], clean, 255):.2f} dB"
    )
