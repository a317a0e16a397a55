"""What the noise estimator is worth: PSNR of denoised pictures, nothing given, on pictures it has not seen.

    SYMSMOOTH_IMAGES=... python benchmarks/noise_fit/report.py WORK [--quality fast] [--sets polyu,white]

Sets: real pairs of the development halves (PolyU, SIDD, FMD; about half of each were learnt from), the
simulated cameras A and B, white noise in grey (200 of train400) and colour (Kodak), photon noise, noise
that channels share, random pipelines and saturated phones of our simulator on pictures that are kept back,
and clean pictures and JPEGs, whose figure says what was lost.
"""

from __future__ import annotations

import argparse
import io
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dataset
import numpy as np
import simulate
from PIL import Image
from pool import N_GREY_KEPT_BACK, N_KODAK_KEPT_BACK, Pool, images_folder

import symsmooth
from symsmooth.noise import PoissonGaussian, White
from symsmooth_repro.camera import CAMERAS, photograph

SIGMAS, PEAKS = (2, 5, 10, 25, 50), (5, 20, 100)
SATURATED_SCENES, PIPELINES = 40, 40


class Case(NamedTuple):
    """A noisy picture, its reference (0 to 255), and the true noise if it is known."""

    group: str
    name: str
    noisy: np.ndarray
    clean: np.ndarray
    known: Any = None


def cases(work: Path) -> Iterator[Case]:
    """Yield all pictures."""
    yield from _real()
    yield from _added()
    yield from _simulated(Pool(work, kept_back=True))
    yield from _clean(Pool(work, kept_back=True))


def _real() -> Iterator[Case]:
    for collection, name, noisy, clean in dataset.real_pairs():
        group = collection
        if collection == "fmd":
            group = "-".join(name.split("_")[: 2 if name.startswith("Confocal") else 1])
        yield Case(group, name, noisy.squeeze(), clean.squeeze().astype(np.float64))


def _read(file: Path) -> np.ndarray:
    return np.asarray(Image.open(file))


def _added() -> Iterator[Case]:
    kodak = sorted((images_folder() / "kodak24").iterdir())
    grey = sorted((images_folder() / "train400").iterdir())[:N_GREY_KEPT_BACK]
    for name, camera in CAMERAS.items():
        for file in kodak[:6]:
            noisy, clean = photograph(_read(file) / 255.0, camera, 1)
            yield Case(
                f"camera-{name}", file.name, np.rint(255 * noisy).astype(np.uint8), 255 * clean
            )
    for sigma in SIGMAS:
        for group, files in (("grey", grey), ("colour", kodak)):
            for number, file in enumerate(files):
                clean = _read(file).astype(np.float64)
                rng = np.random.default_rng(1000 * sigma + number)
                noisy = (clean + rng.normal(0, sigma, clean.shape)).astype(np.float32)
                yield Case(f"white-{group}-{sigma}", file.name, noisy, clean, White(sigma))
    for peak in PEAKS:
        for number, file in enumerate(grey[:40]):
            clean = _read(file).astype(np.float64)
            rng = np.random.default_rng(number)
            noisy = (rng.poisson(clean * peak / 255) * (255 / peak)).astype(np.float32)
            yield Case(
                f"photons-{peak}", file.name, noisy, clean, PoissonGaussian((255 / peak,), (0.0,))
            )
    for share in (0.0, 0.5, 0.8, 1.0):
        for file in kodak[:N_KODAK_KEPT_BACK]:
            clean = _read(file)[100:356, 100:356].astype(np.float64)
            rng = np.random.default_rng(0)
            own, common = (
                rng.standard_normal(clean.shape),
                rng.standard_normal((*clean.shape[:2], 1)),
            )
            noise = 15 * (np.sqrt(1 - share) * own + np.sqrt(share) * common)
            yield Case(
                f"shared-{share}", file.name, (clean + noise).astype(np.float32), clean, noise
            )


