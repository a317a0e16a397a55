"""Files that are large: box by box from file to file, in this process or on a dask cluster.

A box is denoised with a halo and cross-faded with its neighbours (see ``blocks``); whole boxes are
written, in the order of the image.  The target has a hidden name and a log until it is whole.
"""

from __future__ import annotations

import inspect
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import UsageError
from .work import Job, Progress, Report

if TYPE_CHECKING:
    from ..blocks import Grid, Index, Recipe
    from ..files import ImageFile
    from ..files.regions import Source
    from ..files.stacks import Stack

_LARGE = 2**28  # bytes of pixels from which an image is taken box by box
_IN_PIECES = ("TIFF", "ZARR", "NPY")


@dataclass(frozen=True)
class How:
    """How the boxes are done."""

    resume: bool
    scheduler: str


@dataclass(frozen=True)
class Plan:
    """All that a task must know; may be sent to another process."""

    source: Source
    recipe: Recipe
    grid: Grid
    plain: tuple[int, ...]  # axes along which every place is a picture of its own
    colours: slice  # of the channel axis: all but alpha
    key: str

    def outer(self, index: Index, progress: Progress | None = None) -> Any:
        """Return a denoised box with its halo; alpha stays as it is."""
        import numpy as np

        box = self.grid.outer(index)
        pixels = self.source.read(box)
        place = tuple(0 if axis in self.plain else slice(None) for axis in range(pixels.ndim))
        piece = pixels[place]
        axis = self.recipe.channel_axis
        colours = (slice(None),) * (0 if axis is None else axis) + (self.colours,)
        start = [part.start for part in self.grid.inner(index)]
        found = self.recipe.apply(np.ascontiguousarray(piece[colours]), start, progress=progress)
        piece[colours] = found
        return pixels

    def write(self, target: Any, index: Index, parts: list[Any]) -> None:
        """Blend a box and write it, unless the target has become another run's."""
        from ..files._targets import lines_of

        header = lines_of(target._log)[:1]
        if not header or header[0].get("key") != self.key:
            raise RuntimeError("the output was taken over by another run")
        target.write(self.grid.inner(index), self.grid.blend(index, parts))


@contextmanager
def opened(path: Path, target: Path, scheduler: str) -> Iterator[Source | None]:
    """Open a file to be taken box by box; None if it is small, or cannot be read or written so."""
    from ..files import FileError, format_of
    from ..files.regions import open_source

    if scheduler and format_of(target) != "ZARR":
        raise UsageError(f"a cluster writes Zarr; -o must end in .zarr, got {target}")
    try:
        source = open_source(path.resolve()) if format_of(target) in _IN_PIECES else None
    except FileError:
        if scheduler:
            raise
        source = None
    if source is not None and not scheduler and source.nbytes <= _LARGE:
        source.close()
        source = None
    try:
        yield source
    finally:
        if source is not None:
            source.close()


def denoise(source: Source, target: Path, job: Job, progress: Progress | None, how: How) -> Report:
    """Estimate the noise once, then denoise box by box; memory does not grow with the image's height."""
    from .. import __version__
    from ..files import check_writable
    from ..files.regions import create_target

    begun = time.perf_counter()
    image, stack = _like(source, job)
    target.parent.mkdir(parents=True, exist_ok=True)
    check_writable(target, image)
    plan = _plan(source, target, image, stack, job)
    if how.scheduler and any(_chunks(source, True)[axis] > 1 for axis in plan.plain):
        raise UsageError(f"{source.path}: its chunks span several pictures; store each in its own")
    with create_target(target.resolve(), source, resume=how.resume, key=plan.key) as result:
        todo = [i for i in plan.grid.indices if not result.is_done(plan.grid.inner(i))]
        run = _on_cluster(how.scheduler) if how.scheduler else _here
        run(plan, result, todo, progress)
        level = plan.recipe.level
        result.finish(f"symsmooth {__version__}: {job.method}, noise {level}, in boxes")
    sigma = level if isinstance(level, float) else getattr(level, "sigma", None)
    learned = {} if sigma is not None else {"noise": str(level)}
    seconds = time.perf_counter() - begun
    parameters = {**job.options, **learned, "boxes": len(plan.grid.indices)}
    return Report(source.path, target, image, stack, 1, job, sigma, parameters, seconds)


def _like(source: Source, job: Job) -> tuple[ImageFile, Stack]:
    """Return what the file would be if it were read (pixels take no memory), and how it is cut."""
    import numpy as np

    from ..files import ImageFile
    from ..files.stacks import cut

    pixels = np.broadcast_to(np.zeros((), source.dtype), source.shape)
    image = ImageFile(pixels, source.channel_axis, None, source.format, source.details, source.axes)
    if job.channel_axis != "auto":
        image = image.with_channels(job.channel_axis)
    return image, cut(image, job.third)


