"""Masked pictures: noise or photons inside a square, a disc or a band, one exact value around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.ndimage
from hypothesis import strategies as st

SIDE = 16  # a square of one value of this side has no noise, nor has what goes on from it


@dataclass(frozen=True)
class Case:
    """A masked picture, and how it is denoised."""

    size: tuple[int, int]
    shape: str  # of what is not masked
    part: float  # of the shorter side, that it reaches across
    light: str
    ground: int  # 0, 1 or 2: black, grey, white
    channels: int
    dtype: str
    missing: str
    sigma: bool  # whether the level is given
    noise: str
    quality: str
    seed: int

    @property
    def inside(self) -> np.ndarray:
        """True where there is a picture."""
        (height, width), reach = self.size, self.part * min(self.size)
        y, x = np.indices(self.size)
        y0, x0 = np.random.default_rng(self.seed).uniform(0.2, 0.8, 2) * self.size
        return {
            "square": (np.abs(y - y0) < reach / 2) & (np.abs(x - x0) < reach / 2),
            "disc": np.hypot(y - y0, x - x0) < reach / 2,
            "band": np.abs(y - y0) < reach / 2,
            "frame": np.minimum(np.minimum(y, height - 1 - y), np.minimum(x, width - 1 - x)) >= 3,
            "all but a square": ~((np.abs(y - y0) < reach / 2) & (np.abs(x - x0) < reach / 2)),
        }[self.shape]

    @property
    def is_float(self) -> bool:
        """Whether pixels can be NaN."""
        return np.dtype(self.dtype).kind == "f"

    @property
    def white(self) -> float:
        """The largest value that its pixels have."""
        return {"uint8": 255.0, "uint16": 65535.0, "int16": 30000.0}.get(self.dtype, 1.0)

    def pixels(self) -> np.ndarray:
        """The picture, (y, x) or (y, x, channels); what is missing is NaN if it is so marked."""
        rng, shape = np.random.default_rng(self.seed), (*self.size, self.channels)
        y, x = np.indices(self.size)[..., None]
        light = 60.0 + 80.0 * (np.sin(y / 9) * np.cos(x / 7) + 1) / 2 + 10 * np.arange(shape[-1])
        if self.light == "photons":
            noisy = rng.poisson(light / 4) * 4.0
        elif self.light == "few photons":
            noisy = rng.poisson(light / 100) * 20.0
        else:
            noisy = light + rng.normal(0, 8, shape)
        ground = self.ground / 2
        pixels = np.where(self.inside[..., None], np.clip(noisy, 0, 255) / 255, ground) * self.white
        if np.dtype(self.dtype).kind in "ui":
            pixels = np.rint(pixels)
        pixels = pixels.astype(self.dtype)
        if self.missing == "nan" and self.is_float:
            pixels[self.holes] = np.nan
        if self.missing == "nan around" and self.is_float and self.inside.any():
            pixels[~self.inside] = np.nan
        return pixels if self.channels > 1 else pixels[..., 0]

    @property
    def holes(self) -> np.ndarray:
        """Where pixels are missing, if any are: some here and there, and a square."""
        holes = np.random.default_rng(self.seed + 1).random(self.size) < 0.05
        holes[: self.size[0] // 3, : self.size[1] // 3] = True
        return holes

    def arguments(self) -> tuple[Any, dict[str, Any]]:
        """What :func:`symsmooth.denoise` is called with."""
        pixels: Any = self.pixels()
        options: dict[str, Any] = {"quality": self.quality, "workers": 1}
        options["channel_axis"] = -1 if self.channels > 1 else None
        if self.missing == "mask":
            options["mask"] = self.holes
        if self.missing == "masked array":
            holes = self.holes if self.channels == 1 else self.holes[..., None]
            pixels = np.ma.MaskedArray(pixels, np.broadcast_to(holes, pixels.shape))
        if self.sigma:
            options["sigma"] = 8 / 255 * self.white
        else:
            options["noise"] = self.noise
        return pixels, options

    @property
    def constant(self) -> np.ndarray:
        """Ground that is sure to have no noise: a square of it, and what goes on from there."""
        ground = ~self.inside
        if self.missing in ("mask", "masked array") or (self.missing == "nan" and self.is_float):
            ground &= ~self.holes
        if self.missing == "nan around" and self.is_float and self.inside.any():
            return np.zeros_like(ground)
        squares = scipy.ndimage.binary_opening(ground, np.ones((SIDE, SIDE)))
        return scipy.ndimage.binary_propagation(squares, mask=ground)


def cases(smallest: int, largest: int) -> st.SearchStrategy[Case]:
    """Pictures of these sides."""
    side = st.integers(smallest, largest)
    one_of = st.sampled_from
    return st.builds(
        Case,
        size=st.tuples(side, side),
        shape=one_of(["square", "disc", "band", "frame", "all but a square"]),
        part=st.floats(0.02, 0.95),
        light=one_of(["noise", "photons", "few photons"]),
        ground=one_of([0, 0, 0, 1, 2]),
        channels=one_of([1, 1, 2, 3]),
        dtype=one_of(["uint8", "uint16", "int16", "float32", "float64"]),
        missing=one_of(["", "", "nan", "nan around", "mask", "masked array"]),
        sigma=one_of([False, False, True]),
        noise=one_of(["auto", "auto", "gaussian", "poisson-gaussian", "correlated", "rician"]),
        quality=one_of(["preview", "preview", "fast", "balanced"]),
        seed=st.integers(0, 2**32 - 2),
    )
