"""GSF as users call it, and what it reports."""

from __future__ import annotations

import numpy as np
import pytest
from skimage import data

from symsmooth import denoise_gsf, denoise_nlm, fit_gsf
from symsmooth.core import blocks
from symsmooth.core.metrics import psnr
from symsmooth.mixture import em
from symsmooth.noise import add_noise


@pytest.fixture(scope="module")
def scene(camera):
    return camera, add_noise(camera, 0.1, 0)


def test_result_holds_what_was_learned_in_the_units_of_the_image(scene) -> None:
    clean, noisy = scene
    fit = fit_gsf(200 * noisy + 1000, 20.0)
    assert np.array_equal(fit.image, denoise_gsf(200 * noisy + 1000, 20.0))
    assert fit.sigma == pytest.approx(20.0)
    assert fit.h_r == pytest.approx(20.0)
    assert 1 < fit.n_clusters < fit.refined_clusters < clean.size
    assert fit.mixture.n_clusters == fit.refined_clusters
    assert abs(fit.deviation - 1) < 0.1
    assert fit.search is not None
    assert fit.search.n_clusters == fit.n_clusters
    assert fit.sure.best_fidelity == pytest.approx(fit.fidelity)
    blended = (25 * fit.average + fit.fidelity * (200 * noisy + 1000)) / (25 + fit.fidelity)
    assert np.allclose(fit.image, blended, atol=0.05)
    assert psnr((fit.pilot - 1000) / 200, clean) > psnr(noisy, clean) + 3


def test_choices_can_be_overridden(scene) -> None:
    _, noisy = scene
    fit = fit_gsf(
        noisy, 0.1, n_clusters=50, refined_clusters=70, h_r=0.12, refined_h_r=0.05, fidelity=3
    )
    assert (fit.n_clusters, fit.refined_clusters, fit.fidelity) == (50, 70, 3)
    assert fit.h_r == pytest.approx(0.12)
    assert fit.refined_h_r == pytest.approx(0.05)
    assert fit.search is None
    assert np.array_equal(
        fit_gsf(noisy, 0.1, n_clusters=50, passes=1, fidelity=0).average,
        fit_gsf(noisy, 0.1, n_clusters=50).pilot,
    )


def test_the_papers_claim_on_a_real_photograph() -> None:
    """Column normalisation helps, GSF helps more (h_r and h_s as in the paper's experiments)."""
    clean = data.camera()[100:228, 180:308] / 255.0
    sigma = 20 / 255
    noisy = add_noise(clean, sigma, 0)
    options = {"h_s": 10.0, "h_r": 5 * sigma}
    nlm = psnr(denoise_nlm(noisy, sigma, **options), clean)
    one_step = psnr(denoise_nlm(noisy, sigma, sinkhorn_iters=1, **options), clean)
    gsf = psnr(denoise_gsf(noisy, sigma), clean)
    assert nlm + 0.3 < one_step
    assert one_step + 1.5 < gsf


def test_colour_shares_clusters_between_channels() -> None:
    clean = data.astronaut()[60:124, 180:244] / 255.0
    noisy = add_noise(clean, 0.1, 0)
    together = psnr(denoise_gsf(noisy, 0.1, channel_axis=-1), clean)
    apart = psnr(np.stack([denoise_gsf(noisy[..., c], 0.1) for c in range(3)], axis=-1), clean)
    assert together > apart + 0.5


def test_volumes_use_the_third_dimension() -> None:
    z, y, x = np.indices((12, 32, 32))
    clean = ((np.hypot(y - 16, x - 16) < 6 + z / 2) * 0.7).astype(float)
    noisy = add_noise(clean, 0.2, 0)
    whole = psnr(denoise_gsf(noisy, 0.2, patch_size=3, h_s=4.0), clean)
    slices = psnr(np.stack([denoise_gsf(s, 0.2, h_s=4.0) for s in noisy]), clean)
    assert whole > slices + 0.5


def test_choosing_k_in_windows_agrees_with_the_whole() -> None:
    """A large picture is judged by windows of it; on the whole delta(k) is still close to 1."""
    noisy = add_noise(data.camera()[:320, :320] / 255.0, 0.15, 0)
    fit = fit_gsf(noisy, 0.15, passes=1)
    assert fit.search is not None
    assert fit.deviation == pytest.approx(1.0, abs=0.05)


def test_blocks_equal_the_whole_without_seams(monkeypatch) -> None:
    """A picture done in blocks is as good as whole, and borders of blocks cannot be seen in it."""
    clean = data.camera()[100:324, 100:324] / 255.0
    noisy = add_noise(clean, 0.1, 0)
    whole = denoise_gsf(noisy, 0.1, n_clusters=1200)
    monkeypatch.setattr(blocks, "BLOCK_PIXELS", 112 * 112)
    joined = denoise_gsf(noisy, 0.1, n_clusters=1200)
    assert np.array_equal(joined, denoise_gsf(noisy, 0.1, n_clusters=1200, workers=1))
    assert not np.array_equal(whole, joined)
    assert psnr(joined, clean) > psnr(whole, clean) - 0.02
    step = np.abs(np.diff(joined - whole, axis=0)).mean(axis=1)
    assert step[108:116].max() < 1.5 * np.quantile(step, 0.95)


def test_local_clusters_cost_less_than_two_hundredths(classics, monkeypatch) -> None:
    """Clusters cut at 4 h_s, and forgotten where they hold nothing, against all with all."""
    losses = []
    for seed, clean in enumerate(classics.values()):
        noisy = add_noise(clean, 40 / 255, seed)
        local = psnr(denoise_gsf(noisy, 40 / 255, n_clusters=370), clean)
        with monkeypatch.context() as everywhere:
            everywhere.setitem(em.fit_mixture.__kwdefaults__, "reach", 1e6)
            everywhere.setitem(em.fit_mixture.__kwdefaults__, "min_mass", 0.0)
            losses.append(psnr(denoise_gsf(noisy, 40 / 255, n_clusters=370), clean) - local)
    assert np.abs(losses).max() > 0
    assert np.mean(losses) < 0.02


@pytest.mark.parametrize("far", [1e17, 1e19, 1e25, 1e37])
def test_a_pixel_beyond_all_others_is_kept_or_refused_in_words(far) -> None:
    """Its distance squared must be a float32; if it is not, one line says what to do."""
    noisy = np.random.default_rng(0).normal(0.0, 1.0, (24, 26))
    noisy[12, 12] = far
    if far <= 1e18:
        assert np.isfinite(denoise_gsf(noisy, 1.0)).all()
        return
    with pytest.raises(ValueError, match="clip such pixels, or pass a mask"):
        denoise_gsf(noisy, 1.0)
    mask = noisy == far
    assert np.abs(denoise_gsf(noisy, 1.0, mask=mask)).max() < 10.0
