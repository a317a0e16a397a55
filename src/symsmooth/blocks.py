"""Images in blocks, for what does not fit into memory or onto one machine.

Noise is estimated once, from sixteen windows; then every block is denoised with a halo around it, and
neighbours are cross-faded over the halo, so there are no seams.  What a block becomes depends on its
pixels, its position and the seed alone: any scheduler, in any order, gives the same bits.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .image import Array
from .noise import estimate_noise, estimate_sigma
from .tiles import cuts_at

Index = tuple[int, ...]
Box = tuple[slice, ...]

_HALO = {2: 48, 3: 16}  # pixels, in pictures and in volumes
_SIDE = {2: 2048, 3: 160}  # of a block with its halo, at most (unless a chunk is larger)
_WINDOW = 256  # side of the windows in which noise is estimated
_WHOLE = 2**20  # pixels up to which noise is estimated in all of them


@dataclass(frozen=True)
class Grid:
    """How an array is cut; axes that are not cut have one part.

    Attributes
    ----------
    edges : for each axis, where parts begin, and the end of the last
    halo : for each axis, pixels around a part
    """

    edges: tuple[tuple[int, ...], ...]
    halo: tuple[int, ...]

    @cached_property
    def _cuts(self) -> list[list[tuple[slice, slice, Array]]]:
        return [cuts_at(edges, halo) for edges, halo in zip(self.edges, self.halo, strict=True)]

    @property
    def indices(self) -> list[Index]:
        """The blocks, in raster order."""
        return list(itertools.product(*(range(len(cuts)) for cuts in self._cuts)))

    def inner(self, index: Index) -> Box:
        """Return the block itself: blocks cover the array once."""
        return tuple(cuts[i][0] for cuts, i in zip(self._cuts, index, strict=True))

    def outer(self, index: Index) -> Box:
        """Return the block with its halo."""
        return tuple(cuts[i][1] for cuts, i in zip(self._cuts, index, strict=True))

    def neighbours(self, index: Index) -> list[Index]:
        """Return the blocks whose halo reaches into a block, itself among them."""
        reach = [
            range(max(i - 1, 0), min(i + 2, len(cuts))) if halo else (i,)
            for i, cuts, halo in zip(index, self._cuts, self.halo, strict=True)
        ]
        return list(itertools.product(*reach))

    def blend(self, index: Index, parts: Sequence[Array]) -> Array:
        """Return a block from the denoised outer blocks of its neighbours, in their order.

        Over the halo on both sides of a border, weights go linearly from 0 to 1 and sum to 1.
        """
        around = self.neighbours(index)
        if len(around) == 1:
            return parts[0]
        inner, dtype = self.inner(index), parts[0].dtype
        work: Any = np.float32 if dtype.itemsize <= 2 or dtype == np.float32 else np.float64
        total = np.zeros([part.stop - part.start for part in inner], work)
        for other, pixels in zip(around, parts, strict=True):
            here, there, weight = [], [], np.ones((), np.float32)
            for cuts, i, part in zip(self._cuts, other, inner, strict=True):
                _, outer, ramp = cuts[i]
                low, high = max(outer.start, part.start), min(outer.stop, part.stop)
                here.append(slice(low - part.start, high - part.start))
                there.append(slice(low - outer.start, high - outer.start))
                weight = np.multiply.outer(weight, ramp[there[-1]])
            if weight.size and weight.any():
                total[tuple(here)] += weight * pixels[tuple(there)]
        if dtype.kind in "ui":
            limits = np.iinfo(dtype)
            total = np.clip(np.rint(total), limits.min, limits.max)
        return total.astype(dtype)


def make_grid(
    shape: Sequence[int], chunks: Sequence[int], spatial: Sequence[int],
    joint: Sequence[int] = (), halo: int | None = None,
) -> Grid:  # fmt: skip
    """Cut spatial axes into multiples of the chunks; ``joint`` axes stay whole, others have parts of 1."""
    reach = _HALO[len(spatial)] if halo is None else halo
    edges, halos = [], []
    for axis, (size, chunk) in enumerate(zip(shape, chunks, strict=True)):
        if axis in joint:
            at = [0, size]
        elif axis not in spatial:
            at = list(range(size + 1))
        else:
            side = max(_SIDE[len(spatial)] - 2 * reach, 2 * reach, 1)
            side = max(side // chunk, -(-2 * reach // chunk), 1) * chunk
            at = [*range(0, size, side), size]
            if len(at) > 2 and at[-1] - at[-2] < 2 * reach:
                del at[-2]  # a block is at least as wide as the cross-fade
        edges.append(tuple(at))
        halos.append(reach if axis in spatial and len(at) > 2 else 0)
    return Grid(tuple(edges), tuple(halos))


@dataclass(frozen=True)
class Recipe:
    """What is done to every block: a method, its options and the noise that was found."""

    function: Callable[..., Array]
    options: Mapping[str, Any]
    channel_axis: int | None
    seed: int
    level: Any = None  # sigma, or a noise model for a method that takes one

    @property
    def _takes(self) -> set[str]:
        return set(inspect.signature(self.function).parameters)

    def estimate(self, sample: Array, mask: Array | None = None) -> Any:
        """Return the noise of a sample, (..., y, x) with channels last if there are any."""
        axis = None if self.channel_axis is None else -1
        if "noise" not in self._takes:
            return estimate_sigma(sample, channel_axis=axis, mask=mask)
        noise = self.options.get("noise", "auto")
        if not isinstance(noise, str):
            return noise
        return estimate_noise(sample, noise=noise, channel_axis=axis, mask=mask)  # type: ignore[arg-type]

    def apply(
        self, pixels: Array, start: Sequence[int], mask: Array | None = None, level: Any = None,
        progress: Any = None,
    ) -> Array:  # fmt: skip
        """Denoise a block whose first pixel is at ``start``; one without a usable pixel stays as it is."""
        usable: Any = np.isfinite(pixels)
        if self.channel_axis is not None:
            usable = usable.all(axis=self.channel_axis)
        if not (usable if mask is None else usable & ~mask).any():
            return np.array(pixels)
        level = self.level if level is None else level
        own = {"noise": level} if hasattr(level, "whiten") else {"sigma": level}
        if "noise" in self._takes and isinstance(self.options.get("noise"), np.ndarray):
            own = {}
        seed = np.random.SeedSequence(self.seed, spawn_key=tuple(int(i) for i in start))
        shared = {
            "channel_axis": self.channel_axis,
            "rng": np.random.default_rng(seed),
            "mask": mask,
            "workers": 1,
            "progress": progress,
        }
        taken = {name: value for name, value in shared.items() if name in self._takes}
        return self.function(pixels, **(taken | dict(self.options) | own))


def windows(shape: Sequence[int], spatial: Sequence[int]) -> list[Box]:
    """Return where noise is looked at: everything, or sixteen windows evenly spread.

    ``spatial`` ends with the axes of height and width; along all others but the channels, which are
    whole, windows are spread too.
    """
    plane = spatial[-2:]
    if np.prod([shape[axis] for axis in spatial], dtype=float) <= _WHOLE:
        return [tuple(slice(0, n) for n in shape)]
    found = []
    for number in range(16):
        box = [slice(0, n) for n in shape]
        for axis in spatial:
            side = min(_WINDOW, shape[axis]) if axis in plane else 1
            step = number % 4 if axis == plane[1] else number // 4 if axis == plane[0] else number
            of = 4 if axis in plane else 16
            low = round((step + 0.5) * shape[axis] / of - side / 2)
            low = min(max(low, 0), shape[axis] - side)
            box[axis] = slice(low, low + side)
        found.append(tuple(box))
    return found


def mosaic(parts: Sequence[Array], plane: Sequence[int], channel_axis: int | None) -> Array:
    """Join windows two by two to four planes, (4, y, x), channels last: so they are estimated."""
    if len(parts) == 1:
        return parts[0] if channel_axis is None else np.moveaxis(parts[0], channel_axis, -1)
    last = [*plane] if channel_axis is None else [*plane, channel_axis]
    flat = []
    for part in parts:
        moved = np.moveaxis(part, last, range(-len(last), 0))
        flat.append(moved.reshape(moved.shape[-len(last) :]))
    fours = [flat[i : i + 4] for i in range(0, 16, 4)]
    return np.stack(
        [np.concatenate([np.concatenate(f[:2], 1), np.concatenate(f[2:], 1)]) for f in fours]
    )


def denoise_blocks(
    array: Any,
    method: str = "denoise",
    *,
    sigma: float | None = None,
    channel_axis: int | None = None,
    mask: Any = None,
    rng: int | np.random.Generator | None = None,
    halo: int | None = None,
    **options: Any,
) -> Any:
    """Denoise a dask array block by block, lazily, on any dask scheduler.

    Parameters
    ----------
    array : dask array
        2-D or 3-D, plus channels if ``channel_axis`` is given.
    method : str
        A name in METHODS.
    sigma : float or None
        Noise level in the units of the image; None estimates the noise once for all blocks.
    channel_axis : int or None
        Axis of the channels.
    mask : array of bool, dask array or None
        Spatial shape; True where a pixel is missing.
    rng : int, Generator or None
        Seed; that of a block is derived from it and the block's position.
    halo : int or None
        Pixels around a block that it is denoised with and cross-faded over; None takes 48, 16 in a volume.
    **options
        Of the method.  ``workers`` is 1 unless given: dask runs the blocks in parallel.

    Returns
    -------
    dask array
        Same shape, dtype and chunks.  Nothing is computed before it is.

    Notes
    -----
    Noise is estimated by one task from sixteen windows of 256 x 256 pixels on an even grid (all pixels
    if there are no more than 2^20).  Chunks are joined to blocks of up to 2048 x 2048 with their halo.
    Along a border the two results r and s give w r + (1 - w) s, w rising linearly over twice the halo.
    A block without a usable pixel stays as it is.

    Examples
    --------
    >>> import dask.array, numpy as np, symsmooth
    >>> noisy = dask.array.from_array(np.random.default_rng(0).normal(100.0, 20.0, (64, 64)), chunks=32)
    >>> bool(symsmooth.denoise_blocks(noisy, "nlm").compute().std() < 8.0)
    True
    """
    from .methods import METHODS

    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; use one of {', '.join(METHODS)}")
    if halo is not None and (isinstance(halo, bool) or int(halo) != halo or halo < 1):
        raise ValueError(
            f"halo must be a whole number of at least 1, got {halo!r}; use None for 48"
        )
    axis = None if channel_axis is None else channel_axis % array.ndim
    spatial = [i for i in range(array.ndim) if i != axis]
    if len(spatial) not in (2, 3) or 0 in array.shape or np.isnan(array.size):
        raise ValueError(
            f"array must be 2-D or 3-D plus channels, of known size, got {array.shape}"
        )
    generator = np.random.default_rng(0 if rng is None else rng)
    seed = int(generator.integers(2**63)) if isinstance(rng, np.random.Generator) else int(rng or 0)
    recipe = Recipe(METHODS[method], options, axis, seed, sigma)
    joint = () if axis is None else (axis,)
    grid = make_grid(array.shape, array.chunksize, spatial, joint, halo)
    return _graph(array, mask, grid, recipe, spatial)


def _graph(array: Any, mask: Any, grid: Grid, recipe: Recipe, spatial: list[int]) -> Any:
    """Build the dask graph: outer blocks, the noise, denoised outer blocks, blended blocks."""
    import dask.array as da
    from dask.base import tokenize
    from dask.delayed import delayed
    from dask.highlevelgraph import HighLevelGraph

    parts = tuple(tuple(np.diff(edges).tolist()) for edges in grid.edges)
    outer = _with_halo(da, array.rechunk(parts), grid.halo)
    depends = [outer]
    hidden = None
    if mask is not None:
        if tuple(mask.shape) != tuple(array.shape[i] for i in spatial):
            raise ValueError(f"mask must have the array's spatial shape, got {mask.shape}")
        chunks = tuple(parts[i] for i in spatial)
        missing = da.asarray(mask).astype(bool).rechunk(chunks)
        hidden = _with_halo(da, missing, [grid.halo[i] for i in spatial])
        depends.append(hidden)
    level_key = None
    if recipe.level is None:
        boxes = windows(array.shape, spatial)
        looked = [array[box] for box in boxes]
        masks = None
        if mask is not None:
            masks = [da.asarray(mask)[tuple(box[i] for i in spatial)] for box in boxes]
        level = delayed(_estimate, pure=True)(recipe, looked, masks, len(array.shape))
        depends.append(level)
        level_key = level.key
    name = "denoised-" + tokenize(array.name, grid, recipe.function.__name__, dict(recipe.options),
                                  recipe.seed, recipe.level, recipe.channel_axis, hidden)  # fmt: skip
    tasks: dict[Any, Any] = {}
    for index in grid.indices:
        start = tuple(part.start for part in grid.inner(index))
        own = None if hidden is None else (hidden.name, *(index[i] for i in spatial))
        pixels = (outer.name, *index)
        tasks["outer-" + name, *index] = (recipe.apply, pixels, start, own, level_key)
        around = [("outer-" + name, *other) for other in grid.neighbours(index)]
        tasks[name, *index] = (grid.blend, index, around)
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=depends)
    result = da.Array(
        graph, name, parts, dtype=array.dtype, meta=np.empty((0,) * array.ndim, array.dtype)
    )
    return result.rechunk(array.chunks)


def _with_halo(da: Any, array: Any, halo: Sequence[int]) -> Any:
    """Return an array whose chunks are the outer blocks."""
    return da.overlap.overlap(array, depth=dict(enumerate(halo)), boundary="none")


def _estimate(recipe: Recipe, parts: list[Array], masks: list[Array] | None, ndim: int) -> Any:
    """Estimate the noise of windows."""
    plane = [i for i in range(ndim) if i != recipe.channel_axis][-2:]
    sample = mosaic(parts, plane, recipe.channel_axis)
    hidden = None if masks is None else mosaic(masks, (masks[0].ndim - 2, masks[0].ndim - 1), None)
    return recipe.estimate(sample, hidden)
