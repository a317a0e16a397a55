"""One noisy picture, what it should be, and the noise it has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from symsmooth.core.image import Array
from symsmooth.core.metrics import psnr, ssim
from symsmooth.io import FileError, read_image
from symsmooth.noise import PoissonGaussian

from ..camera import CAMERAS, photograph
from ..images import read_grey
from .folders import PictureSet, Source

PEAK = 255.0
_SEEDS = 1000  # seeds of one amount of noise: the picture's number is added to 1000 x sigma


@dataclass(frozen=True)
class Noise:
    """Noise that is added: white of a standard deviation, photons at white, or a camera's."""

    kind: str  # "white", "poisson", "camera", or "real" for pairs
    amount: float = 0.0
    camera: str = ""

    def __str__(self) -> str:
        words = {
            "white": f"white, sigma {self.amount:g}",
            "poisson": f"Poisson, {self.amount:g} photons at white",
            "camera": f"simulated camera {self.camera}",
        }
        return words.get(self.kind, "real")


REAL = Noise("real")


@dataclass(frozen=True)
class Trial:
    """A picture and its noise; all that is needed to make it again."""

    group: str  # the set of pictures
    source: Source
    noise: Noise
    seed: int
    grey: bool = False

    @property
    def files(self) -> list[Path]:
        """What it is read from."""
        noisy = self.source.noisy
        return [self.source.clean] if noisy is None else [self.source.clean, noisy]


@dataclass(frozen=True)
class Scene:
    """The pixels of a trial."""

    noisy: Array  # in the dtype of its file; float64 where noise was added
    clean: Array  # float64
    peak: float
    sigma: float  # standard deviation of the noise, for those who can be told one number only
    model: Any = None  # the noise as ``denoise`` can be told it; None for white noise

    @property
    def channel_axis(self) -> int | None:
        """-1 for colour."""
        return -1 if self.noisy.ndim == 3 else None

    @cached_property
    def scores(self) -> tuple[float, float | None]:
        """PSNR and SSIM before anything is done."""
        return self.score(self.noisy)

    def score(self, image: Array) -> tuple[float, float | None]:
        """Return PSNR and SSIM; 8- and 16-bit pictures are clipped and rounded, as files are."""
        if self.noisy.dtype.kind in "ui":
            limits = np.iinfo(self.noisy.dtype)
            image = np.clip(np.rint(image), limits.min, limits.max)
        return psnr(image, self.clean, self.peak), ssim(image, self.clean, self.peak)


def plan_trials(found: PictureSet, noises: list[Noise], grey: bool, every: int) -> list[Trial]:
    """Return the trials of a set; the number of a picture in the whole set is part of its seed."""
    numbered = list(enumerate(found.sources))[::every]
    if found.is_paired:
        return [Trial(found.name, source, REAL, 0, grey) for _, source in numbered]
    return [
        Trial(found.name, source, noise, round(_SEEDS * noise.amount) + number, grey)
        for noise in noises
        for number, source in numbered
    ]


def load(trial: Trial) -> Scene:
    """Read a trial's pictures, and add the noise if it is to be added."""
    pixels, peak = _read(trial.source.clean, trial.grey)
    if trial.source.noisy is None:
        return _add_noise(trial, pixels * (PEAK / peak))
    noisy, _ = _read(trial.source.noisy, trial.grey)
    if noisy.shape != pixels.shape:
        raise FileError(
            f"{trial.source.noisy}: has shape {noisy.shape}, the clean one {pixels.shape}"
        )
    clean = pixels.astype(np.float64)
    return Scene(noisy, clean, peak, _rms(noisy - clean), noisy - clean)


def _add_noise(trial: Trial, clean: Array) -> Scene:
    """Add noise to a clean picture of 0 to 255; white and Poisson noise is neither clipped nor rounded."""
    noise = trial.noise
    rng = np.random.default_rng(trial.seed)
    noisy: Array
    if noise.kind == "white":
        noisy = clean + noise.amount * rng.standard_normal(clean.shape)
        return Scene(noisy, clean, PEAK, noise.amount)
    if noise.kind == "poisson":
        gain = PEAK / noise.amount
        channels = clean.shape[2] if clean.ndim == 3 else 1
        model = PoissonGaussian((gain,) * channels, (0.0,) * channels)
        noisy = gain * rng.poisson(clean / gain)
        return Scene(noisy, clean, PEAK, _rms(noisy - clean), model)
    if clean.ndim != 3:
        raise FileError(f"{trial.source.clean}: is grey; simulated cameras need colour")
    even = clean[: clean.shape[0] // 2 * 2, : clean.shape[1] // 2 * 2]
    noisy, developed = photograph(even / PEAK, CAMERAS[noise.camera], trial.seed)
    noisy, developed = np.rint(noisy * PEAK).astype(np.uint8), developed * PEAK
    return Scene(noisy, developed, PEAK, _rms(noisy - developed), noisy - developed)


def _rms(noise: Array) -> float:
    return float(np.sqrt(np.mean(noise**2)))


def _read(path: Path, grey: bool) -> tuple[Array, float]:
    """Return the pixels of a grey or colour picture, alpha taken off, and the value of white."""
    if grey:
        return read_grey(path), PEAK
    image = read_image(path)
    pixels = image.channels_last
    if pixels.ndim == 3 and pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[-1] != 3):
        raise FileError(f"{path}: must be one grey or colour picture, its shape is {pixels.shape}")
    if pixels.dtype.kind in "ui":
        return pixels, float(np.iinfo(pixels.dtype).max)
    return pixels, 1.0 if float(pixels.max()) <= 1.0 else float(pixels.max())
