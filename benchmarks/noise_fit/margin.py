"""Fit how much more than the noise found the denoiser is told, and how sure that is: by its regret.

Pictures are denoised (``fast``) with several margins, and with the true noise.  Margins of
grey pictures, of luminance and of colours are 2^(c (a + b log2 s + d t + e u)), c how far noise is coarse
(white: as it was found), s the deviation that the network says itself, t how far texture lies above the
noise, u how much stronger colours are; a, b, d and e are chosen for the least mean regret.  Confidence is
the probability that the result lies within half a decibel of that with the true noise: logistic in log2 s.
"""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import dataset
import numpy as np
import scipy.interpolate
import scipy.optimize
import simulate
from PIL import Image
from pool import N_KODAK_KEPT_BACK, Pool, images_folder

import symsmooth
from symsmooth.core.image import open_image
from symsmooth.noise import White, estimator, evidence, fit
from symsmooth.noise.spectrum import coarse_shares
from symsmooth_repro.camera import CAMERAS, photograph

MARGINS = np.array([0.6, 0.8, 1.0, 1.25, 1.6, 2.2])
SIZE = 160
CLOSE = 0.5  # decibels
TRULY_KNOWN = 0.03  # deviation of log2 of the level that is measured on the noise itself
REAL_WEIGHT, CAMERA_WEIGHT = 5.0, 2.0  # of pictures that are not from our simulator, and few
DOES_NOT_COUNT = 1.0, 0.03  # grey levels squared, share of the noise: errors below are not seen