def _simulated(pool: Pool) -> Iterator[Case]:
    rng, number = np.random.default_rng(4242), 0
    while number < PIPELINES:
        drawn = simulate.draw(rng, pool, size=256, grey=number % 4 == 3)
        if drawn.kind != "none":
            noisy = np.rint(255 * np.clip(drawn.one, 0, 1)).astype(np.uint8).squeeze()
            yield Case("pipelines", f"{number}-{drawn.kind}", noisy, 255.0 * drawn.clean.squeeze())
            number += 1
    number = 0
    while (
        number < SATURATED_SCENES
    ):  # part blown out and without noise, the rest dark and very noisy
        phone = simulate.Camera(rng, grey=False, phone=True)
        phone.size, phone.codecs, phone.tone, phone.digital = 1.0, phone.codecs[:1], "srgb", 1.0
        phone.gain, phone.read = (simulate.log_uniform(rng, 0.005, most) for most in (0.06, 0.05))
        phone.exposure = simulate.log_uniform(rng, 1.0, 3.0)
        (one, two), clean = phone.shots(simulate.dim_scene(pool.crop(rng, 256, False), rng), rng)
        level = np.sqrt(np.square(one - two).mean() / 2) * 255
        if 0.05 < (one >= 1).all(axis=-1).mean() < 0.8 and level > 8:
            yield Case("saturated", str(number), np.rint(255 * one).astype(np.uint8), 255.0 * clean)
            number += 1


def _clean(pool: Pool) -> Iterator[Case]:
    kodak = [("clean-colour", f) for f in sorted((images_folder() / "kodak24").iterdir())]
    grey = sorted((images_folder() / "train400").iterdir())[:N_GREY_KEPT_BACK]
    for group, file in [*kodak, *(("clean-grey", f) for f in grey)]:
        picture = _read(file)
        yield Case(group, file.name, picture, picture.astype(np.float64))
        for quality in (75, 85, 95):
            stored = io.BytesIO()
            Image.fromarray(picture).save(stored, "JPEG", quality=quality)
            compressed = np.asarray(Image.open(stored))
            yield Case(
                f"{group}-jpeg", f"{file.name}-{quality}", compressed, compressed.astype(np.float64)
            )
    rng = np.random.default_rng(7)
    for number in range(24):
        drawn = 255 * simulate.drawing(rng, 256, grey=number % 2 == 0).squeeze()
        picture = np.rint(drawn).astype(np.uint8)
        yield Case("clean-drawings", str(number), picture, picture.astype(np.float64))


def psnr(image: np.ndarray, clean: np.ndarray) -> float:
    """Return the PSNR in dB, peak 255; 78 where nothing differs."""
    error = float(np.square(image.astype(np.float64) - clean).mean())
    return 10 * np.log10(255**2 / max(error, 1e-3))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--quality", default="fast")
    parser.add_argument("--sets", default="", help="groups that begin with one of these, by commas")
    parser.add_argument(
        "--every", type=int, default=1, help="only every so many-th picture of a group"
    )
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    wanted, seen = tuple(given.sets.split(",")), {}
    found: dict[str, list[tuple[float, ...]]] = {}
    for case in cases(given.work):
        seen[case.group] = seen.get(case.group, -1) + 1
        if not case.group.startswith(wanted) or seen[case.group] % given.every:
            continue
        options = {"channel_axis": -1 if case.noisy.ndim == 3 else None, "quality": given.quality}
        blind = symsmooth.fit_denoise(case.noisy, **options)
        row = [psnr(case.noisy, case.clean), psnr(blind.image, case.clean)]
        if case.known is not None:
            row.append(psnr(symsmooth.denoise(case.noisy, noise=case.known, **options), case.clean))
        finding = blind.noise.finding
        row.append(finding.confidence if finding else 1.0)
        found.setdefault(case.group, []).append(tuple(row))
    for group, rows in found.items():
        noisy, blind, *known, _ = np.array(rows).T
        line = f"{group:22s} {len(rows):4d}  noisy {noisy.mean():6.2f}  blind {blind.mean():6.2f}"
        line += f" (least {blind.min():5.1f}, least gain {(blind - noisy).min():+6.2f})"
        if known:
            cost = known[0] - blind
            line += f"  cost {cost.mean():+.3f} (most {cost.max():.2f}, above 0.4: {(cost > 0.4).sum()})"
        print(line, flush=True)


if __name__ == "__main__":
    main()
