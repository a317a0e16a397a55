"""
Noise of a camera, in colour
============================

What comes out of a camera is not white noise: the sensor's noise has been through demosaicing, white
balance, a colour matrix, a gamma curve and JPEG. It is coarse, coloured and hard to get rid of.
"""

# %%
# We photograph a cat with a simulated camera at a high ISO value.

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth_repro.camera import CAMERAS, photograph

scene = data.chelsea()[:, :450] / 255.0
noisy, clean = photograph(scene, CAMERAS["B"])

# %%
# A method for white noise sees little noise at the finest scale, and leaves the blotches. ``denoise``
# measures the spectrum of the noise and divides by it first.

model = symsmooth.estimate_noise(noisy, channel_axis=-1)
print(model)

white = symsmooth.denoise(noisy, noise="gaussian", channel_axis=-1)
denoised = symsmooth.denoise(noisy, noise=model, channel_axis=-1)

fig, axes = plt.subplots(2, 2, figsize=(9, 6.7), layout="constrained")
crop = np.s_[60:220, 100:330]
for ax, (name, image) in zip(
    axes.flat,
    {
        "from the camera": noisy,
        "as white noise": white,
        "denoise": denoised,
        "truth": clean,
    }.items(),
    strict=True,
):
    ax.imshow(np.clip(image[crop], 0, 1))
    ax.set_title(name if image is clean else f"{name}, {psnr(image, clean):.1f} dB")
    ax.axis("off")

# %%
# The spectrum that was found: energies of the noise at the 8 x 8 frequencies of a cosine transform, for
# brightness and the two colours. White noise would be flat.

fig, axes = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
for ax, variances, name in zip(
    axes, model.spectrum, ["brightness", "red-blue", "green"], strict=True
):
    shown = ax.imshow(
        10 * np.log10(variances / model.spectrum.max()), cmap="viridis", vmin=-25, vmax=0
    )
    ax.set_title(name)
    ax.set(xticks=[0, 7], yticks=[0, 7])
fig.colorbar(shown, ax=axes, label="dB", shrink=0.85)
