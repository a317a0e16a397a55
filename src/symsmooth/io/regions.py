"""Images larger than memory: tiled TIFF, Zarr and .npy, read and written box by box.

A box is a tuple of slices with start and stop, one for each axis.  Sources and targets may be shared
by threads.  A target is a hidden file (or folder) beside its name, with a log of the boxes that are
done; it takes its name when it is finished.  So there is never a wrong file under the right name, and
a run that was killed can be continued where it stopped.
"""

from __future__ import annotations

import os
from pathlib import Path

from .base import FileError, one_line, suppress_warnings
from .boxes import Box
from .formats import format_of, module_of
from .lock import Lock
from .sources import Source, open_source, source_of
from .targets import MAKERS, Target, begin, is_own, lines_of, remove

__all__ = ["Box", "Source", "Target", "create_target", "open_source", "source_of", "target_chunks"]


def target_chunks(path: str | os.PathLike[str], source: Source) -> tuple[int, ...]:
    """Return what will be stored in one piece by the target of that name."""
    if source.format == "ZARR":
        return tuple(source._pixels.shards or source.chunks)
    if format_of(Path(path)) == "ZARR":
        chunks: tuple[int, ...] = module_of("ZARR").new_chunks(source.shape, source.axes)
        return chunks
    return source.chunks


def create_target(
    path: str | os.PathLike[str], source: Source, *, resume: bool = False, keep: bool = False,
    key: str = "",
) -> Target:  # fmt: skip
    """Make a TIFF, Zarr or .npy image like a source, to be written box by box.

    Parameters
    ----------
    path : path
        Its ending says the format.  TIFF from TIFF and Zarr from Zarr keep all metadata.
    source : Source
        Gives shape, dtype, axes and, in the same format, everything else.
    resume : bool
        Continue what a run with the same ``key`` left, and keep it when interrupted.
    keep : bool
        Keep it when interrupted, for a run that resumes.
    key : str
        What the pixels depend on (method, options, the input's date): another key starts afresh.

    Raises
    ------
    FileError
        If it cannot be written, or another run is writing it.
    """
    file = Path(path)
    final = Path(os.path.realpath(file))
    part, log, held = (
        final.with_name(f".{final.name[:100]}.{end}") for end in ("part", "part.log", "part.lock")
    )
    about = {"shape": list(source.shape), "dtype": source.dtype.str, "key": key}
    format = format_of(file)
    try:
        if format not in MAKERS:
            raise FileError(f"{format} cannot be written in pieces; use .tif, .zarr or .npy")
        make, open_made = MAKERS[format]
        lock = Lock(held)
        lines = lines_of(log) if resume and is_own(log) and is_own(part) else []
        afresh = not (lines and about.items() <= lines[0].items())
        try:
            if afresh:
                remove(part)
                remove(log)
                make(part, source)
            begin(log, [about] if afresh else lines)
            with suppress_warnings():
                target: Target = open_made(file, part, log, resume or keep, source)
            return target.hold(lock)
        except BaseException:
            if afresh:
                remove(part)
                remove(log)
            lock.release()
            raise
    except FileError as error:
        raise FileError(f"{file}: {error}") from error
    except Exception as error:  # of the disk, or of a decoder that looks at the source's levels
        raise FileError(f"{file}: cannot be written: {one_line(error)}") from error
