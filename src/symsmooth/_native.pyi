# Made by `make stub`: do not edit.
"""
The compiled core: kernels on NumPy arrays (docs/kernels.md).  They release the GIL and start no threads.
"""

from collections.abc import Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def instruction_set() -> str: ...

def instruction_sets() -> list[str]: ...

def use_instruction_set(name: str) -> None: ...

def keep_freed_memory() -> None:
    """
    Let this process use freed memory again instead of returning it (glibc; elsewhere nothing).
    """

class Points:
    """
    The generalised patches of an image that is divided by h_r, and what else is known of them.
    """

    def __init__(self, padded: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], patch: Sequence[int], n_dims: int, inv_hs: float, marks: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class Tiles:
    """
    Boxes (z0, z1, y0, y1, x0, x1) of positions, the clusters that each meets, and what is added to its positions.
    """

    def __init__(self, boxes: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], pointers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class Mixture:
    """The means of clusters, and log2 of their proportions."""

    def __init__(self, means: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], log2_proportions: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

def sum_points(points: Points, tiles: Tiles, mixture: Mixture, target: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)] | None, weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, subsample: int) -> tuple[float, Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]]: ...

def add_rows(sums: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], places: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
    """Add rows to those of sums at their places."""

def aggregate_means(points: Points, tiles: Tiles, mixture: Mixture, estimates: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[int, Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]]: ...

def responsibilities(points: Points, tiles: Tiles, mixture: Mixture) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]: ...

def strongest_clusters(points: Points, tiles: Tiles, mixture: Mixture, temperature: float, min_share: float, clusters: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu')], weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

class Members:
    """
    The patches of each cluster: corners and shares from pointers[i] to pointers[i + 1].
    """

    def __init__(self, pointers: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], corners: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], grid: Sequence[int], patch: Sequence[int]) -> None: ...

    def span(self, first: int, last: int) -> tuple[int, int]:
        """
        Where the pixels begin that clusters touch, and how many places they take.
        """

def move_parts(members: Members, first: int, last: int, parts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], total: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], mass: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], spread: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None) -> None:
    """Add parts to the sums of all pixels, and leave zeros in them."""

def find_candidates(grid: Sequence[int], tile: Sequence[int], centres: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], radius: float, offsets: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]]: ...

def count_members(clusters: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], min_share: float, n_clusters: int) -> Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]: ...

def list_members(clusters: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], min_share: float, grid: Sequence[int], channel: Sequence[int], first: int, places: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], corners: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], shares: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def spectral_filter(members: Members, first: int, last: int, pixels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], noise: float, bias: float, parts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

def wiener_filter(members: Members, first: int, last: int, pixels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], pilot: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], noise: float, strength: float, trust: float, parts: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

class SymmetricWindow:
    """
    Weights of patches that are alike, at one of each pair of opposite offsets.
    """

    def __init__(self, padded: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], patch: Sequence[int], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], spatial: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], coefficient: float) -> None: ...

    @overload
    def apply(self, span: Sequence[int], values: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)]) -> tuple[int, int, Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]]: ...

    @overload
    def apply(self, span: Sequence[int], values: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)]) -> tuple[int, int, Annotated[NDArray[numpy.float64], dict(shape=(None, None, None, None), order='C', device='cpu')]]: ...

    def weights(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]: ...

class SteeredWindow:
    """Weights of a Gaussian of its own for each pixel, at offsets."""

    def __init__(self, steering: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def apply(self, span: Sequence[int], values: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], transposed: bool) -> tuple[int, int, Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]]: ...

    @overload
    def apply(self, span: Sequence[int], values: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], transposed: bool) -> tuple[int, int, Annotated[NDArray[numpy.float64], dict(shape=(None, None, None, None), order='C', device='cpu')]]: ...

    def weights(self) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]: ...

class Groups:
    """Groups of similar patches: members[g, :counts[g]] are their corners."""

    def __init__(self, members: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], counts: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], planes: Sequence[int], patch: Sequence[int]) -> None: ...

    @property
    def members(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)]: ...

    @property
    def counts(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]: ...

def match_patches(guide: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], whole: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu', writable=False)] | None, z: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], patch: Sequence[int], radius: Sequence[int], min_count: int, max_count: int, limit: float, boost: bool) -> Groups: ...

def threshold_groups(groups: Groups, planes: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], forward: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], backward: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], window: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], threshold: float) -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')], Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]]: ...

def wiener_groups(groups: Groups, planes: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], pilot: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], forward: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], backward: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], window: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], noise: float) -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')], Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]]: ...

def bayes_groups(groups: Groups, planes: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], pilot: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)] | None, together: int, flat: float, bias: float) -> tuple[Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')], Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]]: ...

def add_squares(projections: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]: ...

def keep_largest(scores: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], first: int, best: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], label: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def mix_channels(pixels: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], transform: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], is_planar: bool, mixed: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Mix channels of planes, or of pixels (n, channels), into planes (channels, n).
    """

def halve(image: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]:
    """Means over blocks of two by two pixels of (z, y, x, channels)."""

def enlarge(image: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu', writable=False)], factor: int, height: int, width: int) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None, None, None), order='C', device='cpu')]:
    """
    Interpolate (z, y, x, channels) linearly to 2 or 4 times its height and width, or less.
    """

def add_at(sums: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], places: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
    """Add values to the sums at their places."""

def scale_by_root(transform: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], rows: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], least: float, is_divided: bool) -> None:
    """
    Multiply (y, x) by the root of max(rows @ columns, least), or divide by it.
    """

def correct_tone(pixels: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], level: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], table: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], most: float, scale: float, offset: float, share: float) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]:
    """Give back what a tone curve has taken from noisy pixels, by a table."""

def exp2(x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]: ...

def product(x: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], transposed: bool, y: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_rows: int, upper: bool) -> Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]: ...

def solve(system: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], size: int) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]: ...

def eigenvectors(matrix: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]: ...

def largest(numbers: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], margin: float, gap: float, max_count: int) -> tuple[int, Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')]]: ...
