"""A series of frames: against the same frames one by one, and against what others have for video.

    SYMSMOOTH_IMAGES=... python benchmarks/series.py [PART ...] [--sigma 20] [--quality fast] [--side 256]
                                                     [--frames 12] [--quiet] [--out FOLDER]

Parts, all of them if none is named:

sequences   those of ``video`` in that folder, in colour, white Gaussian noise that is drawn once a sequence
            (seed: sigma), known and found
still       one picture with nine noises, beside the mean of the nine, denoised alone
texture     still pictures with texture everywhere, each with nine noises, known and found
cells       a simulated time lapse of cells that move, photons counted, at most 5, 10 and 20 in a pixel
peers       OpenCV and the filters of ffmpeg, where they are installed, on the same frames rounded to 8 bits

Seconds are those of one core; ratios of time are kept with --quiet, on a machine with nothing else to do.
With --out the parts that were measured are written to ``series.json`` there; others that it has stay as
they are.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from video_peers import Peer, installed

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth_repro.provenance import provenance

Row = dict[str, Any]
STILL_NOISES = 9
TEXTURES = ("test_012", "test_025", "test_030", "test_034")  # of train400
PHOTONS = (5, 10, 20)  # in the brightest pixel


def main() -> None:
    """Measure what was asked for, and keep it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--sigma", type=float, action="append")
    parser.add_argument("--quality", action="append")
    parser.add_argument("--side", type=int, default=256, help="of a square from the middle; 0: all")
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--quiet", action="store_true", help="nothing else runs: keep times")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; use {', '.join(PARTS)}")
    given.sigma = given.sigma or [10.0, 20.0, 40.0]
    given.quality = given.quality or ["fast"]
    for name in given.parts or PARTS:
        rows = []
        for row in PARTS[name](given):
            print(name, json.dumps(row), flush=True)
            rows.append(row)
        if given.out:
            keep(given, name, rows)


def keep(given: argparse.Namespace, name: str, rows: list[Row]) -> None:
    """Write one part, with what there is to say about it."""
    path = given.out / "series.json"
    kept = json.loads(path.read_text("utf-8")) if path.exists() else {"facts": {}}
    told = provenance("", 1, 0.0)
    facts = {
        "date": told.date.split()[0], "symsmooth": f"{told.version}, commit {told.commit}",
        "command": "python benchmarks/series.py", "machine": told.machine,
    }  # fmt: skip
    kept["facts"] = facts  # of the last; each part has its own
    kept[name] = {"facts": facts, "side": given.side, "frames": given.frames, "rows": rows}
    path.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def sequences(given: argparse.Namespace) -> Iterator[Row]:
    """Each sequence frame by frame, as a series, and as a series whose noise is found."""
    for quality in given.quality:
        for sigma in given.sigma:
            for folder in _folders():
                clean = _read(folder, given.frames, given.side)
                noisy = _with_noise(clean, sigma)
                options = {"quality": quality, "channel_axis": -1, "rng": 0, "workers": 1}
                alone, alone_time = _timed(_one_by_one, noisy, sigma, **options)
                series, time_taken = _timed(symsmooth.denoise, noisy, sigma, time_axis=0, **options)
                blind = symsmooth.denoise(noisy, time_axis=0, **options)
                yield {
                    "sequence": folder.name, "sigma": sigma, "quality": quality,
                    "alone": _mean_psnr(alone, clean), "series": _mean_psnr(series, clean),
                    "blind": _mean_psnr(blind, clean),
                    "seconds": round(time_taken / len(clean), 3) if given.quiet else None,
                    "times": round(time_taken / alone_time, 3) if given.quiet else None,
                }  # fmt: skip


