"""Channels: an orthonormal transform that gathers a picture in few and keeps white noise white."""

from __future__ import annotations

import numpy as np

from .image import Array, Float


def covariance(pixels: Float) -> Array:
    """Return the covariance of the channels of (*spatial, channels), float64; one pixel has none."""
    flat = pixels.reshape(-1, pixels.shape[-1]).astype(np.float64)
    if len(flat) == 1:
        return np.zeros((flat.shape[1],) * 2)
    return np.atleast_2d(np.cov(flat, rowvar=False))


def decorrelate(noisy: Float, sigma: float) -> Float:
    """Return an orthonormal transform of the channels of (*spatial, channels), as below."""
    n = noisy.shape[-1]
    return transform_for(n, None if n in (1, 3) else covariance(noisy), sigma)


def transform_for(n: int, among: Array | None, sigma: float) -> Float:
    """Return an orthonormal transform (n, n) of n channels; noise stays white under it.

    Three channels: the opponent transform.  Others: eigenvectors of the channels' covariance ``among``.
    """
    if n == 1:
        return np.ones((1, 1), np.float32)
    if n == 3:
        rows = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T.astype(np.float32)
    assert among is not None
    if not among.any():
        return np.eye(n, dtype=np.float32)
    _, vectors = np.linalg.eigh(among - sigma**2 * np.eye(n))
    return vectors[:, ::-1].astype(np.float32)


def mix(values: Float, transform: Float) -> Float:
    """Apply a channel transform (channels, channels) to (*spatial, channels)."""
    return values if transform.shape == (1, 1) else values @ transform


def luminance(values: Float) -> Float:
    """Return the mean of the channels, (*spatial, 1): under white noise, independent of the colours."""
    return values if values.shape[-1] == 1 else values.mean(axis=-1, keepdims=True)
