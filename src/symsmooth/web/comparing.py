"""Methods side by side on one slice; and what is shown of any result as one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..core.image import Array
from ..core.metrics import psnr, ssim
from ..core.parallel import Progress, part_of
from ..noise import resolve
from . import arrays, bridge, drawing
from .catalogue import BY_NAME
from .sessions import VIEW
from .settings import Settings
from .worker import Reporter

_FIRST, _SHARE = 0.03, 0.95  # of the progress: where methods begin, and what they take


def compare(
    folder: Path, reference: Path | None, names: Sequence[str], at: Sequence[int], into: Path,
    asked: dict[str, Any], workers: int | None, max_bytes: int, reporter: Reporter,
) -> dict[str, Any]:  # fmt: skip
    """Put two to four methods side by side on one slice."""
    pixels, clean = _slices(folder, reference, at)
    axis = -1 if pixels.ndim == 3 else None
    settings, span = Settings(**asked), bridge.value_range(pixels)
    peak = span or 1.0
    panels: list[dict[str, Any]] = []
    doubts: dict[bridge.JobWarning, list[str]] = {}  # what is doubtful: about which methods
    unchanged: list[str] = []  # methods that know white noise only, and found none
    reporter.progress(0.0, "finding the noise")
    estimator = bridge.estimator_of(pixels, axis)
    model = resolve(estimator)
    for number, name in enumerate(names):
        takes = BY_NAME[name].noise
        own = replace(settings, method=name, noise=settings.noise if takes else "white")
        own = replace(own, level=own.level if settings.noise == "white" else None, third="none")
        job = replace(bridge.make_job(own, estimator.sigma, workers), channel_axis=axis)
        label, first = own.title, _FIRST + _SHARE * number / len(names)
        progress = part_of(_naming(label, reporter), first, first + _SHARE / len(names))
        made = bridge.run_trial(label, job, [pixels], 0, estimator, progress)
        np.save(into / f"result-{number}.npy", made.image)
        removed = drawing.removed(pixels, made.image)
        panels.append({
            "label": label, "seconds": made.seconds, "noise": made.sigma, "removed": removed,
            **_scores(made.image, clean, peak),
        })  # fmt: skip
        if not takes and not removed:
            unchanged.append(label)
            continue
        for doubt in bridge.find_doubts(job, estimator, pixels, removed):
            doubts.setdefault(doubt, []).append(label)
    words = bridge.words_of(model, pixels, span)
    questions = bridge.question_unchanged(unchanged, words.level)
    shown = drawing.ranges_of(pixels, 0)["all"]
    return drawing.finite({
        "panels": panels, "noisy": _scores(pixels, clean, peak), "clean": clean is not None,
        "noise": bridge.noise_details(model, words, span, shown), "seconds": reporter.seconds,
        "warnings": bridge.warning_details(_about(doubts, len(panels)) + questions),
    })  # fmt: skip


def _naming(label: str, reporter: Reporter) -> Progress:
    """Return a callback that names the method, but not its step."""
    return lambda fraction, _: reporter.progress(fraction, label)


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
    from ..reports.compare import Comparison, Result, compare_page

    details, info = given["details"], given["info"]
    at = given["at"] or info["middle"]
    pixels, clean = _slices(folder, reference if kind == "compare" else None, at)
    results = [
        Result(
            panel["label"],
            arrays.take_slice(result / f"result-{number}.npy", at, info["channels"]),
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
        axes = zip(info["others"], at, strict=True)
        facts["Slice"] = ", ".join(f"{each['name'].lower()} {i + 1}" for each, i in axes)
    # Of a mosaic the developed picture is shown, in which noise has another level.
    level = details["panels"][0]["removed"] if info["mosaic"] else details["noise"]["level"]
    found = Comparison(
        given["name"], pixels, level, info["span"] or 1.0, results, clean, facts,
        timing="this run on this machine",
    )  # fmt: skip
    what = "compared" if len(results) > 1 else "denoised"
    page = result / f"{Path(given['name']).stem}-{what}.html"
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