def still(given: argparse.Namespace) -> Iterator[Row]:
    """One picture with nine noises."""
    picture = _read(_folders()[-1], 1, given.side)
    clean = np.repeat(picture, STILL_NOISES, axis=0)
    for quality in given.quality:
        for sigma in given.sigma:
            noisy = _with_noise(clean, sigma)
            options = {"quality": quality, "channel_axis": -1, "rng": 0, "workers": 1}
            alone = symsmooth.denoise(noisy[0], sigma, **options)
            mean = symsmooth.denoise(noisy.mean(axis=0), sigma / STILL_NOISES**0.5, **options)
            series = symsmooth.denoise(noisy, sigma, time_axis=0, **options)
            yield {
                "sigma": sigma, "quality": quality,
                "alone": _mean_psnr(alone[np.newaxis], clean[:1]),
                "mean": _mean_psnr(mean[np.newaxis], clean[:1]),
                "series": _mean_psnr(series, clean),
                "flicker": round(float(series.std(axis=0).mean()) / sigma, 4),
            }  # fmt: skip


def texture(given: argparse.Namespace) -> Iterator[Row]:
    """Texture that stands still: what finding the noise costs."""
    for quality in given.quality:
        for sigma in given.sigma:
            for name in TEXTURES:
                path = Path(os.environ["SYMSMOOTH_IMAGES"]) / "train400" / f"{name}.png"
                scene = np.asarray(Image.open(path).convert("L"), np.float32)
                clean = np.repeat(scene[np.newaxis], STILL_NOISES, axis=0)
                noisy = _with_noise(clean, sigma)
                options = {"quality": quality, "time_axis": 0, "rng": 0, "workers": 1}
                known = symsmooth.denoise(noisy, sigma, **options)
                blind = symsmooth.denoise(noisy, **options)
                yield {
                    "picture": name, "sigma": sigma, "quality": quality,
                    "known": _mean_psnr(known, clean), "blind": _mean_psnr(blind, clean),
                }  # fmt: skip


def cells(given: argparse.Namespace) -> Iterator[Row]:
    """Photons of cells that move, counted; noise is found."""
    for quality in given.quality:
        for photons in PHOTONS:
            clean = moving_cells(given.frames, 192) * photons
            counts = np.random.default_rng(photons).poisson(clean).astype(np.uint16)
            options = {"quality": quality, "rng": 0, "workers": 1, "noise": "poisson-gaussian"}
            pixels = counts.astype(np.float32)
            alone = _one_by_one(pixels, None, **options)
            series = symsmooth.denoise(pixels, time_axis=0, **options)
            yield {
                "photons": photons, "quality": quality,
                "noisy": _mean_psnr(pixels, clean, photons),
                "alone": _mean_psnr(alone, clean, photons),
                "series": _mean_psnr(series, clean, photons),
            }  # fmt: skip


