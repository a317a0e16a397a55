"""The adapter of docs/howto/inverse_problems.md, in deepinv itself: ``make deepinv-test``."""

from __future__ import annotations

import importlib
import re
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symsmooth.core.metrics import psnr

pytestmark = pytest.mark.skipif(
    find_spec("deepinv") is None,
    reason="deepinv is not installed: it brings PyTorch with CUDA, 6 GB",
)
ROOT = Path(__file__).parents[1]
SIGMA, TRUST = 2 / 255, 0.23  # noise, and weight of the prior, as in the example of the gallery
LEVELS = np.geomspace(40, 2, 8) / 255


@pytest.fixture
def deepinv() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it imports warns of its own future
        return importlib.import_module("deepinv")


def adapter() -> dict[str, Any]:
    """Run the how-to's block of code, and return what it defines."""
    page = (ROOT / "docs" / "howto" / "inverse_problems.md").read_text("utf-8")
    (code,) = (
        block for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL) if "deepinv" in block
    )
    made: dict[str, Any] = {}
    exec(code, made)
    return made


def test_the_adapter_deblurs_in_half_quadratic_splitting(deepinv: Any) -> None:
    """The how-to says what came out; it must stay so."""
    page = (ROOT / "docs" / "howto" / "inverse_problems.md").read_text("utf-8")
    told = re.search(r"went from ([\d.]+) to ([\d.]+) dB in 8 iterations", page)
    assert told is not None
    import torch
    from skimage import data

    clean = data.camera()[40:168, 180:308] / 255.0
    picture = torch.tensor(clean, dtype=torch.float32)[None, None]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        blur = deepinv.physics.blur.gaussian_blur(sigma=(1.6, 1.6))
        physics = deepinv.physics.BlurFFT(
            img_size=picture.shape[1:],
            filter=blur,
            noise_model=deepinv.physics.GaussianNoise(SIGMA),
        )
        blurred = physics(picture)
        solver = deepinv.optim.optim_builder(
            iteration="HQS",
            prior=adapter()["prior"],
            data_fidelity=deepinv.optim.data_fidelity.L2(),
            max_iter=len(LEVELS),
            params_algo={
                "stepsize": [float((level / SIGMA) ** 2 / TRUST) for level in LEVELS],
                "g_param": [float(level) for level in LEVELS],
                "lambda": 1.0,
            },
        )
        restored = solver(blurred, physics)
    before, after = (
        psnr(each.numpy()[0, 0] * 255, clean * 255, 255) for each in (blurred, restored)
    )
    assert before == pytest.approx(float(told[1]), abs=0.02)
    assert after == pytest.approx(float(told[2]), abs=0.1)


def test_batches_colour_and_types_come_back(deepinv: Any) -> None:
    import torch

    torch.manual_seed(1)
    noisy = 0.5 + 0.1 * torch.randn(2, 3, 24, 32, dtype=torch.float64)
    denoised = adapter()["Symsmooth"]()(noisy, torch.tensor(0.1))
    assert (denoised.shape, denoised.dtype) == (noisy.shape, noisy.dtype)
    assert denoised.std() < 0.4 * noisy.std()
