"""A camera: what becomes of raw noise on its way to a JPEG.

Poisson-Gaussian noise of the sensor, Bayer mosaic, bilinear demosaicing, white balance and colour matrix,
tone curve, in-camera smoothing and sharpening, resizing, JPEG.  The clean picture goes the same way without
noise and without JPEG, so that the difference of the two is the noise: coarse, coloured, and dependent on
the signal.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import scipy.ndimage
from PIL import Image

from symsmooth.core.image import Array

_BALANCE = np.array([0.5, 1.0, 0.6])  # what the sensor sees of red, green, blue
_MATRIX = 0.4 * np.eye(3) + 0.6 * np.array(
    [[1.5, -0.35, -0.15], [-0.2, 1.4, -0.2], [-0.05, -0.45, 1.5]]
)
_GAMMA = 2.2
_TENT = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]) / 4.0


@dataclass(frozen=True)
class Camera:
    """A sensor and its software; raw values are 0 to 1."""

    gain: float  # of the Poisson noise
    read: float  # standard deviation of the read noise
    luma_blur: float = 0.0  # standard deviation of the low-pass on the noise, in pixels
    chroma_blur: float = 0.0
    contrast: float = 0.0  # of the S curve after the gamma: 0 none, 1 a smoothstep
    sharpen: float = 0.0  # amount of unsharp masking
    size: float = 1.0  # of the written picture
    quality: int = 95  # of the JPEG
    subsampling: bool = False  # of its chroma, 4:2:0

    def quieter(self, times: float) -> Camera:
        """Return the same camera with raw noise of a ``times`` smaller standard deviation."""
        return replace(self, gain=self.gain / times**2, read=self.read / times)


CAMERAS = MappingProxyType(
    {"A": Camera(0.004, 0.004), "B": Camera(0.006, 0.006, luma_blur=0.7, chroma_blur=1.4)}
)


def random_camera(rng: np.random.Generator) -> Camera:
    """Return a camera as there might be one: any amount of noise, blur, sharpening and compression.

    Examples
    --------
    >>> import numpy as np
    >>> 70 <= random_camera(np.random.default_rng(0)).quality <= 98
    True
    """
    level = float(np.exp(rng.uniform(np.log(0.02), np.log(0.1))))  # noise of white
    return Camera(
        gain=level**2,
        read=level * float(rng.uniform(0.02, 0.1)),
        luma_blur=float(rng.choice([0.0, rng.uniform(0.4, 0.9)])),
        chroma_blur=float(rng.choice([0.0, rng.uniform(0.5, 2.0)])),
        contrast=float(rng.uniform(0.0, 0.7)),
        sharpen=float(rng.choice([0.0, rng.uniform(0.2, 1.0)])),
        size=float(rng.choice([1.0, rng.uniform(0.5, 1.0)])),
        quality=int(rng.integers(70, 99)),
        subsampling=bool(rng.integers(2)),
    )


def photograph(scene: Array, camera: Camera, seed: int = 0) -> tuple[Array, Array]:
    """Return (noisy, clean) pictures (y, x, 3) in 0 to 1 of a scene (y, x, 3) in 0 to 1; even sides.

    Examples
    --------
    >>> import numpy as np
    >>> noisy, clean = photograph(np.full((16, 16, 3), 0.5), CAMERAS["A"])
    >>> bool(0.01 < (noisy - clean).std() < 0.1)
    True
    """
    rng = np.random.default_rng(seed)
    raw = _mosaic(scene**_GAMMA * _BALANCE)
    exposed = camera.gain * rng.poisson(raw / camera.gain)
    exposed = exposed + camera.read * rng.standard_normal(raw.shape)
    clean, noisy = _develop(raw), _develop(exposed)
    if camera.luma_blur or camera.chroma_blur:
        noise = noisy - clean
        luma = noise.mean(axis=-1, keepdims=True)
        noisy = clean + _blur(luma, camera.luma_blur) + _blur(noise - luma, camera.chroma_blur)
    clean, noisy = _finish(clean, camera), _finish(noisy, camera)
    return _through_jpeg(noisy, camera), clean


def _finish(picture: Array, camera: Camera) -> Array:
    """Apply the S curve, sharpen, resize."""
    if camera.contrast:
        bent = np.clip(picture, 0.0, 1.0)
        picture = picture + camera.contrast * (bent**2 * (3 - 2 * bent) - bent)
    if camera.sharpen:
        picture = picture + camera.sharpen * (picture - _blur(picture, 1.0))
    if camera.size != 1.0:
        height, width = (round(camera.size * n) for n in picture.shape[:2])
        planes = [Image.fromarray(picture[..., c].astype(np.float32)) for c in range(3)]
        small = [np.asarray(p.resize((width, height), Image.Resampling.BICUBIC)) for p in planes]
        picture = np.stack(small, axis=-1).astype(np.float64)
    return np.clip(picture, 0.0, 1.0)


def _mosaic(raw: Array) -> Array:
    """Keep one colour a pixel: R G / G B."""
    kept = raw[..., 1].copy()
    kept[0::2, 0::2] = raw[0::2, 0::2, 0]
    kept[1::2, 1::2] = raw[1::2, 1::2, 2]
    return kept


def _develop(mosaic: Array) -> Array:
    """Demosaic bilinearly, balance, mix the colours, apply the gamma."""
    colour = _mosaic_masks(mosaic.shape)
    known = [
        scipy.ndimage.convolve(values, _TENT, mode="mirror")
        for mask in colour
        for values in (mosaic * mask, mask)
    ]
    linear = np.stack([known[2 * c] / known[2 * c + 1] for c in range(3)], axis=-1)
    return np.clip(linear / _BALANCE @ _MATRIX.T, 1e-4, 1.0) ** (1 / _GAMMA)


def _mosaic_masks(shape: tuple[int, ...]) -> list[Array]:
    """Return where each colour is seen."""
    red, blue = np.zeros(shape), np.zeros(shape)
    red[0::2, 0::2] = blue[1::2, 1::2] = 1.0
    return [red, 1.0 - red - blue, blue]


def _blur(values: Array, width: float) -> Array:
    return scipy.ndimage.gaussian_filter(values, (width, width, 0.0))


def _through_jpeg(picture: Array, camera: Camera) -> Array:
    """Round to 8 bits, write and read."""
    file = io.BytesIO()
    eight_bit = np.clip(picture * 255 + 0.5, 0, 255).astype(np.uint8)
    subsampling = 2 if camera.subsampling else 0
    Image.fromarray(eight_bit).save(file, "JPEG", quality=camera.quality, subsampling=subsampling)
    return np.asarray(Image.open(file)) / 255.0