def moving_cells(n_frames: int, side: int, seed: int = 0) -> np.ndarray:
    """Return a time lapse of cells, 0 to 1: body, nucleus and grains, each cell with its own way."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side].astype(np.float32)
    frames = np.full((n_frames, side, side), 0.04, np.float32)  # what is not quite dark
    for _ in range(round(side**2 / 1500)):
        place, speed = rng.uniform(0, side, 2), rng.normal(0, 0.8, 2)
        size, turn = rng.uniform(8, 15), rng.uniform(0, np.pi)
        flat, bright = rng.uniform(0.55, 1.0), rng.uniform(0.3, 1.0)
        grains = rng.uniform(-0.6, 0.6, (6, 2)) * size
        for t in range(n_frames):
            dy, dx = y - place[0], x - place[1]
            along = dx * np.cos(turn) + dy * np.sin(turn)
            across = (dy * np.cos(turn) - dx * np.sin(turn)) / flat
            body = 1 / (1 + np.exp((np.hypot(along, across) - size) / 0.8))
            nucleus = 1 / (1 + np.exp((np.hypot(along, across) - 0.4 * size) / 0.8))
            shape = 0.45 * body + 0.3 * nucleus
            for grain in grains:
                away = np.square(along - grain[0]) + np.square(across - grain[1])
                shape += 0.35 * body * np.exp(-away / 4)
            frames[t] = np.maximum(frames[t], bright * shape)
            place = place + speed + rng.normal(0, 0.2, 2)
            turn += rng.normal(0, 0.02)
    return np.minimum(frames, 1.0)


def peers(given: argparse.Namespace) -> Iterator[Row]:
    """Measure what others have for video, each at the strength that is best for all sequences."""
    for sigma in given.sigma:
        clips = []
        for folder in _folders():
            clean = _read(folder, given.frames, given.side)
            noisy = np.clip(np.rint(_with_noise(clean, sigma)), 0, 255).astype(np.uint8)
            clips.append((clean, noisy))
        noisy_psnr = np.mean(
            [_mean_psnr(noisy.astype(np.float32), clean) for clean, noisy in clips]
        )
        yield {"sigma": sigma, "method": "noisy", "psnr": round(float(noisy_psnr), 3)}
        options = {"channel_axis": -1, "rng": 0, "workers": 1}
        for quality in given.quality:
            for name, axis in (("frame by frame", None), ("as a series", 0)):
                found = [
                    _ours(noisy, clean, sigma, axis, {"quality": quality, **options})
                    for clean, noisy in clips
                ]
                psnrs, seconds = zip(*found, strict=True)
                yield {
                    "sigma": sigma, "method": f"symsmooth {quality}, {name}", "ours": True,
                    "psnr": round(float(np.mean(psnrs)), 3),
                    "seconds": round(float(np.mean(seconds)) / given.frames, 3),
                }  # fmt: skip
        for peer in installed():
            yield {"sigma": sigma, **_best_strength(peer, clips, sigma)}


def _ours(
    noisy: np.ndarray, clean: np.ndarray, sigma: float, time_axis: int | None, options: Row
) -> tuple[float, float]:
    """Return PSNR and seconds of our own method."""
    if time_axis is None:
        found, seconds = _timed(_one_by_one, noisy, sigma, **options)
    else:
        found, seconds = _timed(symsmooth.denoise, noisy, sigma, time_axis=time_axis, **options)
    return _mean_psnr(found.astype(np.float32), clean), seconds


def _best_strength(peer: Peer, clips: list[tuple[np.ndarray, np.ndarray]], sigma: float) -> Row:
    """Return what a peer reaches with the best of its strengths, its strength and its time."""
    best: Row = {"psnr": -np.inf}
    for strength in peer.strengths(sigma):
        found = [(peer.run(noisy, strength), clean) for clean, noisy in clips]
        mean = float(np.mean([_mean_psnr(f.frames.astype(np.float32), c) for f, c in found]))
        if mean > best["psnr"]:
            seconds = float(np.mean([f.seconds / len(f.frames) for f, _ in found]))
            best = {
                "method": peer.name, "psnr": round(mean, 3), "seconds": round(seconds, 3),
                "strength": round(strength, 4),
            }  # fmt: skip
    return best


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "sequences": sequences,
    "still": still,
    "texture": texture,
    "cells": cells,
    "peers": peers,
}


def _timed(
    work: Callable[..., np.ndarray], *given: Any, **options: Any
) -> tuple[np.ndarray, float]:
    began = time.process_time()
    return work(*given, **options), time.process_time() - began


def _one_by_one(frames: np.ndarray, sigma: float | None, **options: Any) -> np.ndarray:
    return np.stack([symsmooth.denoise(frame, sigma, **options) for frame in frames])


def _folders() -> list[Path]:
    return sorted((Path(os.environ["SYMSMOOTH_IMAGES"]) / "video").iterdir())


def _read(folder: Path, count: int, side: int) -> np.ndarray:
    files = sorted(folder.iterdir())[:count]
    frames = np.stack([np.asarray(Image.open(file).convert("RGB"), np.float32) for file in files])
    if side:
        y, x = ((n - side) // 2 for n in frames.shape[1:3])
        frames = np.ascontiguousarray(frames[:, y : y + side, x : x + side])
    return frames


def _with_noise(clean: np.ndarray, sigma: float) -> np.ndarray:
    noise = np.random.default_rng(int(sigma)).standard_normal(clean.shape, np.float32)
    return clean + np.float32(sigma) * noise


def _mean_psnr(found: np.ndarray, clean: np.ndarray, peak: float = 255.0) -> float:
    values = [psnr(a, b, peak) for a, b in zip(found, clean, strict=True)]
    return round(float(np.mean(values)), 3)


if __name__ == "__main__":
    main()
