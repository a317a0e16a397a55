"""Files that are large: box by box from file to file, in this process or on a dask cluster.

A box is denoised with a halo and cross-faded with its neighbours (see ``blocks``); whole boxes are
written, in the order of the image.  The target has a hidden name and a log until it is whole.  Workers of a
cluster read the source and write the target themselves.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from .. import __version__
from ..core.blocks import Box, Grid, Index, block_side, cut_along_chunks, mosaic, windows
from ..core.parallel import Progress, part_of
from ..dask import BlockTask, GlobalStats
from ..io import FileError, ImageFile, check_writable, format_of
from ..io.base import OpenFile
from ..io.images import Stack, cut, rounded, working_dtype
from ..io.regions import Source, Target, create_target, source_of, target_chunks
from ..noise.saved import to_json
from .job import (
    BoxOptions,
    Denoised,
    DenoiseJob,
    Outcome,
    dtype_warnings,
    no_progress,
    rounding_warning,
)
from .messages import JobWarning, NoiseDescription, UsageError, find_warnings, value_range
from .stack import describe_noise

_LARGE = 2**28  # bytes of pixels from which an image is taken box by box
# Fractions at which things begin, for the progress callback: boxes, and what is left after them.
_SURVEYED, _FINISHING = 0.02, 0.98
_PATIENCE = 20  # seconds for the scheduler to answer, and for a first worker to be there


@dataclass(frozen=True)
class BoxPlan:
    """All that a box must know; may be sent to another process."""

    source: Source
    task: BlockTask
    stats: GlobalStats
    grid: Grid
    plain: tuple[int, ...]  # axes along which every place is a picture of its own
    colours: slice  # of the channel axis: all but alpha
    dtype: np.dtype[Any]  # of what is written
    key: str

    def outer(self, index: Index, progress: Progress | None = None) -> Any:
        """Return a denoised box with its halo; alpha stays as it is."""
        pixels = self.source.read(self.grid.outer(index)).astype(self._working, copy=False)
        pixels = self.grid.prepare(pixels)
        piece = picture_in(pixels, self.plain, self.task.channel_axis, self.colours)
        start = [part.start for part in self.grid.inner(index)]
        piece[...] = self.task.apply(
            self.stats, np.ascontiguousarray(piece), start, progress=progress
        )
        return pixels

    def write(self, target: Target, index: Index, parts: list[Any]) -> None:
        """Blend a box and write it."""
        pixels = self.grid.blend(index, parts, self._working)
        target.write(self.grid.inner(index), rounded(pixels, self.dtype))

    @property
    def _working(self) -> np.dtype[Any]:
        return working_dtype(self.source.dtype, self.dtype.name)


def picture_in(pixels: Any, plain: tuple[int, ...], channels: int | None, colours: slice) -> Any:
    """Return a view of a box: one picture, its channels without alpha."""
    view = pixels[tuple(0 if axis in plain else slice(None) for axis in range(pixels.ndim))]
    return view if channels is None else view[(slice(None),) * channels + (colours,)]


def large_source(file: OpenFile, target: Path, scheduler: str) -> Source | None:
    """Return a file to be taken box by box; None if it is small, or cannot be read so."""
    if scheduler and format_of(target) != "ZARR":
        raise UsageError(f"a cluster writes Zarr; -o must end in .zarr, got {target}")
    try:
        source = source_of(file)
    except FileError:
        if scheduler:
            raise
        return None  # read whole, or refused there
    return source if scheduler or source.nbytes > _LARGE else None


def denoise_boxes(
    source: Source, target: Path, job: DenoiseJob, progress: Progress | None, how: BoxOptions
) -> Outcome:
    """Survey the whole once, then denoise box by box; memory does not grow with the image's height."""
    if job.noise_region is not None:
        raise UsageError(
            "a noise region is for images that fit in memory; measure it on a part cut from this one and "
            "give its level",
            "region",
            "sigma",
        )
    image = source.like
    if job.channel_axis != "auto":
        image = image.with_channels(job.channel_axis)
    stack = cut(image, job.third)
    if source.has_alpha and job.dtype not in ("", source.dtype.name):
        raise UsageError(
            "the file has opacity, which keeps its dtype; leave the dtype out", "dtype"
        )
    like = image.written_like(job.dtype)
    target.parent.mkdir(parents=True, exist_ok=True)
    check_writable(target, like)
    report = progress or no_progress
    report(0.0, "survey")
    with connected(how.scheduler) as client:
        plan = _plan(source, target, like, stack, job, bool(how.scheduler))
        found, warnings = _describe_noise(plan, job, target)
        job.on_noise(plan.stats.noise)
        warnings += dtype_warnings(image, job.dtype, plan.stats.sample.original)
        words = "" if found is None else f", {found.words}"
        with create_target(
            target.resolve(), source, like=like, resume=how.resume, keep=True, key=plan.key
        ) as result:
            boxes = plan.grid.indices
            todo = [index for index in boxes if not result.is_done(plan.grid.inner(index))]
            with _reporting_kept_boxes(result, len(boxes), how):
                callback = part_of(progress, _SURVEYED, _FINISHING)
                if client is None:
                    _run_here(plan, result, todo, callback)
                else:
                    _run_on_cluster(client, plan, result, todo, callback)
                report(_FINISHING, "finishing")
                result.finish(f"symsmooth {__version__}: {job.method.name}{words}, in boxes")
    report(1.0, "done")
    tone = getattr(plan.stats.sample.decided, "tone", 0.0)
    learned = {**({"tone": tone} if tone else {}), "boxes": len(boxes)}
    told = Denoised(None, noise=plan.stats.noise, words=found, learned=learned, warnings=warnings)
    return Outcome(source.path, target, image, stack, job, told)


