"""Which format a file has, by content or by name, and the module that reads and writes it."""

from __future__ import annotations

import gzip
import importlib
import os
import zlib
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO

from .base import FileError, OpenFile, naming_errors
from .ifd import first_directory, read_values

_MODULES = {
    "PNG": "pillow",
    "JPEG": "pillow",
    "BMP": "pillow",
    "WEBP": "pillow",
    "TIFF": "tiff",
    "FITS": "fits",
    "ZARR": "zarr",
    "NPY": "npy",
    "DNG": "dng",
    "RAW": "camera_raw",
    "NIFTI": "nifti",
    "NIFTI.GZ": "nifti",
    "MRC": "mrc",
    "VIDEO": "video",
}
VIDEO_SUFFIXES = {
    ".mp4": "mp4",
    ".m4v": "mp4",
    ".mov": "mov",
    ".mkv": "matroska",
    ".y4m": "yuv4mpegpipe",
}  # that are written
_VIDEO_ENDINGS = {
    "mp4": ".mp4",
    "matroska": ".mkv",
    "avi": ".mkv",
    "y4m": ".y4m",
}  # by what is read
_SUFFIXES = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".jfif": "JPEG",
    ".jpe": "JPEG",
    ".bmp": "BMP",
    ".webp": "WEBP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
    ".fits": "FITS",
    ".fit": "FITS",
    ".fts": "FITS",
    ".zarr": "ZARR",
    ".npy": "NPY",
    ".dng": "DNG",
    ".nii": "NIFTI",
    ".nii.gz": "NIFTI.GZ",
    ".mrc": "MRC",
    ".mrcs": "MRC",
    ".map": "MRC",
}
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"BM", "BMP"),
    (b"RIFF", "WEBP"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "TIFF"),
    (b"MM\0+", "TIFF"),
    (b"SIMPLE  =", "FITS"),
    (b"\x93NUMPY", "NPY"),
)
RAW = ("DNG", "RAW")  # mosaics that have yet to be developed
_RAW_SIGNATURES = (b"FUJIFILMCCD-RAW", b"IIU\0", b"IIRO", b"IIRS", b"MMOR", b"FOVb", b"\0MRM")
_RAW_SUFFIXES = {
    *(".3fr", ".arw", ".cr2", ".cr3", ".dcr", ".erf", ".fff", ".iiq", ".kdc", ".mef", ".mos"),
    *(".mrw", ".nef", ".nrw", ".orf", ".pef", ".raf", ".raw", ".rw2", ".rwl", ".sr2", ".srf"),
    *(".srw", ".x3f"),
}  # of cameras; many are TIFF files inside and known by their name only
_DNG_VERSION = 50706
_START = 352  # bytes that show the format: a header of NIfTI-1
_GZIP = b"\x1f\x8b"
_IN_MP4 = {
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"), "HEIC"),
    **dict.fromkeys((b"avif", b"avis"), "AVIF"),
}  # brands of pictures that are stored as MP4 is
_CONVERT = {
    "GIF": "a GIF, whose colours are numbers of a palette; convert it: magick in.gif out.png",
    "HEIC": "a HEIC picture; export it as JPEG from the phone or its photo program, or convert it: "
    "heif-convert in.heic out.png (libheif), or magick in.heic out.png",
    "AVIF": "an AVIF picture; convert it: avifdec in.avif out.png (libavif), or magick in.avif out.png",
    "DICOM": "a DICOM file; convert a series with dcm2niix (.nii.gz), a picture with dcmj2pnm (.png, .tif)",
    "PAIR": "half of a NIfTI or Analyze pair; make it one file: nib-convert in.hdr out.nii.gz",
}  # formats that are known and not read
_NOT_WRITTEN = (".heic", ".heif", ".hif", ".avif")  # pictures for the eye
_IN_ZARR = ("zarr.json", ".zarray", ".zgroup")
_EXTRAS = {
    "astropy": "fits",
    "zarr": "dask",
    "rawpy": "raw",
    "nibabel": "mri",
    "mrcfile": "em",
    "av": "video",
}  # what must be installed for some formats


def open_file(path: str | os.PathLike[str]) -> OpenFile:
    """Open a file to be read, and see by its content, not by its name, which format it has.

    Raises
    ------
    FileError
        If it is missing or of no known format.
    """
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
    if start.startswith(_RAW_SIGNATURES) or start[4:11] == b"ftypcrx":
        return "RAW"
    if container_of(start) is not None and _kind_not_read(start) is None:
        return "VIDEO"
    for signature, format in _SIGNATURES:
        if start.startswith(signature):
            return _kind_of_tiff(file, handle) if format == "TIFF" else format
    if start.startswith(_GZIP):
        return _kind_of_gzip(handle)
    other = _kind_of_science(start)
    if other is not None:
        return other
    unread = _kind_not_read(start)
    if unread is not None:
        raise FileError(f"is {_CONVERT[unread]}")
    known = (
        "PNG, JPEG, BMP, WebP, TIFF, FITS, Zarr, .npy, NIfTI, MRC, DNG, a camera's RAW or a video "
        "(MP4, MOV, MKV, WebM, AVI, Y4M)"
    )
    raise FileError("is empty" if not start else f"is not {known}; convert it to one of these")


