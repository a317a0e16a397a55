"""
How much noise is there?
========================

:func:`symsmooth.estimate_sigma` measures the level of white noise from the picture alone;
:func:`symsmooth.estimate_noise` also says what kind of noise it is.
"""

# %%
# The level, for noise between 2 and 80 grey levels, on three very different pictures: a photograph, a grain
# of gravel that is hardly anything but texture, and a printed page.

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import symsmooth

pictures = {"camera": data.camera(), "gravel": data.gravel(), "page": data.page()}
levels = np.array([2, 5, 10, 20, 40, 80])
rng = np.random.default_rng(0)

found = {
    name: [
        symsmooth.estimate_sigma(picture + rng.normal(0, level, picture.shape)) for level in levels
    ]
    for name, picture in pictures.items()
}

fig, ax = plt.subplots(figsize=(9, 4), layout="constrained")
ax.plot(levels, levels, color="#8a93a0", linewidth=1, label="truth")
for (name, estimates), mark in zip(found.items(), "os^", strict=True):
    ax.plot(levels, estimates, mark, markersize=7, label=name)
ax.set(xscale="log", yscale="log", xlabel="true noise level", ylabel="estimated noise level")
ax.set_xticks(levels, levels)
ax.set_yticks(levels, levels)
ax.minorticks_off()
ax.legend()

# %%
# Where texture is all there is and the noise is faint, the estimate is too high: give ``sigma`` when
# you know it. Now the kind: white noise, photon counts, and noise with a grain, on the same picture.

import scipy.ndimage

clean = data.camera().astype(float)
grain = scipy.ndimage.gaussian_filter(rng.normal(0, 1, clean.shape), 1.5)
noisy = {
    "white": clean + rng.normal(0, 15, clean.shape),
    "photons": 5.0 * rng.poisson(clean / 5.0),
    "grain": clean + 15 * grain / grain.std(),
}
models = {name: symsmooth.estimate_noise(picture) for name, picture in noisy.items()}
for name, model in models.items():
    print(f"{name:8} {model}")

# %%
# :func:`symsmooth.denoise` asks the same question first. A model can be given to it, so that the pictures
# of one camera are all treated alike.

fig, axes = plt.subplots(2, 3, figsize=(9, 6.2), layout="constrained")
crop = np.s_[60:220, 160:320]
for column, (name, picture) in zip(axes.T, noisy.items(), strict=True):
    denoised = symsmooth.denoise(picture, noise=models[name], quality="fast")
    column[0].imshow(picture[crop], vmin=0, vmax=255)
    column[0].set_title(f"{name}: called {models[name].kind}")
    column[1].imshow(denoised[crop], vmin=0, vmax=255)
    for ax in column:
        ax.axis("off")
