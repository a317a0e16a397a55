"""NL-Bayes: the estimate of a group against its formula, and the published means."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import _native, denoise_nl_bayes
from symsmooth.baselines.nl_bayes import choose_steps
from symsmooth.core.metrics import psnr
from symsmooth.noise import add_noise

from .. import oracles

PRINTED = {20: 29.21, 40: 25.69, 60: 23.85, 80: 22.37, 100: 21.39}
SIGMAS = [pytest.param(s, marks=[] if s == 40 else [pytest.mark.slow]) for s in PRINTED]


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("has_pilot", [False, True])
@pytest.mark.parametrize(("channels", "together"), [(1, 1), (3, 1), (3, 3)])
@pytest.mark.parametrize("count", [60, 5, 1])
def test_a_group_is_estimated_by_the_formula(has_pilot, channels, together, count) -> None:
    rng = np.random.default_rng(0)
    clean = 3.0 * rng.standard_normal((channels, 1, 12, 12))
    clean[:, :, :6] *= 0.05  # some groups are flat
    noisy = (clean + rng.standard_normal(clean.shape)).astype(np.float32)
    pilot = (clean + 0.3 * (noisy - clean)).astype(np.float32)
    patch = (1, 3, 3)
    corners = [(0, y, x) for y in range(10) for x in range(10)]
    rng.shuffle(corners)
    found = [corners[:count], sorted(corners)[:count]]
    members = np.array([[y * 12 + x for _, y, x in own] for own in found], np.int32)
    groups = _native.Groups(members, np.full(2, count, np.int32), (1, 12, 12), patch)
    total, mass = _native.bayes_groups(
        groups, noisy, pilot if has_pilot else None, together, 2.0, 1.1
    )
    expected, weights = np.zeros(noisy.shape), np.zeros(noisy.shape)
    for own in found:
        at = tuple(np.array(own).T)
        for first in range(0, channels, together):
            part = slice(first, first + together)
            rows = oracles.corner_patches(noisy[part], patch)[at].reshape(count, -1)
            own_pilot = oracles.corner_patches(pilot[part], patch)[at].reshape(count, -1)
            if count == 1:  # one patch has no covariance: it becomes its mean
                level = rows.reshape(1, together, -1)
                flat = level.var(axis=-1, ddof=1).mean() < 1 + 2.0 * np.sqrt(2 / rows.size)
                estimate = rows if not flat else level.mean(axis=-1, keepdims=True) + 0 * level
            else:
                estimate = oracles.nl_bayes(
                    rows, own_pilot if has_pilot else None, together, 2.0, 1.1
                )
            for corner, patches in zip(own, estimate.reshape(count, together, 3, 3), strict=True):
                _, y, x = corner
                expected[part, 0, y : y + 3, x : x + 3] += patches
                weights[part, 0, y, x] += 1
    assert np.allclose(total, expected, atol=0.02 * count)
    assert np.array_equal(mass, weights)


def test_groups_are_larger_than_patches() -> None:
    """Else the covariance of step 1 would be singular."""
    for ratio in (0.3, 1.0, 3.0, 10.0):
        for n_dims, channels in ((2, 1), (2, 3), (3, 1)):
            first = choose_steps(ratio, n_dims, channels, True).first
            assert first.min_count >= 4 * first.side**n_dims


def test_skipping_denoised_references_costs_little(camera) -> None:
    sigma = 25 / 255
    noisy = add_noise(camera, sigma, 0)
    boosted = psnr(denoise_nl_bayes(noisy, sigma), camera)
    assert boosted > psnr(denoise_nl_bayes(noisy, sigma, boost=False), camera) - 0.15
    assert boosted > psnr(noisy, camera) + 4.5


@pytest.mark.parametrize("grey_levels", SIGMAS)
def test_published_means(classics, grey_levels) -> None:
    """The symmetric-smoothing paper's NL-Bayes column, within 0.15 dB or above."""
    sigma = grey_levels / 255
    results = [
        psnr(denoise_nl_bayes(add_noise(clean, sigma, seed), sigma), clean)
        for seed, clean in enumerate(classics.values())
    ]
    print(f"sigma {grey_levels}: {np.mean(results):.2f}, printed {PRINTED[grey_levels]}")
    assert np.mean(results) > PRINTED[grey_levels] - 0.15
