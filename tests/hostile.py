"""Read damaged files in a process of its own: ``python hostile.py N SEED FORMAT...``.

Prints a JSON object a format: the number of files read and refused, and all that should not be.  Run by
``test_hostile.py``, which sees a crash of a decoder as the end of this process.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 5.0  # seconds of work
PATIENCE = 60.0  # seconds for what waits, as for a pipe; a busy machine takes its time
MEMORY = 500_000_000  # bytes more than before
WAYS = ("whole", "boxes")
ADDRESSES = 8 * 2**30  # bytes of address space: what claims more must be refused, not tried
SUFFIXES = {
    **{"PNG": ".png", "PNG16": ".png", "JPEG": ".jpg", "BMP": ".bmp", "WEBP": ".webp"},
    **{"TIFF": ".tif", "TIFF-deflate": ".tif", "OME-TIFF": ".tif", "ImageJ": ".tif"},
    **{"DNG": ".dng", "DNG-packed": ".dng"},
    **{"NIFTI": ".nii", "NIFTI.GZ": ".nii.gz", "MRC": ".mrc"},
    **{"FITS": ".fits", "NPY": ".npy", "ZARR": ".zarr", "OME-ZARR": ".zarr"},
}


def sample(kind: str) -> bytes | dict[str, bytes]:
    """Return a small valid file, or the files of a folder by name."""
    rng = np.random.default_rng(1)
    colour = rng.integers(0, 256, (24, 20, 3), dtype=np.uint8)
    stack = rng.integers(0, 65536, (2, 3, 16, 18), dtype=np.uint16)
    buffer = io.BytesIO()
    if kind in ("PNG", "JPEG", "BMP", "WEBP"):
        from PIL import Image

        exif = Image.Exif()
        exif[0x010F], exif[0x0112] = "Maker", 6
        more: dict[str, Any] = {} if kind == "BMP" else {"exif": exif, "icc_profile": b"icc" * 50}
        Image.fromarray(colour).save(buffer, format=kind, **more)
    elif kind == "PNG16":
        from symsmooth.io import ImageFile, pillow

        deep = stack[:, :, :, :].reshape(24, -1, 3).copy()
        pillow.write(buffer, [ImageFile(deep, 2, None, "")], "PNG", "note")
    elif kind == "NPY":
        np.save(buffer, colour)
    elif kind == "FITS":
        from astropy.io import fits

        parts = [fits.PrimaryHDU(stack[0]), fits.ImageHDU(stack[1].astype(np.float32))]
        fits.HDUList(parts).writeto(buffer)
    elif kind.startswith("NIFTI"):
        return sample_nifti(stack, packed=kind.endswith("GZ"))
    elif kind == "MRC":
        from symsmooth.io import ImageFile, mrc

        volume = ImageFile(stack[0], None, None, "", axes="ZYX")
        mrc.write(buffer, [volume], kind, "note")
    elif kind.endswith("ZARR"):
        return sample_store(kind, stack)
    elif kind.startswith("DNG"):
        return sample_dng(packed=kind == "DNG-packed")
    else:
        import tifffile

        options: dict[str, dict[str, Any]] = {
            "TIFF": {"photometric": "minisblack"},
            "TIFF-deflate": {"compression": "zlib", "tile": (16, 16), "photometric": "minisblack"},
            "OME-TIFF": {"ome": True, "metadata": {"axes": "CZYX"}},
            "ImageJ": {"imagej": True, "metadata": {"axes": "TZYX", "Info": "x"}},
        }
        tifffile.imwrite(buffer, stack, **options[kind])
    return buffer.getvalue()


def sample_nifti(stack: np.ndarray[Any, Any], packed: bool) -> bytes:
    """Return a small series with an extension and a scaling."""
    import gzip

    import nibabel

    image = nibabel.Nifti1Image(stack.T, np.diag([2.0, 2.0, 3.0, 1.0]), dtype=stack.dtype)
    image.header.extensions.append(nibabel.nifti1.Nifti1Extension("comment", b"from the scanner"))
    image.header.set_slope_inter(0.5, 3)
    data: bytes = image.to_bytes()
    return gzip.compress(data, mtime=0) if packed else data


def sample_dng(**options: Any) -> bytes:
    """Return a small mosaic, tiled if it is packed."""
    from symsmooth_repro.sensor import Sensor

    dngs = importlib.import_module(f"{__package__}.dngs" if __package__ else "dngs")
    mosaic = np.random.default_rng(1).integers(900, 9000, (36, 40), dtype=np.uint16)
    tile = 16 if options.get("packed") else None
    made: bytes = dngs.dng(mosaic, Sensor(100), **{"tile": tile, **options})
    return made


def sample_store(kind: str, stack: np.ndarray[Any, Any]) -> dict[str, bytes]:
    """Return the files of a Zarr array, or of an OME-Zarr group of version 2."""
    import zarr

    with tempfile.TemporaryDirectory() as name:
        if kind == "ZARR":
            zarr.create_array(name, data=stack, chunks=(1, 1, 16, 16), overwrite=True)
        else:
            group = zarr.open_group(name, mode="w", zarr_format=2)
            axes = [{"name": letter} for letter in "czyx"]
            levels = [{"path": "0"}, {"path": "1"}]
            group.attrs["multiscales"] = [{"axes": axes, "datasets": levels, "version": "0.4"}]
            group.create_array("0", data=stack, chunks=(1, 1, 16, 16))
            group.create_array("1", data=stack[..., ::2, ::2].copy(), chunks=(1, 1, 16, 16))
        root = Path(name)
        return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def damaged(data: bytes, how: int, rng: np.random.Generator) -> bytes:
    """Cut a file off, flip some of its bits, or put huge, zero and negative numbers into it."""
    changed = bytearray(data)
    if how == 0:
        return data[: int(len(data) * rng.random() ** 2)]
    span = len(changed) if rng.random() < 0.5 else min(len(changed), 400)
    if how == 1:
        for _ in range(rng.integers(1, 12)):
            changed[rng.integers(0, span)] ^= 1 << rng.integers(0, 8)
        return bytes(changed)
    values = [2**31, 2**31 - 1, 2**32 - 1, 0, 1, 2**16, 2**30, 65535, 2**20]
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(0, max(span - 4, 1)))
        order = "<>"[rng.integers(0, 2)]
        changed[at : at + 4] = struct.pack(order + "I", values[rng.integers(0, len(values))])
    return _with_longer_numbers(bytes(changed), rng) if rng.random() < 0.5 else bytes(changed)


def _with_longer_numbers(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace a number that is written in digits, as in headers that are text."""
    import re

    found = list(re.finditer(rb"\d+", data[:4000]))
    if not found:
        return data
    number = found[rng.integers(0, len(found))]
    huge = [b"2147483648", b"0", b"-1", b"99999999999", b"1e9", b"65536", b"NaN"]
    new = huge[rng.integers(0, len(huge))]
    if rng.random() < 0.5:  # in the same place, for headers of fixed columns
        return data[: number.start()] + new + data[number.start() + len(new) :]
    return data[: number.start()] + new + data[number.end() :]


