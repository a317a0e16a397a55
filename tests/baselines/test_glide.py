"""GLIDE: the Nystrom eigenvectors, the estimated MSE, and the paper's column."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import denoise_glide
from symsmooth.baselines import glide
from symsmooth.baselines.glide import Spectrum, balance_factor, decompose, nystrom
from symsmooth.core.metrics import psnr
from symsmooth.core.patches import whiten
from symsmooth.filters.filters import denoise_nlm
from symsmooth.filters.sinkhorn import balance
from symsmooth.noise import add_noise

from ..oracles import generalised_patches, squared_distances

SIGMA = 0.1
# Means of the GLIDE column over the ten pictures, and what we ask for of each picture (0.1 dB of seeds off)
PRINTED = {20: 28.15, 40: 24.73, 60: 22.76, 80: 21.51, 100: 20.41}
PRINTED_HERE = {  # sigma: boat, house, man
    20: (27.55, 31.82, 27.37),
    60: (22.59, 24.72, 22.24),
}


def spectrum_of(features: np.ndarray, sampled: np.ndarray, observed: np.ndarray) -> Spectrum:
    return decompose(balance_factor(nystrom(features, sampled), observed, 200), observed)


def blocks(camera: np.ndarray, h_r: float = 0.3) -> np.ndarray:
    """Whitened features of three blocks of 12 x 12: (3, 144, P)."""
    pieces = [camera[a : a + 12, 20:32, None] for a in (0, 20, 40)]
    return np.stack([generalised_patches(p, 3, 5.0, h_r) for p in pieces]).astype(np.float32)


def dense_filter(features: np.ndarray) -> np.ndarray:
    """The doubly stochastic filter of one block, by the definition, float64."""
    K = np.exp(-squared_distances(features.astype(float), features.astype(float)) / 2)
    s = balance(K).row_scale
    return s[:, None] * K * s


def test_all_rows_sampled_give_the_exact_eigenvectors(camera) -> None:
    features = blocks(camera)
    n = features.shape[1]
    W = spectrum_of(features, np.arange(n), np.ones(features.shape[:2], np.float32))
    for block in range(len(features)):
        exact = dense_filter(features[block])
        values, vectors = np.linalg.eigh(exact)
        values, vectors = values[::-1], vectors[:, ::-1]
        assert np.abs(W.values[block] - values).max() < 2e-3
        apart = np.flatnonzero((values[:8] - values[1:9] > 0.01) & (values[:8] > 0.1))
        assert apart.size > 3
        for i in apart[1:]:
            near = (values[i - 1] - values[i]) > 0.01
            if near:
                assert abs(W.vectors[block][:, i] @ vectors[:, i]) > 0.999
        rebuilt = (W.vectors[block] * W.values[block]) @ W.vectors[block].T
        assert np.abs(rebuilt - exact).max() < 2e-3


def test_the_nystrom_error_falls_with_the_number_of_rows(camera) -> None:
    features = blocks(camera)[:1]
    exact = dense_filter(features[0])
    observed = np.ones(features.shape[:2], np.float32)
    errors = []
    for samples in (9, 36, 72, 144):
        W = spectrum_of(features, glide.sample_grid((12, 12), samples), observed)
        rebuilt = (W.vectors[0] * W.values[0]) @ W.vectors[0].T
        errors.append(np.linalg.norm(rebuilt - exact) / np.linalg.norm(exact))
    print("relative errors", np.round(errors, 4))
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[1] < 0.5


def test_the_filter_is_symmetric_and_its_rows_sum_to_one(camera) -> None:
    features = blocks(camera, h_r=0.6)
    observed = np.ones(features.shape[:2], np.float32)
    W = spectrum_of(features, glide.sample_grid((12, 12), 49), observed)
    V = W.vectors
    for block in range(len(features)):
        matrix = (V[block] * W.values[block]) @ V[block].T
        assert np.abs(matrix - matrix.T).max() < 1e-5
        assert np.abs(matrix.sum(axis=1) - 1).max() < 1e-3
        kept = W.values[block] > 1e-3
        gram = V[block][:, kept].T @ V[block][:, kept]
        assert np.abs(gram - np.eye(kept.sum())).max() < 1e-2
        assert W.values[block, 0] == pytest.approx(1.0, abs=1e-3)
        assert (np.diff(W.values[block]) <= 0).all()


def test_a_missing_pixel_gives_nothing_and_is_given_a_row(camera) -> None:
    features = blocks(camera, h_r=0.6)
    observed = np.ones(features.shape[:2], np.float32)
    observed[:, 30:40] = 0
    W = spectrum_of(features, glide.sample_grid((12, 12), 49), observed)
    values = np.random.default_rng(0).normal(size=(3, 144, 1)).astype(np.float32)
    other = np.where(observed[..., None] > 0, values, 100)
    filtered = [
        W.synthesise(W.values[..., None] * W.analyse(v * observed[..., None]))
        for v in (values, other)
    ]
    assert np.array_equal(*filtered)
    ones = W.synthesise(W.values[..., None] * W.analyse(observed[..., None]))
    assert np.abs(ones - 1).max() < 2e-3


def brute_force(values: np.ndarray, signal: np.ndarray, sigma: float) -> tuple[float, int, float]:
    """(MSE, m, k) by the formula, for one block and channel."""
    found = []
    for k in glide._POWERS:
        for m in range(1, len(values) + 1):
            gain = np.where(np.arange(len(values)) < m, values**k, 0.0)
            found.append((float(((1 - gain) ** 2 * signal**2 + sigma**2 * gain**2).sum()), m, k))
    return min(found)


def test_the_choice_is_that_of_a_search_over_all() -> None:
    rng = np.random.default_rng(1)
    values = np.sort(rng.uniform(0.01, 1, (4, 20)), axis=1)[:, ::-1].astype(np.float32)
    signal = (rng.normal(size=(4, 20, 2)) * values[..., None] ** 2).astype(np.float32)
    chosen = glide.choose(values, signal, SIGMA)
    for block in range(4):
        for channel in range(2):
            risk, m, k = brute_force(values[block].astype(float), signal[block, :, channel], SIGMA)
            assert chosen.risk[block, channel] == pytest.approx(risk, rel=1e-4)
            assert (chosen.kept[block, channel], chosen.power[block, channel]) == (m, k)
            gains = np.where(np.arange(20) < m, values[block] ** k, 0)
            assert np.allclose(chosen.gains[block, :, channel], gains, atol=1e-6)


@pytest.fixture(scope="module")
def situation(camera) -> tuple[Spectrum, np.ndarray, np.ndarray]:
    """The filter, the clean pixels and the pilot's, of all blocks of 16 x 16 of one noisy picture."""
    pilot = denoise_nlm(add_noise(camera, SIGMA, 5), SIGMA, sinkhorn_iters=1)

    def cut(image: np.ndarray) -> np.ndarray:
        pieces = image.reshape(4, 16, 4, 16, -1).swapaxes(1, 2).reshape(16, 256, -1)
        return np.ascontiguousarray(pieces, dtype=np.float32)

    features = whiten(pilot[..., None].astype(np.float32), 5, 7.0, 0.6 * SIGMA * 5)
    all_features = cut(features.at(np.arange(64 * 64)).reshape(64, 64, -1))
    W = spectrum_of(all_features, glide.sample_grid((16, 16), 64), np.ones((16, 256), np.float32))
    centred = [cut(image) for image in (camera, pilot)]
    clean, guide = (c - c.mean(axis=1, keepdims=True) for c in centred)
    return W, clean, guide


