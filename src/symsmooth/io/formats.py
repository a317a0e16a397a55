"""The list of formats, one record each, and files that are opened, read and written by it.

A new format is a module with ``read`` and ``write``, and its record in ``FORMATS``.  What a format can
hold is said by its record; a module may have ``check_supported`` for what no record says, and reads box by
box if it has ``open_source`` (``regions``).  Nothing is imported here for that: a list of endings costs no
NumPy.
"""

from __future__ import annotations

import gzip
import importlib
import os
import re
import shutil
import zlib
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from .base import (
    FileError,
    OpenFile,
    atomic_folder,
    atomic_write,
    check_place,
    naming_errors,
    naming_write_errors,
)
from .ifd import first_directory, read_values

if TYPE_CHECKING:
    from .images import Array, ImageFile

Mark = tuple[int, bytes]  # where bytes lie at the beginning of a file, and which

_NUMBERS = (
    "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64",
)  # fmt: skip


@dataclass(frozen=True)
class Format:
    """A format of files: how it is known, and what it can hold."""

    name: str  # as of an ImageFile
    module: str = ""  # beside this one: what reads and writes it; empty if it is known and not read
    title: str = ""  # what people call it, if not by its name
    suffixes: tuple[str, ...] = ()  # endings of names that are written, the usual one first
    read_only: tuple[str, ...] = ()  # endings that are read and not written
    marks: tuple[Mark, ...] = ()  # each of them alone shows the format
    needs: tuple[str, str] | None = None  # a library it imports, and our extra that installs it
    refusal: str = ""  # why it is not read, and what converts it
    not_written: str = ""  # what is said of a name whose ending is read only
    dtypes: tuple[str, ...] = ()  # of pixels that it holds; empty if there is more to say
    flat: bool = False  # it holds one 2-D picture, grey or RGB, and no stack
    longest: int = 2**31 - 1  # pixels a side
    alpha: bool = False  # it holds opacity,
    exif: bool = False  # EXIF,
    palette: bool = False  # a palette,
    cmyk: bool = False  # four inks,
    many: bool = False  # several images
    for_the_eye: bool = False  # pictures in it are looked at, not measured
    in_pieces: bool = False  # it is read and written box by box
    tied: bool = False  # its metadata is that of pixels of one dtype
    is_raw: bool = False  # its pixels are a mosaic that has yet to be developed

    @property
    def words(self) -> str:
        """What people call it."""
        return self.title or self.name

    @property
    def holds_floats(self) -> bool:
        """Whether pixels may be floats."""
        return not self.dtypes or "float32" in self.dtypes

    @property
    def kinds(self) -> str:
        """Which pixels it holds."""
        if self.holds_floats:
            return f"integers and floats of {16 if 'float16' in self.dtypes else 32} to 64 bits"
        return f"{'8- or 16' if 'uint16' in self.dtypes else '8'}-bit pixels"


def _at(start: int, *marks: bytes) -> tuple[Mark, ...]:
    return tuple((start, mark) for mark in marks)


