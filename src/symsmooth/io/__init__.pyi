from .base import FileError as FileError
from .base import atomic_write as atomic_write
from .base import limit_decoded_size as limit_decoded_size
from .formats import check_writable as check_writable
from .formats import format_of as format_of
from .formats import read_image as read_image
from .formats import read_images as read_images
from .formats import write_image as write_image
from .formats import write_images as write_images
from .images import ImageFile as ImageFile

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
