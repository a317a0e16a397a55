"""Damaged and hostile files: one line each, no crash, no hang, no output."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symsmooth

from .. import hostile
from .test_files import png_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(symsmooth.__file__).parents[1])}


def read_damaged(
    count: int, *kinds: str, script: str = "hostile.py", seed: int = 0
) -> list[dict[str, Any]]:
    """Let a process of its own read damaged files; a crash or a hang ends it."""
    place = Path(hostile.__file__).with_name(script)
    command = [sys.executable, str(place), str(count), str(seed), *kinds]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=600)
    assert done.returncode == 0, (done.stdout, done.stderr[-2000:])
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(told: dict[str, Any], count: int) -> None:
    assert told["wrong"] == [], told
    assert told["read"] + told["refused"] == count * len(hostile.WAYS)
    assert told["refused"] >= count // 4
    assert told["slowest"] < hostile.LIMIT
    assert told["extra"] < hostile.MEMORY, told  # bytes: no bomb was unpacked


def test_some_damaged_files_of_every_format() -> None:
    for name in ("astropy", "zarr", "nibabel", "mrcfile"):
        pytest.importorskip(name)
    for told in read_damaged(24, *hostile.SUFFIXES):
        check(told, 24)


@pytest.mark.slow
@pytest.mark.parametrize("kind", hostile.SUFFIXES)
def test_300_damaged_files(kind: str) -> None:
    (told,) = read_damaged(300, kind)
    check(told, 300)


CRAFTED = {"TIFF": 320, "ZARR": 320, "JPEG": 80, "NPY": 80, "DNG": 240, "FITS": 320}


def test_some_files_that_are_crafted_to_harm() -> None:
    for name in ("astropy", "zarr"):
        pytest.importorskip(name)
    for told in read_damaged(16, *CRAFTED, script="crafted.py", seed=1):
        check(told, 16)


def test_some_more_headers_of_fits() -> None:
    pytest.importorskip("astropy")
    (told,) = read_damaged(36, "FITS", script="crafted.py", seed=2)
    check(told, 36)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CRAFTED)
def test_800_files_that_are_crafted_to_harm(kind: str) -> None:
    (told,) = read_damaged(CRAFTED[kind], kind, script="crafted.py")
    check(told, CRAFTED[kind])


# --- made by hand, through the command itself ----------------------------------------------------


def npy_header(shape: tuple[int, ...]) -> bytes:
    text = str({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    text = text.ljust(117) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text


def tiff_of(width: int, length: int, compression: int = 1, data: bytes = b"\0" * 100) -> bytes:
    """One strip that claims to be an 8-bit picture of some size."""
    tags = [(256, width), (257, length), (258, 8), (259, compression), (262, 1), (273, 8)]
    tags += [(277, 1), (278, length), (279, len(data))]
    at = 8 + len(data) + len(data) % 2
    start = b"II*\0" + struct.pack("<I", at) + data + b"\0" * (len(data) % 2)
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return start + struct.pack("<H", len(tags)) + entries + b"\0\0\0\0"


def png_claiming(width: int, height: int, data: bytes = b"") -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    return png_of([(b"IHDR", header), (b"IDAT", zlib.compress(data)), (b"IEND", b"")])


def fits_of(start: str = "SIMPLE", **cards: object) -> bytes:
    first = {"SIMPLE": "T"} if start == "SIMPLE" else {"XTENSION": f"'{start:<8}'"}
    lines = {**first, "BITPIX": 16, "NAXIS": 2, "NAXIS1": 4, "NAXIS2": 4} | cards
    text = "".join(f"{key:<8}= {value!s:>20}".ljust(80) for key, value in lines.items())
    return (text + "END".ljust(80)).ljust(2880).encode() + b"\0" * 2880


def bmp_of(width: int, height: int) -> bytes:
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54, 0, 0, 54) + header


def zarr_json(**changed: object) -> bytes:
    told = {
        **{"zarr_format": 3, "node_type": "array", "shape": [8, 8], "data_type": "uint16"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 8]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "fill_value": 0,
    }
    return json.dumps(told | changed).encode()


def big_chunks(side: int) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": [side, side]}}


HOSTILE: dict[str, bytes | dict[str, bytes]] = {
    "empty.png": b"",
    "text.png": b"hello, I am no picture",
    "swapped.png": b"\x89PNG\r\n\x1a\n" + b"\xff" * 40,
    "zero.png": png_claiming(0, 5),
    "huge.png": png_claiming(2**16, 2**15),
    "most.png": png_claiming(2**31 - 1, 2**31 - 1),
    "short.png": png_claiming(1000, 1000, b"\0" * 50),
    "zero.bmp": bmp_of(0, 5),
    "huge.bmp": bmp_of(2**16, 2**15),
    "huge.jpg": bytes.fromhex("ffd8ffc0001108fffffffF03012200021101031101ffda".lower()),
    "cut.webp": b"RIFF\xff\xff\xff\xffWEBPVP8L",
    "zero.tif": tiff_of(0, 0),
    "huge.tif": tiff_of(2**16, 2**15),
    "most.tif": tiff_of(2**31 - 1, 2**31 - 1),
    "bomb.tif": tiff_of(2**16, 2**15, 8, zlib.compress(b"\0" * 10**6)),
    "loop.tif": b"II*\0\x08\0\0\0\0\0\x08\0\0\0",
    "huge.npy": npy_header((2**31, 2**10)),
    "zero.npy": npy_header((0, 5)),
    "negative.npy": npy_header((-1, 5)),
    "huge.fits": fits_of(NAXIS1=2**16, NAXIS2=2**15),
    "most.fits": fits_of(NAXIS1=2**62, NAXIS2=2**62),
    "zero.fits": fits_of(NAXIS1=0),
    "back.fits": fits_of(NAXIS1=-32, NAXIS2=40),
    "again.fits": fits_of(NAXIS=1, NAXIS1=-1440),
    "both.fits": fits_of(NAXIS1=-4, NAXIS2=-4),
    "counts.fits": fits_of() + fits_of("IMAGE", PCOUNT=-2881, GCOUNT=1),
    "groups.fits": fits_of() + fits_of("IMAGE", PCOUNT=0, GCOUNT=-2),
    "many.fits": fits_of(NAXIS=999),
    "depth.fits": fits_of(BITPIX=7),
    "huge.zarr": {"zarr.json": zarr_json(shape=[2**31, 2**31])},
    "sparse.zarr": {"zarr.json": zarr_json(shape=[2**15, 2**14])},
    "chunk.zarr": {"zarr.json": zarr_json(chunk_grid=big_chunks(2**25))},
    "zero.zarr": {"zarr.json": zarr_json(shape=[0, 8])},
    "text.zarr": {"zarr.json": b"{not json"},
    "short.zarr": {"zarr.json": zarr_json(), "c/0/0": b"\0" * 5},
}


def test_hostile_files_through_the_command(tmp_path: Path) -> None:
    pytest.importorskip("astropy")
    pytest.importorskip("zarr")
    for name, content in HOSTILE.items():
        hostile.put(tmp_path / name, content)
    np.save(tmp_path / "good.npy", np.zeros((4, 4)))
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30,) * 2)\n"
        "from symsmooth.cli import main; main()"
    )
    arguments = ["denoise", *HOSTILE, "good.npy", "-o", "out/", "--method", "identity"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
        timeout=60,
    )
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    accused = [line.split(": ")[2] for line in lines]
    assert accused == list(HOSTILE), done.stderr
    assert os.listdir(tmp_path / "out") == ["good.npy"]
    assert len(done.stdout.splitlines()) == 1