@dataclass(frozen=True)
class Link:
    """A link in a folder, to some other place."""

    to: str


@dataclass(frozen=True)
class Pipe:
    """A named pipe: whoever opens it waits for ever."""


Content = bytes | dict[str, Any]  # of a file; or of a folder by name: bytes, links and pipes


def put(path: Path, content: Content) -> None:
    """Write a file or a folder."""
    if isinstance(content, bytes):
        path.write_bytes(content)
        return
    for name, data in content.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        if isinstance(data, Link):
            (path / name).symlink_to(data.to)
        elif isinstance(data, Pipe):
            os.mkfifo(path / name)
        else:
            (path / name).write_bytes(data)


def mutations(kind: str, count: int, seed: int) -> Iterator[Content]:
    """Yield damaged files; of a folder one file is damaged, mostly one of its headers."""
    whole, rng = sample(kind), np.random.default_rng(seed)
    for i in range(count):
        if isinstance(whole, bytes):
            yield damaged(whole, i % 3, rng)
            continue
        names = sorted(whole)
        headers = [n for n in names if n.rpartition("/")[2].startswith((".z", "zarr.json"))]
        chosen = headers if rng.random() < 0.7 else names
        name = chosen[rng.integers(0, len(chosen))]
        yield {**whole, name: damaged(whole[name], i % 3, rng)}


