"""
Counts of photons
=================

A microscope or a telescope in the dark counts photons. Bright places are noisier than dark ones, so one
noise level does not fit. The Poisson-Gaussian model does: the variance is ``gain * signal + offset``.
"""

# %%
# A cell, dim enough that the brightest pixel expects 12 photons; a camera with gain 4, an offset of 100 and
# read noise of 3.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import symsmooth
from symsmooth.noise import PoissonGaussian

scene = data.cell()[260:490, 310:540] / 255.0
gain, black, read = 4.0, 100.0, 3.0
rng = np.random.default_rng(0)
clean = black + gain * 12 * scene
noisy = black + gain * rng.poisson(12 * scene) + rng.normal(0, read, scene.shape)

# %%
# Three ways: as if the noise were white; with the model estimated; with the model of the calibrated
# camera (the variance without light is ``read**2``, so ``offset`` is ``read**2 - gain * black``).

calibrated = PoissonGaussian(gain=(gain,), offset=(read**2 - gain * black,), black=(black,))
estimated = symsmooth.estimate_noise(noisy, noise="poisson-gaussian")
print(estimated)
print(calibrated)

results = {
    "noisy": noisy,
    "as white noise": symsmooth.denoise(noisy, noise="gaussian"),
    "estimated": symsmooth.denoise(noisy, noise=estimated),
    "calibrated": symsmooth.denoise(noisy, noise=calibrated),
}

fig, axes = plt.subplots(1, 4, figsize=(9, 2.7), layout="constrained")
for ax, (name, image) in zip(axes, results.items(), strict=True):
    error = np.sqrt(np.mean((image - clean) ** 2))
    ax.imshow(image, cmap="magma", vmin=black, vmax=black + gain * 12)
    ax.set_title(f"{name}\nerror {error:.2f}")
    ax.axis("off")

# %%
# Does the result keep the brightness? The inverse of the transform is unbiased, so even the darkest
# parts do:

dark, bright = scene < 0.3, scene > 0.6
for name, where in {"dark": dark, "bright": bright}.items():
    means = [image[where].mean() for image in (clean, noisy, results["calibrated"])]
    print(f"{name:7} clean {means[0]:.2f}, noisy {means[1]:.2f}, denoised {means[2]:.2f}")