def true_risks(W: Spectrum, clean: np.ndarray, seeds: range) -> np.ndarray:
    """The true squared error of every (m, k), inside the span of V, mean over fresh noise."""
    b = W.analyse(clean)[..., 0]
    total = 0.0
    for seed in seeds:
        noise = SIGMA * np.random.default_rng(seed).standard_normal(clean.shape)
        coefficients = b + W.analyse(noise.astype(np.float32))[..., 0]
        gain = W.values[None] ** glide._POWERS[:, None, None]
        change = (gain * coefficients - b) ** 2 - b**2
        total = total + np.cumsum(change, axis=-1) + (b**2).sum(axis=-1)[..., None]
    return total / len(seeds)  # (powers, blocks, m)


def estimated_risks(W: Spectrum, guide: np.ndarray) -> np.ndarray:
    b = W.analyse(guide)[..., 0]
    gain = W.values[None] ** glide._POWERS[:, None, None]
    change = (1 - gain) ** 2 * b**2 + SIGMA**2 * gain**2 - b**2
    return np.cumsum(change, axis=-1) + (b**2).sum(axis=-1)[..., None]


def test_bias_and_variance_make_the_mean_squared_error(situation) -> None:
    """With the true coefficients the formula is the mean over the noise, for every (m, k)."""
    W, clean, _ = situation
    simulated = true_risks(W, clean, range(200))
    assert np.abs(estimated_risks(W, clean) / simulated - 1).mean() < 0.05