# Marks are looked for in this order: a CR3 of a camera and a HEIC picture are stored as an MP4 is.
FORMATS = {
    format.name: format
    for format in (
        Format(
            "PNG", "pillow", suffixes=(".png",), marks=_at(0, b"\x89PNG\r\n\x1a\n"), flat=True,
            dtypes=("uint8", "uint16"), alpha=True, exif=True, palette=True, for_the_eye=True,
        ),
        Format(
            "JPEG", "pillow", suffixes=(".jpg", ".jpeg", ".jfif", ".jpe"), marks=_at(0, b"\xff\xd8\xff"),
            flat=True, dtypes=("uint8",), longest=65500, exif=True, cmyk=True, for_the_eye=True,
        ),
        Format(
            "BMP", "pillow", suffixes=(".bmp",), marks=_at(0, b"BM"), flat=True, dtypes=("uint8",),
            palette=True, for_the_eye=True,
        ),
        Format(
            "WEBP", "pillow", "WebP", suffixes=(".webp",), marks=_at(8, b"WEBP"), flat=True,
            dtypes=("uint8",), longest=16383, alpha=True, exif=True, for_the_eye=True,
        ),
        Format(
            "TIFF", "tiff", suffixes=(".tif", ".tiff"),
            marks=_at(0, b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), dtypes=(*_NUMBERS, "float16"),
            alpha=True, cmyk=True, many=True, in_pieces=True, tied=True,
        ),
        Format(
            "FITS", "fits", suffixes=(".fits", ".fit", ".fts"), marks=_at(0, b"SIMPLE  ="),
            needs=("astropy", "fits"), dtypes=_NUMBERS, many=True,
        ),
        Format(
            "ZARR", "zarr", "Zarr", (".zarr",), needs=("zarr", "dask"), many=True, in_pieces=True,
            tied=True,
        ),
        Format("NPY", "npy", ".npy", (".npy",), marks=_at(0, b"\x93NUMPY"), in_pieces=True),
        Format(
            "NIFTI", "nifti", "NIfTI", suffixes=(".nii",), marks=((344, b"n+1\0"), (4, b"n+2\0")),
            needs=("nibabel", "mri"), dtypes=_NUMBERS,
        ),
        Format(
            "NIFTI.GZ", "nifti", "NIfTI", suffixes=(".nii.gz",), marks=_at(0, b"\x1f\x8b"),
            needs=("nibabel", "mri"), dtypes=_NUMBERS,
        ),
        Format(
            "MRC", "mrc", suffixes=(".mrc", ".mrcs", ".map"), marks=_at(208, b"MAP"),
            needs=("mrcfile", "em"),
        ),
        Format("DNG", "dng", suffixes=(".dng",), many=True, is_raw=True),
        Format(
            "RAW", "camera_raw", "a camera's RAW", needs=("rawpy", "raw"), is_raw=True,
            marks=(
                *_at(0, b"FUJIFILMCCD-RAW", b"IIU\0", b"IIRO", b"IIRS", b"MMOR", b"FOVb", b"\0MRM"),
                (4, b"ftypcrx"),
            ),
            read_only=(  # many are TIFF files inside and known by their name only
                ".3fr", ".arw", ".cr2", ".cr3", ".dcr", ".erf", ".fff", ".iiq", ".kdc", ".mef",
                ".mos", ".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl",
                ".sr2", ".srf", ".srw", ".x3f",
            ),
            not_written="cannot write {!r}, which only cameras do; use .dng",
        ),
        Format(
            "GIF", marks=_at(0, b"GIF87a", b"GIF89a"),
            refusal="a GIF, whose colours are numbers of a palette; convert it: magick in.gif out.png",
        ),
        Format(
            "DICOM", marks=_at(128, b"DICM"),
            refusal="a DICOM file; convert a series with dcm2niix (.nii.gz), a picture with dcmj2pnm "
            "(.png, .tif)",
        ),
        Format(
            "PAIR", marks=((344, b"ni1\0"), (4, b"ni2\0")),
            refusal="half of a NIfTI or Analyze pair; make it one file: nib-convert in.hdr out.nii.gz",
        ),
        Format(
            "HEIC", read_only=(".heic", ".heif", ".hif"),
            marks=_at(4, *(b"ftyp" + brand for brand in b"heic heix hevc heim heis mif1 msf1".split())),
            refusal="a HEIC picture; export it as JPEG from the phone or its photo program, or convert "
            "it: heif-convert in.heic out.png (libheif), or magick in.heic out.png",
            not_written="cannot write {!r}; use .jpg, or .png, which loses nothing",
        ),
        Format(
            "AVIF", read_only=(".avif",), marks=_at(4, b"ftypavif", b"ftypavis"),
            refusal="an AVIF picture; convert it: avifdec in.avif out.png (libavif), or magick in.avif "
            "out.png",
            not_written="cannot write {!r}; use .jpg, or .png, which loses nothing",
        ),
        Format(
            "VIDEO", "video", "a video (MP4, MOV, MKV, WebM, AVI, Y4M)", needs=("av", "video"),
            read_only=(".mp4", ".m4v", ".mov", ".mkv", ".y4m"),
            marks=(
                *_at(0, b"\x1a\x45\xdf\xa3", b"YUV4MPEG2 "), (8, b"AVI "),
                *_at(4, b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"),
            ),
            not_written="cannot write a picture to {!r}; use .png or .tif",
        ),
    )
}  # fmt: skip
_BY_SUFFIX = {suffix: format for format in FORMATS.values() for suffix in format.suffixes}
_READ_ONLY = {suffix: format for format in FORMATS.values() for suffix in format.read_only}
_DNG_VERSION = 50706
_START = 352  # bytes that show the format: a header of NIfTI-1
_DIGITS = re.compile(r"(\d+)")
_IN_ZARR = ("zarr.json", ".zarray", ".zgroup")


def endings() -> list[str]:
    """Return the endings of all names of pictures that are read, those of packed files whole."""
    known = [format for format in FORMATS.values() if format.module and format.name != "VIDEO"]
    return [each for format in known for each in (*format.suffixes, *format.read_only)]


def open_file(path: str | os.PathLike[str]) -> OpenFile:
    """Open a file to be read, and see by its content, not by its name, which format it has."""
    file = Path(path)
    with naming_errors(file):
        return _open(file)


def detect_format(path: str | os.PathLike[str]) -> str:
    """Return the format by the first bytes of a file, or by what is in a folder."""
    with _open(Path(path)) as file:
        return file.format


def _open(file: Path) -> OpenFile:
    if file.is_dir():
        if is_zarr(file):
            return OpenFile(file, None, "ZARR")
        raise FileError(f"is a folder; give its files, as in '{file}/**/*.tif' with the quotes")
    if file.exists() and not file.is_file():
        raise FileError("is not a regular file")
    with ExitStack() as opened:
        handle = opened.enter_context(open(file, "rb"))
        format = _format_of_content(file, handle)
        handle.seek(0)
        opened.pop_all()  # closed by the OpenFile
    return OpenFile(file, handle, format)


def _format_of_content(file: Path, handle: BinaryIO) -> str:
    """Return the format by the first bytes; some names say more, too."""
    start = handle.read(_START)
    if not start:
        raise FileError("is empty")
    marked = (each for each in FORMATS.values() if _is_marked(start, each))
    found = next(marked, None)
    if found is None:
        *some, last = dict.fromkeys(each.words for each in FORMATS.values() if each.module)
        raise FileError(f"is not {', '.join(some)} or {last}; convert it to one of these")
    if found.refusal:
        raise FileError(f"is {found.refusal}")
    if found.name == "TIFF":
        return _kind_of_tiff(file, handle)
    if found.name == "NIFTI.GZ":
        _check_gzip(handle)
    return found.name


def _is_marked(start: bytes, format: Format) -> bool:
    """Whether the beginning of a file has one of the marks of a format."""
    return any(start.startswith(mark, at) for at, mark in format.marks)


def video_ending(path: str | os.PathLike[str]) -> str:
    """Return the ending of what is written of a video that is read: its own container, or .mkv."""
    with open(path, "rb") as handle:
        start = handle.read(16)
    if start.startswith(b"YUV4MPEG2 "):
        return ".y4m"
    return ".mkv" if start.startswith((b"\x1a\x45\xdf\xa3", b"RIFF")) else ".mp4"


def is_video_name(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a video that is written."""
    return Path(path).suffix.lower() in FORMATS["VIDEO"].read_only


def _check_gzip(handle: BinaryIO) -> None:
    """Refuse what is packed and no NIfTI; only the start is unpacked."""
    try:
        handle.seek(0)
        start = gzip.GzipFile(fileobj=handle).read(_START)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError("is a damaged gzip file; copy it again") from error
    if not _is_marked(start, FORMATS["NIFTI"]):
        raise FileError("is packed by gzip and no NIfTI; unpack it first: gunzip -k FILE")


def _kind_of_tiff(file: Path, handle: BinaryIO) -> str:
    """Return DNG for a TIFF that says so, RAW for one that is named like a camera's."""
    with suppress(Exception):  # what is damaged is seen to later
        if _DNG_VERSION in read_values(handle, first_directory(handle), largest=64):
            return "DNG"
    return "RAW" if is_raw_name(file) else "TIFF"


def is_raw_name(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a camera's raw file other than DNG."""
    return Path(path).suffix.lower() in FORMATS["RAW"].read_only


def has_known_ending(path: str | os.PathLike[str]) -> bool:
    """Whether a name ends like one of a format that is read."""
    return _suffix(path).lower() in _BY_SUFFIX or is_raw_name(path)


def is_zarr(folder: Path) -> bool:
    """Whether a folder is a Zarr array or group."""
    return any((folder / name).exists() for name in _IN_ZARR)


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format by the ending of a name."""
    suffix = _suffix(path)
    format = _BY_SUFFIX.get(suffix.lower())
    if format is not None:
        return format.name
    if suffix.lower() in _READ_ONLY:
        raise FileError(_READ_ONLY[suffix.lower()].not_written.format(suffix))
    raise FileError(
        f"cannot write {suffix or 'a name without ending'!r}; use one of {', '.join(_BY_SUFFIX)}"
    )


def _suffix(path: str | os.PathLike[str]) -> str:
    """Return the ending of a name; that of packed files has two parts."""
    suffixes = Path(path).suffixes
    return "".join(suffixes[-2:] if suffixes[-1:] in ([".gz"], [".GZ"]) else suffixes[-1:])


def natural_order(path: Path) -> tuple[Any, ...]:
    """Return a key by which frame 2 comes before frame 10.

    Examples
    --------
    >>> [p.name for p in sorted(map(Path, ["f10.png", "f2.png", "F1.png"]), key=natural_order)]
    ['F1.png', 'f2.png', 'f10.png']
    """
    parts = _DIGITS.split(path.name.lower())
    return tuple(int(part) if i % 2 else part for i, part in enumerate(parts)), path.name


def ending_of(format: str) -> str:
    """Return the usual ending of a format, ``.png``."""
    known = FORMATS.get(format)
    if known is None or not known.suffixes:
        raise FileError(f"{format} cannot be written; use one of {', '.join(_BY_SUFFIX)}")
    return known.suffixes[0]


def module_of(format: str) -> Any:
    """Import what reads and writes a format, when it is first needed."""
    known = FORMATS[format]
    try:
        return importlib.import_module(f".{known.module}", __package__)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if known.needs is None or library != known.needs[0]:
            raise
        text = f"{format} needs {library}; pip install 'symsmooth[{known.needs[1]}]'"
        raise FileError(text) from error


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
    images = like if isinstance(like, Sequence) else [like]
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
        longest = f"{format.longest} pixels a side"
        raise FileError(f"{name} holds at most {longest}, got {image.size}; write to .png or .tif")


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
    from .images import ImageFile, guess_channel_axis

    if like is None:
        return ImageFile(pixels, guess_channel_axis(pixels.shape), None, "")
    if pixels.shape != like.pixels.shape:
        raise FileError(f"{file}: pixels must have shape {like.pixels.shape}, got {pixels.shape}")
    if like.alpha is not None and like.alpha.dtype != pixels.dtype:
        raise FileError(
            f"{file}: pixels must be {like.alpha.dtype} as their alpha is, got {pixels.dtype}"
        )
    return replace(like, pixels=pixels)