def container_of(start: bytes) -> str | None:
    """Return the kind of container of a video by its first bytes; None if it is none.

    Examples
    --------
    >>> container_of(b"YUV4MPEG2 W64 H48"), container_of(b"PNG")
    ('y4m', None)
    """
    if start.startswith(b"\x1a\x45\xdf\xa3"):
        return "matroska"
    if start.startswith(b"RIFF") and start[8:12] == b"AVI ":
        return "avi"
    if start.startswith(b"YUV4MPEG2 "):
        return "y4m"
    return "mp4" if start[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip") else None


def video_ending(path: str | os.PathLike[str]) -> str:
    """Return the ending of what is written of a video that is read: its own container, or .mkv."""
    with open(path, "rb") as handle:
        kind = container_of(handle.read(_START))
    return _VIDEO_ENDINGS[kind or "matroska"]


def is_video_name(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a video that is written."""
    return Path(path).suffix.lower() in VIDEO_SUFFIXES


def _kind_of_science(start: bytes) -> str | None:
    """Return NIFTI or MRC, whose marks lie further inside."""
    if start[344:348] == b"n+1\0" or start[4:8] == b"n+2\0":
        return "NIFTI"
    return "MRC" if start[208:211] == b"MAP" else None


def _kind_not_read(start: bytes) -> str | None:
    """Return the name of a format that is known and not read."""
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if start[128:132] == b"DICM":
        return "DICOM"
    if start[344:348] == b"ni1\0" or start[4:8] == b"ni2\0":
        return "PAIR"
    return _IN_MP4.get(start[8:12]) if start[4:8] == b"ftyp" else None


def _kind_of_gzip(handle: BinaryIO) -> str:
    """Return NIFTI.GZ if that is what is packed; only the start is unpacked."""
    try:
        handle.seek(0)
        start = gzip.GzipFile(fileobj=handle).read(_START)
    except (OSError, EOFError, zlib.error) as error:
        raise FileError("is a damaged gzip file; copy it again") from error
    if _kind_of_science(start) == "NIFTI":
        return "NIFTI.GZ"
    raise FileError("is packed by gzip and no NIfTI; unpack it first: gunzip -k FILE")


def _kind_of_tiff(file: Path, handle: BinaryIO) -> str:
    """Return DNG for a TIFF that says so, RAW for one that is named like a camera's."""
    with suppress(Exception):  # what is damaged is seen to later
        if _DNG_VERSION in read_values(handle, first_directory(handle), largest=64):
            return "DNG"
    return "RAW" if is_raw_name(file) else "TIFF"


def is_raw_name(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a camera's raw file other than DNG."""
    return Path(path).suffix.lower() in _RAW_SUFFIXES


def has_known_ending(path: str | os.PathLike[str]) -> bool:
    """Whether a name ends like one of a format that is read."""
    return _suffix(path).lower() in _SUFFIXES or is_raw_name(path)


def is_zarr(folder: Path) -> bool:
    """Whether a folder is a Zarr array or group."""
    return any((folder / name).exists() for name in _IN_ZARR)


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format by the ending of a name."""
    suffix = _suffix(path)
    format = _SUFFIXES.get(suffix.lower())
    if format is None:
        if is_raw_name(path):
            raise FileError(f"cannot write {suffix!r}, which only cameras do; use .dng")
        if is_video_name(path):
            raise FileError(f"cannot write a picture to {suffix!r}; use .png or .tif")
        if suffix.lower() in _NOT_WRITTEN:
            raise FileError(f"cannot write {suffix!r}; use .jpg, or .png, which loses nothing")
        raise FileError(
            f"cannot write {suffix or 'a name without ending'!r}; use one of {', '.join(_SUFFIXES)}"
        )
    return format


def _suffix(path: str | os.PathLike[str]) -> str:
    """Return the ending of a name; that of packed files has two parts."""
    suffixes = Path(path).suffixes
    return "".join(suffixes[-2:] if suffixes[-1:] in ([".gz"], [".GZ"]) else suffixes[-1:])


def ending_of(format: str) -> str:
    """Return the usual ending of a format, ``.png``."""
    for suffix, name in _SUFFIXES.items():
        if name == format:
            return suffix
    raise FileError(f"{format} cannot be written; use one of {', '.join(_SUFFIXES)}")


def module_of(format: str) -> Any:
    """Import what reads and writes a format, when it is first needed."""
    try:
        return importlib.import_module(f".{_MODULES[format]}", __package__)
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _EXTRAS:
            raise
        extra = _EXTRAS[library]
        raise FileError(f"{format} needs {library}; pip install 'symsmooth[{extra}]'") from error
