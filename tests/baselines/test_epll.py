"""EPLL: its two steps, its priors, the published numbers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from symsmooth import denoise_epll
from symsmooth.baselines.epll import learn, load_prior, most_likely_patches, natural_prior, solve
from symsmooth.baselines.patch_gmm import NoisyPrior, PatchPrior, em_step, from_moments
from symsmooth.core.metrics import psnr
from symsmooth.core.parallel import Pool
from symsmooth.noise import add_noise

PRINTED = {20: 29.29, 40: 25.95, 60: 24.13, 80: 22.89, 100: 21.97}  # mean of the ten pictures
HOUSE = {  # EPLL (noisy), (BM3D), (clean): table "different pilot estimates"
    20: (25.40, 32.41, 32.46),
    40: (19.75, 28.32, 28.31),
    60: (16.42, 25.73, 25.80),
    80: (14.29, 24.05, 24.07),
    100: (12.71, 22.59, 22.73),
}
SCRIPT = Path(__file__).parents[2] / "benchmarks" / "train_prior.py"


def one_gaussian(side: int) -> PatchPrior:
    """Patches that are their mean: no variance but in the mean."""
    d = side * side
    return from_moments(np.ones(1), np.zeros((1, d)), np.zeros((1, d, d)), 0.0)


def test_means_of_patches_are_kept() -> None:
    patches = np.random.default_rng(0).normal(5.0, 1.0, (30, 64)).astype(np.float32)
    model = NoisyPrior(natural_prior(), 0.01)
    estimates = most_likely_patches(model, patches)
    assert np.abs(estimates.mean(axis=1) - patches.mean(axis=1)).max() < 0.02
    flat = most_likely_patches(NoisyPrior(one_gaussian(8), 0.01), patches)
    assert np.allclose(flat, patches.mean(axis=1, keepdims=True), atol=1e-5)


def test_with_a_flat_prior_each_step_is_a_box_filter(monkeypatch) -> None:
    """sum_j P_j' z_j is then a triangular filter; one step blends it with the noisy plane."""
    from symsmooth.baselines import epll

    monkeypatch.setattr(epll, "_BETAS", (2.0,))
    rng = np.random.default_rng(0)
    noisy = rng.standard_normal((30, 31)).astype(np.float32)
    with Pool(1) as pool:
        found = solve(noisy, np.ones_like(noisy), 1.0, one_gaussian(3), pool)
    triangle = np.convolve(np.ones(3), np.ones(3)) / 9
    inside = np.zeros((20, 21))
    for dy in range(-2, 3):
        for dx in range(-2, 3):
            weight = triangle[dy + 2] * triangle[dx + 2]
            inside += weight * noisy[5 + dy : 25 + dy, 5 + dx : 26 + dx]
    expected = (epll._FIDELITY * noisy[5:25, 5:26] + 2.0 * inside) / (epll._FIDELITY + 2.0)
    assert np.allclose(found[5:25, 5:26], expected, atol=1e-5)


def test_missing_pixels_have_no_fidelity() -> None:
    noisy = np.zeros((24, 24), np.float32)
    noisy[12, 12] = 50.0
    usable = np.ones_like(noisy)
    usable[12, 12] = 0.0
    with Pool(1) as pool:
        found = solve(noisy, usable, 1.0, one_gaussian(8), pool)
    assert abs(found[12, 12]) < 1.0


def test_a_learned_prior_follows_the_rule_for_components() -> None:
    guide = np.random.default_rng(0).standard_normal((1, 40, 41)).astype(np.float32)
    with Pool(1) as pool:
        chosen = learn(guide, 5, None, 1e-3, np.random.default_rng(0), pool)
        told = learn(guide, 5, 3, 1e-3, np.random.default_rng(0), pool)
    assert len(chosen.weights) == 38 * 39 // 150  # a pixel is mirrored on each side
    assert len(told.weights) == 3
    assert np.abs(chosen.vectors[:, :, :-1].sum(axis=1)).max() < 0.05  # zero-mean directions


def test_priors_of_the_picture_itself(camera) -> None:
    sigma = 0.1
    noisy = add_noise(camera, sigma, 0)
    from_noisy, from_clean, natural = (
        psnr(denoise_epll(noisy, sigma, prior=p), camera) for p in ("noisy", camera, "natural")
    )
    assert psnr(noisy, camera) + 1 < from_noisy < from_clean - 1.5
    assert natural > from_noisy + 1.5


