"""Methods side by side on one slice; and what is shown of any result as one page."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..core.image import Array
from ..core.metrics import psnr, ssim
from ..core.parallel import part_of
from ..io import ImageFile
from ..io.stacks import cut
from . import bridge, drawing
from .catalogue import BY_NAME, title_of
from .pictures import VIEW
from .settings import Settings
from .worker import Reporter


def compare(
    path: Path, folder: Path, reference: Path | None, names: Sequence[str], at: Sequence[int],
    into: Path, asked: dict[str, Any], workers: int | None, max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Put two to four methods side by side on one slice."""
    pixels, clean = _slices(folder, reference, at)
    file = ImageFile(pixels, -1 if pixels.ndim == 3 else None, None, "NPY")
    stack, span = cut(file, "none"), bridge.span_of(file)
    peak = span or 1.0
    panels: list[dict[str, Any]] = []
    doubts: dict[bridge.JobWarning, list[str]] = {}  # what is doubtful: about which methods
    unchanged: list[str] = []  # methods that know white noise only, and found none
    settings = Settings(**asked)
    reporter.progress(0.0, "finding the noise")
    model, level = bridge.noise_of_file(file)
    for number, name in enumerate(names):
        takes = BY_NAME[name].noise
        own = replace(settings, method=name, noise=settings.noise if takes else "white")
        own = replace(own, level=own.level if settings.noise == "white" else None, third="none")
        job, label = bridge.make_job(own, level, workers), title_of(own)
        first = 0.03 + 0.95 * number / len(names)
        progress = part_of(reporter.progress, first, first + 0.95 / len(names))
        start = time.perf_counter()
        job, found = bridge.find_noise(job, file, stack, ())
        made = bridge.denoise_pixels(
            job, found, pixels, stack.channel_axis, bridge.without_steps(progress, label)
        )
        seconds = time.perf_counter() - start
        np.save(into / f"result-{number}.npy", made)
        removed = drawing.removed(pixels, made)
        panels.append({
            "label": label, "seconds": seconds, "noise": bridge.brief_noise(job, found, file),
            "removed": removed, **_scores(made, clean, peak),
        })  # fmt: skip
        if not takes and not removed:
            unchanged.append(label)
            continue
        for doubt in bridge.find_doubts(job, found, file, removed):
            doubts.setdefault(doubt, []).append(label)
    ranges = drawing.ranges_of(pixels, 0)
    noise = bridge.noise_details(model, file, ranges["all"], given=False, assumed=False)
    questions = bridge.question_unchanged(unchanged, noise["level"])
    return drawing.finite({
        "panels": panels, "noisy": _scores(pixels, clean, peak), "clean": clean is not None,
        "noise": noise, "seconds": reporter.seconds,
        "warnings": bridge.warning_details(_about(doubts, len(panels)) + questions),
    })  # fmt: skip


def _about(
    doubts: Mapping[bridge.JobWarning, Sequence[str]], count: int
) -> list[bridge.JobWarning]:
    """Return each doubt once, with the methods that it is about unless that is all of them."""
    return [
        doubt
        if len(labels) == count
        else replace(doubt, message=f"{' and '.join(labels)}: {doubt.message}")
        for doubt, labels in doubts.items()
    ]


def report(
    given: dict[str, Any], folder: Path, result: Path, reference: Path | None, kind: str,
    reporter: Reporter,
) -> Path:  # fmt: skip
    """Write what is shown as one page that needs no server."""
    from .. import __version__
    from ..reports.compare import Comparison, Result, compare_page

    details, info = given["details"], given["info"]
    at = given["at"] or info["middle"]
    pixels, clean = _slices(folder, reference if kind == "compare" else None, at)
    results = [
        Result(
            panel["label"],
            drawing.take_slice(result / f"result-{number}.npy", at, info["channels"]),
            panel.get("seconds", details["seconds"]),
            panel.get("noise", details["noise"]["words"]),
        )
        for number, panel in enumerate(details["panels"])
    ]
    facts = {
        "Picture": f"{given['name']}, {info['description']}",
        "Noise": details["noise"]["words"],
        "Version": f"symsmooth {__version__}",
    }
    if at:
        names = [
            f"{each['name'].lower()} {i + 1}" for each, i in zip(info["others"], at, strict=True)
        ]
        facts["Slice"] = ", ".join(names)
    # Of a mosaic the developed picture is shown, in which noise has another level.
    level = details["panels"][0]["removed"] if info["mosaic"] else details["noise"]["level"]
    found = Comparison(
        given["name"], pixels, level, info["span"] or 1.0, results, clean, facts,
        timing="this run on this machine",
    )  # fmt: skip
    page = (
        result / f"{Path(given['name']).stem}-{'compared' if len(results) > 1 else 'denoised'}.html"
    )
    page.write_text(compare_page(found), "utf-8")
    return page


def _slices(folder: Path, reference: Path | None, at: Sequence[int]) -> tuple[Array, Array | None]:
    """Return a slice as it is and, if that is known, without noise."""
    noisy = np.load(folder / VIEW, mmap_mode="r", allow_pickle=False)
    if len(at) > noisy.ndim - 2 or any(i >= n for i, n in zip(at, noisy.shape, strict=False)):
        raise ValueError("There is no such slice.")
    clean = None
    if reference is not None:
        whole = np.load(reference / VIEW, mmap_mode="r", allow_pickle=False)
        clean = np.array(whole[tuple(at)])
    return np.array(noisy[tuple(at)]), clean


def _scores(image: Array, clean: Array | None, peak: float) -> dict[str, float | None]:
    if clean is None:
        return {}
    return {"psnr": psnr(image, clean, peak), "ssim": ssim(image, clean, peak)}