def remove(path: Path) -> None:
    """Remove a file or a folder that may not be there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Yard:
    """A folder in which files are tried, beside what nobody may touch: a store, a secret, a pipe."""

    SECRET = b"nobody may copy this"

    def __init__(self, folder: Path) -> None:
        self.folder, self.outside = folder / "in", folder / "outside"
        self.folder.mkdir()
        (self.outside / "precious.zarr").mkdir(parents=True)
        for name, data in sample_store("ZARR", np.full((2, 3, 16, 18), 777, np.uint16)).items():
            (self.outside / "precious.zarr" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.outside / "precious.zarr" / name).write_bytes(data)
        (self.outside / "secret.txt").write_bytes(self.SECRET)
        (self.folder / "victim.zarr").symlink_to(self.outside / "precious.zarr")
        os.mkfifo(self.folder / "pipe.tif")
        self.permanent = {"victim.zarr", "pipe.tif"}
        self.was = self._state()

    def _state(self) -> dict[str, bytes]:
        files = (p for p in self.outside.rglob("*") if p.is_file())
        return {str(p): p.read_bytes() for p in files}

    def wrongs(self, output: Path) -> Iterator[str]:
        """Say what was written outside, or brought in from there."""
        if self._state() != self.was:
            yield "wrote outside"
        found = output.rglob("*") if output.is_dir() else [output]
        if any(p.is_file() and self.SECRET in p.read_bytes() for p in found):
            yield "copied what is outside"


def main(kind: str, count: int, seed: int) -> dict[str, Any]:
    """Try damaged files, whole and box by box."""
    return examine(kind, mutations(kind, count, seed))


def examine(kind: str, contents: Iterable[Content]) -> dict[str, Any]:
    """Denoise all of them, by the command's own functions; say what went wrong."""
    from symsmooth.io import FileError

    wrong: list[str] = []
    tally = {"read": 0, "refused": 0, "slowest": 0.0, "extra": 0}
    for late in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(late, lambda *_: _late(f"{kind}: file {number}, {way}"))
    with tempfile.TemporaryDirectory() as name:
        yard = Yard(Path(name))
        _warm_up(yard.folder)
        for number, content in enumerate(contents):
            source = yard.folder / f"in{SUFFIXES[kind]}"
            target = yard.folder / f"out{SUFFIXES[kind]}"
            put(source, content)
            for way in WAYS:
                told: list[str] = []
                before = _reset_peak()
                signal.setitimer(signal.ITIMER_PROF, LIMIT)
                signal.setitimer(signal.ITIMER_REAL, PATIENCE)
                start = time.process_time()
                try:
                    _denoise(source, target, way, told)
                    outcome = "read"
                except FileError as error:
                    outcome = "refused"
                    names_file = str(error).startswith((str(source), str(target)))
                    if "\n" in str(error) or not names_file:
                        told.append(f"says {error!s:.200}")
                except Exception as error:
                    outcome = f"raised {type(error).__name__}: {error!s:.200}"
                    told.append(outcome)
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.setitimer(signal.ITIMER_REAL, 0)
                tally["slowest"] = max(tally["slowest"], time.process_time() - start)
                tally["extra"] = max(tally["extra"], _peak_bytes() - before)
                if outcome in tally:
                    tally[outcome] += 1
                told += yard.wrongs(target)
                told += _wrong_with(target, outcome)
                told += _left(
                    yard, source, target, kept=any("are done and kept" in str(t) for t in told)
                )
                wrong += [f"{number}, {way}: {t}" for t in told if "done and kept" not in str(t)]
                for path in [p for p in yard.folder.iterdir() if p.name not in yard.permanent]:
                    if path != source:
                        remove(path)
            remove(source)
    return {"kind": kind, **tally, "wrong": wrong, "peak": _peak_bytes()}


def _warm_up(folder: Path) -> None:
    """Import what is needed before time and memory are looked at."""
    np.save(folder / "warm.npy", np.zeros((9, 9), np.uint8))
    for end, way in (("npy", "whole"), ("tif", "boxes"), ("zarr", "boxes"), ("png", "whole")):
        _denoise(folder / "warm.npy", folder / f"warm-out.{end}", way, [])
    for path in folder.glob("warm*"):
        remove(path)


def _late(what: str) -> None:
    os.write(2, f"{what} takes longer than {LIMIT} s\n".encode())
    os._exit(3)


def _is_raw(source: Path) -> bool:
    """Whether a file says that it is a mosaic; what cannot be opened is none."""
    from symsmooth.io import FileError
    from symsmooth.io.formats import FORMATS, detect_format

    try:
        return FORMATS[detect_format(source)].is_raw
    except FileError:
        return False


def _denoise(source: Path, target: Path, way: str, told: list[str]) -> None:
    """Do what the command does to a small file, or, box by box, to a large one."""
    from symsmooth.app import large
    from symsmooth.app.job import DenoiseJob
    from symsmooth.app.run import FileJob, run
    from symsmooth.methods import HIDDEN_METHODS, METHODS

    if _is_raw(source):
        options: dict[str, Any] = {"quality": "preview"}
        job = DenoiseJob(METHODS["denoise"], options, None, "auto", 1, 0)
    else:
        job = DenoiseJob(HIDDEN_METHODS["identity"], {}, None, "auto", 1, 0)
    large._LARGE = -1 if way == "boxes" else 2**28
    run(FileJob(source, target, job, large.BoxOptions(notify=told.append)))


def _wrong_with(target: Path, outcome: str) -> Iterator[str]:
    """Say if there is an output after an error, or none, or one that cannot be read."""
    from symsmooth.io import FileError, read_images

    if target.exists() != (outcome == "read"):
        yield f"{outcome}, yet the output is {'there' if target.exists() else 'not there'}"
    elif target.exists():
        try:
            read_images(target)
        except FileError as error:
            yield f"wrote what cannot be read: {error!s:.200}"


def _left(yard: Yard, source: Path, target: Path, kept: bool) -> Iterator[str]:
    """Say what was left behind but the output, and the part of a run that can be gone on with."""
    known = yard.permanent | {source.name, target.name}
    if kept:
        known |= {f".{target.name}.part", f".{target.name}.part.log"}
    if left := {p.name for p in yard.folder.iterdir()} - known:
        yield f"left {sorted(left)}"


def _reset_peak() -> int:
    """Forget how much memory was used before; return how much is used now."""
    Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def _peak_bytes() -> int:
    """Memory this process had at most; ru_maxrss would count its parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    warnings.simplefilter("error")
    for name in sys.argv[3:]:
        print(json.dumps(main(name, int(sys.argv[1]), int(sys.argv[2]))), flush=True)
