"""Read images with all their metadata, and write them back as they came.

- ``files``: whole files; ``formats``: which format a file has, and who reads and writes it;
- one module a format, each with ``read``, ``check_supported`` and ``write``: ``pillow`` (PNG, JPEG, BMP,
  WebP, with ``png``, ``jpeg`` and ``ifd`` below it), ``tiff`` (with ``segments``), ``fits``, ``zarr``,
  ``npy``, ``dng`` (with ``dng_new``) and ``camera_raw`` (read only);
- ``stacks`` cuts an image of many axes into the pictures and volumes that can be denoised;
- ``regions`` reads (``sources``) and writes (``targets``) what does not fit into memory, box by box;
- ``limits`` checks what a file says of itself before anything is allocated for it.

A new format is a new module and its rows in the tables of ``formats``.
"""

from __future__ import annotations

from .base import FileError, ImageFile, atomic_write
from .files import check_writable, read_image, read_images, write_image, write_images
from .formats import format_of
from .limits import limit_decoded_size

__all__ = [
    "FileError",
    "ImageFile",
    "atomic_write",
    "check_writable",
    "format_of",
    "limit_decoded_size",
    "read_image",
    "read_images",
    "write_image",
    "write_images",
]
