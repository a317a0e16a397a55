"""
Comparing methods
=================

Every method is in :data:`symsmooth.METHODS` and is called alike, so comparing them is a loop. On the
command line, ``symsmooth compare IN --methods denoise,nlm,bm3d --out report.html`` makes a page of it.
"""

# %%
# The paper's question first: what does one column normalisation do to NLM (``sinkhorn_iters=1``), with the
# paper's parameters? Then GSF, BM3D, and ``denoise``.

import time

import matplotlib.pyplot as plt
import numpy as np
from skimage import data

from symsmooth import METHODS
from symsmooth.core.metrics import psnr

clean = data.astronaut()[10:202, 130:322].mean(axis=-1)
noisy = clean + np.random.default_rng(0).normal(0, 25, clean.shape)

paper = {"h_s": 10.0, "h_r": 5 * 25.0}
tried = {
    "NLM": ("nlm", paper),
    "NLM, one step": ("nlm", {**paper, "sinkhorn_iters": 1}),
    "GSF": ("gsf", {}),
    "BM3D": ("bm3d", {}),
    "denoise": ("denoise", {}),
}
for method, options in tried.values():
    METHODS[method](noisy[:64, :64], 25.0, **options)  # loaded, so that times are fair

results, seconds = {"noisy": noisy}, {}
for name, (method, options) in tried.items():
    times = []
    for _ in range(3):
        start = time.perf_counter()
        results[name] = METHODS[method](noisy, 25.0, **options)
        times.append(time.perf_counter() - start)
    seconds[name] = min(times)


quality = {name: psnr(image, clean, 255) for name, image in results.items()}  # in decibel

fig, axes = plt.subplots(2, 3, figsize=(9, 6.4), layout="constrained")
for ax, (name, image) in zip(axes.flat, results.items(), strict=True):
    ax.imshow(image, vmin=0, vmax=255)
    ax.set_title(f"{name}, {quality[name]:.2f} dB")
    ax.axis("off")

# %%
# Quality against time: up and to the left is better.

fig, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
for name, taken in seconds.items():
    ax.plot(
        taken,
        quality[name],
        "o",
        markersize=8,
        color="#e0761b" if name == "denoise" else "#2f7de1",
    )
    ax.annotate(name, (taken, quality[name]), (8, -3), textcoords="offset points")
ax.set(xscale="log", xlabel="seconds", ylabel="PSNR, dB")
ax.margins(0.15)