def test_the_estimate_from_the_pilot_tracks_the_true_error(situation) -> None:
    """Over all blocks, and over the (m, k) of most blocks; its level is low: a pilot has lost detail."""
    W, clean, guide = situation
    true, estimated = true_risks(W, clean, range(20)), estimated_risks(W, guide)
    pairs = zip(np.moveaxis(true, 1, 0), np.moveaxis(estimated, 1, 0), strict=True)
    of_blocks = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in pairs]
    overall = np.corrcoef(true.ravel(), estimated.ravel())[0, 1]
    print(f"correlation {overall:.3f}; median of blocks {np.median(of_blocks):.3f}")
    print(f"estimated / true {estimated.mean() / true.mean():.2f}")
    assert overall > 0.95
    assert np.median(of_blocks) > 0.95
    assert 0.5 < estimated.mean() / true.mean() < 1.1


def test_the_chosen_filter_is_close_to_the_oracle(situation) -> None:
    W, clean, guide = situation
    true = true_risks(W, clean, range(20))
    chosen = glide.choose(W.values, W.analyse(guide), SIGMA)
    power = np.searchsorted(glide._POWERS, chosen.power[:, 0])
    blocks = np.arange(len(clean))
    ours = true[power, blocks, chosen.kept[:, 0] - 1].mean()
    oracle = true.min(axis=(0, 2)).mean()
    print(f"risk of the chosen (m, k) {ours / oracle:.3f} of the oracle's")
    assert ours < 1.3 * oracle  # measured 1.25: the pilot has lost some of the faint coefficients


def test_the_rest_is_dropped_if_noise_and_kept_if_picture() -> None:
    rng = np.random.default_rng(0)
    nothing = np.zeros((50, 3, 1), np.float32)
    noise = SIGMA * rng.standard_normal((50, 400, 1)).astype(np.float32)
    assert glide.remainder(noise, nothing, np.float32(400), SIGMA).mean() < 0.05
    assert glide.remainder(noise + 10 * SIGMA, nothing, np.float32(400), SIGMA).min() > 0.98


@pytest.mark.parametrize("size", [1, 5, 18, 19, 24, 100, 131])
def test_blocks_cover_an_axis(size) -> None:
    covered = np.zeros(size, int)
    begin = glide.starts(size, 18, 6)
    for start in begin:
        covered[start : start + 18] += 1
    assert (covered > 0).all()
    assert begin[-1] + min(18, size) == size
    assert max(np.diff(begin), default=0) <= 6


@pytest.mark.parametrize("shape", [(18, 18), (5, 18), (1, 3), (8, 8, 8)])
@pytest.mark.parametrize("samples", [1, 16, 64, 1000])
def test_sampled_pixels_are_distinct_and_about_as_many_as_asked(shape, samples) -> None:
    sampled = glide.sample_grid(shape, samples)
    n = int(np.prod(shape))
    assert len(np.unique(sampled)) == len(sampled)
    assert sampled.min() >= 0
    assert sampled.max() < n
    assert 0.4 * min(samples, n) <= len(sampled) <= 2 * samples


def test_a_large_hole_is_filled_from_its_surroundings(camera) -> None:
    mask = np.zeros(camera.shape, bool)
    mask[10:50, 10:50] = True
    denoised = denoise_glide(np.where(mask, np.nan, 100 + camera), SIGMA)
    assert np.abs(denoised[mask] - 100 - camera[~mask].mean()).max() < np.ptp(camera)


@pytest.mark.parametrize("grey_levels", PRINTED_HERE)
def test_three_of_the_pictures(classics, grey_levels) -> None:
    names = list(classics)
    for name, printed in zip(("boat", "house", "man"), PRINTED_HERE[grey_levels], strict=True):
        clean, sigma = classics[name], grey_levels / 255
        ours = psnr(denoise_glide(add_noise(clean, sigma, names.index(name)), sigma), clean)
        print(f"{name} at {grey_levels}: {ours:.2f}, printed {printed}")
        assert ours > printed - 0.45


@pytest.mark.slow
@pytest.mark.parametrize("grey_levels", PRINTED)
def test_mean_over_the_ten_pictures(classics, grey_levels) -> None:
    sigma = grey_levels / 255
    found = np.mean(
        [
            psnr(denoise_glide(add_noise(clean, sigma, seed), sigma), clean)
            for seed, clean in enumerate(classics.values())
        ]
    )
    print(f"sigma {grey_levels}: {found:.2f}, printed {PRINTED[grey_levels]}")
    assert found >= PRINTED[grey_levels]
