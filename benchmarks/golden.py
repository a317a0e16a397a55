"""The bits of every method, as hashes: written before a change that must not alter them, compared after.

Run: python benchmarks/golden.py before.json             (writes it)
     python benchmarks/golden.py before.json --compare   (says which results differ, and fails if any does)

Every method and every preset on grey, colour, volume and masked pictures of four dtypes, with the noise
given and estimated; every noise model; a picture cut into blocks; one and two workers.  Hashes hold for
one machine and one set of libraries: they are not kept in the repository.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from skimage import data

import symsmooth
from symsmooth.core import blocks

DTYPES = ("uint8", "uint16", "float32", "float64")
QUALITIES = ("preview", "fast", "balanced", "best")
NOISES = ("gaussian", "poisson-gaussian", "correlated", "rician", "auto")

Case = tuple[str, Callable[[], Any]]


def pictures() -> dict[str, tuple[np.ndarray, dict[str, Any]]]:
    """Return noisy pictures from 0 to 1, and the options that go with them."""
    rng = np.random.default_rng(0)
    grey = data.camera()[100:148, 200:252] / 255
    colour = data.astronaut()[60:100, 200:244] / 255
    depth = np.linspace(0.7, 1.0, 9)[:, None, None]
    volume = depth * data.camera()[100:122, 200:226] / 255
    mask = rng.random(grey.shape) < 0.1

    def noisy(clean: np.ndarray) -> np.ndarray:
        return np.clip(clean + rng.normal(0, 0.08, clean.shape), 0, 1)

    return {
        "large": (noisy(data.camera()[:160, :176] / 255), {}),
        "grey": (noisy(grey), {}),
        "colour": (noisy(colour), {"channel_axis": -1}),
        "volume": (noisy(volume), {}),
        "mask": (noisy(grey), {"mask": mask}),
    }


def in_dtype(pixels: np.ndarray, dtype: str) -> tuple[np.ndarray, float]:
    """Return pixels from 0 to 1 in a dtype, and what 1 is there."""
    top = 1.0 if dtype.startswith("float") else float(np.iinfo(dtype).max)
    scaled = pixels * top
    return (np.rint(scaled) if top > 1 else scaled).astype(dtype), top


def cases() -> Iterator[Case]:
    """Yield names and what is to be computed."""
    mosaic, _ = in_dtype(pictures()["large"][0], "uint16")
    yield "raw", lambda: symsmooth.denoise_raw(mosaic, pattern="RGGB", workers=1)
    for kind, (pixels, options) in pictures().items():
        for dtype in ("float32",) if kind == "large" else DTYPES:
            image, top = in_dtype(pixels, dtype)
            for name, method in symsmooth.METHODS.items():
                yield (
                    f"{name} {kind} {dtype}",
                    lambda m=method, i=image, t=top, o=options: m(i, 0.08 * t, workers=1, **o),
                )
            for quality in QUALITIES:
                for workers in (1, 2):
                    yield (
                        f"{quality} {kind} {dtype} blind workers={workers}",
                        lambda i=image, q=quality, o=options, w=workers: symsmooth.denoise(
                            i, quality=q, workers=w, **o
                        ),
                    )
        image, top = in_dtype(pixels, "float32")
        for noise in NOISES:
            for quality in QUALITIES:
                yield (
                    f"{quality} {kind} noise={noise}",
                    lambda i=image, q=quality, o=options, n=noise: symsmooth.denoise(
                        i, quality=q, noise=n, workers=1, **o
                    ),
                )
        for name, method in symsmooth.METHODS.items():
            yield f"{name} {kind} blocks", lambda m=method, i=image, o=options: in_blocks(m, i, o)


def in_blocks(method: Any, image: np.ndarray, options: dict[str, Any]) -> np.ndarray:
    """Denoise a picture with blocks small enough to cut it."""
    with mock.patch.object(blocks, "BLOCK_PIXELS", image.size // 3):
        return method(image, 0.08, workers=2, **options)


def digest(result: Any) -> str:
    """Return a hash of an array's shape, dtype and bits."""
    array = np.ascontiguousarray(result)
    head = f"{array.shape} {array.dtype}".encode()
    return hashlib.sha256(head + array.tobytes()).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--compare", action="store_true")
    asked = parser.parse_args()
    found = {}
    for name, compute in cases():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[name] = digest(compute())
            except (ValueError, TypeError) as error:
                found[name] = f"{type(error).__name__}: {error}"
    if not asked.compare:
        asked.file.write_text(json.dumps(found, indent=1))
        print(f"{len(found)} results written to {asked.file}")
        return
    before = json.loads(asked.file.read_text())
    different = [
        name for name in before.keys() | found.keys() if before.get(name) != found.get(name)
    ]
    print(*sorted(different), sep="\n")
    print(f"{len(different)} of {len(found)} results differ")
    raise SystemExit(bool(different))


if __name__ == "__main__":
    main()
