"""Plug-and-play priors: deblurring, inpainting and super-resolution with a denoiser, ours and the peer's.

Usage: python benchmarks/inverse.py [--quick] [--methods preview,fast,balanced,bm3d] [--keep].

The loop is half-quadratic splitting: a step towards the data, a step of the denoiser, whose noise level
falls from iteration to iteration.  All denoisers get the same data, the same levels and the same number of
iterations.  Time is that of the processor, over all threads.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from scipy import fft, ndimage
from skimage import color, data
from stored import FOLDER, load_json

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth_repro.provenance import provenance

Array = np.ndarray[Any, np.dtype[np.float64]]
Denoiser = Callable[[Array, float], Array]
WIDTH = 192
BLUR = 1.6  # pixels, Gaussian
TRUST = 0.23  # weight of the prior, as in the literature on plug-and-play; not tuned here


def pictures() -> dict[str, Array]:
    """Return four photographs of scikit-image, grey, 0 to 255."""
    grey = {
        "camera": data.camera()[40:, 120:],
        "astronaut": 255 * color.rgb2gray(data.astronaut())[:, 90:],
        "coffee": 255 * color.rgb2gray(data.coffee())[100:, 150:],
        "chelsea": 255 * color.rgb2gray(data.chelsea())[20:, 80:],
    }
    return {name: np.asarray(each, float)[:WIDTH, :WIDTH] for name, each in grey.items()}


def transfer(shape: tuple[int, ...]) -> Array:
    """Return the transfer function of the blur, on a torus."""
    frequencies = [np.fft.fftfreq(n) for n in shape]
    squared = np.add.outer(frequencies[0] ** 2, frequencies[1] ** 2)
    return np.exp(-2 * np.pi**2 * BLUR**2 * squared)


@dataclass(frozen=True)
class Deblurring:
    """Gaussian blur and a little noise."""

    sigma: float = 2.0
    levels: tuple[float, float, int] = (40.0, 2.0, 8)

    def measure(self, clean: Array, rng: np.random.Generator) -> Array:
        """Return what is seen."""
        blurred = fft.ifft2(transfer(clean.shape) * fft.fft2(clean)).real
        return blurred + rng.normal(0, self.sigma, clean.shape)

    def start(self, seen: Array) -> Array:
        """Return a first guess."""
        return seen

    def nearest(self, seen: Array, guess: Array, weight: float) -> Array:
        """Return argmin ||A x - seen||^2 + weight ||x - guess||^2."""
        otf = transfer(seen.shape)
        top = otf * fft.fft2(seen) + weight * fft.fft2(guess)
        return fft.ifft2(top / (otf**2 + weight)).real


@dataclass(frozen=True)
class Inpainting:
    """Three quarters of the pixels are missing (NaN), the rest have noise."""

    sigma: float = 5.0
    missing: float = 0.75
    levels: tuple[float, float, int] = (30.0, 2.0, 24)

    def measure(self, clean: Array, rng: np.random.Generator) -> Array:
        """Return what is seen."""
        noisy = clean + rng.normal(0, self.sigma, clean.shape)
        return np.where(rng.random(clean.shape) < self.missing, np.nan, noisy)

    def start(self, seen: Array) -> Array:
        """Return a first guess: the nearest pixel that is there."""
        index = ndimage.distance_transform_edt(
            np.isnan(seen), return_distances=False, return_indices=True
        )
        return seen[tuple(index)]

    def nearest(self, seen: Array, guess: Array, weight: float) -> Array:
        """Return argmin ||A x - seen||^2 + weight ||x - guess||^2."""
        return np.where(
            np.isnan(seen), guess, (np.nan_to_num(seen) + weight * guess) / (1 + weight)
        )


@dataclass(frozen=True)
class SuperResolution:
    """Gaussian blur, every second pixel of every second line, a little noise."""

    sigma: float = 1.0
    factor: int = 2
    levels: tuple[float, float, int] = (30.0, 2.0, 8)

    def measure(self, clean: Array, rng: np.random.Generator) -> Array:
        """Return what is seen."""
        blurred = fft.ifft2(transfer(clean.shape) * fft.fft2(clean)).real
        small = blurred[:: self.factor, :: self.factor]
        return small + rng.normal(0, self.sigma, small.shape)

    def start(self, seen: Array) -> Array:
        """Return a first guess: a spline through the pixels that are there."""
        at = np.mgrid[[slice(0, n, 1 / self.factor) for n in seen.shape]]
        return ndimage.map_coordinates(seen, at, order=3, mode="grid-wrap")

    def nearest(self, seen: Array, guess: Array, weight: float) -> Array:
        """Return argmin ||A x - seen||^2 + weight ||x - guess||^2, by aliased frequencies."""
        f = self.factor
        otf = transfer(guess.shape)
        spread = np.zeros(guess.shape)
        spread[::f, ::f] = seen
        top = otf * fft.fft2(spread) + weight * fft.fft2(guess)
        folded = self._folded(otf * top) / (self._folded(otf**2) + weight)
        return fft.ifft2((top - otf * np.tile(folded, (f, f))) / weight).real

    def _folded(self, spectrum: Any) -> Any:
        """Return the mean over the frequencies that fall together."""
        f, (height, width) = self.factor, spectrum.shape
        return spectrum.reshape(f, height // f, f, width // f).mean((0, 2))


PROBLEMS: dict[str, Any] = {
    "deblurring": Deblurring(),
    "inpainting": Inpainting(),
    "super-resolution": SuperResolution(),
}


def restore(problem: Any, seen: Array, denoise: Denoiser, watch: Callable[[Array], None]) -> Array:
    """Alternate between data and prior; ``watch`` sees each estimate."""
    estimate = problem.start(seen)
    first, last, count = problem.levels
    for level in np.geomspace(first, last, count):
        weight = TRUST * (problem.sigma / level) ** 2
        estimate = denoise(problem.nearest(seen, estimate, weight), float(level))
        watch(estimate)
    return estimate


def ours(quality: Any) -> Denoiser:
    """Return our denoiser as a prior."""
    return lambda image, sigma: symsmooth.denoise(
        image, sigma, quality=quality, specks="keep", workers=1
    )


def theirs() -> Denoiser:
    """Return that of the bm3d package."""
    import bm3d

    return lambda image, sigma: np.asarray(bm3d.bm3d(image / 255, sigma / 255)) * 255


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one picture, preview only")
    parser.add_argument("--keep", action="store_true", help="keep the figures for the pages")
    parser.add_argument("--methods", default="preview,fast,balanced,bm3d")
    parser.add_argument("--tasks", default=",".join(PROBLEMS), help="those of others stay as kept")
    given = parser.parse_args()
    names = ["preview"] if given.quick else given.methods.split(",")
    methods = {name: theirs() if name == "bm3d" else ours(name) for name in names}
    scenes = dict(list(pictures().items())[: 1 if given.quick else None])
    rows = []
    for task in given.tasks.split(","):
        problem = PROBLEMS[task]
        found: dict[str, dict[str, list[Any]]] = {n: {"curves": [], "cpu": []} for n in names}
        starts = []
        for number, (scene, clean) in enumerate(scenes.items()):
            seen = problem.measure(clean, np.random.default_rng(number))
            starts.append(psnr(problem.start(seen), clean, 255))
            for name, denoise in methods.items():
                curve: list[float] = []
                began = time.process_time()
                restore(
                    problem,
                    seen,
                    denoise,
                    lambda x, c=clean, out=curve: out.append(psnr(x, c, 255)),
                )
                found[name]["cpu"].append(time.process_time() - began)
                found[name]["curves"].append(curve)
                print(
                    f"{task}, {scene}, {name}: {curve[-1]:.2f} dB, {found[name]['cpu'][-1]:.1f} s",
                    flush=True,
                )
        for name, each in found.items():
            rows.append({
                "task": task, "method": name, "start": round(fmean(starts), 3),
                "psnr": [round(fmean(step), 3) for step in zip(*each["curves"], strict=True)],
                "each": {s: round(c[-1], 3) for s, c in zip(scenes, each["curves"], strict=True)},
                "cpu_seconds": round(fmean(each["cpu"]), 2),
            })  # fmt: skip
    if given.keep:
        old = load_json("inverse") or {"rows": []}
        rows += [row for row in old["rows"] if row["task"] not in given.tasks.split(",")]
        rows.sort(key=lambda row: list(PROBLEMS).index(row["task"]))
        told = provenance("python benchmarks/inverse.py --keep", 1, 0.0).facts()
        facts = {
            "date": told["Date"].split()[0],
            "symsmooth": told["symsmooth"],
            "command": told["Command"],
        }
        text = json.dumps({"facts": facts, "rows": rows}, indent=1)
        (FOLDER / "inverse.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