def collect(
    work: Path, weights: dict[str, np.ndarray], count: int, out: Path, seed: int = 31
) -> None:
    """Denoise pictures with several margins and with the true noise; write their errors."""
    warnings.filterwarnings("ignore")
    rng, pool = np.random.default_rng(seed), Pool(work, kept_back=False)
    bare = {
        name: values for name, values in weights.items() if name not in ("margin", "confidence")
    }
    jobs = [
        (f"{collection}/{name}", _inner(noisy) / 255, _inner(clean) / 255, 1 / 255)
        for number, (collection, name, noisy, clean) in enumerate(dataset.real_pairs())
        if dataset.may_be_learnt_from(collection, name) and (number % 2 or collection == "fmd")
    ]
    jobs += _camera_pictures()
    rows = []
    for number in range(count + len(jobs)):
        if number % 5 == 0 and number // 5 < len(jobs):
            kind, noisy, clean, step = jobs[number // 5]
            noise = noisy - clean
        else:
            drawn = simulate.draw(rng, pool, size=SIZE)
            kind, noisy, step = drawn.kind, drawn.one, drawn.step
            clean = drawn.one if kind == "none" else drawn.clean
            noise = (drawn.one - drawn.two) / np.float32(np.sqrt(2))
        row = _errors(noisy * 255, clean * 255, noise * 255, step * 255, bare)
        if row is not None:
            rows.append((kind, *row))
        if number % 50 == 49:
            out.write_bytes(pickle.dumps(rows))
            print(len(rows), flush=True)
    out.write_bytes(pickle.dumps(rows))


def _camera_pictures() -> list[tuple[str, np.ndarray, np.ndarray, float]]:
    """Return pictures of the two cameras that other experiments simulate: another simulator than ours."""
    found = []
    for number, file in enumerate(
        sorted((images_folder() / "kodak24").iterdir())[N_KODAK_KEPT_BACK:]
    ):
        scene = np.asarray(Image.open(file)) / 255.0
        for name, camera in CAMERAS.items():
            noisy, clean = photograph(scene, camera, 7 + number)
            found.append(
                (f"camera {name}/{file.name}", _inner(simulate.to8(noisy)), _inner(clean), 1 / 255)
            )
    return found


def _inner(pixels: np.ndarray) -> np.ndarray:
    side = 192
    start = (len(pixels) - side) // 2
    return pixels[start : start + side, start : start + side].astype(np.float32)


def _errors(noisy, clean, noise, step, weights):
    """Return what the margin depends on, and squared errors of luminance and colours: (margins + 2, 2)."""
    found = evidence.measure([noisy], [None], step)
    if found is None:
        return None
    nodes = fit.nodes_of(estimator.estimate(found, weights), found)
    live = evidence.is_live(noisy)
    true = evidence.energies(noise)[live].astype(np.float64)
    near = evidence.node_weights(evidence.rank_of(found.brightness))
    near = near / near.sum(axis=0)
    energy = np.einsum("nk,ncr->kcr", near, true)
    best = replace(
        nodes,
        energy=energy,
        variance=(energy @ evidence.PER_RING).mean(axis=1),
        spread=np.full(len(energy), TRULY_KNOWN),
        ring_spread=np.full(energy.shape[1:], TRULY_KNOWN),
    )
    models = [_with_margin(nodes, noisy, margin, step) for margin in MARGINS]
    models += [_with_margin(best, noisy, 1.0, step)]
    pixels = noisy if noisy.shape[-1] == 3 else noisy[..., 0]
    axis = -1 if noisy.shape[-1] == 3 else None
    if step:
        pixels = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    if open_image(pixels, axis).counted is not None:  # grey, saved as RGB
        return None
    errors = []
    for model in models:
        image = symsmooth.denoise(pixels, noise=model, channel_axis=axis, quality="fast", workers=1)
        errors.append(_split(image.reshape(noisy.shape).astype(np.float32) - clean))
    errors.append(_split(noisy - clean))
    coarse = np.zeros(3)
    spectrum = models[2].spectrum
    if spectrum is not None:
        coarse[: len(spectrum)] = coarse_shares(spectrum)
    known = nodes.said, nodes.texture, nodes.colour
    return coarse, known, nodes.level, np.array(errors), noisy.shape[-1]


def _with_margin(nodes, noisy, margin, step):
    if nodes.level <= 0.1 * step or nodes.level == 0.0:
        return White(0.0)
    found = fit.fuse(nodes, [noisy])
    return replace(found, margin=np.full(len(found.spectrum), margin))


def _weight(kind: str) -> float:
    return CAMERA_WEIGHT if kind.startswith("camera ") else REAL_WEIGHT if "/" in kind else 1.0


def _split(error: np.ndarray) -> tuple[float, float]:
    if error.shape[-1] == 1:
        return float(np.square(error).mean()), 0.0
    squares = np.square(error @ evidence.OPPONENT).mean(axis=(0, 1))
    return float(squares[0]), float(squares[1:].sum())


def fit_numbers(rows: list) -> dict[str, np.ndarray]:
    """Return the numbers of margin and confidence, and print what they are worth."""
    coarse = np.array([row[1] for row in rows])
    known, level = (np.array([row[i] for row in rows]) for i in (2, 3))
    said = known[:, 0]
    x = np.column_stack([np.ones(len(known)), np.log2(said), known[:, 1:]])
    errors, channels = np.array([row[4] for row in rows]), np.array([row[5] for row in rows])
    logs = np.log(errors[:, : len(MARGINS)] + 1e-4)
    splines = scipy.interpolate.CubicSpline(np.log2(MARGINS), logs, axis=1)
    few = channels * DOES_NOT_COUNT[0] + DOES_NOT_COUNT[1] * level**2 * channels
    fine = np.linspace(np.log2(MARGINS[0]), np.log2(MARGINS[-1]), 61)
    tables = np.exp(splines(fine))  # (pictures, fine, 2)
    tables[channels == 1, :, 1] = 0.0
    best = 10 * np.log10(tables.min(axis=1).sum(axis=-1) + few)

    def regret(luma: np.ndarray, chroma: np.ndarray) -> np.ndarray:
        total = few.copy()
        for k, told in enumerate((luma, chroma)):
            total += [
                np.interp(t, fine, table) for t, table in zip(told, tables[:, :, k], strict=True)
            ]
        return 10 * np.log10(total) - best

    def told(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        grey, luma, chroma = numbers.reshape(3, 4)
        first = np.where(channels == 1, x @ grey, x @ luma)
        return coarse.max(axis=1) * first, coarse.max(axis=1) * (x @ chroma)

    def loss(numbers: np.ndarray) -> float:
        mean = np.average(regret(*told(numbers)), weights=weight)
        return float(mean + 0.01 * np.square(numbers).sum())

    weight = np.array([_weight(row[0]) for row in rows])
    start = np.array([[0.1, 0.0, 0.0, 0.0], [0.2, 0.0, 0.0, 0.0], [0.3, 0.0, 0.0, 0.0]]).ravel()
    numbers = scipy.optimize.minimize(loss, start, method="Powell").x
    zero = np.zeros(len(rows))
    print(
        f"regret: fitted {regret(*told(numbers)).mean():.3f}, margin 1 {regret(zero, zero).mean():.3f}",
        numbers.round(3),
    )
    kinds = np.array([row[0].split("/")[0] for row in rows])
    for kind in np.unique(kinds):
        own = kinds == kind
        fitted, plain = regret(*told(numbers))[own], regret(zero, zero)[own]
        print(
            f"  {kind:10s} {own.sum():4d} fitted {fitted.mean():.2f} (worst {fitted.max():.2f}), "
            f"margin 1 {plain.mean():.2f}"
        )
    with_true = 10 * np.log10(errors[:, len(MARGINS)].sum(axis=-1) + few)
    luma, chroma = told(numbers)
    loss_db = regret(luma, chroma) + best - with_true
    close = loss_db < CLOSE
    z = np.stack([np.ones(len(said)), np.log2(said)], axis=1)

    def surprise(ab: np.ndarray) -> float:
        odds = z @ ab
        return float(np.logaddexp(0, np.where(close, -odds, odds)).mean())

    confidence = scipy.optimize.minimize(surprise, np.zeros(2)).x
    p = 1 / (1 + np.exp(-(z @ confidence)))
    print(
        f"within {CLOSE} dB of the true noise: {close.mean():.2f}; confidence", confidence.round(3)
    )
    for low, high in ((0.0, 0.5), (0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01)):
        own = (p >= low) & (p < high)
        if own.any():
            print(
                f"  said {low:.1f} to {high:.1f}: {own.sum():4d} pictures, close {close[own].mean():.2f}"
            )
    return {"margin": numbers.reshape(3, 4), "confidence": confidence}
