"""``symsmooth compare`` and ``symsmooth explain``: one file in, one page out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import work
from .noise_report import describe as tell_of_noise
from .options import UsageError, own_options, parse_options

if TYPE_CHECKING:
    from ..files import ImageFile

FAVOURITES = ("denoise", "gsf", "bm3d", "nlm")  # compared if nothing is asked for
_MOST_METHODS = 12
_WARM_UP = 96  # sides of what a method sees before its time is taken


@dataclass(frozen=True)
class Asked:
    """A method and its options, as named on the command line."""

    label: str
    method: str
    function: Callable[..., Any]
    options: Mapping[str, object]


def parse_methods(
    text: str, find: Callable[[str], tuple[str, Callable[..., Any]]], known: Mapping[str, Any]
) -> list[Asked]:
    """Return the methods of a list such as ``denoise:fast,nlm:sinkhorn-iters=1,bm3d``."""
    names = text.split(",") if text else [name for name in FAVOURITES if name in known]
    asked = [_parse_method(name.strip(), find) for name in names or list(known)]
    labels = [each.label for each in asked]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise UsageError(f"--methods names {twice} twice")
    if len(asked) > _MOST_METHODS:
        raise UsageError(f"--methods names {len(asked)} methods; use at most {_MOST_METHODS}")
    return asked


def _parse_method(text: str, find: Callable[[str], tuple[str, Callable[..., Any]]]) -> Asked:
    name, *rest = text.split(":")
    if not name:
        raise UsageError("--methods has an empty name; give names such as denoise:fast,nlm")
    method, function = find(name)
    given: dict[str, str] = {}
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals:
            if "--quality" not in own_options(function):
                raise UsageError(f"method {method} has no quality, got {text}; use {method}")
            key, value = "quality", part
        given["--" + key.replace("_", "-")] = value
    return Asked(text, method, function, parse_options(method, function, given))


def check_target(out: Path, overwrite: bool) -> None:
    """Refuse what cannot be written, before any work."""
    if out.is_dir():
        raise UsageError(f"--out {out} is a folder; give a file such as {out / 'report.html'}")
    if out.exists() and not overwrite:
        raise UsageError(f"{out} exists; give --overwrite or another --out")
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {out.parent}")


def open_picture(path: Path, channel_axis: work.ChannelAxis, piece: int | None) -> tuple[Any, str]:
    """Return one picture, channels last, and which part of the file it is."""
    from ..files import FileError
    from ..files.stacks import cut

    image: ImageFile = work.open_file(path, channel_axis)[0]
    stack = cut(image, "none")
    number = len(stack) // 2 if piece is None else piece
    if not 0 <= number < len(stack):
        raise FileError(f"{path}: has no slice {number}; it has {len(stack)}, counted from 0")
    import numpy as np

    pixels = image.pixels[stack.pieces[number]]
    if stack.channel_axis is not None:
        pixels = np.moveaxis(pixels, stack.channel_axis, -1)
        pixels = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    if pixels.dtype == bool or not np.isfinite(pixels).any():
        raise FileError(
            f"{path}: has no usable pixel: all are masked, not finite or just true and false"
        )
    told = f", slice {number} of {len(stack)}" if len(stack) > 1 else ""
    return pixels, told


def describe(path: Path, pixels: Any, told: str) -> str:
    """Return size and kind of a picture in words."""
    height, width = pixels.shape[:2]
    channels = f", {pixels.shape[2]} channels" if pixels.ndim == 3 else ""
    return f"{path.name}, {width}x{height} {pixels.dtype}{channels}{told}"


def compare(
    source: Path,
    reference: Path | None,
    asked: list[Asked],
    *,
    sigma: float | None,
    channel_axis: work.ChannelAxis,
    piece: int | None,
    workers: int | None,
    seed: int,
    progress: work.Progress | None,
    strength: float = 1.0,
    warn: Callable[[str], object] = str,
) -> str:
    """Run the methods on a picture, each as `symsmooth denoise` runs it, and return the page.

    ``strength`` multiplies the level that a method is told of; one that has such an option has its own.
    """
    import symsmooth

    from ..files import FileError, ImageFile
    from ..files.stacks import cut
    from ..noise import NoiseModel, White
    from ..views.compare import Comparison, Result, compare_page

    pixels, told = open_picture(source, channel_axis, piece)
    clean = None
    if reference is not None:
        clean, _ = open_picture(reference, channel_axis, piece)
        if clean.shape != pixels.shape:
            raise FileError(f"{reference}: has shape {clean.shape}, {source} has {pixels.shape}")
    axis = -1 if pixels.ndim == 3 else None
    jobs = [
        work.Job(each.method, each.function, each.options, sigma, axis, workers, seed)
        for each in asked
    ]
    _ask(source, pixels, sigma, warn)
    file = ImageFile(pixels, axis, None, "NPY")
    stack, span = cut(file, "none"), work.range_of(file)
    noise: NoiseModel = White(sigma or 0.0)
    if sigma is None:
        noise = work.estimated_noise(file, stack)
    words = tell_of_noise(noise, pixels, span, given=sigma is not None, assumed=False)
    results = []
    for each, job in zip(asked, jobs, strict=True):
        is_auto = job.takes_noise and each.options.get("noise", "auto") == "auto"
        model = noise if is_auto else work.find_noise(job, file, stack)
        used = work.with_noise(job, model)
        if strength != 1.0 and "strength" not in each.options and used.sigma is not None:
            used = replace(used, sigma=strength * used.sigma)
        heard = None if progress is None else work.within(f"{each.label}: ", progress)
        with suppress(ValueError):  # so that loading does not count
            work.apply(used, pixels[:_WARM_UP, :_WARM_UP], axis, used.sigma, heard)
        start = time.perf_counter()
        image, learned = work.apply(used, pixels, axis, used.sigma, heard)
        seconds = time.perf_counter() - start
        assumed = model if used.sigma is None else White(used.sigma)
        brief = "" if assumed is None else work.tell_of(job, assumed, pixels, span).brief
        chosen = {name: value for name, value in each.options.items() if name != "noise"}
        results.append(Result(each.label, image, seconds, brief, {**chosen, **learned}))
    facts = {
        "Picture": describe(source, pixels, told),
        "Noise": words.words,
        "Version": f"symsmooth {symsmooth.__version__}",
        "Seed": str(seed),
    }
    if reference is not None:
        facts["Reference"] = reference.name
    peak = peak_of(pixels if clean is None else clean)
    found = Comparison(source.name, pixels, words.level, peak, results, clean, facts)
    return compare_page(found) if progress is None else compare_page(found, progress)


def _ask(source: Path, pixels: Any, sigma: float | None, warn: Callable[[str], object]) -> None:
    """Ask about a given level that seems to be in other units."""
    from ..noise.level import question_units

    question = None if sigma is None else question_units(pixels, sigma)
    if question:
        warn(f"{source}: {question}")


def peak_of(pixels: Any) -> float:
    """Return how far apart pixels can be."""
    from ..files import ImageFile

    return work.range_of(ImageFile(pixels, None, None, "NPY")) or 1.0


def explain(
    source: Path,
    *,
    sigma: float | None,
    channel_axis: work.ChannelAxis,
    piece: int | None,
    side: int,
    workers: int | None,
    seed: int,
    progress: work.Progress | None,
    warn: Callable[[str], object] = str,
) -> str:
    """Learn a mixture from a picture and return the page about it."""
    import symsmooth

    from ..views.explain import learn
    from ..views.explain_page import explain_page

    pixels, told = open_picture(source, channel_axis, piece)
    axis = -1 if pixels.ndim == 3 else None
    level = float(symsmooth.estimate_sigma(pixels, channel_axis=axis)) if sigma is None else sigma
    _ask(source, pixels, sigma, warn)
    learned = learn(pixels, level, side=side, rng=seed, workers=workers, progress=progress)
    facts = {
        "Picture": describe(source, pixels, told),
        "Noise": f"sigma {level:.4g} ({'estimated' if sigma is None else 'given'})",
        "Version": f"symsmooth {symsmooth.__version__}",
        "Seed": str(seed),
    }
    return explain_page(source.name, learned, facts)


def save(out: Path, text: str) -> None:
    """Write the page; it appears whole or not at all."""
    from ..files import replacing

    with replacing(out) as handle:
        handle.write(text.encode("utf-8"))
