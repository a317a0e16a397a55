"""The paper's printed numbers, on its own pictures (skipped where they are not)."""

from __future__ import annotations

import numpy as np
import pytest

from symsmooth import denoise_gsf, denoise_nlm, fit_gsf
from symsmooth.core.metrics import psnr
from symsmooth.noise import add_noise

PRINTED = {  # sigma: NLM, One-step, GSF (Table "PSNR comparison with different noise level")
    20: (25.59, 26.71, 28.89),
    40: (21.97, 22.53, 25.38),
    60: (20.33, 20.63, 23.60),
    80: (19.46, 19.64, 22.39),
    100: (18.97, 19.09, 21.47),
}
PRINTED_CLUSTERS = {20: 1445, 30: 667, 40: 372, 50: 243, 60: 162, 70: 125, 80: 104, 90: 83, 100: 72}


@pytest.mark.parametrize("grey_levels", PRINTED)
def test_mean_over_the_ten_pictures(classics, grey_levels) -> None:
    """NLM and One-step within 0.15 dB; GSF, all automatic but sigma, not below the paper's."""
    sigma = grey_levels / 255
    options = {"h_s": 10.0, "h_r": 5 * sigma}
    results = []
    for seed, clean in enumerate(classics.values()):
        noisy = add_noise(clean, sigma, seed)
        results.append(
            [
                psnr(denoise_nlm(noisy, sigma, **options), clean),
                psnr(denoise_nlm(noisy, sigma, sinkhorn_iters=1, **options), clean),
                psnr(denoise_gsf(noisy, sigma), clean),
            ]
        )
    nlm, one_step, gsf = np.mean(results, axis=0)
    print(f"sigma {grey_levels}: NLM {nlm:.2f}, One-step {one_step:.2f}, GSF {gsf:.2f}")
    printed = PRINTED[grey_levels]
    assert nlm == pytest.approx(printed[0], abs=0.15)
    assert one_step == pytest.approx(printed[1], abs=0.15)
    assert gsf > printed[2] - 0.02


@pytest.mark.parametrize("grey_levels", PRINTED_CLUSTERS)
def test_number_of_clusters_on_man(classics, grey_levels) -> None:
    sigma = grey_levels / 255
    found = [
        fit_gsf(add_noise(classics["man"], sigma, seed), sigma, passes=1).n_clusters
        for seed in range(4)
    ]
    print(f"sigma {grey_levels}: k {found}, printed {PRINTED_CLUSTERS[grey_levels]}")
    assert np.mean(found) == pytest.approx(PRINTED_CLUSTERS[grey_levels], rel=0.2)


@pytest.mark.parametrize("seed", range(3))
def test_sure_on_baboon(classics, seed) -> None:
    """Sigma 30, k 50: best lambda near 8 (paper 8.008), about 24.5 dB (24.514), SURE close to it."""
    clean, sigma = classics["baboon"], 30 / 255
    noisy = add_noise(clean, sigma, seed)
    fit = fit_gsf(noisy, sigma, n_clusters=50, refined_clusters=50, h_r=sigma, refined_h_r=sigma)
    fidelities = np.linspace(0, 30, 301)
    curve = [psnr((25 * fit.average + t * noisy) / (25 + t), clean) for t in fidelities]
    best = fidelities[int(np.argmax(curve))]
    print(
        f"best {best:.1f} {max(curve):.2f} dB; SURE {fit.fidelity:.2f} {psnr(fit.image, clean):.2f}"
    )
    assert best == pytest.approx(8.0, abs=0.6)
    assert max(curve) == pytest.approx(24.5, abs=0.2)
    assert fit.fidelity == pytest.approx(best, abs=2.5)
    assert psnr(fit.image, clean) > max(curve) - 0.05
