"""Files that are damaged where it hurts: ``python crafted.py N SEED FORMAT...``, as ``hostile.py``.

Bits that are flipped anywhere seldom make a file that is well-formed and says the impossible.  Here the
structure is known: chains of TIFF directories, their tags and tiles; metadata, shards and links of a Zarr;
scans of a JPEG; headers of .npy and FITS.  One to three changes make a file.
"""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import json
import lzma
import re
import resource
import struct
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

if __package__:
    from .hostile import ADDRESSES, SUFFIXES, Content, Link, Pipe, examine, sample, sample_dng
else:  # run as a script
    from hostile import ADDRESSES, SUFFIXES, Content, Link, Pipe, examine, sample, sample_dng

Rng = np.random.Generator

KINDS = ("TIFF", "ZARR", "JPEG", "NPY", "DNG", "FITS")
NUMBERS = [0, 1, 2, 3, 7, 8, 9, 16, 17, 24, 255, 256, 1000, 4096, 20_000, 65_535, 65_536]
NUMBERS += [10**6, 2**24, 2**30, 2**31 - 1, 2**31, 2**32 - 1]
HUGE = [*NUMBERS, -1, 4_600_000, 10**9, 2**53, 2**62, 2**63 - 1, 2**64, 10**30]
BOMB = 2**28  # bytes that a small piece unpacks to


