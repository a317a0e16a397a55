"""The front of time against PSNR: each number of a preset's stages, moved by one step either way.

    SYMSMOOTH_IMAGES=... python benchmarks/front.py WORK [--quality fast] [--sets phones] [--rounds 2]

For a set of pictures the plan of a preset is measured, then each plan that differs from it in one number
(clusters, patches, bandwidths, softness, iterations).  Times are CPU seconds of one thread over those of
the preset, interleaved picture by picture.  Points that no other beats in both are the front (*).  With
more rounds the walk goes on from the point that gains most: more dB at no more time, or less time at a
loss of at most 0.01 dB.  Noise is given where it is white, else estimated once, so the filter alone is
measured.  What was measured is kept in WORK/measured.json, and is not measured twice; with --out the points
of the first round are kept for the pages, in front.json there.

Sets: white-grey, white-colour (sigma 25), cameras (simulated), phones (SIDD), microscopes (FMD), series
(DAVIS, sigma 20); small crops of the development halves.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from PIL import Image

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.gsfw import presets, stages
from symsmooth.gsfw.presets import Preset, Stage
from symsmooth_repro.provenance import provenance

sys.path.insert(0, str(Path(__file__).parent / "noise_fit"))
DATA = Path(os.environ.get("SYMSMOOTH_IMAGES", "."))
SIDE = 192  # pixels of a crop
LOSS = 0.01  # dB that less time may cost

# The steps of a number: what it is multiplied with, or what is added to it.
STEPS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "pixels_per_cluster": lambda n: (round(n / 1.4), round(n * 1.4)),
    "max_clusters": lambda n: (max(n - 1, 1), n + 1),
    "patch_size": lambda n: tuple(each for each in (n - 1, n + 1) if 3 <= each <= 8),
    "h_s": lambda h: (h / 1.25, h * 1.25),
    "h_r": lambda h: (h / 1.25, h * 1.25),
    "reach": lambda r: (r - 0.5, r + 0.5) if r > 1.0 else (r + 0.5,),
    "temperature": lambda t: (t / 1.4, t * 1.4),
    "iterations": lambda n: (n + 1,) if n == 1 else (n - 1, n + 1),
    "subsample": lambda n: (n * 2,) if n == 1 else (n // 2, n * 2),
    "strength": lambda s: (s / 1.25, s * 1.25),
}


@dataclass(frozen=True)
class Case:
    """A noisy picture, its clean one, and what denoise is told."""

    noisy: np.ndarray
    clean: np.ndarray
    options: dict[str, Any]


def white_grey() -> Iterator[Case]:
    """Six pictures of train400."""
    for seed, file in enumerate(sorted((DATA / "train400").iterdir())[:240:40]):
        yield _white(np.asarray(Image.open(file).convert("L")), 25.0, seed)


def white_colour() -> Iterator[Case]:
    """Six pictures of Kodak's."""
    for seed, file in enumerate(sorted((DATA / "kodak24").glob("*.png"))[::4]):
        yield _white(_middle(np.asarray(Image.open(file).convert("RGB"))), 25.0, seed)


def cameras() -> Iterator[Case]:
    """Two pictures of each simulated camera."""
    from symsmooth_repro.camera import CAMERAS, photograph

    for camera in CAMERAS.values():
        for file in sorted((DATA / "kodak24").glob("*.png"))[:12:6]:
            scene = _middle(np.asarray(Image.open(file).convert("RGB"))) / 255.0
            noisy, clean = photograph(scene, camera, 1)
            yield _found(np.rint(255 * noisy).astype(np.uint8), 255 * clean)


def phones() -> Iterator[Case]:
    """Every tenth block of the development half of SIDD."""
    yield from _real("sidd", 10)


def microscopes() -> Iterator[Case]:
    """Every third picture of the development half of FMD."""
    yield from _real("fmd", 3)