def test_a_given_prior_is_equivariant_and_may_have_channels(camera) -> None:
    noisy = add_noise(camera[:32, :32], 0.1, 0)
    plain = denoise_epll(noisy, 0.1, prior=camera[:32, :32])
    scaled = denoise_epll(200 * noisy - 7, 20.0, prior=200 * camera[:32, :32] - 7)
    assert np.abs(scaled - (200 * plain - 7)).max() < 0.5
    colour, clean = np.stack([noisy] * 3), np.stack([camera[:32, :32]] * 3)
    assert denoise_epll(colour, 0.1, prior=clean, channel_axis=0).shape == colour.shape


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": "clean"}, "prior must be"),
        ({"prior": np.ones((3, 3))}, "prior must have the image's shape"),
        ({"patch_size": 5}, "patch_size of the natural prior is 8"),
        ({"patch_size": 0}, "patch_size must be"),
        ({"prior": "noisy", "n_components": 0}, "n_components must be"),
    ],
)
def test_wrong_options_are_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        denoise_epll(np.ones((16, 16)), 1.0, **options)


def training_script():
    spec = importlib.util.spec_from_file_location("train_prior", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_prior"] = module
    spec.loader.exec_module(module)
    return module


def test_the_script_makes_the_same_small_prior_again(tmp_path, camera, monkeypatch) -> None:
    from PIL import Image

    script = training_script()
    monkeypatch.setattr(script, "SCHEDULE", ((500, 3), (2000, 3)))
    monkeypatch.setattr(script, "COMPONENTS", 4)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in range(2):
        grey = np.rint(255 * np.roll(camera, 20 * number, axis=1)).astype(np.uint8)
        Image.fromarray(grey).save(pictures / f"{number}.png")
    files = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for file in files:
        monkeypatch.setattr(sys, "argv", ["train_prior", str(pictures), "-o", str(file)])
        script.main()
    first, second = (load_prior(file) for file in files)
    assert len(first.weights) == 4
    assert np.array_equal(first.values, second.values)
    assert np.array_equal(first.vectors, second.vectors)
    assert np.abs(first.vectors.sum(axis=1) * first.values).max() < 1e-2 * first.values.max()


def test_the_shipped_prior_knows_natural_patches(image_folder) -> None:
    """New patches of the pictures: the likelihood that learning ended with, far above one Gaussian's."""
    script = training_script()
    pictures = script.read_pictures(image_folder / "kodak24")
    patches = script.sample_patches(pictures, 10_000, np.random.default_rng(1))
    covariance = (patches.T @ patches / len(patches))[np.newaxis].astype(float)
    single = from_moments(np.ones(1), np.zeros((1, 64)), covariance, script.FLOOR)
    with Pool() as pool:
        likelihood = em_step(patches, natural_prior(), script.FLOOR, pool)[1]
        single_likelihood = em_step(patches, single, script.FLOOR, pool)[1]
    assert likelihood == pytest.approx(162.0, abs=1.0)
    assert likelihood > single_likelihood + 20.0


@pytest.mark.parametrize("name", ["house", "man"])
def test_published_numbers_of_two_pictures(classics, name) -> None:
    """Sigma 40: 28.77 and 25.19."""
    seed = list(classics).index(name)
    noisy = add_noise(classics[name], 40 / 255, seed)
    found = psnr(denoise_epll(noisy, 40 / 255), classics[name])
    assert found == pytest.approx({"house": 28.77, "man": 25.19}[name], abs=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("grey_levels", PRINTED)
def test_mean_over_the_ten_pictures(classics, grey_levels) -> None:
    sigma = grey_levels / 255
    found = np.mean(
        [
            psnr(denoise_epll(add_noise(clean, sigma, seed), sigma), clean)
            for seed, clean in enumerate(classics.values())
        ]
    )
    print(f"sigma {grey_levels}: {found:.3f}, printed {PRINTED[grey_levels]}")
    assert found > PRINTED[grey_levels] - 0.31


@pytest.mark.slow
@pytest.mark.parametrize("grey_levels", HOUSE)
def test_priors_on_house(classics, grey_levels) -> None:
    """5 x 5 patches, 100 components, as in the paper; the pilot is the package's own."""
    sigma, clean = grey_levels / 255, classics["house"]
    noisy = add_noise(clean, sigma, 6)
    found = [psnr(denoise_epll(noisy, sigma, prior=p), clean) for p in ("noisy", "pilot", clean)]
    print(f"sigma {grey_levels}: {np.round(found, 2)}, printed {HOUSE[grey_levels]}")
    assert found[0] == pytest.approx(HOUSE[grey_levels][0], abs=1.2)
    assert found[1] == pytest.approx(HOUSE[grey_levels][1], abs=0.6)
    assert found[2] == pytest.approx(HOUSE[grey_levels][2], abs=0.6)
    assert abs(found[1] - found[2]) < 0.6
