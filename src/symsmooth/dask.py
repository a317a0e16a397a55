"""Images in blocks, for what does not fit into memory or onto one machine.

The whole is looked at once, in sixteen windows: what noise there is, its units, its contrast.  Then
every block is denoised with a halo around it as a piece of that whole, and neighbours are cross-faded,
so there are no seams.  What a block becomes depends on its pixels, its position and the seed alone: any
scheduler, in any order, gives the same bits.

A series of frames is cut in time, by the rules of one in memory, and has its bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .core.blocks import Grid, block_side, cut_along_chunks, cut_series, mosaic, windows
from .core.image import (
    Array,
    ChannelAxis,
    Picture,
    Piece,
    add_change,
    find_channel_axis,
    find_time_axis,
    library_of,
    open_image,
)
from .core.options import make_rng
from .core.signatures import described_like
from .gsfw.denoise import series_blocks
from .gsfw.series import HALO, Blocks, Change, Frame, block_edges, faded
from .methods import METHODS, Method, method_of
from .noise import Noise, resolve
from .noise.resolve import check_one_noise
from .noise.specks import without_specks


@dataclass(frozen=True)
class GlobalStats:
    """What was found out about the whole, from a sample of it."""

    noise: Noise | None  # None: none is removed
    sample: Picture


@dataclass(frozen=True)
class BlockTask:
    """What is done to every block: a method and its options."""

    method: Method
    options: Mapping[str, Any]
    channel_axis: int | None
    seed: int
    sigma: Any = None

    def survey(self, sample: Array, mask: Array | None = None) -> GlobalStats:
        """Find out what holds for the whole."""
        channels = self.options.get("channels", "auto")
        picture = open_image(sample, self.channel_axis, mask, channels)
        if not self.method.removes_noise:
            return GlobalStats(None, picture)
        kind = self.options.get("noise", "auto")
        white_only = not self.method.takes_noise
        specks: Any = (
            self.options.get("specks", "auto") if "specks" in self.method.options else "keep"
        )
        looked_at = without_specks(picture, specks)
        noise = resolve(looked_at, self.sigma, kind, white_only=white_only)
        if self.method.decide is not None:
            decided = self.method.decide(looked_at, noise, self.options)
            picture = replace(picture, decided=decided)
        return GlobalStats(noise, picture)

    def apply(
        self, stats: GlobalStats, pixels: Array, start: Sequence[int], mask: Array | None = None,
        progress: Any = None,
    ) -> Array:  # fmt: skip
        """Denoise a block that begins at ``start``; one without an observed pixel stays as it is."""
        observed: Any = np.isfinite(pixels)
        if self.channel_axis is not None:
            observed = observed.all(axis=self.channel_axis)
        if not (observed if mask is None else observed & ~mask).any():
            return np.array(pixels)
        seed = np.random.SeedSequence(self.seed, spawn_key=tuple(int(i) for i in start))
        shared = {
            "channel_axis": self.channel_axis,
            "rng": np.random.default_rng(seed),
            "mask": mask,
            "workers": 1,
            "progress": progress,
        }
        taken = {name: value for name, value in shared.items() if name in self.method.accepts}
        known = self.method.noise_arguments(stats.noise)
        piece = Piece(pixels, stats.sample) if self.method.removes_noise else pixels
        return self.method.function(piece, **(taken | dict(self.options) | known))


@dataclass(frozen=True)
class SeriesTask:
    """What is done to the blocks of a series: frames (t, y, x, channels), with those around them."""

    options: Mapping[str, Any]
    seed: int
    sigma: Any = None

    def blocks(self, number: int = 0) -> Blocks:
        """Return what denoises the block of a number with the random numbers that it has in memory."""
        options = {"workers": 1, **self.options}
        rng = make_rng(self.seed)
        rng.spawn(number)
        return series_blocks(self.sigma, rng, options.pop("workers"), **options)

    def find_groups(self, pixels: Array, mask: Array | None) -> dict[int, Any]:
        """Return which channels are denoised together in all blocks, as the first one says."""
        blocks, frames = self.blocks(), self._frames(pixels, mask)
        if frames:
            is_whole = len(cut_series(len(frames), pixels.shape[1:3]).blocks) == 1
            blocks.survey(frames, is_whole)
        return blocks.known_groups

    def apply(
        self, pixels: Array, mask: Array | None, number: int, groups: dict[int, Any]
    ) -> list[Change]:
        """Denoise a block; one without an observed pixel stays as it is."""
        frames = self._frames(pixels, mask)
        if not frames:
            nothing = np.zeros(pixels.shape[1:], np.float32)
            return [Change(frame, nothing, nothing) for frame in pixels]
        blocks = self.blocks(number)
        blocks.known_groups = dict(groups)
        return blocks(frames, number)

    def _frames(self, pixels: Array, mask: Array | None) -> list[Frame]:
        """Return frames, each with what is missing of it; none if nothing was observed."""
        missing: Any = ~np.isfinite(pixels).all(axis=-1)
        missing = missing if mask is None else missing | mask
        if missing.all():
            return []
        return list(zip(pixels, missing if missing.any() else [None] * len(pixels), strict=True))


@described_like()
def denoise_blocks(
    array: Any,
    method: str = "denoise",
    *,
    sigma: Any = None,
    channel_axis: ChannelAxis = "auto",
    mask: Any = None,
    rng: int | np.random.Generator | None = None,
    halo: int | None = None,
    time_axis: int | None = None,
    **options: Any,
) -> Any:
    """Denoise a dask array block by block, lazily, on any dask scheduler.

    Parameters
    ----------
    array : dask array
        2-D or 3-D, plus channels if ``channel_axis`` is given.
    method : str
        A name in METHODS.
    sigma : float, one for each channel, or None
        Noise level in the units of the image; None estimates the noise once for all blocks.
    mask : array of bool, dask array or None
        Spatial shape; True where a pixel is missing.
    rng : int, Generator or None
        Seed; that of a block is derived from it and the block's position.
    halo : int or None
        Pixels around a block that it is denoised with; None takes what the method and its options need,
        mostly 48, 16 in a volume.
    time_axis : int or None
        Which axis is time: then frames help each other, as for :func:`denoise`, which is the one method
        that can.
    **options
        Of the method.  ``workers`` is 1 unless given: dask runs the blocks in parallel.  Numbers of
        clusters are those of a block.

    Returns
    -------
    dask array
        Same shape, dtype and chunks.  Nothing is computed before it is.

    Notes
    -----
    Noise, contrast, units and channel transform are found once, by one task, from sixteen windows of
    256 x 256 pixels (16 x 64 x 64 voxels) on an even grid; from all pixels if there are at most 2^20.
    Chunks are joined to blocks of up to 1536 x 1536 pixels (133 x 133 x 133 voxels) without halo; larger
    ones are cut.  At a border the two results r and s give w r + (1 - w) s, w rising linearly over half
    the halo on both sides; the outer half has no weight.  So a filter whose window and patch reach less
    than half a halo gives what it gives on the whole, to rounding.  A block without an observed pixel
    stays as it is.

    A series is taken in blocks of 12 frames, the last one of up to 23, with three frames on both sides that
    are cross-faded; frames are whole.  These are the rules of ``denoise`` in memory: noise that is not
    given is found in each block, and the bits are those of ``denoise(array.compute(), time_axis=...)``.

    Examples
    --------
    >>> import dask.array, numpy as np, symsmooth
    >>> noisy = dask.array.from_array(np.random.default_rng(0).normal(100.0, 20.0, (64, 64)), chunks=32)
    >>> bool(symsmooth.denoise_blocks(noisy, "nlm").compute().std() < 8.0)
    True
    """
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; use one of {', '.join(METHODS)}")
    found = find_channel_axis(array, array.shape, channel_axis, time_axis)
    axis = None if found is None else found % array.ndim
    spatial = [i for i in range(array.ndim) if i != axis]
    _check(array, spatial, sigma, mask, halo, options)
    check_one_noise(sigma, options.get("noise", "auto"))
    generator = make_rng(rng)
    seed = int(generator.integers(2**63)) if isinstance(rng, np.random.Generator) else int(rng or 0)
    if time_axis is not None:
        if "time_axis" not in METHODS[method].accepts:
            raise ValueError(f"{method} knows of no time; use denoise, or leave out time_axis")
        if halo is not None:
            raise ValueError(f"the halo of a series is {HALO} frames; leave it out")
        time = find_time_axis(array.shape, axis, time_axis)
        return _series_graph(array, mask, SeriesTask(options, seed, sigma), axis, time)
    task = BlockTask(METHODS[method], options, axis, seed, sigma)
    joint = () if axis is None else (axis,)
    if halo is None:
        halo = METHODS[method].halo(len(spatial), **options)
    grid = cut_along_chunks(array.shape, _chunks(array, spatial), spatial, halo, joint)
    return _graph(array, mask, grid, task, spatial)


def denoise_lazily(function: Callable[..., Any], image: Any, options: dict[str, Any]) -> Any:
    """Denoise a dask array, or a DataArray of one, in blocks: what ``core.lazy.dask_aware`` calls."""
    axis = options.get("channel_axis", "auto")
    time = options.get("time_axis")
    # By its dims, if they are named.
    options["channel_axis"] = find_channel_axis(image, image.shape, axis, time)
    pixels = image if library_of(image) == "dask" else image.data
    denoised = denoise_blocks(pixels, method_of(function).name, **options)
    return denoised if pixels is image else image.copy(data=denoised)


def _check(
    array: Any, spatial: list[int], sigma: Any, mask: Any, halo: Any, options: Mapping[str, Any]
) -> None:
    """Say what cannot be done before the graph is made."""
    if len(spatial) not in (2, 3) or 0 in array.shape or np.isnan(array.size):
        raise ValueError(
            f"array must be 2-D or 3-D plus channels, of known size, got {array.shape}"
        )
    if np.ndim(sigma) > 1:
        raise ValueError(
            f"sigma must be a number or one for each channel, got shape {np.shape(sigma)}; "
            "a map of it needs the image in memory"
        )
    if halo is not None and (isinstance(halo, bool) or int(halo) != halo or halo < 1):
        raise ValueError(
            f"halo must be a whole number of at least 1, got {halo!r}; "
            "use None for what the method needs"
        )
    shape = tuple(array.shape[i] for i in spatial)
    if mask is not None and (mask.dtype != bool or tuple(mask.shape) != shape):
        raise ValueError(
            f"mask must be boolean (True = missing) of shape {shape}, got {mask.dtype} {mask.shape}"
        )
    if options.get("progress") is not None:
        raise ValueError("progress is dask's: use dask.diagnostics.ProgressBar")


def _chunks(array: Any, spatial: list[int]) -> list[int]:
    """Return the sides of the chunks; those longer than a block are cut evenly."""
    side = block_side(len(spatial))
    return [
        -(-n // -(-n // side)) if axis in spatial else n for axis, n in enumerate(array.chunksize)
    ]


def _graph(array: Any, mask: Any, grid: Grid, task: BlockTask, spatial: list[int]) -> Any:
    """Build the dask graph: outer blocks, the stats, denoised outer blocks, blended blocks."""
    import dask.array as da
    from dask.base import tokenize
    from dask.delayed import delayed
    from dask.highlevelgraph import HighLevelGraph

    parts = tuple(tuple(np.diff(edges).tolist()) for edges in grid.edges)
    outer = _with_halo(da, array.rechunk(parts), grid.halo)
    whole_mask = outer_mask = None
    if mask is not None:
        whole_mask = da.asarray(mask)
        chunks = tuple(parts[i] for i in spatial)
        outer_mask = _with_halo(da, whole_mask.rechunk(chunks), [grid.halo[i] for i in spatial])
    boxes = windows(array.shape, spatial)
    masks = None
    if whole_mask is not None:
        masks = [whole_mask[tuple(box[i] for i in spatial)] for box in boxes]
    stats = delayed(_survey, pure=True)(task, [array[box] for box in boxes], masks, spatial)
    name = "denoised-" + tokenize(array.name, grid, stats.key, task.seed, outer_mask)
    tasks: dict[Any, Any] = {}
    for index in grid.indices:
        start = tuple(part.start for part in grid.inner(index))
        own = None if outer_mask is None else (outer_mask.name, *(index[i] for i in spatial))
        pixels = (outer.name, *index)
        tasks["outer-" + name, *index] = (_apply, task, grid, stats.key, pixels, start, own)
        around = [("outer-" + name, *other) for other in grid.neighbours(index)]
        tasks[name, *index] = (grid.blend, index, around, array.dtype)
    depends = [outer, stats] if outer_mask is None else [outer, stats, outer_mask]
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=depends)
    meta = np.empty((0,) * array.ndim, array.dtype)
    return da.Array(graph, name, parts, meta=meta).rechunk(array.chunks)


def _series_graph(
    array: Any, mask: Any, task: SeriesTask, channel_axis: int | None, time: int
) -> Any:
    """Build the dask graph of a series: blocks in time with a halo, denoised, cross-faded."""
    import dask.array as da
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph

    task.blocks()  # options that cannot be honoured are refused now
    frames = (
        array[..., np.newaxis] if channel_axis is None else da.moveaxis(array, channel_axis, -1)
    )
    frames = da.moveaxis(frames, time, 0)
    parts = tuple(np.diff(block_edges(len(frames))).tolist())
    whole = (parts, *((n,) for n in frames.shape[1:]))
    outer = _with_halo(da, frames.rechunk(whole), (HALO * (len(parts) > 1), 0, 0, 0))
    depends = [outer]
    if mask is not None:
        moved = da.moveaxis(da.asarray(mask), time, 0).rechunk(whole[:-1])
        depends.append(_with_halo(da, moved, (HALO * (len(parts) > 1), 0, 0)))
    name = "denoised-" + tokenize(frames.name, task, *(each.name for each in depends))
    tasks: dict[Any, Any] = {}
    for number in range(len(parts)):
        pixels = (outer.name, number, 0, 0, 0)
        own = (depends[1].name, number, 0, 0) if mask is not None else None
        if number == 0:
            tasks["groups-" + name] = (task.find_groups, pixels, own)
        tasks["outer-" + name, number] = (task.apply, pixels, own, number, "groups-" + name)
        before = ("outer-" + name, number - 1) if number else None
        here = ("outer-" + name, number)
        tasks[name, number, 0, 0, 0] = (_joined, here, before, number, parts[number])
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=depends)
    meta = np.empty((0,) * 4, array.dtype)
    made = da.moveaxis(da.Array(graph, name, whole, meta=meta), 0, time)
    made = made[..., 0] if channel_axis is None else da.moveaxis(made, -1, channel_axis)
    return made.rechunk(array.chunks)


def _joined(found: list[Change], before: list[Change] | None, number: int, size: int) -> Array:
    """Return the frames of a block, cross-faded with the end of the one before."""
    start = HALO if number else 0
    earlier = [] if before is None else [each.change for each in before[-HALO:]]
    frames = []
    for t in range(size):
        change = faded(found[start + t], earlier[t] if t < len(earlier) else None, t)
        frames.append(add_change(change.pixels, change.change))
    return np.stack(frames)


def _with_halo(da: Any, array: Any, halo: Sequence[int]) -> Any:
    """Return an array whose chunks are the outer blocks."""
    return da.overlap.overlap(array, depth=dict(enumerate(halo)), boundary="none")


def _survey(
    task: BlockTask, parts: list[Array], masks: list[Array] | None, spatial: Sequence[int]
) -> GlobalStats:
    mask = None if masks is None else mosaic(masks, (len(spatial) - 2, len(spatial) - 1))
    return task.survey(mosaic(parts, (spatial[-2], spatial[-1])), mask)


def _apply(
    task: BlockTask, grid: Grid, stats: GlobalStats, pixels: Array, start: Sequence[int], mask: Any
) -> Array:
    return task.apply(stats, grid.prepare(pixels), start, mask)