def series() -> Iterator[Case]:
    """Three sequences, six frames of each."""
    for folder in sorted((DATA / "video").iterdir())[::2]:
        files = sorted(folder.iterdir())[:6]
        clean = np.stack([_middle(np.asarray(Image.open(f).convert("RGB"))) for f in files])
        noise = np.random.default_rng(20).normal(0, 20, clean.shape)
        options = {"sigma": 20.0, "channel_axis": -1, "time_axis": 0}
        yield Case((clean + noise).astype(np.float32), clean.astype(float), options)


SETS = {
    "white-grey": white_grey,
    "white-colour": white_colour,
    "cameras": cameras,
    "phones": phones,
    "microscopes": microscopes,
    "series": series,
}


def _middle(pixels: np.ndarray) -> np.ndarray:
    y, x = (max((size - SIDE) // 2, 0) for size in pixels.shape[:2])
    return pixels[y : y + SIDE, x : x + SIDE]


def _white(clean: np.ndarray, sigma: float, seed: int) -> Case:
    noise = np.random.default_rng(seed).normal(0, sigma, clean.shape)
    options = {"sigma": sigma, "channel_axis": -1 if clean.ndim == 3 else None}
    return Case((clean + noise).astype(np.float32), clean.astype(float), options)


def _found(noisy: np.ndarray, clean: np.ndarray) -> Case:
    axis = -1 if noisy.ndim == 3 else None
    model = symsmooth.estimate_noise(noisy, channel_axis=axis)
    return Case(noisy, clean.astype(float), {"noise": model, "channel_axis": axis})


def _real(collection: str, every: int) -> Iterator[Case]:
    from dataset import real_pairs

    own = [pair for pair in real_pairs() if pair[0] == collection]
    for _, _, noisy, clean in own[::every]:
        yield _found(_middle(noisy).squeeze(), _middle(clean).squeeze())


Change = tuple[tuple[str, int, str, Any], ...]  # (pilots or final, number, name, value), ...


def planned(change: Change) -> Callable[..., Preset]:
    """Return what takes the place of ``adapt``: the plan, with some numbers changed."""

    def adapted(*given: Any, **options: Any) -> Preset:
        plan = presets.adapt(*given, **options)
        for which, number, name, value in change:
            plan = _with(plan, which, number, name, value)
        return plan

    return adapted


def _with(plan: Preset, which: str, number: int, name: str, value: Any) -> Preset:
    if which == "final":
        return replace(plan, final=plan.final and replace(plan.final, **{name: value}))
    pilots = [
        replace(stage, **{name: value}) if i == number else stage
        for i, stage in enumerate(plan.pilots)
    ]
    return replace(plan, pilots=tuple(pilots))


def neighbours(plan: Preset, change: Change) -> Iterator[Change]:
    """Return the changes that move one more number of a plan by one step."""
    taken = {entry[:3] for entry in change}
    places: list[tuple[str, int, Stage]] = [("pilots", i, s) for i, s in enumerate(plan.pilots)]
    if plan.final is not None:
        places.append(("final", 0, plan.final))
    for which, number, stage in places:
        for name, steps in STEPS.items():
            known = {each.name for each in fields(stage)}
            if (which, number, name) in taken or name not in known:
                continue
            if name == "strength" and which == "pilots":
                continue
            for value in steps(getattr(stage, name)):
                yield (*change, (which, number, name, value))


def run(case: Case, quality: str, change: Change) -> tuple[float, float]:
    """Return PSNR and CPU seconds."""
    with mock.patch.object(stages, "adapt", planned(change)):
        began = time.process_time()
        result = symsmooth.denoise(case.noisy, quality=quality, rng=0, workers=1, **case.options)
        seconds = time.process_time() - began
    return psnr(case.clean, np.clip(result.astype(float), 0, 255), 255), seconds


def compare(cases: list[Case], quality: str, start: Change, change: Change) -> tuple[float, float]:
    """Return what a change gains in dB over the start, and its time in that of it; interleaved."""
    gains, seconds = [], np.zeros(2)
    for case in cases:
        before, time_before = run(case, quality, start)
        after, time_after = run(case, quality, change)
        gains.append(after - before)
        seconds += (time_before, time_after)
    return float(np.mean(gains)), float(seconds[1] / seconds[0])


def current_plan(case: Case, quality: str, change: Change) -> Preset:
    """Return the plan that a case is denoised by."""
    seen: list[Preset] = []

    def noted(*given: Any, **options: Any) -> Preset:
        seen.append(planned(change)(*given, **options))
        return seen[-1]

    with mock.patch.object(stages, "adapt", noted):
        symsmooth.denoise(case.noisy, quality=quality, rng=0, workers=1, **case.options)
    return seen[0]


def words(change: Change) -> str:
    """Say what differs from the preset."""
    if not change:
        return "the preset"
    return ", ".join(
        f"{'final' if which == 'final' else f'pilot {number + 1}'} {name} {value:.3g}"
        for which, number, name, value in change
    )


def is_on_front(point: tuple[float, float], points: list[tuple[float, float]]) -> bool:
    """Whether no other point has more dB and less time."""
    return not any(
        gain >= point[0] and ratio <= point[1] and (gain, ratio) != point for gain, ratio in points
    )


def walk(name: str, quality: str, rounds: int, store: Path) -> dict[str, Any]:
    """Measure the neighbours of a preset on a set, and go on from the best; return the first round."""
    first: dict[str, Any] = {}
    known = json.loads(store.read_text()) if store.exists() else {}
    cases, start = list(SETS[name]()), Change()
    run(cases[0], quality, ())  # what is loaded late is loaded now
    for number in range(rounds):
        points: dict[Change, tuple[float, float]] = {start: (0.0, 1.0)}
        for change in neighbours(current_plan(cases[0], quality, start), start):
            key = json.dumps([name, quality, SIDE, start, change])
            if key not in known:
                known[key] = compare(cases, quality, start, change)
                store.write_text(json.dumps(known))
            points[change] = tuple(known[key])
        print(
            f"\n{name}, {quality}, round {number + 1}, from {words(start)} ({len(cases)} pictures)"
        )
        every = list(points.values())
        first = first or {
            "set": name,
            "quality": quality,
            "pictures": len(cases),
            "tried": len(points) - 1,
            "front": [
                {"gain": gain, "time": ratio, "change": words(change)}
                for change, (gain, ratio) in sorted(points.items(), key=lambda item: item[1][1])
                if is_on_front((gain, ratio), every) or not change
            ],
        }
        for change, (gain, ratio) in sorted(points.items(), key=lambda item: item[1][1]):
            mark = "*" if is_on_front((gain, ratio), every) else " "
            print(f"{mark} {gain:+.3f} dB  x {ratio:.2f}  {words(change)}")
        best = _best(points)
        if best == start:
            break
        start = best
    return first


def _best(points: dict[Change, tuple[float, float]]) -> Change:
    """Return the point that gains most at no more time, else the quickest that loses nearly nothing."""
    better = {c: p for c, p in points.items() if p[0] > LOSS and p[1] <= 1.02}
    if better:
        return max(better, key=lambda change: better[change][0])
    quicker = {c: p for c, p in points.items() if p[0] > -LOSS}
    return min(quicker, key=lambda change: quicker[change][1])


def main() -> None:
    """Walk the front of each set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--quality", default="fast")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    found = [
        walk(name, quality, given.rounds, given.work / "measured.json")
        for quality in given.quality.split(",")
        for name in given.sets.split(",")
    ]
    if given.out is not None:
        told = provenance("", 1, 0.0)
        facts = {"date": told.date.split()[0], "symsmooth": f"{told.version}, commit {told.commit}"}
        kept = json.dumps({"facts": facts, "side": SIDE, "rows": found}, indent=1)
        (given.out / "front.json").write_text(kept + "\n")


if __name__ == "__main__":
    main()
