"""PNG, JPEG, BMP and WebP, by Pillow; ``_png`` and ``_jpeg`` do what it does not.

Read: palettes become RGB(A), but those that are a ramp stay, and 1-bit pictures become 8-bit grey; pixels
are upright, as the EXIF orientation says.  Written: PNG, BMP and WebP without loss (WebP has no grey, so
a grey picture comes back from it as RGB), JPEG as ``_jpeg`` says; with its EXIF a picture is turned back
as it was stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
from PIL import Image

from . import jpeg, png
from .base import Array, FileError, ImageFile, OpenFile, native
from .ifd import exif_with_software
from .limits import check_declared_size, check_scans
from .palette import Ramp, find_ramp

_LONGEST = {"JPEG": 65500, "WEBP": 16383}
_WITH_ALPHA = ("PNG", "WEBP")
_BEST_COMPRESSION = {"WEBP": 100_000}  # plain surfaces take next to nothing; others as deflate
_WITH_PALETTE = ("PNG", "BMP")
_WITH_EXIF = ("PNG", "JPEG", "WEBP")
_ORIENTATION = 0x0112
_UNTURN = {6: 8, 8: 6}  # the others undo themselves


def read(file: OpenFile) -> list[ImageFile]:
    """Read one picture and split off its alpha channel."""
    handle, format = file.handle, file.format
    ramp: Ramp | None = None
    depth, colour_type = png.header(handle) if format == "PNG" else (8, 2)
    coded = handle.read() if format == "JPEG" else b""
    check_scans(coded)
    handle.seek(0)
    try:
        with Image.open(handle, formats=[format]) as opened:
            if getattr(opened, "n_frames", 1) > 1 and opened.format != "MPO":
                raise FileError("is an animation; save its frames as files of their own")
            _check_size(opened, depth, file.size)
            if depth == 16 and colour_type != 0:
                stored = png.read_deep(opened, handle, colour_type)
                split = _split_samples(stored, has_alpha=colour_type != 2)
            else:
                opened.load()
                ramp = _ramp(opened)
                split = _split(_plain_mode(opened) if ramp is None else opened)
            details = _metadata(opened) | {"bilevel": opened.mode == "1", "ramp": ramp}
            details["from_palette"] = ramp is None and opened.mode in ("P", "PA")
    except Image.DecompressionBombError as error:
        raise FileError("has more pixels than is safe to open; save it as TIFF") from error
    if format == "PNG":
        details |= png.read_chunks(handle) | {"kind": (depth, colour_type)}
    elif format == "JPEG":
        details |= {"coded": coded, "decoded": jpeg.fingerprint(split[0])}
    pixels, alpha = (
        None if part is None else _turned(part, details["orientation"]) for part in split
    )
    assert pixels is not None
    return [ImageFile(pixels, 2 if pixels.ndim == 3 else None, alpha, format, details)]


def _check_size(opened: Image.Image, depth: int, stored: int) -> None:
    """Refuse a picture that is larger than its file can be."""
    packed = opened.mode in ("P", "PA", "1")  # unpacked from as little as a bit a pixel
    samples = 4 if opened.mode in ("P", "PA") else len(opened.getbands())
    n_bytes = opened.width * opened.height * samples * max(depth, 8) // 8
    best = _BEST_COMPRESSION.get(str(opened.format), 1100) * (32 if packed else 1)
    check_declared_size(n_bytes, stored, best=best)


def _ramp(opened: Image.Image) -> Ramp | None:
    """Return the palette of a picture if it is a ramp and nothing shines through it."""
    if opened.mode != "P" or "transparency" in opened.info:
        return None
    colours = np.array(opened.getpalette("RGB") or [], np.uint8).reshape(-1, 3)
    return find_ramp(np.asarray(opened), colours)


def _metadata(opened: Image.Image) -> dict[str, Any]:
    """Return EXIF, colour profile, XMP, resolution and orientation; a broken EXIF says nothing."""
    info = opened.info
    exif = info.get("exif")
    found = {
        "exif": exif.removeprefix(b"Exif\0\0") if isinstance(exif, bytes) else None,
        "icc": info.get("icc_profile"),
        "xmp": info.get("xmp") if isinstance(info.get("xmp"), bytes) else None,
        "dpi": info.get("dpi"),
    }
    orientation = 1
    with suppress(Exception):
        orientation = int(opened.getexif().get(_ORIENTATION, 1))
    return {key: value for key, value in found.items() if value} | {
        "orientation": orientation if orientation in range(1, 9) else 1
    }


def _turned(pixels: Array, orientation: int) -> Array:
    """Return a picture turned and mirrored as an EXIF orientation says."""
    turned = pixels.swapaxes(0, 1) if orientation >= 5 else pixels
    if orientation in (3, 4, 7, 8):
        turned = turned[::-1]
    if orientation in (2, 3, 6, 7):
        turned = turned[:, ::-1]
    return np.ascontiguousarray(turned)


def _split(picture: Image.Image) -> tuple[Array, Array | None]:
    """Return the pixels of a plain mode and the alpha of those that have it."""
    pixels = native(np.asarray(picture))
    if picture.mode == "I;16" and "transparency" in picture.info:
        opaque = pixels != picture.info["transparency"]
        return pixels, np.where(opaque, 65535, 0).astype(np.uint16)
    return _split_samples(pixels, has_alpha=picture.mode in ("LA", "RGBA"))


def _split_samples(pixels: Array, *, has_alpha: bool) -> tuple[Array, Array | None]:
    """Take the last sample off if it is alpha; grey has no axis of samples."""
    if not has_alpha:
        return pixels, None
    colour, alpha = pixels[..., :-1], pixels[..., -1].copy()
    return (colour[..., 0] if colour.shape[-1] == 1 else colour).copy(), alpha


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


def check_supported(image: ImageFile, format: str) -> None:
    """Raise FileError if the format cannot hold the image."""
    if len(image.spatial) != 2:
        raise FileError(f"{format} holds one 2-D picture, got shape {image.pixels.shape}; use .tif")
    if image.n_channels not in (1, 3) and not (format == "JPEG" and image.is_cmyk):
        raise FileError(f"{format} holds grey or RGB, got {image.n_channels} channels; use .tif")
    if format == "PNG":
        png.check_supported(image)
    elif image.pixels.dtype != np.uint8:
        kinds = {1: "grey", 3: "RGB"}
        kind = f"{image.pixels.dtype} {kinds.get(image.n_channels, 'pixels')}"
        raise FileError(f"{format} holds 8-bit pixels, got {kind}; {_advise(image)}")
    if image.alpha is not None and format not in _WITH_ALPHA:
        raise FileError(f"{format} holds no alpha channel; write to .png, .webp or .tif")
    if max(image.spatial) > _LONGEST.get(format, 2**31 - 1):
        height, width = image.spatial
        raise FileError(
            f"{format} holds at most {_LONGEST[format]} pixels a side, got {width}x{height}; "
            "write to .png or .tif"
        )


def _advise(image: ImageFile) -> str:
    """Say which formats keep these pixels."""
    if image.pixels.dtype == np.uint16:
        return "write to .png, .tif or .npy"
    return "write to .tif or .npy"


def write(handle: BinaryIO, images: Sequence[ImageFile], format: str, note: str) -> None:
    """Write one picture, its alpha put back."""
    (image,) = images
    pixels = image.channels_last.reshape(*image.spatial, image.n_channels)
    if image.ramp is not None:
        keeps = format in _WITH_PALETTE
        pixels = image.ramp.hold(pixels) if keeps else image.ramp.paint(pixels[..., 0])
    if image.alpha is not None:
        pixels = np.dstack([pixels, image.alpha])
    if format in _WITH_EXIF:
        orientation = image.details.get("orientation", 1)
        pixels = _turned(pixels, _UNTURN.get(orientation, orientation))
    if format == "PNG":
        png.write(handle, pixels, image, note)
    elif format == "JPEG":
        jpeg.write(handle, pixels, image, note)
    else:
        _save(handle, pixels, image, format, note)


def _save(handle: BinaryIO, pixels: Array, image: ImageFile, format: str, note: str) -> None:
    """Write WebP with its metadata, or BMP with its resolution, which is all it holds."""
    details = image.details
    grey = pixels.shape[2] == 1
    picture = Image.fromarray(np.ascontiguousarray(pixels[..., 0] if grey else pixels))
    if grey and image.ramp is not None:
        picture.putpalette(image.ramp.colours.tobytes())
    extra: dict[str, Any] = {"dpi": details.get("dpi")}
    if format == "WEBP":
        extra = {"lossless": True, "exact": True}
        extra |= {"icc_profile": details.get("icc"), "xmp": details.get("xmp")}
        extra["exif"] = exif_with_software(details.get("exif"), note)
    picture.save(handle, format=format, **{k: v for k, v in extra.items() if v})
