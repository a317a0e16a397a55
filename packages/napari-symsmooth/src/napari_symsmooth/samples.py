"""Noisy pictures for those who have none at hand; scikit-image brings the clean ones."""

from __future__ import annotations

from typing import Any

import numpy as np

LayerData = tuple[Any, dict[str, Any], str]

_SEED = 0


def few_photons() -> list[LayerData]:
    """Return glands in a dim light: photon noise over a pedestal, 16 bit, with the size of a pixel."""
    from skimage import data

    rng = np.random.default_rng(_SEED)
    stained = 1.0 - data.immunohistochemistry()[128:448, 128:448, 0] / 255.0
    photons = 30.0 * (stained / stained.max()) ** 2
    gain, pedestal, read_noise = 60.0, 400.0, 30.0
    counted = rng.poisson(photons) * gain + pedestal + rng.normal(0, read_noise, photons.shape)
    place = {"scale": (0.2, 0.2), "units": "um", "axis_labels": ("y", "x")}
    return [(_rounded(counted, np.uint16), {"name": "few photons", **place}, "image")]


def photograph() -> list[LayerData]:
    """Return a grey photograph with white noise."""
    from skimage import data

    clean = data.camera()[64:320, 128:384]
    noisy = clean + np.random.default_rng(_SEED).normal(0, 25, clean.shape)
    return [(_rounded(noisy, np.uint8), {"name": "photograph"}, "image")]


def colour_photograph() -> list[LayerData]:
    """Return a photograph in colour with white noise."""
    from skimage import data

    clean = data.astronaut()[:320, 64:384]
    noisy = clean + np.random.default_rng(_SEED).normal(0, 20, clean.shape)
    return [(_rounded(noisy, np.uint8), {"name": "colour photograph", "rgb": True}, "image")]


def volume() -> list[LayerData]:
    """Return blobs in a box whose slices are twice as far apart as pixels."""
    from scipy.ndimage import gaussian_filter
    from skimage import data

    rng = np.random.default_rng(_SEED)
    blobs = data.binary_blobs(
        length=96, n_dim=3, blob_size_fraction=0.2, volume_fraction=0.35, rng=_SEED
    )
    clean = gaussian_filter(blobs.astype(np.float32), 0.7)[:24]
    noisy = (clean + rng.normal(0, 0.5, clean.shape)).astype(np.float32)
    place = {"scale": (0.4, 0.2, 0.2), "units": "um", "axis_labels": ("z", "y", "x")}
    return [(noisy, {"name": "volume of blobs", **place}, "image")]


def _rounded(pixels: Any, dtype: type[np.unsignedinteger]) -> Any:
    return np.clip(np.rint(pixels), 0, np.iinfo(dtype).max).astype(dtype)
