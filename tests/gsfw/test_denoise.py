"""What the front door says of its result."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from symsmooth import fit_denoise, fit_gsfw
from symsmooth.noise import PoissonGaussian

SEED = 3


def root_mean_square(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


def test_the_std_of_white_noise_is_that_of_gsfw(camera) -> None:
    noisy = (255 * camera + np.random.default_rng(0).normal(0, 20, camera.shape)).astype(np.float32)
    found = fit_denoise(noisy, 20.0, quality="fast", rng=SEED)
    assert np.array_equal(found.std, fit_gsfw(noisy, 20.0, quality="fast", rng=SEED).std)


@pytest.mark.parametrize("colours", [False, True])
def test_the_std_of_photon_noise_is_the_size_of_the_error(colours) -> None:
    """Dark and bright halves apart: there is four times the noise in the bright one."""
    from skimage import data

    gain, black = 3.0, 100.0
    scene = (data.astronaut() if colours else data.camera())[80:208, 180:308] / 255.0
    photons = 5 + 60 * scene
    noisy = gain * np.random.default_rng(1).poisson(photons) + black
    clean = gain * photons + black
    n = 3 if colours else 1
    model = PoissonGaussian((gain,) * n, (-gain * black,) * n, (black,) * n)
    axis = -1 if colours else None
    found = fit_denoise(noisy, noise=model, quality="fast", channel_axis=axis, rng=SEED)
    assert found.std is not None
    assert found.std.shape == noisy.shape
    for part in (photons < 20, photons > 40):
        ratio = root_mean_square(found.std[part]) / root_mean_square((found.image - clean)[part])
        assert 0.6 < ratio < 1.6, ratio


def test_the_std_of_coarse_noise_is_of_the_order_of_the_error(camera) -> None:
    import scipy.ndimage

    coarse = scipy.ndimage.gaussian_filter(np.random.default_rng(2).normal(0, 1, camera.shape), 1)
    coarse *= 0.1 / coarse.std()
    found = fit_denoise(camera + coarse, noise=coarse, quality="fast")
    ratio = root_mean_square(found.std) / root_mean_square(found.image - camera)
    assert 0.3 < ratio < 2.0


def bytes_kept(thing: Any) -> int:
    """Bytes of all arrays that are kept alive by something, each once."""
    seen, todo, arrays = set(), [thing], {}
    while todo:
        each = todo.pop()
        if (
            id(each) in seen
            or isinstance(each, type)
            or type(each).__name__ in ("module", "function")
        ):
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            owner = each if each.base is None else each.base
            arrays[id(owner)] = getattr(owner, "nbytes", 0)
        todo += [*gc.get_referents(each), *getattr(each, "__dict__", {}).values()]
    return sum(arrays.values())


@pytest.mark.parametrize("noise", ["white", "photons"])
def test_a_result_keeps_no_more_than_its_deviations_need(noise) -> None:
    """All of the picture as it came, and of its whitened copies, stayed alive."""
    image = np.random.default_rng(0).poisson(100.0, (96, 96)).astype(np.float32)
    model = PoissonGaussian((1.0,), (0.0,)) if noise == "photons" else None
    found = fit_denoise(
        image, 10.0 if model is None else None, noise=model or "auto", quality="preview"
    )
    own = found.image.nbytes
    assert bytes_kept(found) <= (2.1 if noise == "white" else 4.1) * own
    std = found.std
    assert bytes_kept(found) <= 2.1 * own
    assert found.std is std


def test_noise_is_found_on_one_thread_of_the_blas(monkeypatch) -> None:
    """Its threads would only wait for each other, and sums would depend on how many there are."""
    from threadpoolctl import threadpool_info

    from symsmooth.gsfw import denoise as module

    seen = []
    find = module.resolve

    def resolve(*given: Any) -> Any:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return find(*given)

    monkeypatch.setattr(module, "resolve", resolve)
    fit_denoise(np.random.default_rng(0).normal(0.0, 1.0, (32, 32)))
    assert seen
    assert set(seen) == {1}
