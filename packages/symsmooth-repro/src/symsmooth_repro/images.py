"""The pictures: the paper's ten found by name in a folder, or others that scikit-image brings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from symsmooth.core.image import Array
from symsmooth.io import FileError, read_image

CLASSICS = (
    "baboon", "barbara", "boat", "bridge", "couple", "hill", "house", "lena", "man", "peppers",
)  # fmt: skip
_OTHER_NAMES = {"mandrill": "baboon", "boats": "boat", "lenna": "lena", "pepper": "peppers"}
# What stands in for them when no folder is given: part of scikit-image's own package.
_STAND_INS = {
    "baboon": "chelsea", "barbara": "astronaut", "boat": "rocket", "bridge": "gravel",
    "couple": "coffee", "hill": "grass", "house": "camera", "lena": "brick", "man": "motorcycle_left",
    "peppers": "coins",
}  # fmt: skip
_DEVELOPMENT = ("train400", "kodak24", "development")  # folders beside the ten
_DEVELOPMENT_STAND_INS = (
    "astronaut",
    "brick",
    "camera",
    "chelsea",
    "coffee",
    "grass",
    "moon",
    "rocket",
)
_MAX_DEVELOPMENT = 8
_ENDINGS = (
    ".png",
    ".jpg",
    ".jpeg",
    ".jfif",
    ".jpe",
    ".bmp",
    ".webp",
    ".tif",
    ".tiff",
    ".npy",
    ".pgm",
    ".ppm",
    ".gif",
)


@dataclass(frozen=True)
class ImageSet:
    """Pictures by name, grey, 8 bits."""

    pictures: dict[str, Array]
    missing: tuple[str, ...] = ()  # of the paper's ten
    stand_ins: dict[str, str] = field(default_factory=dict)  # what each really is
    source: str = ""  # in words

    def __contains__(self, name: str) -> bool:
        return name in self.pictures

    def __getitem__(self, name: str) -> Array:
        return self.pictures[name]

    @property
    def classics(self) -> list[str]:
        """Those of the paper's ten that are there."""
        return [name for name in CLASSICS if name in self.pictures]

    @property
    def development(self) -> list[str]:
        """Pictures that the paper does not know."""
        return [name for name in self.pictures if name.startswith("dev-")]

    @property
    def drawn(self) -> list[str]:
        """Pictures 11 to 15: a constant foreground on a constant background."""
        return [name for name in self.pictures if name.startswith("drawn-")]

    @property
    def is_papers(self) -> bool:
        """Whether the printed numbers are for these pictures."""
        return not self.stand_ins

    @cached_property
    def digests(self) -> dict[str, str]:
        """A short name of each picture's content."""
        return {
            name: hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).hexdigest()[:16]
            for name, pixels in self.pictures.items()
        }


def open_image_set(folder: Path | None) -> ImageSet:
    """Find the pictures in a folder and the folders in it; without a folder, take stand-ins."""
    if folder is None:
        pictures = {name: _bundled(other) for name, other in _STAND_INS.items()}
        pictures |= {f"dev-{name}": _bundled(name)[:256, :256] for name in _DEVELOPMENT_STAND_INS}
        return ImageSet(pictures | draw(), (), dict(_STAND_INS), "scikit-image's own pictures")
    if not folder.is_dir():
        raise FileError(f"{folder}: no such folder; --images takes a folder of pictures")
    found: dict[str, Path] = {}
    for path in _files(folder):
        name = name_of(path.stem)
        if name in CLASSICS:
            found.setdefault(name, path)
    if not found:
        raise FileError(f"{folder}: holds none of the pictures {', '.join(CLASSICS)}")
    pictures = {name: read_grey(found[name]) for name in CLASSICS if name in found}
    pictures |= _development(folder)
    missing = tuple(name for name in CLASSICS if name not in found)
    return ImageSet(pictures | draw(), missing, {}, f"{len(found)} of the paper's ten pictures")


def name_of(stem: str) -> str:
    """Return the picture a file's name stands for: Lena_512, LENNA, lena.gray are lena."""
    word = re.split(r"[^a-z]", stem.lower().lstrip("0123456789_-. "), maxsplit=1)[0]
    return _OTHER_NAMES.get(word, word)


def read_grey(path: Path) -> Array:
    """Return a file as grey uint8; colour by the weights of ITU-R 601, as Pillow's "L"."""
    if path.suffix.lower() in (".pgm", ".ppm", ".gif"):
        from PIL import Image

        with Image.open(path) as opened:
            return np.asarray(opened.convert("L"))
    image = read_image(path)
    pixels = image.channels_last.astype(np.float64)
    kind = image.pixels.dtype
    if kind.kind in "ui":
        pixels *= 255.0 / np.iinfo(kind).max
    elif pixels.max() <= 1.0:
        pixels *= 255.0
    if image.channel_axis is not None:
        weights = [0.299, 0.587, 0.114] if pixels.shape[-1] >= 3 else [1.0]
        pixels = pixels[..., : len(weights)] @ weights
    if pixels.ndim != 2:
        raise FileError(f"{path}: must be one picture, its shape is {image.pixels.shape}")
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def draw(side: int = 100) -> dict[str, Array]:
    """Draw pictures 11 to 15, constant foreground (191) and background (64).

    The paper's are not given: disc, square, star, ring, slanted edge.
    """
    y, x = np.mgrid[:side, :side] - (side - 1) / 2
    radius, angle = np.hypot(y, x), np.arctan2(y, x)
    shapes = (
        radius < 0.28 * side,
        np.maximum(abs(x), abs(y)) < 0.26 * side,
        radius < (0.24 + 0.09 * np.cos(5 * angle)) * side,
        abs(radius - 0.29 * side) < 0.09 * side,
        y > 0.4 * x,
    )
    return {
        f"drawn-{number}": np.where(shape, 191, 64).astype(np.uint8)
        for number, shape in enumerate(shapes, start=11)
    }


def _files(folder: Path) -> Iterator[Path]:
    """Yield the pictures in a folder, then those one level below, in the order of their names."""
    below = sorted(p for p in folder.iterdir() if p.is_dir() and p.name not in _DEVELOPMENT)
    for place in (folder, *below):
        yield from sorted(p for p in place.iterdir() if p.suffix.lower() in _ENDINGS)


def _development(folder: Path) -> dict[str, Array]:
    """Return up to eight pictures of the development folders, or stand-ins if there are none."""
    for name in _DEVELOPMENT:
        files = sorted(p for p in (folder / name).glob("*") if p.suffix.lower() in _ENDINGS)
        if files:
            chosen = files[:: max(len(files) // _MAX_DEVELOPMENT, 1)][:_MAX_DEVELOPMENT]
            return {f"dev-{path.stem}": read_grey(path)[:256, :256] for path in chosen}
    return {f"dev-{name}": _bundled(name)[:256, :256] for name in _DEVELOPMENT_STAND_INS}


def _bundled(name: str) -> Array:
    """Return a picture that is part of scikit-image's package, without asking the network."""
    import skimage

    folder = Path(skimage.__file__).parent / "data"
    return read_grey(next(p for p in sorted(folder.glob(f"{name}.*")) if p.suffix in _ENDINGS))