def _plan(source: Source, target: Path, image: ImageFile, stack: Stack, job: Job) -> Plan:
    """Say how the image is cut into boxes and find its noise."""
    from ..blocks import Recipe, make_grid

    whole = [isinstance(part, slice) for part in stack.pieces[0]]
    plain = tuple(axis for axis, kept in enumerate(whole) if not kept)
    channels = image.channel_axis
    joint = () if channels is None else (channels % len(whole),)
    spatial = [axis for axis, kept in enumerate(whole) if kept and axis not in joint]
    aligned = target.suffix.lower() == ".zarr"
    chunks = [n if aligned or n <= 512 else 1 for n in _chunks(source, aligned)]
    options = dict(job.options)
    if "workers" in inspect.signature(job.function).parameters:
        options["workers"] = job.workers
    recipe = Recipe(job.function, options, stack.channel_axis, job.seed, job.sigma)
    grid = make_grid(source.shape, chunks, spatial, joint)
    colours = slice(None, -1) if _has_alpha(source) else slice(None)
    plan = Plan(source, recipe, grid, plain, colours, "")
    if job.sigma is None:
        level = _noise(plan, spatial) if job.method != "identity" else 0.0
        plan = replace(plan, recipe=replace(recipe, level=level))
    told = {
        "version": _version(), "method": job.method, "options": repr(sorted(job.options.items())),
        "noise": str(plan.recipe.level), "seed": job.seed, "input": _state(source.path),
        "grid": [grid.edges, grid.halo], "axes": [plain, joint],
    }  # fmt: skip
    return replace(plan, key=json.dumps(told))


def _chunks(source: Source, aligned: bool) -> list[int]:
    """Return the chunks the target will have."""
    if not aligned or source.format == "ZARR":
        shards = getattr(source._pixels, "shards", None)
        return list(shards or source.chunks)
    spatial = sum(letter in "ZYX" for letter in source.axes) or 1
    side = max(int(2**20 ** (1 / spatial)), 1)  # as files make a new Zarr
    letters = zip(source.shape, source.axes, strict=True)
    return [
        min(n, side) if letter in "ZYX" else n if letter in "CS" else 1 for n, letter in letters
    ]


def _version() -> str:
    from .. import __version__

    return __version__


def _state(path: Path) -> list[object]:
    """Return what changes when a file, or anything in a Zarr, is written again."""
    files = (
        [path] if path.is_file() else [Path(a) / f for a, _, names in os.walk(path) for f in names]
    )
    stats = [file.stat() for file in files]
    newest = max((stat.st_mtime_ns for stat in stats), default=0)
    return [str(path), len(files), sum(stat.st_size for stat in stats), newest]


def _has_alpha(source: Source) -> bool:
    """Whether the last sample of a TIFF is opacity."""
    series = source.details.get("series")
    if series is None or "S" not in source.axes:
        return False
    extra = tuple(int(kind) for kind in series.keyframe.extrasamples)
    return len(extra) == 1 and extra[0] in (1, 2)


def _noise(plan: Plan, spatial: list[int]) -> Any:
    """Estimate the noise in windows of the file, sixteen at most."""
    from ..blocks import mosaic, windows

    source, axis = plan.source, plan.recipe.channel_axis
    found = windows(source.shape, [*plan.plain, *spatial])
    parts = []
    for box in found:
        pixels = source.read(box)
        place = tuple(0 if a in plan.plain else slice(None) for a in range(pixels.ndim))
        colours = (slice(None),) * (0 if axis is None else axis) + (plan.colours,)
        parts.append(pixels[place][colours])
    plane = [i for i in range(parts[0].ndim) if i != axis][-2:]
    return plan.recipe.estimate(mosaic(parts, plane, axis))


def _here(plan: Plan, target: Any, todo: list[Index], progress: Progress | None) -> None:
    """Do the boxes in this process, in order; outer boxes are kept until no box needs them."""
    kept: dict[Index, Any] = {}
    needed: dict[Index, int] = {}
    for index in todo:
        for other in plan.grid.neighbours(index):
            needed[other] = needed.get(other, 0) + 1
    total = len(needed)
    for index in todo:
        for other in plan.grid.neighbours(index):
            if other not in kept and needed[other]:
                report = None
                if progress is not None:
                    report = _within(
                        f"box {total - len(needed) + len(kept) + 1} of {total}: ", progress
                    )
                kept[other] = plan.outer(other, report)
        around = plan.grid.neighbours(index)
        plan.write(target, index, [kept[other] for other in around])
        for other in around:
            needed[other] -= 1
            if not needed[other]:
                del kept[other], needed[other]


def _within(part: str, progress: Progress) -> Progress:
    """Return a callback that says of what a stage is a part."""
    return lambda stage, done, total: progress(part + stage, done, total)


def _on_cluster(address: str) -> Callable[[Plan, Any, list[Index], Progress | None], None]:
    """Return what does the boxes on a cluster: its workers read the source and write the target."""

    def run(plan: Plan, target: Any, todo: list[Index], progress: Progress | None) -> None:
        try:
            from distributed import Client, as_completed
        except ImportError as error:
            raise UsageError("--scheduler needs dask: pip install 'symsmooth[dask]'") from error
        if "workers" in plan.recipe.options and plan.recipe.options["workers"] is None:
            recipe = replace(plan.recipe, options={**plan.recipe.options, "workers": 1})
            plan = replace(plan, recipe=recipe)
        with Client(address, timeout=20, set_as_default=False) as client:
            outers: dict[Index, Any] = {}
            writes = []
            for number, index in enumerate(todo):
                around = plan.grid.neighbours(index)
                for other in around:
                    if other not in outers:
                        outers[other] = client.submit(
                            plan.outer, other, pure=False, priority=-number
                        )
                parts = [outers[other] for other in around]
                writes.append(
                    client.submit(plan.write, target, index, parts, pure=False, priority=-number)
                )
            del outers, parts
            try:
                for done, future in enumerate(as_completed(writes), start=1):
                    future.result()
                    if progress is not None:
                        progress("boxes", done, len(writes))
            except BaseException:
                client.cancel(writes)
                raise

    return run