def _describe_noise(
    plan: BoxPlan, job: DenoiseJob, target: Path
) -> tuple[NoiseDescription | None, list[JobWarning]]:
    """Say what noise was found in the windows that were looked at, and what is doubtful."""
    noise, pixels = plan.stats.noise, plan.stats.sample.original
    if noise is None:
        return None, []
    span = value_range(pixels)
    found = describe_noise(job, noise, pixels, span)
    warnings = find_warnings(found, pixels, span, found.level, job.sigma)
    return found, warnings + rounding_warning(
        pixels, pixels.shape[-1], plan.dtype, found.level, target
    )


@contextmanager
def _reporting_kept_boxes(target: Target, n_boxes: int, how: BoxOptions) -> Iterator[None]:
    """Say, if it ends early, that it can be gone on with; before the first box nothing is kept.

    Unless workers of a cluster, which stop later, may still be writing one.
    """
    try:
        yield
    except BaseException:
        done = target.n_done
        if done == 0 and not how.scheduler:
            target.abandon()
            raise
        text = f"{done} of {n_boxes} boxes are done and kept; {{resume}} continues from there"
        how.notify(JobWarning("kept", text))
        raise


def _plan(
    source: Source, target: Path, like: ImageFile, stack: Stack, job: DenoiseJob, remote: bool
) -> BoxPlan:
    """Say how the image is cut into boxes and survey it."""
    whole = [isinstance(part, slice) for part in stack.pieces[0]]
    plain = tuple(axis for axis, kept in enumerate(whole) if not kept)
    joint = () if like.channel_axis is None else (like.channel_axis % len(whole),)
    spatial = [axis for axis, kept in enumerate(whole) if kept and axis not in joint]
    chunks = list(target_chunks(target, source, like))
    if target.suffix.lower() != ".zarr":  # boxes may share strips and tiles
        longest = min(512, block_side(len(spatial)))
        chunks = [n if n <= longest else 1 for n in chunks]
    elif remote and any(chunks[axis] > 1 for axis in plain):
        raise UsageError(f"{source.path}: its chunks span several pictures; store each in its own")
    options = dict(job.options)
    if "workers" in job.method.accepts:
        options["workers"] = job.workers or (1 if remote else None)
    halo = job.method.halo(len(spatial), **job.options)
    grid = cut_along_chunks(source.shape, chunks, spatial, halo, joint)
    task = BlockTask(job.method, options, stack.channel_axis, job.seed, job.sigma)
    colours = slice(None, -1) if source.has_alpha else slice(None)
    stats = _survey(source, task, spatial, plain, colours)
    known = dict(job.options)
    if job.has_model:  # all of its numbers, which its repr leaves out
        known["noise"] = to_json(known["noise"])  # type: ignore[arg-type]
    key = {
        "version": __version__, "method": job.method.name,
        "options": repr(sorted(known.items())),
        "sigma": job.sigma, "noise": str(stats.noise), "seed": job.seed, "input": _state(source.path),
        "grid": [grid.edges, grid.halo], "axes": [plain, joint],
    }  # fmt: skip
    return BoxPlan(source, task, stats, grid, plain, colours, like.pixels.dtype, json.dumps(key))


