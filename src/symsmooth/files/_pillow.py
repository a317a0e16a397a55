"""PNG, JPEG, BMP and WebP, by Pillow.

Read: palettes become RGB(A) and 1-bit pictures 8-bit grey; pictures are turned upright as their
EXIF orientation says.  Written: PNG, BMP and WebP without loss, JPEG at quality 95 without chroma
subsampling; WebP has no grey, so a grey picture comes back from it as RGB.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from PIL import Image, ImageOps

from ._base import FileError, ImageFile, native

_SAVE: dict[str, dict[str, Any]] = {
    "PNG": {},
    "JPEG": {"quality": 95, "subsampling": 0},
    "BMP": {},
    "WEBP": {"lossless": True, "exact": True},
}
_LONGEST = {"JPEG": 65500, "WEBP": 16383}
_WITH_ALPHA = ("PNG", "WEBP")


def read(path: Path, format: str) -> ImageFile:
    """Read one picture and split off its alpha channel."""
    if format == "PNG":
        _refuse_deep_png(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what matters is raised as an error
        try:
            with Image.open(path, formats=[format]) as opened:
                if getattr(opened, "n_frames", 1) > 1 and opened.format != "MPO":
                    raise FileError("is an animation; save its frames as files of their own")
                opened.load()
                picture = _plain_mode(_upright(opened))
        except Image.DecompressionBombError as error:
            raise FileError("has more pixels than is safe to open; save it as TIFF") from error
    pixels = native(np.asarray(picture))
    alpha = None
    if picture.mode in ("LA", "RGBA"):
        pixels, alpha = pixels[..., :-1].copy(), pixels[..., -1].copy()
        pixels = pixels[..., 0].copy() if picture.mode == "LA" else pixels
    elif picture.mode == "I;16" and "transparency" in picture.info:
        alpha = np.where(pixels == picture.info["transparency"], 0, 65535).astype(np.uint16)
    return ImageFile(pixels, 2 if pixels.ndim == 3 else None, alpha, format)


def _refuse_deep_png(path: Path) -> None:
    """Refuse 16-bit colour, of which Pillow would drop the lower 8 bits without a word."""
    with open(path, "rb") as handle:
        header = handle.read(26)
    if len(header) == 26 and header[24] == 16 and header[25] != 0:
        kind = {2: "RGB", 4: "grey and alpha", 6: "RGBA"}.get(header[25], "colour")
        raise FileError(f"is a 16-bit {kind} PNG, which cannot be read whole; save it as TIFF")


def _upright(picture: Image.Image) -> Image.Image:
    """Turn a picture as its EXIF orientation says; a broken EXIF block says nothing."""
    with suppress(Exception):
        return ImageOps.exif_transpose(picture)
    return picture


def _plain_mode(picture: Image.Image) -> Image.Image:
    """Bring palettes, 1-bit pixels and transparent colours to grey or RGB, with alpha if any."""
    see_through = "transparency" in picture.info
    if picture.mode in ("L", "LA", "RGB", "RGBA", "CMYK", "I;16"):
        if see_through and picture.mode in ("L", "RGB"):
            return picture.convert(picture.mode + "A")
        return picture
    if picture.mode in ("P", "PA"):
        return picture.convert("RGBA" if see_through or picture.mode == "PA" else "RGB")
    if picture.mode == "I":  # 16-bit PNG in older Pillow
        return picture.convert("I;16")
    if picture.mode == "1":
        return picture.convert("L")
    raise FileError(f"has pixels of the kind {picture.mode!r}; save it as grey or RGB")


def refuse(image: ImageFile, format: str) -> None:
    """Raise FileError if the format cannot hold the image."""
    deep_grey = format == "PNG" and image.n_channels == 1
    allowed: tuple[type, ...] = (np.uint8, np.uint16) if deep_grey else (np.uint8,)
    if len(image.spatial) != 2:
        raise FileError(f"{format} holds one 2-D picture, got shape {image.pixels.shape}; use .tif")
    if image.n_channels not in (1, 3) and not (format == "JPEG" and image.is_cmyk):
        raise FileError(f"{format} holds grey or RGB, got {image.n_channels} channels; use .tif")
    if image.pixels.dtype not in allowed:
        depth = "8-bit pixels, or 16-bit grey" if format == "PNG" else "8-bit pixels"
        raise FileError(f"{format} holds {depth}, got {_describe(image)}; {_advise(image)}")
    if image.alpha is not None and format not in _WITH_ALPHA:
        raise FileError(f"{format} holds no alpha channel; write to .png, .webp or .tif")
    if image.alpha is not None and image.pixels.dtype != np.uint8:
        raise FileError(f"{format} with alpha is written in 8 bits only; write to .tif")
    if max(image.spatial) > _LONGEST.get(format, 2**31 - 1):
        height, width = image.spatial
        raise FileError(
            f"{format} holds at most {_LONGEST[format]} pixels a side, got {width}x{height}; "
            "write to .png or .tif"
        )


def _describe(image: ImageFile) -> str:
    """Return the kind of pixels in words: "uint16 RGB"."""
    kinds = {1: "grey", 3: "RGB"}
    return f"{image.pixels.dtype} {kinds.get(image.n_channels, 'pixels')}"


def _advise(image: ImageFile) -> str:
    """Say which formats keep these pixels."""
    if image.pixels.dtype == np.uint16 and image.n_channels == 1:
        return "write to .png, .tif or .npy"
    return "write to .tif or .npy"


def write(handle: BinaryIO, image: ImageFile, format: str) -> None:
    """Write one picture, its alpha put back."""
    pixels = np.ascontiguousarray(image.channels_last)
    if image.n_channels == 1:
        pixels = pixels.reshape(image.spatial)
    if image.alpha is not None:
        pixels = np.dstack([pixels, image.alpha])
    if image.is_cmyk:
        height, width = image.spatial
        picture = Image.frombytes("CMYK", (width, height), pixels.tobytes())
    else:
        picture = Image.fromarray(pixels)
    picture.save(handle, format=format, **_SAVE[format])
