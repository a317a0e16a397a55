"""The measurements, each a function of a picture and plain options: what worker processes run.

Pictures come as grey uint8 and are cut or resized here; values are then 0 to 1, and ``sigma`` is in
grey levels of 255, as in the paper.  Noise is ``clean + sigma N(0, 1)``, neither clipped nor rounded.
"""

from __future__ import annotations

import base64
import io
import time
from typing import Any

import numpy as np

from symsmooth.core.image import Array, open_image
from symsmooth.core.metrics import psnr, ssim
from symsmooth.filters import weights
from symsmooth.filters.sinkhorn import Scalings, balance, normalize_rows, sinkhorn_knopp
from symsmooth.methods import METHODS
from symsmooth.mixture.gsf import fit_gsf
from symsmooth.mixture.selection import blend, cross_validate
from symsmooth.noise import add_noise

from .centred import learn_without_means

Measured = dict[str, Any]
_warmed: set[str] = set()  # methods whose kernels are compiled in this process


def view(pixels: Array, *, side: int = 0, crop: int = 0) -> Array:
    """Return a picture resized to a square (as the paper's tables) or its middle, values 0 to 1.

    Resizing is Pillow's antialiased bicubic on 8 bits, which is MATLAB's ``imresize``.
    """
    if crop:
        top, left = ((size - min(size, crop)) // 2 for size in pixels.shape)
        pixels = pixels[top : top + crop, left : left + crop]
    if side:
        from PIL import Image

        square = Image.fromarray(pixels).resize((side, side), Image.Resampling.BICUBIC)
        pixels = np.asarray(square)
    return pixels / 255.0


def spreads(clean: Array, *, sigma: float, seed: int, h_r: list[float]) -> Measured:
    """PSNR of NLM and of one-step for each h_r (times sigma sqrt(d)): window 21, patch 5."""
    level = sigma / 255
    noisy = add_noise(clean, level, seed)
    nlm = METHODS["nlm"]
    return {
        name: [
            psnr(nlm(noisy, level, h_r=5 * s * level, sinkhorn_iters=rounds, workers=1), clean)
            for s in h_r
        ]
        for name, rounds in (("original", 0), ("one_step", 1))
    }


def iterations(
    clean: Array, *, sigma: float, seed: int, h_r: float, max_iterations: int
) -> Measured:
    """PSNR of NLM after each of so many rounds of Sinkhorn-Knopp (Algorithm 1), and in the limit."""
    level = sigma / 255
    noisy = add_noise(clean, level, seed)
    picture = open_image(noisy)
    W = weights.nlm(picture.noisy, 5, 21, 5 * h_r * level / picture.scale).to_sparse()
    pixels = picture.noisy.ravel().astype(np.float64)

    def smoothed(scalings: Scalings) -> Array:
        values = scalings.row_scale * (W @ (scalings.col_scale * pixels))
        return values.reshape(clean.shape) * picture.scale + picture.offset

    path, scalings = [psnr(smoothed(normalize_rows(W)), clean)], None
    for _ in range(max_iterations):
        scalings = sinkhorn_knopp(W, 1, scalings)
        path.append(psnr(smoothed(scalings), clean))
    return {"psnr": path, "limit": psnr(smoothed(balance(W)), clean)}


def denoise(
    clean: Array,
    *,
    sigma: float,
    seed: int,
    method: str,
    options: dict[str, Any],
    keep: bool = False,
) -> Measured:
    """PSNR, SSIM and seconds (one thread) of a method; with ``keep`` its pictures too.

    ``prior`` = "clean", or "bm3d", hands EPLL that picture to learn from.
    """
    level = sigma / 255
    noisy = add_noise(clean, level, seed)
    denoiser = METHODS[method]
    options = dict(options)
    if options.get("prior") == "clean":
        options["prior"] = clean
    elif options.get("prior") == "bm3d":
        options["prior"] = METHODS["bm3d"](noisy, level)
    shared = (("workers", 1), ("rng", 0))
    options |= {name: value for name, value in shared if name in denoiser.accepts}
    if method not in _warmed:
        denoiser(noisy[:24, :24], level, **_small(options))
        _warmed.add(method)
    start = time.perf_counter()
    denoised = denoiser(noisy, level, **options)
    seconds = time.perf_counter() - start
    found = {"psnr": psnr(denoised, clean), "ssim": ssim(denoised, clean), "seconds": seconds}
    return found | (_pictures(denoised, noisy, level) if keep else {})


def observe(clean: Array, *, sigma: float, seed: int) -> Measured:
    """PSNR and pictures of the noisy and of the clean image."""
    noisy = add_noise(clean, sigma / 255, seed)
    pictures = {"clean": _png(clean), "noisy": _png(noisy)}
    return {"psnr": psnr(noisy, clean), "ssim": ssim(noisy, clean), "pictures": pictures}


def sure(clean: Array, *, sigma: float, seed: int, k: int, fidelities: list[float]) -> Measured:
    """SURE and true MSE of GSF for each lambda, with k clusters and h_r = sigma in both passes."""
    level = sigma / 255
    noisy = add_noise(clean, level, seed)
    fit = fit_gsf(
        noisy, level, n_clusters=k, refined_clusters=k, h_r=level, refined_h_r=level, workers=1
    )
    blends = [psnr(blend(fit.average, noisy, t, 25), clean) for t in fidelities]
    return {
        "psnr": blends,
        "sure": [fit.sure(t) for t in fidelities],
        "sure_lambda": fit.fidelity,
        "sure_psnr": psnr(fit.image, clean),
    }


def deviation(clean: Array, *, sigma: float, seed: int, k: int) -> Measured:
    """delta(k) and the PSNR of GSF with k clusters: first pass alone, and both."""
    level = sigma / 255
    noisy = add_noise(clean, level, seed)
    one = fit_gsf(noisy, level, n_clusters=k, passes=1, rng=seed, workers=1)
    two = fit_gsf(noisy, level, n_clusters=k, rng=seed, workers=1)
    return {
        "deviation": one.deviation,
        "psnr": psnr(one.image, clean),
        "psnr_two": psnr(two.image, clean),
    }


def clusters(clean: Array, *, sigma: float, seed: int, guess: int = 0) -> Measured:
    """K with delta(k) = 1 measured on the whole picture; PSNR of GSF with it, one pass and two.

    ``denoise_gsf`` measures delta in windows of a large picture; the paper does not, so neither here.
    """
    level = sigma / 255
    noisy = add_noise(clean, level, seed)
    own = fit_gsf(noisy, level, passes=1, workers=1)

    def measured(k: int) -> float:
        return fit_gsf(noisy, level, n_clusters=k, passes=1, workers=1).deviation

    search = cross_validate(measured, guess or own.n_clusters, 2, noisy.size // 4)
    one = fit_gsf(noisy, level, n_clusters=search.n_clusters, passes=1, workers=1)
    two = fit_gsf(noisy, level, n_clusters=search.n_clusters, workers=1)
    return {
        "k": search.n_clusters,
        "k_windows": own.n_clusters,
        "steps": [list(step) for step in search.steps],
        "psnr_one": psnr(one.image, clean),
        "psnr": psnr(two.image, clean),
    }


def centred(clean: Array, *, sigma: float, seed: int, rounds: int, keep: bool = False) -> Measured:
    """PSNR of GSF's first pass with the patches' means kept, removed, and removed but updated."""
    level = sigma / 255
    noisy = add_noise(clean, level, seed)
    learned = learn_without_means(noisy, level, rounds)
    found: Measured = {
        name: {"k": k, "psnr": psnr(image, clean)} for name, (k, image) in learned.items()
    }
    if keep:
        for name, (_, image) in learned.items():
            found[name] |= _pictures(image, noisy, level)
    return found


def _pictures(denoised: Array, noisy: Array, level: float) -> Measured:
    """Return the denoised picture, and the method noise y - zhat with 3 sigma as black and white."""
    difference = 0.5 + (noisy - denoised) / (6 * level)
    return {"pictures": {"denoised": _png(denoised), "noise": _png(difference)}}


def _png(pixels: Array) -> str:
    """Return grey or colour pixels, 0 to 1 (clipped), as a PNG file in base64."""
    from PIL import Image

    levels = np.rint(np.clip(np.asarray(pixels, np.float64), 0.0, 1.0) * 255).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(levels).save(out, "PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode("ascii")


def _small(options: dict[str, Any]) -> dict[str, Any]:
    """Return options for a tiny picture: arrays cut with it."""
    return {k: v[:24, :24] if isinstance(v, np.ndarray) else v for k, v in options.items()}


TASKS = {
    task.__name__: task
    for task in (spreads, iterations, denoise, observe, sure, deviation, clusters, centred)
}