def _state(path: Path) -> list[object]:
    """Return what changes when a file, or anything in a Zarr, is written again."""
    files = (
        [path] if path.is_file() else [Path(a) / f for a, _, names in os.walk(path) for f in names]
    )
    stats = [file.stat() for file in files]
    newest = max((stat.st_mtime_ns for stat in stats), default=0)
    return [str(path), len(files), sum(stat.st_size for stat in stats), newest]


def _survey(
    source: Source, task: BlockTask, spatial: list[int], plain: tuple[int, ...], colours: slice
) -> GlobalStats:
    """Survey windows of the file, sixteen at most."""

    def read(box: Box) -> Any:
        return picture_in(source.read(box), plain, task.channel_axis, colours)

    parts = [read(box) for box in windows(source.shape, spatial, plain)]
    plane = [axis for axis in range(parts[0].ndim) if axis != task.channel_axis][-2:]
    return task.survey(mosaic(parts, (plane[0], plane[1])))


def _run_here(plan: BoxPlan, target: Target, todo: list[Index], progress: Progress | None) -> None:
    """Do the boxes in this process, in order; outer boxes are kept until no box needs them."""
    neighbours = plan.grid.neighbours
    uses: dict[Index, int] = {}
    for index in todo:
        for other in neighbours(index):
            uses[other] = uses.get(other, 0) + 1
    total, begun, kept = len(uses), 0, {}
    for index in todo:
        for other in neighbours(index):
            if other not in kept:
                start, end = begun / total, (begun + 1) / total
                begun += 1
                report = part_of(progress, start, end, f"box {begun} of {total}: ")
                kept[other] = plan.outer(other, report)
        plan.write(target, index, [kept[other] for other in neighbours(index)])
        for other in neighbours(index):
            uses[other] -= 1
            if not uses[other]:
                del kept[other]


def _run_on_cluster(
    client: Any, plan: BoxPlan, target: Target, todo: list[Index], progress: Progress | None
) -> None:
    """Do the boxes.  What a lost worker had is done again, by another, with the same bits.

    BoxPlan and target are the result of a task, which can be done again too.  They travel as bytes:
    workers open the files, the scheduler need not see them.
    """
    from distributed import as_completed

    shared = client.submit(pickle.loads, pickle.dumps((plan, target)), pure=False)
    outers: dict[Index, Any] = {}
    writes = []
    for number, index in enumerate(todo):
        around = plan.grid.neighbours(index)
        own = {"pure": False, "priority": -number}
        for other in around:
            if other not in outers:
                outers[other] = client.submit(_outer, shared, other, **own)
        parts = [outers[other] for other in around]
        writes.append(client.submit(_write, shared, index, parts, **own))
    outers.clear()
    parts = []  # the cluster forgets an outer box once all that need it are written
    finished = as_completed(writes, loop=client.loop)
    try:
        for done, future in enumerate(finished, start=1):
            future.result()
            if progress is not None:
                progress(done / len(writes), "boxes")
    except BaseException:
        client.cancel(writes)
        raise


def _outer(shared: tuple[BoxPlan, Target], index: Index) -> Any:
    return shared[0].outer(index)


def _write(shared: tuple[BoxPlan, Target], index: Index, parts: list[Any]) -> None:
    plan, target = shared
    plan.write(target, index, parts)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give the client of a cluster that is ready, None without an address; say in a line what is wrong."""
    if not address:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(
            "a cluster needs dask: pip install 'symsmooth[dask]'", "scheduler"
        ) from error
    try:
        place = urlsplit(address)
        socket.create_connection((place.hostname or "", place.port or 0), _PATIENCE).close()
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"no dask scheduler answers at {address}; start one with `dask scheduler` and give "
            "its address as tcp://HOST:PORT"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            raise UsageError(
                f"the cluster at {address} has no worker; start some with `dask worker {address}`"
            ) from error
        yield client
