"""The compiled core: kernels on NumPy arrays (docs/kernels.md).

Arrays are C-contiguous and of the type named here; others, and sizes that do not fit together, are a
ValueError.  Kernels fill arrays they are given, release the GIL and start no threads.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float32]
_Ints = NDArray[np.int32]
_Longs = NDArray[np.int64]
_Columns = NDArray[Any]  # float32 or float64
_Three = tuple[int, int, int]

def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str) -> None: ...

# Mixtures of generalised patches: padded is (z, y, x, channels), boxes are (z0, z1, y0, y1, x0, x1)
def sum_points(
    padded: _Floats, patch: _Three, n_dims: int, inv_hs: float, boxes: _Longs, pointers: _Longs,
    ids: _Ints, means: _Floats, log2_proportions: _Floats, weight: _Floats | None, thin: int,
    first: int, shift: _Floats, tail: _Floats, tile_mass: _Floats, /,
) -> float: ...  # fmt: skip
def average_points(
    padded: _Floats, patch: _Three, n_dims: int, inv_hs: float, boxes: _Longs, pointers: _Longs,
    ids: _Ints, means: _Floats, log2_proportions: _Floats, target: _Floats, weight: _Floats | None,
    first: int, shift: _Floats, tail: _Floats, tile_mass: _Floats, /,
) -> float: ...  # fmt: skip
def mix_answers(
    padded: _Floats, patch: _Three, n_dims: int, inv_hs: float, boxes: _Longs, pointers: _Longs,
    ids: _Ints, means: _Floats, log2_proportions: _Floats, answers: _Floats, start: int,
    out: _Floats, /,
) -> None: ...  # fmt: skip
def responsibilities(
    padded: _Floats, patch: _Three, n_dims: int, inv_hs: float, boxes: _Longs, pointers: _Longs,
    ids: _Ints, means: _Floats, log2_proportions: _Floats, gamma: _Floats, /,
) -> None: ...  # fmt: skip
def strongest_clusters(
    padded: _Floats, patch: _Three, n_dims: int, inv_hs: float, boxes: _Longs, pointers: _Longs,
    ids: _Ints, means: _Floats, log2_proportions: _Floats, temper: float, least: float,
    clusters: _Ints, weights: _Floats, /,
) -> None: ...  # fmt: skip
def count_candidates(
    boxes: _Longs, positions: _Floats, tile: _Three, n_tiles: _Three, radius: float,
    pointers: _Longs, /,
) -> None: ...  # fmt: skip
def list_candidates(
    boxes: _Longs, positions: _Floats, tile: _Three, n_tiles: _Three, radius: float,
    pointers: _Longs, ids: _Ints, /,
) -> None: ...  # fmt: skip
def count_members(clusters: _Ints, weights: _Floats, least: float, counts: _Longs, /) -> None: ...
def list_members(
    clusters: _Ints, weights: _Floats, least: float, grid: _Three, steps: _Three, first: int,
    places: _Longs, corners: _Ints, shares: _Floats, /,
) -> None: ...  # fmt: skip

# What clusters do with their patches: lines of ``side`` pixels of a flat channel with eight to spare
def spectral_filter(
    pixels: _Floats, lines: _Longs, side: int, pointers: _Longs, corners: _Ints, shares: _Floats,
    first: int, last: int, noise: float, bias: float, start: int, total: _Floats, mass: _Floats,
    spread: _Floats, /,
) -> None: ...  # fmt: skip
def wiener_filter(
    pixels: _Floats, pilot: _Floats, lines: _Longs, side: int, pointers: _Longs, corners: _Ints,
    shares: _Floats, first: int, last: int, noise: float, strength: float, trust: float,
    start: int, total: _Floats, mass: _Floats, spread: _Floats, /,
) -> None: ...  # fmt: skip

# Filters with a search window: planes (channels, z, y, x), span is (z0, z1, y0, y1), origin (z, y)
def symmetric_window(
    padded: _Floats, patch: _Three, offsets: _Longs, spatial: _Floats, coefficient: float,
    span: tuple[int, int, int, int], values: _Columns, origin: tuple[int, int], out: _Columns, /,
) -> None: ...  # fmt: skip
def symmetric_weights(
    padded: _Floats, patch: _Three, offsets: _Longs, spatial: _Floats, coefficient: float,
    weights: _Floats, /,
) -> None: ...  # fmt: skip
def steered_window(
    steering: _Floats, offsets: _Longs, span: tuple[int, int, int, int], values: _Columns,
    transpose: bool, origin: tuple[int, int], out: _Columns, /,
) -> None: ...  # fmt: skip
def steered_weights(steering: _Floats, offsets: _Longs, weights: _Floats, /) -> None: ...

# Groups of similar patches: planes (channels, pixels), members (groups, most) are corners
def match_patches(
    guide: _Floats, whole: NDArray[np.uint8] | None, ref_z: _Longs, ref_y: _Longs, ref_x: _Longs,
    patch: _Three, radius: _Three, least: int, most: int, limit: float, boost: bool,
    members: _Ints, counts: _Ints, /,
) -> None: ...  # fmt: skip
def threshold_groups(
    planes: _Floats, members: _Ints, counts: _Ints, offsets: _Longs, forward: _Floats,
    backward: _Floats, n_axes: int, threshold: float, window: _Floats, total: _Floats,
    mass: _Floats, /,
) -> None: ...  # fmt: skip
def wiener_groups(
    planes: _Floats, pilot: _Floats, members: _Ints, counts: _Ints, offsets: _Longs,
    forward: _Floats, backward: _Floats, n_axes: int, noise: float, window: _Floats,
    total: _Floats, mass: _Floats, /,
) -> None: ...  # fmt: skip
def bayes_groups(
    planes: _Floats, pilot: _Floats | None, members: _Ints, counts: _Ints, offsets: _Longs,
    together: int, flat: float, bias: float, total: _Floats, mass: _Floats, /,
) -> None: ...  # fmt: skip

# Mixtures of full-covariance Gaussians
def add_squares(projections: _Floats, starts: _Longs, out: _Floats, /) -> None: ...
def keep_largest(scores: _Floats, first: int, best: _Floats, label: _Ints, /) -> None: ...

# The parts that kernels are made of, for tests
def exp2(x: _Floats, out: _Floats, /) -> None: ...
def product(
    x: _Floats, turned: bool, y: _Floats, n_rows: int, upper: bool, out: _Floats, /
) -> None: ...
def solve(system: _Floats, size: int, inverse_d: _Floats, /) -> None: ...
def eigenvectors(matrix: _Floats, values: _Floats, /) -> None: ...
def largest(
    numbers: _Floats, margin: float, gap: float, most: int, values: _Floats, which: _Ints, /
) -> int: ...
