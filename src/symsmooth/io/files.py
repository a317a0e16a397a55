"""Read a whole file, and write one back as it came."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .base import (
    FileError,
    OpenFile,
    atomic_folder,
    atomic_write,
    check_place,
    naming_errors,
    naming_write_errors,
)
from .formats import FORMATS, Format, format_of, is_zarr, module_of, open_file
from .images import Array, ImageFile, guess_channel_axis


def read_images(path: str | os.PathLike[str]) -> list[ImageFile]:
    """Read all images of a file; the content decides the format, not the name.

    Parameters
    ----------
    path : path
        A PNG, JPEG, BMP, WebP, TIFF, FITS, .npy, NIfTI, MRC, DNG or raw file of a camera, or a Zarr
        folder.

    Returns
    -------
    list of ImageFile
        At least one.  Pixels in the file's own dtype; the axis of the channels, if any; alpha apart.

    Raises
    ------
    FileError
        If the file is missing, damaged, or not one of the above; the message is one line.
    """
    with open_file(path) as file:
        return read_opened(file)


def read_opened(file: OpenFile) -> list[ImageFile]:
    """Read all images of a file that is open; errors are those of :func:`read_images`."""
    with naming_errors(file.path):
        images: list[ImageFile] = module_of(file.format).read(file)
        return images


def read_image(path: str | os.PathLike[str]) -> ImageFile:
    """Read a file that holds one image: a picture, a stack or an array.

    Parameters
    ----------
    path : path
        As for :func:`read_images`.

    Returns
    -------
    ImageFile

    Raises
    ------
    FileError
        As :func:`read_images`, and if there is more than one image.

    Examples
    --------
    >>> import numpy as np, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "grey.png")
    >>> write_image(path, np.full((4, 5), 7, np.uint16))
    >>> read_image(path).pixels.dtype
    dtype('uint16')
    """
    images = read_images(path)
    if len(images) > 1:
        shapes = ", ".join(str(image.pixels.shape) for image in images[:3])
        raise FileError(f"{path}: holds {len(images)} images ({shapes}); use read_images")
    return images[0]


def check_writable(path: str | os.PathLike[str], like: ImageFile | Sequence[ImageFile]) -> None:
    """Raise FileError if pixels like these could not be written to ``path``.

    Meant to be called before the work starts: floats do not fit into a JPEG, whatever they are.
    """
    file = Path(path)
    images = [like] if isinstance(like, ImageFile) else like
    check_place(file)
    try:
        format = format_of(file)
        if file.is_dir() and (format != "ZARR" or not is_zarr(file)):
            raise FileError("is a folder; give a file name")
        if len(images) > 1 and (not FORMATS[format].many or images[0].format != format):
            fits = f"write to a {images[0].format} file" if images[0].format else "write each alone"
            raise FileError(f"{format} takes one image here, got {len(images)}; {fits}")
        check = getattr(module_of(format), "check_supported", None)
        for image in images:
            _check_holds(FORMATS[format], image)
            if check is not None:
                check(image)
    except FileError as error:
        raise FileError(f"{file}: {error}") from error


def _check_holds(format: Format, image: ImageFile) -> None:
    """Raise FileError if, as its record says, a format cannot hold an image."""
    name, dtype, spatial = format.words, str(image.pixels.dtype), image.spatial
    if image.pixels.ndim < 2:
        raise FileError(f"{name} holds pictures and stacks, got shape {image.pixels.shape}")
    if format.flat and len(spatial) != 2:
        raise FileError(f"{name} holds one 2-D picture, got shape {image.pixels.shape}; use .tif")
    if format.flat and image.n_channels not in (1, 3) and not (format.cmyk and image.is_cmyk):
        raise FileError(f"{name} holds grey or RGB, got {image.n_channels} channels; use .tif")
    if image.alpha is not None and not format.alpha:
        raise FileError(f"{name} holds no alpha channel; write to .png, .webp or .tif")
    if format.dtypes and dtype not in format.dtypes:
        kind = {1: "grey", 3: "RGB"}.get(image.n_channels, "pixels") if format.flat else "pixels"
        place = ".png, .tif or .npy" if format.flat and dtype == "uint16" else ".tif or .npy"
        raise FileError(f"{name} holds {format.kinds}, got {dtype} {kind}; write to {place}")
    if spatial and max(spatial) > format.longest:
        size = "x".join(str(n) for n in reversed(spatial))
        raise FileError(
            f"{name} holds at most {format.longest} pixels a side, got {size}; write to .png or .tif"
        )


def write_image(
    path: str | os.PathLike[str], pixels: Array, like: ImageFile | None = None, note: str = ""
) -> None:
    """Write pixels in the format the name asks for, all of them or nothing.

    Parameters
    ----------
    path : path
        Its ending says the format; an existing file is replaced.
    pixels : ndarray
        In the shape and dtype of ``like.pixels``.
    like : ImageFile or None
        The file the pixels came from: gives channel axis, alpha, layout and metadata.  With None a
        last axis of 3 is colour.
    note : str
        What was done, for the history of the file: FITS HISTORY, the Software tag of EXIF and TIFF,
        an attribute of Zarr.

    Raises
    ------
    FileError
        If the format cannot hold the pixels, or writing failed; then ``path`` is as it was.
    """
    file = Path(path)
    write_images(file, [_assemble(file, pixels, like)], note)


def write_images(path: str | os.PathLike[str], images: Sequence[ImageFile], note: str = "") -> None:
    """Write what :func:`read_images` gave, with other pixels in it; as :func:`write_image`."""
    check_writable(path, images)
    write_checked(path, images, note)


def write_checked(path: str | os.PathLike[str], images: Sequence[ImageFile], note: str) -> None:
    """Write images of shapes and dtypes that :func:`check_writable` has passed before the work."""
    file = Path(path)
    format = format_of(file)
    opened: Any = atomic_folder if format == "ZARR" else atomic_write
    with naming_write_errors(file), opened(file) as place:
        module_of(format).write(place, images, format, note)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file byte for byte, all of it or nothing."""
    with (
        naming_write_errors(target),
        open(source, "rb") as original,
        atomic_write(target) as handle,
    ):
        shutil.copyfileobj(original, handle)


def _assemble(file: Path, pixels: Array, like: ImageFile | None) -> ImageFile:
    """Put new pixels in the place of the old ones."""
    if like is None:
        return ImageFile(pixels, guess_channel_axis(pixels.shape), None, "")
    if pixels.shape != like.pixels.shape:
        raise FileError(f"{file}: pixels must have shape {like.pixels.shape}, got {pixels.shape}")
    if like.alpha is not None and like.alpha.dtype != pixels.dtype:
        raise FileError(
            f"{file}: pixels must be {like.alpha.dtype} as their alpha is, got {pixels.dtype}"
        )
    return replace(like, pixels=pixels)