def pick(rng: Rng, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


@cache
def bomb(kind: str) -> bytes:
    """Return a few bytes that unpack to many."""
    if kind == "blosc":
        return struct.pack("<BBBBIII", 2, 1, 1, 2, 2**31 - 1, 2**20, 40) + bytes(24)
    if kind == "lz4":
        return struct.pack("<I", 2**31 - 1) + bytes(20)
    if kind == "zstd":  # without its size: blocks that repeat one byte
        return b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10\0" * 2000 + b"\x03\x00\x10\0"
    pack: Any = {"gzip": gzip, "zlib": zlib, "bz2": bz2, "lzma": lzma}[kind].compress
    return bytes(pack(bytes(BOMB)))


# --- TIFF ------------------------------------------------------------------------------------------

Spot = tuple[int, int]  # where something is: an entry of 12 bytes, or an offset; and of which page

TAGS = [
    254,
    256,
    257,
    258,
    259,
    262,
    266,
    270,
    273,
    277,
    278,
    279,
    284,
    317,
    320,
    322,
    323,
    324,
    325,
]
TAGS += [330, 338, 339, 347, 530, 32997, 32998, 33628, 34412, 50838, 50839]
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
COMPRESSIONS = [1, 2, 5, 6, 7, 8, 32773, 32946, 34712, 34887, 34925, 50000, 50001, 50002]


def tiff_samples() -> list[bytes]:
    import tifffile

    stack = np.random.default_rng(1).integers(0, 65536, (2, 3, 16, 18), dtype=np.uint16)
    made = [sample(kind) for kind in ("TIFF", "TIFF-deflate", "OME-TIFF", "ImageJ")]
    rgb = stack.astype(np.uint8).reshape(24, 24, 3)
    for options in (
        {"tile": (16, 16), "compression": "lzw", "photometric": "rgb"},
        {"tile": (16, 16), "compression": "jpeg", "photometric": "rgb"},
        {"rowsperstrip": 5, "photometric": "rgb", "compression": "packbits"},
    ):
        buffer = io.BytesIO()
        tifffile.imwrite(buffer, rgb, metadata=None, **options)
        made.append(buffer.getvalue())
    buffer = io.BytesIO()
    with tifffile.TiffWriter(buffer) as writer:
        plain: dict[str, Any] = {"tile": (16, 16), "metadata": None}
        writer.write(np.zeros((64, 64), np.uint8), subifds=2, **plain)
        writer.write(np.zeros((32, 32), np.uint8), subfiletype=1, **plain)
        writer.write(np.zeros((16, 16), np.uint8), subfiletype=1, **plain)
        writer.write(np.zeros((20, 64), np.uint8), **plain)
    made.append(buffer.getvalue())
    return [bytes(data) for data in made if isinstance(data, bytes)]


def directories(data: bytes) -> tuple[list[int], list[int], list[int]]:
    """Return the places of directories, of their entries, and of the offsets of the next ones."""
    pages, entries, links, seen = [], [], [4], set()
    at = struct.unpack_from("<I", data, 4)[0]
    while at and at not in seen and at + 2 <= len(data):
        seen.add(at)
        pages.append(at)
        count = struct.unpack_from("<H", data, at)[0]
        if at + 6 + 12 * count > len(data):
            break
        entries += [at + 2 + 12 * i for i in range(count)]
        links.append(at + 2 + 12 * count)
        at = struct.unpack_from("<I", data, links[-1])[0]
    return pages, entries, links


def tiff_chain(data: bytearray, rng: Rng) -> None:
    """Lead a chain back, forth, or into the midst of something."""
    pages, _, links = directories(data)
    where = [*pages, *(page + 2 for page in pages), 0, 2, 8, len(data) - 6, len(data), 2**32 - 1]
    for _ in range(rng.integers(1, 3)):
        struct.pack_into("<I", data, pick(rng, links), pick(rng, where) & (2**32 - 1))


def tiff_ladder(data: bytearray, rng: Rng) -> None:
    """Append many directories; each has the height one more than the one before; the last leads on."""
    pages, _, links = directories(data)
    count = struct.unpack_from("<H", data, pages[0])[0]
    body = bytes(data[pages[0] : pages[0] + 2 + 12 * count])
    n = int(pick(rng, [2, 3, 50, 2000]))
    start = len(data)
    step = len(body) + 4
    for i in range(n):
        one = bytearray(body)
        for entry in range(2, len(one), 12):
            if struct.unpack_from("<H", one, entry)[0] == 257:
                struct.pack_into("<HI", one, entry + 2, 4, 1)
                struct.pack_into("<I", one, entry + 8, 5 + i)
        last = pick(rng, [0, start, start + step * (n // 2), pages[0]])
        data += one + struct.pack("<I", start + step * (i + 1) if i + 1 < n else last)
    struct.pack_into("<I", data, links[-1], start)


def tiff_tag(data: bytearray, rng: Rng) -> None:
    """Give an entry another tag, type, count or value."""
    _, entries, _ = directories(data)
    entry = pick(rng, entries)
    tag, kind, count, value = struct.unpack_from("<HHII", data, entry)
    what = rng.integers(6)
    if what == 0:
        tag = pick(rng, TAGS)
    elif what == 1:
        kind = pick(rng, list(SIZES))
    elif what == 2:
        count = pick(rng, NUMBERS)
    elif what == 3 and tag == 259:
        value = pick(rng, COMPRESSIONS)
    else:
        value = pick(rng, NUMBERS)
    struct.pack_into("<HHII", data, entry, tag, kind, count, value)


def tiff_size(data: bytearray, rng: Rng) -> None:
    """Make the picture, its tiles or its strips of another size."""
    _, entries, _ = directories(data)
    sized = [
        e for e in entries if struct.unpack_from("<H", data, e)[0] in (256, 257, 278, 322, 323)
    ]
    for entry in sized:
        if rng.random() < 0.5:
            struct.pack_into("<HII", data, entry + 2, 4, 1, pick(rng, NUMBERS))


def tiff_sub(data: bytearray, rng: Rng) -> None:
    """Turn an entry into a list of directories below: this one, itself, or many."""
    pages, entries, _ = directories(data)
    places = [*pages, len(data), 8, 2**32 - 1]
    entry = pick(rng, entries)
    if rng.random() < 0.5:
        struct.pack_into("<HHII", data, entry, 330, 4, 1, pick(rng, places))
        return
    n = int(pick(rng, [2, 100, 10_000]))
    struct.pack_into("<HHII", data, entry, 330, 13, n, len(data))
    data += b"".join(struct.pack("<I", pick(rng, places)) for _ in range(n))


def tiff_places(data: bytearray, rng: Rng) -> None:
    """Put segments of pixels elsewhere: nowhere, over each other, beyond the end."""
    _, entries, _ = directories(data)
    for entry in entries:
        tag, kind, count, value = struct.unpack_from("<HHII", data, entry)
        if tag not in (273, 279, 324, 325) or kind not in (3, 4) or rng.random() < 0.5:
            continue
        size = SIZES[kind]
        start = entry + 8 if count * size <= 4 else value
        for i in range(min(count, 64)):
            if start + (i + 1) * size <= len(data) and rng.random() < 0.5:
                number = pick(rng, [0, 8, len(data) - 1, *NUMBERS]) & (2 ** (8 * size) - 1)
                struct.pack_into("<H" if size == 2 else "<I", data, start + i * size, number)


def tiff_bomb(data: bytearray, rng: Rng) -> None:
    """Let one segment be what unpacks to a hundred times the picture, or paints for ever."""
    _, entries, _ = directories(data)
    code, packed = pick(
        rng,
        [
            (8, bomb("zlib")),
            (34925, bomb("lzma")),
            (7, many_scans(16, 16, 2000)),
            (7, many_scans(4000, 4000, 2000)),
            (32773, b"\x81\0" * 1000),
        ],
    )
    at = len(data)
    data += packed
    for entry in entries:
        tag, kind, count, value = struct.unpack_from("<HHII", data, entry)
        if tag == 259:
            struct.pack_into("<HII", data, entry + 2, 4, 1, code)
        if tag in (273, 324, 279, 325):
            number = at if tag in (273, 324) else len(packed)
            if count == 1 or count * SIZES.get(kind, 9) <= 4:
                struct.pack_into("<HII", data, entry + 2, 4, 1, number)
            elif kind == 4 and value + 4 <= len(data):
                struct.pack_into("<I", data, value, number)


def tiff_text(data: bytearray, rng: Rng) -> None:
    """Let the description speak of a huge image, or of other files."""
    _, entries, _ = directories(data)
    sizes = [int(pick(rng, NUMBERS)) for _ in range(4)]
    ome = (
        '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="a">'
        '<Pixels ID="p" DimensionOrder="XYZCT" Type="uint16" SizeX="18" SizeY="16" SizeC="{}" SizeZ="{}" '
        'SizeT="{}"><Channel ID="c" SamplesPerPixel="1"/><TiffData IFD="0" PlaneCount="{}">{}</TiffData>'
        "</Pixels></Image></OME>"
    )
    file = pick(rng, ["pipe.tif", "../outside/secret.txt", "in.tif", ""])
    other = f'<UUID FileName="{file}">urn:x</UUID>'
    text = pick(
        rng,
        [
            json.dumps({"shape": sizes[: int(rng.integers(1, 5))]}),
            json.dumps({"shape": [10**9, 16, 18], "axes": "QYX"}),
            "ImageJ=1.11a\nimages={}\nchannels={}\nslices={}\nframes={}\nhyperstack=true\n".format(
                *sizes
            ),
            ome.format(*sizes, pick(rng, ["", other])),
            ome.format(1, 1, 6, 6, other),
            "<OME" + "x" * 50,
        ],
    )
    stored = text.encode() + b"\0"
    first = [e for e in entries if struct.unpack_from("<H", data, e)[0] == 270]
    entry = first[0] if first else pick(rng, entries)
    struct.pack_into("<HHII", data, entry, 270, 2, len(stored), len(data))
    data += stored


TIFF_CHANGES: list[Callable[[bytearray, Rng], None]] = [
    tiff_chain, tiff_ladder, tiff_tag, tiff_tag, tiff_size, tiff_sub, tiff_places, tiff_bomb, tiff_text,
]  # fmt: skip


def tiffs(rng: Rng) -> Iterator[Content]:
    bases = tiff_samples()
    while True:
        data = bytearray(pick(rng, bases))
        for _ in range(rng.integers(1, 4)):
            if directories(data)[1]:
                pick(rng, TIFF_CHANGES)(data, rng)
        yield bytes(data)


def dngs(rng: Rng) -> Iterator[Content]:
    bases = [
        sample_dng(below=False), sample_dng(below=False, packed=True), sample_dng(tile=16, below=False),
        sample_dng(),
    ]  # fmt: skip
    while True:
        data = bytearray(pick(rng, bases))
        for _ in range(rng.integers(1, 4)):
            if directories(data)[1]:
                pick(rng, TIFF_CHANGES)(data, rng)
        yield bytes(data)


# --- Zarr ------------------------------------------------------------------------------------------

PATHS = [
    "",
    ".",
    "/",
    "..",
    "../victim.zarr",
    "../../outside/precious.zarr",
    "0/../../victim.zarr",
    "0/",
]
PATHS += ["victim.zarr", "./0", "0", "1", "C:\\x", "a\0b", "labels", 5, None, ["0"]]


def zarr_samples() -> list[dict[str, Any]]:
    import tempfile
    from pathlib import Path

    import zarr

    stack = np.random.default_rng(1).integers(0, 65536, (2, 3, 16, 18), dtype=np.uint16)
    made: list[Any] = [sample("ZARR"), sample("OME-ZARR")]
    whole = (1, 1, 16, 16)
    for options in (
        {"chunks": (1, 1, 8, 8), "shards": whole},
        {"chunks": whole, "compressors": zarr.codecs.GzipCodec()},
        {"chunks": whole, "compressors": None},
        {"chunks": whole, "zarr_format": 2},
    ):
        with tempfile.TemporaryDirectory() as name:
            group = zarr.open_group(name, mode="w", zarr_format=options.get("zarr_format", 3))
            own = {key: value for key, value in options.items() if key != "zarr_format"}
            group.create_array("0", data=stack, **own)
            group.create_array("1", data=stack[..., ::2, ::2].copy(), chunks=(1, 1, 8, 8))
            scales = [
                {"axes": [{"name": n} for n in "czyx"], "datasets": [{"path": "0"}, {"path": "1"}]}
            ]
            group.attrs["multiscales"] = scales
            root = Path(name)
            files = (p for p in root.rglob("*") if p.is_file())
            made.append({str(p.relative_to(root)): p.read_bytes() for p in files})
    return made


def headers_of(store: dict[str, Any]) -> list[str]:
    return [
        n
        for n in sorted(store)
        if re.search(r"(zarr\.json|\.z\w+)$", n) and isinstance(store[n], bytes)
    ]


def chunks_of(store: dict[str, Any]) -> list[str]:
    return [n for n in sorted(store) if isinstance(store[n], bytes) and n not in headers_of(store)]


def leaves(tree: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all values in a tree of JSON."""
    if place:
        yield place
    parts = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    for key, value in parts:
        yield from leaves(value, (*place, key))


def edit(store: dict[str, Any], name: str, change: Callable[[Any], None]) -> None:
    try:
        tree = json.loads(store[name])
        change(tree)
    except (ValueError, KeyError, TypeError, IndexError):
        return
    store[name] = json.dumps(tree).encode()


def zarr_value(store: dict[str, Any], rng: Rng) -> None:
    """Replace a value of some metadata by another, mostly a number by a huge one."""

    def change(tree: Any) -> None:
        places = list(leaves(tree))
        at = pick(rng, places)
        inner = tree
        for key in at[:-1]:
            inner = inner[key]
        if isinstance(inner[at[-1]], int) or rng.random() < 0.4:
            inner[at[-1]] = pick(rng, HUGE)
        else:
            inner[at[-1]] = pick(
                rng, [None, [], {}, "x", "../x", True, 1e308, float("nan"), [[]], "gzip"]
            )

    edit(store, pick(rng, headers_of(store)), change)


def zarr_shape(store: dict[str, Any], rng: Rng) -> None:
    """Make shape and chunks agree on something far too large."""
    side, chunk = (int(pick(rng, NUMBERS)) for _ in range(2))

    def change(tree: Any) -> None:
        if "shape" not in tree:
            return
        n = len(tree["shape"])
        if rng.random() < 0.8:
            tree["shape"] = [1] * (n - 2) + [side, side]
        if rng.random() < 0.8 and "chunks" in tree:
            tree["chunks"] = [1] * (n - 2) + [chunk, chunk]
        elif rng.random() < 0.8:
            tree["chunk_grid"]["configuration"]["chunk_shape"] = [1] * (n - 2) + [chunk, chunk]

    for name in headers_of(store):
        edit(store, name, change)


def zarr_paths(store: dict[str, Any], rng: Rng) -> None:
    """Let a level be somewhere else."""

    def change(tree: Any) -> None:
        attributes = tree.get("attributes", tree)
        levels = attributes["multiscales"][0]["datasets"]
        path = pick(rng, PATHS)
        if rng.random() < 0.5:
            levels.append({"path": path})
        else:
            levels[int(rng.integers(len(levels)))]["path"] = path

    for name in headers_of(store):
        edit(store, name, change)


def zarr_codecs(store: dict[str, Any], rng: Rng) -> None:
    """Name other codecs: other compressors, shards of single pixels, shards of shards."""
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    side = int(pick(rng, [1, 2, 8, 16]))
    inner = {"chunk_shape": [1, 1, side, side], "codecs": [little], "index_codecs": [little]}
    shard = {"name": "sharding_indexed", "configuration": inner}
    nested = copy.deepcopy(shard)
    nested["configuration"]["codecs"] = [shard]  # type: ignore[index]
    packers = [
        {"name": n, "configuration": c} for n, c in (("gzip", {"level": 1}), ("zstd", {"level": 1}))
    ]
    packers += [{"name": "crc32c"}, {"name": "numcodecs.bz2", "configuration": {"level": 1}}]

    def change(tree: Any) -> None:
        if "codecs" in tree:
            tree["codecs"] = pick(
                rng, [[shard], [nested], [little, pick(rng, packers)], [little, *packers[:2]]]
            )
        elif "compressor" in tree:
            ids = ["zlib", "gzip", "bz2", "lzma", "blosc", "zstd", "lz4", "pickle", "none"]
            tree["compressor"] = {"id": pick(rng, ids)}
            if rng.random() < 0.3:
                tree["filters"] = [
                    {"id": pick(rng, ["pickle", "json2", "delta", "packbits", "vlen-bytes"])}
                ]

    for name in headers_of(store):
        if rng.random() < 0.7:
            edit(store, name, change)


def zarr_bomb(store: dict[str, Any], rng: Rng) -> None:
    """Let a chunk be what unpacks to far more than a chunk, in the way its array is packed or another."""
    kind = pick(rng, ["gzip", "zlib", "bz2", "lzma", "blosc", "lz4", "zstd"])

    def change(tree: Any) -> None:
        if "codecs" in tree and kind in ("gzip", "zstd"):
            little = {"name": "bytes", "configuration": {"endian": "little"}}
            level = {"gzip": {"level": 1}, "zstd": {"level": 1, "checksum": False}}[kind]
            tree["codecs"] = [little, {"name": kind, "configuration": level}]
        elif "compressor" in tree:
            tree["compressor"] = {"id": kind}

    for name in headers_of(store):
        edit(store, name, change)
    for name in chunks_of(store):
        if rng.random() < 0.5:
            store[name] = bomb(kind)


def zarr_shard(store: dict[str, Any], rng: Rng) -> None:
    """Damage the index at the end of chunks, or their length."""
    for name in chunks_of(store):
        data = bytearray(store[name])
        what = rng.integers(4)
        if what == 0:
            data = data[: int(rng.integers(0, len(data) + 1))]
        elif what == 1 and len(data) > 68:
            for i in range(8):
                if rng.random() < 0.5:
                    struct.pack_into(
                        "<Q", data, len(data) - 68 + 8 * i, pick(rng, HUGE[:-2]) & (2**64 - 1)
                    )
        elif what == 2:
            data = bytearray()
        store[name] = bytes(data)


def zarr_links(store: dict[str, Any], rng: Rng) -> None:
    """Put links and pipes among the files."""
    names = [*headers_of(store), *chunks_of(store)]
    name = pick(rng, names)
    folder = name.rpartition("/")[0]
    up = "../" * (name.count("/") + 1)
    to = pick(
        rng,
        [f"{up}outside/secret.txt", f"{up}../outside/secret.txt", "/", ".", "..", "nowhere", name],
    )
    what = rng.integers(4)
    if what == 0:
        store[name] = Pipe()
    elif what == 1:
        store[name] = Link(to)
    elif what == 2:
        store[f"{folder}/notes.txt" if folder else "notes.txt"] = Link(to)
    else:
        store["more"] = Link(pick(rng, ["/", ".", f"{up}../outside", "0", "../victim.zarr"]))


def zarr_odd(store: dict[str, Any], rng: Rng) -> None:
    """Lose files, or say odd things in attributes."""
    names = sorted(store)
    if rng.random() < 0.5:
        del store[pick(rng, names)]

    def change(tree: Any) -> None:
        attributes = tree.setdefault("attributes", {}) if "zarr_format" in tree else tree
        attributes["symsmooth"] = pick(rng, [5, None, "x", {}, [1]])
        attributes.setdefault("_ARRAY_DIMENSIONS", pick(rng, [["a"], "yx", 5, [None, None]]))

    for name in headers_of(store):
        if rng.random() < 0.5:
            edit(store, name, change)


ZARR_CHANGES = [
    zarr_value, zarr_value, zarr_shape, zarr_paths, zarr_codecs, zarr_bomb, zarr_shard, zarr_links,
    zarr_odd,
]  # fmt: skip


def zarrs(rng: Rng) -> Iterator[Content]:
    bases = zarr_samples()
    while True:
        store: dict[str, Any] = dict(pick(rng, bases))
        for _ in range(rng.integers(1, 3)):
            if headers_of(store) and chunks_of(store):
                pick(rng, ZARR_CHANGES)(store, rng)
        yield store


# --- JPEG ------------------------------------------------------------------------------------------


def jpeg_sample(progressive: bool) -> bytes:
    from PIL import Image

    pixels = np.random.default_rng(1).integers(0, 256, (24, 20, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", progressive=progressive, restart_marker_blocks=2)
    return buffer.getvalue()


def segments(jpeg: bytes) -> list[bytes]:
    """Return the segments of a JPEG; a scan is one with its coded data."""
    found, at = [], 2
    while at < len(jpeg):
        size = 0 if jpeg[at + 1] == 0xD9 else struct.unpack_from(">H", jpeg, at + 2)[0]
        end = at + 2 + size
        if jpeg[at + 1] == 0xDA:
            after = re.compile(rb"\xff[^\x00\xd0-\xd7]").search(jpeg, end)
            end = after.start() if after else len(jpeg)
        found.append(jpeg[at:end])
        at = end
    return found


def many_scans(width: int, height: int, n: int) -> bytes:
    """A progressive JPEG whose scans come again and again."""
    parts = segments(jpeg_sample(True))
    scans = [i for i, part in enumerate(parts) if part[1] == 0xDA]
    frame = next(i for i, part in enumerate(parts) if part[1] == 0xC2)
    parts[frame] = parts[frame][:5] + struct.pack(">HH", height, width) + parts[frame][9:]
    again = [parts[scans[-1]]] * n
    return b"\xff\xd8" + b"".join(parts[: scans[-1]] + again + parts[scans[-1] :])


def jpegs(rng: Rng) -> Iterator[Content]:
    while True:
        parts = segments(jpeg_sample(bool(rng.integers(2))))
        for _ in range(rng.integers(1, 4)):
            i = int(rng.integers(len(parts)))
            what, part = rng.integers(6), bytearray(parts[i])
            if what == 0:
                parts[i:i] = [bytes(part)] * int(pick(rng, [1, 2, 30, 3000]))
            elif what == 1:
                parts.insert(int(rng.integers(len(parts))), parts.pop(i))
            elif what == 2 and len(part) > 4:
                part[int(rng.integers(2, min(len(part), 24)))] = int(rng.integers(256))
                parts[i] = bytes(part)
            elif what == 3:
                frames = [j for j, p in enumerate(parts) if p[1] in (0xC0, 0xC2)]
                for j in frames:
                    size = struct.pack(
                        ">HH", *(pick(rng, [0, 1, 16, 3000, 9000, 65535]) for _ in range(2))
                    )
                    parts[j] = parts[j][:5] + size + parts[j][9:]
            elif what == 4:
                parts.insert(i, b"\xff\xdd\0\4" + struct.pack(">H", pick(rng, [0, 1, 65535])))
            else:
                del parts[i]
            if not parts:
                break
        side = int(pick(rng, [16, 3000, 9000]))
        if rng.random() < 0.2:
            yield many_scans(side, side, int(pick(rng, [50, 500, 3000])))
        else:
            yield b"\xff\xd8" + b"".join(parts)


# --- .npy ------------------------------------------------------------------------------------------


def npys(rng: Rng) -> Iterator[Content]:
    while True:
        shape = tuple(int(pick(rng, HUGE)) for _ in range(rng.integers(0, 5)))
        if rng.random() < 0.3:
            shape = pick(rng, [(8, 8), (4, 8, 8), (64,), (2**62,), (2**62, 0), (2, 2**63)])
        descr = pick(
            rng, ["<f8", "|u1", ">u2", "|O", "<c16", "<U5", "|V8", "<f2", "<M8[s]", [("a", "<f4")]]
        )
        text = str(
            {"descr": descr, "fortran_order": bool(rng.integers(2)), "shape": shape}
        ).encode()
        if rng.random() < 0.2:
            text = text.replace(b"}", pick(rng, [b"", b", 'x': 1}", b"}" + b" " * 70_000]))
        version = pick(rng, [(1, 0), (2, 0), (3, 0), (9, 9)])
        length = struct.pack("<H" if version == (1, 0) else "<I", min(len(text) + 1, 65535))
        yield b"\x93NUMPY" + bytes(version) + length + text + b"\n" + bytes(512)


# --- FITS ------------------------------------------------------------------------------------------


FITS_SIZES = [
    -(2**40),
    -2881,
    -2880,
    -32,
    -2,
    -1,
    0,
    1,
    2,
    3,
    40,
    72,
    2880,
    2**31,
    2**62,
    2**64,
    10**30,
]
BLOCK = 2880


def fits_part(cards: dict[str, object]) -> bytes:
    """Return a header and, as far as there is room for it, what it announces."""
    text = "".join(f"{key:<8}= {value!s:>20}".ljust(80) for key, value in cards.items())
    data = bytes(max(0, -(-_announced(cards) // BLOCK) * BLOCK))
    head = (text + "END".ljust(80)).encode()
    return head.ljust(-(-len(head) // BLOCK) * BLOCK) + data


def _announced(cards: dict[str, object]) -> int:
    """The bytes of data, or none where that is not a number, or too large to be written."""
    size = 1
    for axis in range(1, 4):
        size *= int(str(cards.get(f"NAXIS{axis}", 1)))
    size *= abs(int(str(cards["BITPIX"]))) // 8
    return size if 0 < size < 10 * BLOCK else 0


def fits_files(rng: Rng) -> Iterator[Content]:
    """Sizes and counts of any sign, in the first header or a later one, and very many headers."""
    while True:
        parts: list[dict[str, object]] = []
        for number in range(int(rng.integers(1, 4))):
            first = (
                {"SIMPLE": "T"}
                if number == 0
                else {"XTENSION": pick(rng, ["'IMAGE   '"] * 3 + ["'BINTABLE'"])}
            )
            cards = {
                **first,
                "BITPIX": pick(rng, [8, 16, -32]),
                "NAXIS": 2,
                "NAXIS1": 6,
                "NAXIS2": 5,
            }
            parts.append({**cards, "PCOUNT": 0, "GCOUNT": 1})
        for _ in range(int(rng.integers(0, 4))):
            cards = pick(rng, parts)
            key = pick(rng, ["NAXIS", "NAXIS1", "NAXIS1", "NAXIS2", "PCOUNT", "GCOUNT", "BITPIX"])
            if key == "NAXIS":
                cards[key] = pick(rng, [-3, 0, 1, 3, 999])
            elif key == "BITPIX":
                cards[key] = pick(rng, [-64, -32, -7, 0, 7, 8, 64])
            else:
                cards[key] = pick(rng, FITS_SIZES)
        data = b"".join(map(fits_part, parts))
        if rng.random() < 0.05:
            data += fits_part({"XTENSION": "'IMAGE   '", "BITPIX": 8, "NAXIS": 0}) * 5000
        yield data[: int(rng.integers(len(data)))] if rng.random() < 0.1 else data


MAKERS: dict[str, Callable[[Rng], Iterator[Content]]] = {
    "TIFF": tiffs, "ZARR": zarrs, "JPEG": jpegs, "NPY": npys, "DNG": dngs, "FITS": fits_files,
}  # fmt: skip


def crafted(kind: str, count: int, seed: int) -> Iterator[Content]:
    """Yield files that are damaged by design."""
    for number, content in enumerate(MAKERS[kind](np.random.default_rng(seed))):
        if number == count:
            return
        yield content


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    warnings.simplefilter("error")
    assert set(KINDS) <= set(SUFFIXES)
    for name in sys.argv[3:]:
        contents = crafted(name, int(sys.argv[1]), int(sys.argv[2]))
        print(json.dumps(examine(name, contents)), flush=True)
