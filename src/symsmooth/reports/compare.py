"""Several methods on one picture -> one page: divider, zoom, method noise, table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..core.image import Array
from ..core.metrics import psnr, ssim
from ..core.parallel import Progress, part_of
from ..core.plotting import MissingMatplotlib
from .page import Child, Html, Row, Section, Table, element, page
from .pictures import Panel, Range, busiest, display_range, encode, reduce, reduction, strip
from .plots import Plot, Series

_DETAIL = 512  # sides of the part that is shown in full if the whole picture cannot be
_SPECTRUM = 1024  # sides of the part whose spectrum is taken
_DRAWING = 0.6  # of the time that a page takes, for the progress callback: its pictures
_NOISE_RANGE = 3.0  # sigmas of method noise from grey to white


@dataclass(frozen=True)
class Result:
    """What a method made of the picture."""

    label: str
    image: Array  # like the noisy one
    seconds: float
    sigma: str  # the noise it was given, or found
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """All that a page shows."""

    name: str  # of the picture
    noisy: Array  # (height, width) or (height, width, channels)
    sigma: float  # noise level in the picture's units
    peak: float  # for PSNR and SSIM
    results: Sequence[Result]
    reference: Array | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    shown: Range | None = None  # what is black and what is white, if not for the page to choose
    doubts: Sequence[str] = ()
    timing: str = "this run on this machine, after a small part was done to warm up"


def compare_page(found: Comparison, progress: Progress | None = None) -> str:
    """Return the comparison as one HTML page; ``progress`` hears of each picture that is drawn."""
    shown = found.shown or display_range(
        found.noisy if found.reference is None else found.reference
    )
    drawing = part_of(progress, 0.0, _DRAWING)
    pictures, treatment = _pictures(found, shown, "The whole picture", drawing)
    if progress is not None:
        progress(_DRAWING, "numbers and plots")
    numbers = _table(found).to_html()
    facts = {
        **found.facts,
        "Brightness": str(shown),
        "Removed": f"noisy minus denoised; black and white are {_NOISE_RANGE:g}σ",
        "Pictures": treatment,
    }
    listed = [[element("dt", name), element("dd", text)] for name, text in facts.items()]
    sections = [
        Section("pictures", "Pictures", pictures),
        Section("numbers", "Numbers", numbers),
        Section("noise", "Is it noise that was removed?", _noise_plots(found)),
        Section("run", "How it was made", element("dl", listed, class_="facts")),
    ]
    foot = element(
        "p",
        "Keys on a picture: + and - zoom, arrows move, 0 shows all of it. "
        "This page is one file and asks for nothing from the network.",
    )
    return page(f"{found.name}, denoised", _lead(found), sections, foot=foot)


def _lead(found: Comparison) -> Child:
    count = len(found.results)
    headline = f"{count} ways to denoise {found.name}" if count > 1 else f"{found.name}, denoised"
    if found.reference is not None:
        scores = {r.label: psnr(r.image, found.reference, found.peak) for r in found.results}
        best = max(scores, key=scores.__getitem__)
        gain = scores[best] - psnr(found.noisy, found.reference, found.peak)
        if np.isfinite(gain):
            headline = (
                f"{best} comes closest: {gain:.1f}\N{NO-BREAK SPACE}dB above the noisy picture"
            )
    return [
        element("p", headline, class_="headline"),
        element(
            "p",
            "Drag the divider; click a picture to zoom, all move together. A good method removes noise "
            "and nothing else: in what was removed no edge or texture should be seen.",
        ),
        [element("p", f"{each[0].upper()}{each[1:]}.", class_="callout") for each in found.doubts],
    ]


def _pictures(
    found: Comparison, shown: Range, title: str, progress: Progress | None
) -> tuple[list[Child], str]:
    """Return the strip, a second one in full size if the whole is down-scaled, and what was done."""
    height, width = found.noisy.shape[:2]
    factor = reduction(height, width)
    if factor == 1:
        body, encoding = _strip(found, shown, title, (slice(None), slice(None)), 1, progress)
        return [body], f"{width}x{height}, in full size, {encoding}"
    where = busiest(found.results[0].image if found.results else found.noisy, _DETAIL)
    detail, detail_encoding = _strip(
        found, shown, "A part in full size", where, 1, part_of(progress, 0.0, 0.4), 0.4
    )
    whole, encoding = _strip(
        found, shown, f"{title}, sides divided by {factor}",
        (slice(None), slice(None)), factor, part_of(progress, 0.4, 1.0), 0.6,
    )  # fmt: skip
    y, x = where
    place = f"rows {y.start} to {y.stop - 1}, columns {x.start} to {x.stop - 1}"
    return [detail, whole], (
        f"the whole is down-scaled by {factor} ({encoding}), which hides noise; "
        f"{place} in full size ({detail_encoding})"
    )


def _strip(
    found: Comparison,
    shown: Range,
    title: str,
    where: tuple[slice, slice],
    factor: int,
    progress: Progress | None,
    share: float = 1.0,
) -> tuple[Html, str]:
    """Return pictures above, method noise below, and how they are compressed."""

    def part(pixels: Array) -> Array:
        return reduce(np.asarray(pixels[where], np.float32), factor)

    noisy = part(found.noisy)
    span = _NOISE_RANGE * found.sigma or 1.0
    shade = Range(-span, span)
    labels, pictures, notes = ["noisy"], [shown(noisy)], [_note(found, found.noisy)]
    if found.reference is not None:
        labels, notes = [*labels, "reference"], [*notes, ""]
        pictures.append(shown(part(found.reference)))
    noises = []
    for result in found.results:
        denoised = part(result.image)
        pictures.append(shown(denoised))
        noises.append(shade(noisy - denoised))
        labels.append(result.label)
        notes.append(_note(found, result.image))
    uris, noise_uris, encoding = encode(pictures, noises, int(13_000_000 * share), progress)
    panels = [Panel(*each) for each in zip(labels, uris, notes, strict=True)]
    panels = [panels[0], *panels[2:], panels[1]] if found.reference is not None else panels
    below = [
        Panel(f"{result.label}: removed", uri, f"σ {_removed(found, result):.3g}")
        for result, uri in zip(found.results, noise_uris, strict=True)
    ]
    ratio = noisy.shape[1] / noisy.shape[0]
    return strip(
        title, panels, below=below, below_title="What was removed" if below else "",
        ratio=float(np.clip(ratio, 0.4, 3.0)), large=True,
    ), encoding  # fmt: skip


def _note(found: Comparison, image: Array) -> str:
    if found.reference is None:
        return ""
    return f"{psnr(image, found.reference, found.peak):.2f} dB"


def _removed(found: Comparison, result: Result) -> float:
    return float(np.nanstd(_difference(found, result)))


def _difference(found: Comparison, result: Result) -> Array:
    apart = np.asarray(found.noisy, np.float32) - np.asarray(result.image, np.float32)
    return np.where(np.isfinite(apart), apart, np.float32(np.nan))


def _table(found: Comparison) -> Table:
    clean, peak = found.reference, found.peak
    scored = ["PSNR, dB", "SSIM"] if clean is not None else []
    more = ["chosen"] if any(result.parameters for result in found.results) else []
    rows: list[Row] = []

    def scores(image: Array) -> Row:
        return [] if clean is None else [psnr(image, clean, peak), _score(ssim(image, clean, peak))]

    if clean is not None:
        rows.append(["noisy", *scores(found.noisy), None, None, None, *([""] if more else [])])
    for result in found.results:
        chosen = [f"{name} {_plain(value)}" for name, value in result.parameters.items()]
        removed = f"{_removed(found, result):.4g}"
        row: Row = [result.label, *scores(result.image), result.seconds, result.sigma]
        rows.append([*row, removed, *([", ".join(chosen)] if more else [])])
    note = f"Time: {found.timing}."
    if clean is not None:
        note += f" PSNR and SSIM for a peak of {peak:.6g}."
    note += (
        f" Removed: standard deviation of what a method took away; the noise has {found.sigma:.4g}."
    )
    head = ["method", *scored, "time, s", "noise assumed", "removed", *more]
    return Table(found.name, head, rows, note=note)


def _score(value: float | None) -> str:
    return "too small" if value is None else f"{value:.4f}"


def _plain(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _noise_plots(found: Comparison) -> Child:
    """Return histogram and spectrum of the method noise, in units of the noise."""
    if found.sigma <= 0:
        return element("p", "There is no noise: nothing was to be removed.")
    edges = _bins(found)
    middle = (edges[1:] + edges[:-1]) / 2
    normal = np.exp(-(middle**2) / 2) / np.sqrt(2 * np.pi)
    counts, spectra = [], []
    for result in found.results:
        removed = _difference(found, result) / np.float32(found.sigma)
        density = np.histogram(removed[np.isfinite(removed)], edges, density=True)[0]
        counts.append(Series(result.label, middle.tolist(), density.tolist(), "faint"))
        frequencies, power = radial_spectrum(removed)
        spectra.append(Series(result.label, frequencies.tolist(), power.tolist(), "faint"))
    plots = [
        Plot("Histogram of what was removed", "what was removed, in σ", "density",
             [*counts, Series("noise", middle.tolist(), normal.tolist(), "dashed", 10)]),
        Plot("Spectrum of what was removed", "frequency, cycles a pixel", "power, in σ²",
             spectra, across=[(1.0, "white noise")]),
    ]  # fmt: skip
    try:
        drawn = [plot.to_figure() for plot in plots]
    except MissingMatplotlib as error:
        return element("p", f"No plots here: {error}.")
    return [
        element(
            "p",
            "Histogram: noise is a bell of width σ; a narrower curve means that noise was left, heavy "
            "tails that structure was taken. Spectrum: white noise has the same power at all "
            "frequencies; a dip at low ones is noise that a method could not tell from the picture.",
        ),
        element("div", drawn, class_="plots"),
    ]


def _bins(found: Comparison) -> Array:
    """Return edges from -4 to 4 sigma; each bin holds as many whole numbers if pixels are such."""
    step = 0.1 * found.sigma
    shift = 0.5 * step
    if np.issubdtype(found.noisy.dtype, np.integer):
        step, shift = max(round(step), 1), 0.5
    count = int(np.clip(4.0 * found.sigma / step, 2, 200))
    return (np.arange(-count, count + 2) * step - shift) / found.sigma


def radial_spectrum(noise: Array) -> tuple[Array, Array]:
    """Return frequencies up to 1/2 cycle a pixel and the mean power there (1 for unit white noise)."""
    middle = tuple(
        slice(max(n - _SPECTRUM, 0) // 2, max(n - _SPECTRUM, 0) // 2 + min(n, _SPECTRUM))
        for n in noise.shape[:2]
    )
    part = np.nan_to_num(noise[middle])
    part = part[..., np.newaxis] if part.ndim == 2 else part
    height, width = part.shape[:2]
    power = (np.abs(np.fft.rfft2(part, axes=(0, 1))) ** 2).mean(axis=-1) / (height * width)
    radius = np.hypot(np.fft.fftfreq(height)[:, np.newaxis], np.fft.rfftfreq(width))
    bins = min(32, max(min(height, width) // 4, 1))
    place = np.minimum((radius * 2 * bins).astype(int), bins)
    place[0, 0] = bins  # the mean is no noise
    total = np.bincount(place.ravel(), power.ravel(), bins + 1)[:bins]
    number = np.bincount(place.ravel(), minlength=bins + 1)[:bins]
    known = number > 0
    return (np.arange(bins) + 0.5)[known] / (2 * bins), total[known] / number[known]
