"""Clean pictures that noise is added to, and which of them the fit may see.

Photographs of Debian's wallpaper packages (free licences; made 2 to 4 times smaller, so that what
noise they have is gone), the textures of a free game, Kodak's 24, the development set train400
(grey), and a few of scikit-image.  A fifth of the wallpapers and textures, the first twelve of
Kodak and the first 200 of train400 are kept back: no number is fitted on them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
from PIL import Image

PACKAGES = (
    "plasma-workspace-wallpapers",
    "mate-backgrounds",
    "gnome-backgrounds",
    "lomiri-wallpapers-16.04",
    "lomiri-wallpapers-20.04",
    "ukui-wallpapers",
    "supertuxkart-data",
)
_TEXTURES = "supertuxkart"  # walls, wood, stone, grass: textures everywhere
N_KODAK_KEPT_BACK, N_GREY_KEPT_BACK = 12, 200


def images_folder() -> Path:
    """Return the folder of development pictures."""
    return Path(os.environ["SYMSMOOTH_IMAGES"])


def build(work: Path) -> Path:
    """Collect the colour pictures in one file and return it; missing packages are fetched by apt."""
    target = work / "pool.npz"
    if target.exists():
        return target
    unpacked = work / "wallpapers"
    if not unpacked.exists():
        unpacked.mkdir(parents=True)
        subprocess.run(["apt-get", "download", *PACKAGES], cwd=work, check=True)
        for package in work.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, unpacked], check=True)
    names, pictures, held = [], [], []
    files = sorted(f for f in unpacked.rglob("*") if f.suffix in (".jpg", ".png", ".webp"))
    for file in files:
        name = str(file.relative_to(unpacked))
        odd = "screenshot" in name or "1080x1920" in name or "720x1440" in name
        if file.is_symlink() or odd or file.stat().st_size < 70_000:
            continue
        picture = Image.open(file)
        if picture.mode not in ("RGB", "L", "P"):
            continue
        picture = picture.convert("RGB")
        if picture.size[0] * picture.size[1] < 600_000:
            continue
        factor = float(np.clip(max(picture.size) / 1400, 2.0, 4.0))
        small = picture.resize(
            (int(picture.size[0] / factor), int(picture.size[1] / factor)), Image.Resampling.LANCZOS
        )
        if min(small.size) < 300:
            continue
        theme = name.split("/wallpapers/")[-1].split("/")[0] if "/wallpapers/" in name else name
        names.append(name)
        pictures.append(np.asarray(small))
        held.append(sum(map(ord, theme)) % 5 == 0)
    for k, file in enumerate(sorted((images_folder() / "kodak24").iterdir())):
        names.append(f"kodak/{file.name}")
        pictures.append(np.asarray(Image.open(file).convert("RGB")))
        held.append(k < N_KODAK_KEPT_BACK)
    for name in ("astronaut", "coffee", "chelsea", "rocket", "immunohistochemistry"):
        import skimage.data

        try:
            picture = np.asarray(getattr(skimage.data, name)())[..., :3]
        except Exception:  # not all of them are installed with scikit-image
            continue
        names.append(f"skimage/{name}")
        pictures.append(picture)
        held.append(False)
    stored = {f"p{k}": picture for k, picture in enumerate(pictures)}
    np.savez(target, names=np.array(names), held=np.array(held), **stored)
    return target


class Pool:
    """Clean pictures of one half: those the fit may see, or those that are kept back."""

    def __init__(self, work: Path, kept_back: bool) -> None:
        stored = np.load(build(work))
        use = np.flatnonzero(stored["held"] == kept_back)
        self.names = [str(stored["names"][k]) for k in use]
        self.colour = [stored[f"p{k}"] for k in use]
        files = sorted((images_folder() / "train400").iterdir())
        files = files[:N_GREY_KEPT_BACK] if kept_back else files[N_GREY_KEPT_BACK:]
        self.grey = [np.asarray(Image.open(f).convert("L")) for f in files]
        textures = [_TEXTURES in name for name in self.names]
        self._textures = list(np.flatnonzero(textures))
        self._natural = [
            k
            for k, name in enumerate(self.names)
            if not textures[k] and (not name.endswith(".png") or "kodak" in name)
        ]
        self._scans = [k for k, name in enumerate(self.names) if "kodak" in name]
        self._others = [k for k in range(len(self.names)) if not textures[k]]

    def crop(
        self, rng: np.random.Generator, size: int, grey: bool, textured: bool = False
    ) -> np.ndarray:
        """Return a crop, 0 to 1; ``textured``: of several, the one with the least flat ground."""
        if not textured:
            return self._crop(rng, size, grey)
        if rng.random() < 0.25:
            return self._crop(rng, size, grey, self._textures)
        tried = [self._crop(rng, size, grey) for _ in range(4)]
        return max(tried, key=_calmest)

    def scan(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Return a crop of a film scan, whose faint grain belongs to it: its channels share it."""
        return self._crop(rng, size, False, self._scans)

    def _crop(
        self, rng: np.random.Generator, size: int, grey: bool, among: list[int] | None = None
    ) -> np.ndarray:
        if among is None and grey and rng.random() < 0.6:
            picture = self.grey[rng.integers(len(self.grey))][..., None]
        else:
            usual = self._others if rng.random() < 0.35 else self._natural
            picture = self.colour[rng.choice(among or usual)]
            if rng.random() < 0.5 and min(picture.shape[:2]) > 1.5 * size:  # smaller: sharper
                factor = rng.uniform(1.0, min(picture.shape[:2]) / size / 1.2)
                new = (int(picture.shape[1] / factor), int(picture.shape[0] / factor))
                picture = np.asarray(Image.fromarray(picture).resize(new, Image.Resampling.LANCZOS))
        if (
            not grey and among is None and rng.random() < 0.25
        ):  # natural luminance, colours that go with it
            luma = self.grey[rng.integers(len(self.grey))].astype(np.float32) / 255
            planes = [
                luma ** np.exp(rng.uniform(-0.5, 0.5)) * rng.uniform(0.6, 1.0) for _ in range(3)
            ]
            picture = (255 * np.stack(planes, -1)).astype(np.uint8)
        height, width = picture.shape[:2]
        if min(height, width) < size:
            widths = ((0, max(size - height, 0)), (0, max(size - width, 0)), (0, 0))
            picture = np.pad(picture, widths, "symmetric")
            height, width = picture.shape[:2]
        for _ in range(4):
            y, x = rng.integers(height - size + 1), rng.integers(width - size + 1)
            out = picture[y : y + size, x : x + size]
            if out.std() > 6 or rng.random() < 0.15:
                break
        crop = out.astype(np.float32) / 255
        if rng.random() < 0.5:
            crop = crop[:, ::-1]
        if rng.random() < 0.5:
            crop = crop.transpose(1, 0, 2)
        if grey and crop.shape[-1] == 3:
            crop = (crop @ np.array([0.3, 0.59, 0.11], np.float32))[..., None]
        if not grey and crop.shape[-1] == 1:
            crop = np.repeat(crop, 3, -1)
        return np.ascontiguousarray(crop)


def _calmest(crop: np.ndarray) -> float:
    """Return the standard deviation of the calmest twentieth of cells of 16 pixels."""
    luma = crop.mean(axis=-1)
    n = len(luma) // 16
    cells = luma[: n * 16, : n * 16].reshape(n, 16, n, 16).std(axis=(1, 3))
    return float(np.quantile(cells, 0.05))
