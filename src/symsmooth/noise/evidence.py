"""What a picture shows of its noise: energies and shapes of its regions, as numbers without units.

A picture of one or three channels (the latter in opponent colours) is cut into 8 x 8 blocks every 4
pixels; the squares of their cosine transforms are averaged over 7 rings of frequency, and these
over regions of 20 pixels every 8 pixels.  Means are taken, no medians: the dead zones of a JPEG are
part of its noise.

Energies are logarithms to base 2 of mean squares, relative to a reference of the picture itself
(the level that a fifth of its regions lie below), so that nothing depends on the units of the
pixels.  What depends on rounding knows the distance of neighbouring pixel values.  Regions that are
constant, and those with missing pixels, are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.fft

from ..core.image import Array, Float
from .level import gradient_energy, patch_variance

SIDE = 8  # pixels across a block
_STRIDE = 4  # pixels between blocks
_ACROSS, _STEP = 4, 2  # blocks across a region, and between regions
_EDGES = (0.5, 1.2, 2.1, 3.1, 4.3, 5.7, 7.2, 20.0)  # radii of cosine frequencies between the rings
N_RINGS = len(_EDGES) - 1
_INDEX = np.arange(SIDE)
RADIUS = np.hypot(_INDEX[:, None], _INDEX)
RING = np.digitize(RADIUS, _EDGES) - 1  # of each frequency; -1: frequency zero
CENTRES = np.array([RADIUS[np.equal(RING, k)].mean() for k in range(N_RINGS)])
# Share of the frequencies that each ring has
PER_RING = np.array([np.equal(RING, k).sum() for k in range(N_RINGS)]) / (SIDE**2 - 1)
GROUPS = ((0, 3), (3, 5), (5, 7))  # low, middle and high rings
_ROWS = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
OPPONENT = (_ROWS / np.linalg.norm(_ROWS, axis=1, keepdims=True)).T.astype(np.float32)

# Energies below are as good as none: a quarter of a rounding step squared, and 1/32 of the
# reference level squared.
_STEP_SHARE, _REFERENCE_SHARE = 1 / 16, 2.0**-10
_REFERENCE = 0.2  # quantile of the regions
_MISSING = 0.1  # share of missing pixels in a region that is used
_CONSTANT = 1e-12  # of the largest pixel squared: regions with less energy are constant
_N_PATCHES = 8000  # from which a white floor is found
_N_BLOCKS = 8000
# Of 63, whose mean is called a floor: texture lives in few directions, white noise in all.
_LEAST_EIGENVALUES = 16

_BASIS_1D = scipy.fft.dct(np.eye(SIDE), axis=0, norm="ortho")
_BASIS = np.kron(_BASIS_1D, _BASIS_1D).T.astype(np.float32)  # (pixels, frequencies)


def _means(masks: Sequence[Array]) -> Float:
    """Return (64, n): columns that average over masks of frequencies."""
    return np.stack([mask.ravel() / mask.sum() for mask in masks], axis=1).astype(np.float32)


_RIGHT, _DOWN = _INDEX[:, None] < _INDEX, _INDEX[:, None] > _INDEX
_DIAGONAL = (np.minimum(_INDEX[:, None], _INDEX) * 2 > np.maximum(_INDEX[:, None], _INDEX)) & (
    RING >= 0
)
_IN_GROUP = [(first <= RING) & (last > RING) for first, last in GROUPS]
_TO_RINGS = _means([np.equal(RING, k) for k in range(N_RINGS)])
_TO_GROUPS = _means(_IN_GROUP)
_TO_WAYS = _means([g & way for g in _IN_GROUP for way in (_RIGHT, _DOWN, _DIAGONAL, ~_DIAGONAL)])
_TO_ALL = np.concatenate([_TO_RINGS, _TO_WAYS, _TO_GROUPS], axis=1)
_PAIRS = ((0, 1), (0, 2), (1, 2))  # of channels, and of groups

# What is known of each region: the name of each group of numbers, and how many there are.
REGION_FEATURES = (
    ("energy of each channel and ring", 3 * N_RINGS),
    ("horizontal against vertical energy, diagonal against the rest, by channel and group", 18),
    ("scatter of the energies of blocks, by channel and group", 9),
    ("kurtosis of the coefficients of luminance, by group", 3),
    ("correlation of the energies of blocks between groups, of luminance", 3),
    ("correlation of the coefficients of channels, by pair and group", 9),
    ("mean of each channel, and brightness, from darkest (0) to brightest (1)", 4),
    ("shares of pixels at the least and at the largest value, and equal to a neighbour", 3),
    ("level above the least within two regions: luminance low, middle, high; colour low, high", 5),
    ("the same above three quantiles of the picture", 15),
)
N_FEATURES = sum(number for _, number in REGION_FEATURES)
# What is known of the picture.
PICTURE_FEATURES = (
    ("levels at three quantiles of the regions", 15),
    ("mean shares of pixels at the ends and equal to a neighbour", 3),
    ("strength of a grid of 8 pixels, down and across", 2),
    ("whether there is colour", 1),
    ("logarithm of the number of regions", 1),
    ("rounding step, range of the pixels", 2),
    ("white floors of each channel: flat patches, all blocks, calm blocks", 9),
)
N_WIDE = sum(number for _, number in PICTURE_FEATURES)
N_FLOORS = 3
_QUANTILES = (0.03, 0.2, 0.5)
_MANY_REGIONS = 900  # more are no more to the network, which has seen no larger pictures
# Noise is asked at nodes of brightness, at these ranks among the regions: closer to each other at
# both ends, where few regions are, at about equal distances of their log odds.
NODES = np.array([0.02, 0.06, 0.14, 0.3, 0.5, 0.7, 0.86, 0.94, 0.98])
_NODE_WIDTH = 0.5  # in log odds: deviation of the window around a node
_PATCH_WINDOW = 0.75  # in log odds: half the window around a node in which patches are flat
# What few patches lose of their variance (patch_variance): 1.4 of pure noise, half of that where
# texture adds some.
_LOST = 0.7


@dataclass(frozen=True)
class Evidence:
    """What the regions of a picture show.

    Attributes
    ----------
    energy : float32 ndarray (regions, 3, rings)
        Mean squares, divided by the reference; in grey the last two channels are 0.
    features : float32 ndarray (regions, N_FEATURES)
    brightness : float32 ndarray (regions,)
        Mean of the channels, in the units of the pixels.
    wide : float32 ndarray (N_WIDE,)
        What is known of the picture.
    local : float32 ndarray (nodes,)
        White floor of luminance near each node: log2, relative to the reference.
    reference : float
        Energy of reference, in the units of the pixels squared.
    floor : float
        Energy that is as good as none, divided by the reference.
    n_channels : int
        1 or 3.
    """

    energy: Float
    features: Float
    brightness: Float
    wide: Float
    local: Float
    reference: float
    floor: float
    n_channels: int

    def __len__(self) -> int:
        return len(self.brightness)

    def of_regions(self, chosen: Array) -> Evidence:
        """Return the evidence of some regions."""
        energy, features = self.energy[chosen], self.features[chosen]
        return replace(self, energy=energy, features=features, brightness=self.brightness[chosen])


def measure(planes: Sequence[Float], valid: Sequence[Array | None], step: float) -> Evidence | None:
    """Measure the regions of planes (y, x, 1 or 3) that are parts of one picture; None if all are constant.

    ``valid`` is where pixels are not missing, None if none is; ``step`` the distance of
    neighbouring pixel values, 0 if they are not rounded.
    """
    span = _span(planes)
    n_patches = _N_PATCHES // len(planes)
    found = [
        _measure_plane(plane, own, span, n_patches)
        for plane, own in zip(planes, valid, strict=True)
    ]
    live = [plane.live for plane in found]
    if not any(own.any() for own in live):
        return None
    energy = _live([plane.energy for plane in found], live)  # (n, channels, rings)
    middle = energy[:, 0, 3:5].mean(axis=-1)
    least = _STEP_SHARE * step**2 + 1e-14 * float(span[1] - span[0]) ** 2
    reference = max(float(np.quantile(middle, _REFERENCE)), least, 1e-37)
    floor = max(least / reference, _REFERENCE_SHARE)
    relative = energy / np.float32(reference)
    n_channels = planes[0].shape[-1]
    return _describe(_Measured(found, relative, reference, floor, step, span, n_channels))


@dataclass(frozen=True)
class _Plane:
    """What was measured in the regions (ry, rx) of one plane; energies have units."""

    energy: Float  # (ry, rx, channels, rings)
    ways: Float  # (ry, rx, channels, groups, ways)
    groups: Float  # (ry, rx, channels, groups)
    squares: Float  # (ry, rx, channels, groups): of the energies of blocks
    fourth: Float  # (ry, rx, groups): of the coefficients of luminance
    products: Float  # (ry, rx, pairs): of the energies of blocks in two groups
    crossed: Float  # (ry, rx, pairs, groups): of the coefficients of two channels
    means: Float  # (ry, rx, channels)
    shares: Float  # (ry, rx, 3): at the least value, at the largest, equal to a neighbour
    grid: Float  # (2,)
    patches: list[Array]  # of each channel, (m, 5, 5): those that white floors are found from
    blocks: list[Float]  # of each channel, (n, 64): cosine transforms
    low: list[Float]  # of each channel, (n,): energies of blocks at low frequencies
    live: Array  # (ry, rx)


def _measure_plane(pixels: Float, valid: Array | None, span: Array, n_patches: int) -> _Plane:
    n_channels = pixels.shape[-1]
    opponent = to_opponent(pixels)
    coefficients = [_blocks(opponent[..., c]) for c in range(n_channels)]
    energy, ways, groups, squares, low = [], [], [], [], []
    for c, own in enumerate(coefficients):
        square = own * own
        sums = square @ _TO_ALL
        in_groups = sums[..., -3:]
        over = _over_regions(np.concatenate([sums, in_groups**2], axis=-1))
        energy.append(over[..., :N_RINGS])
        ways.append(over[..., N_RINGS : N_RINGS + 12].reshape(*over.shape[:2], 3, 4))
        groups.append(over[..., N_RINGS + 12 : -3])
        squares.append(over[..., -3:])
        low.append(sums[..., :3].sum(axis=-1).ravel())
        if c == 0:
            fourth = _over_regions((square * square) @ _TO_GROUPS)
            pairs = np.stack([in_groups[..., a] * in_groups[..., b] for a, b in _PAIRS], axis=-1)
            products = _over_regions(pairs)
    crossed = np.zeros((*fourth.shape[:2], 3, 3), np.float32)
    if n_channels == 3:
        for k, (a, b) in enumerate(_PAIRS):
            crossed[:, :, k] = _over_regions((coefficients[a] * coefficients[b]) @ _TO_GROUPS)
    energies = np.stack(energy, axis=2)
    live = energies.sum(axis=(2, 3)) > _CONSTANT * float(np.abs(pixels).max()) ** 2
    if valid is not None:
        live &= region_mean((~valid).astype(np.float32)) <= _MISSING
    return _Plane(
        energies,
        np.stack(ways, axis=2),
        np.stack(groups, axis=2),
        np.stack(squares, axis=2),
        fourth,
        products,
        crossed,
        np.stack([region_mean(pixels[..., c]) for c in range(n_channels)], axis=-1),
        _shares(pixels, span),
        _grid(opponent[..., 0]),
        [_sample_patches(opponent[..., c], valid, n_patches) for c in range(n_channels)],
        [own.reshape(-1, SIDE * SIDE) for own in coefficients],
        low,
        live,
    )


@dataclass(frozen=True)
class _Measured:
    """What was measured in all planes of a picture, and what makes it free of units."""

    planes: list[_Plane]
    energy: Float  # (n, channels, rings), relative to the reference
    reference: float
    floor: float
    step: float
    span: Array
    n_channels: int

    @property
    def eps(self) -> np.float32:
        """Energy that keeps logarithms finite."""
        return np.float32(self.floor / 16)

    @property
    def tiny(self) -> np.float32:
        """Energy that keeps ratios finite, in units."""
        return np.float32(self.floor * self.reference / 4)

    @property
    def extent(self) -> float:
        """How far apart pixels are."""
        return max(float(self.span[1] - self.span[0]), 1e-37)

    def gather(self, name: str) -> Float:
        """Return the rows of live regions of all planes."""
        return _live([getattr(plane, name) for plane in self.planes], [p.live for p in self.planes])

    def in_channels(self, values: Float) -> Float:
        """Return values (n, channels, ...) of three channels, 0 where there are fewer."""
        full = np.zeros((len(values), 3, *values.shape[2:]), np.float32)
        full[:, : self.n_channels] = values
        return full

    def shapes(self) -> list[Float]:
        """Return what regions are like: directions, scatter, tails, and what goes together."""
        ways = np.log2(self.gather("ways") / np.float32(self.reference) + self.eps)
        directions = np.stack(
            [np.abs(ways[..., 0] - ways[..., 1]), ways[..., 2] - ways[..., 3]], axis=-1
        )
        groups, squares = self.gather("groups"), self.gather("squares")
        scatter = np.log2(np.maximum(squares / (groups + self.tiny) ** 2 - 1, 0) + 0.05)
        luma = groups[:, 0]
        tails = self.gather("fourth") / (luma + self.tiny) ** 2
        spread = np.sqrt(np.maximum(squares[:, 0] - luma**2, 0)) + self.tiny
        products = self.gather("products")
        alike = [
            (products[:, k] - luma[:, a] * luma[:, b]) / (spread[:, a] * spread[:, b])
            for k, (a, b) in enumerate(_PAIRS)
        ]
        return [
            self.in_channels(directions),
            self.in_channels(scatter),
            np.log2(np.maximum(tails, 0) + 0.3),
            np.clip(np.stack(alike, axis=-1), -1, 1),
            self._colours_together(groups),
        ]

    def _colours_together(self, groups: Float) -> Float:
        """Return how far the coefficients of two channels go together: (n, pairs, groups)."""
        together = np.zeros((len(groups), 3, 3), np.float32)
        if self.n_channels == 3:
            crossed, energy = self.gather("crossed"), groups + self.tiny
            for k, (a, b) in enumerate(_PAIRS):
                together[:, k] = np.abs(crossed[:, k]) / np.sqrt(energy[:, a] * energy[:, b])
        return together

    def levels(self) -> tuple[Float, Float]:
        """Return the level of each region, and the least near it."""
        live = [plane.live for plane in self.planes]
        own = [_level(p.energy / np.float32(self.reference), self.eps) for p in self.planes]
        near = [_least_near(level, alive) for level, alive in zip(own, live, strict=True)]
        return _live(own, live), _live(near, live)

    def average(self, name: str) -> Array:
        """Return the mean over the planes of numbers that each has once."""
        weights = [len(plane.low[0]) for plane in self.planes]
        return np.average([getattr(plane, name) for plane in self.planes], axis=0, weights=weights)

    def white_floors(self) -> tuple[Float, Float]:
        """Return what white noise can be at most: (floors, channels), and near nodes (nodes,)."""
        floors, local = [], np.zeros(0)
        for c in range(self.n_channels):
            patches = np.concatenate([plane.patches[c] for plane in self.planes])
            energy = gradient_energy(patches)
            if c == 0:
                local = _local_floors(patches, energy)
            blocks = np.concatenate([plane.blocks[c] for plane in self.planes])
            low = np.concatenate([plane.low[c] for plane in self.planes])
            floors.append((patch_variance(patches, energy), *_least_eigenvalues(blocks, low)))
        return np.array(floors, np.float32).T, local.astype(np.float32)

    def shown(self, values: Float) -> Float:
        """Return pixel values from darkest (0) to brightest (1)."""
        return np.clip((values - np.float32(self.span[0])) / np.float32(self.extent), -0.5, 1.5)

    def logs(self, energies: Array) -> Float:
        """Return log2 of energies, relative to the reference."""
        return np.log2(energies / self.reference + self.eps).astype(np.float32)


def _describe(measured: _Measured) -> Evidence:
    """Turn what was measured into numbers without units."""
    n, n_channels = len(measured.energy), measured.n_channels
    energy = measured.in_channels(measured.energy)
    log = measured.in_channels(np.log2(measured.energy + measured.eps))
    means, shares = measured.gather("means"), measured.gather("shares")
    brightness = means.mean(axis=-1)
    level, around = measured.levels()
    quantiles = np.quantile(level, _QUANTILES, axis=0).astype(np.float32)
    features = [
        log,
        *measured.shapes(),
        measured.shown(np.concatenate([means] * (3 // n_channels), axis=-1)),
        measured.shown(brightness)[:, None],
        shares,
        level - around,
        *(level - quantile for quantile in quantiles),
    ]
    floors = np.zeros((N_FLOORS, 3), np.float32)
    white, local = measured.white_floors()
    floors[:, :n_channels] = measured.logs(white)
    sizes = np.array([measured.step, measured.extent]) ** 2 / measured.reference
    wide = [
        quantiles.ravel(),
        shares.mean(axis=0),
        measured.average("grid"),
        [float(n_channels == 3), np.log2(min(n, _MANY_REGIONS)) / 4],
        np.log2(np.clip(sizes, [2.0**-16, 1.0], 2.0**40)) / 4,
        floors.ravel(),
    ]
    return Evidence(
        energy,
        np.concatenate([each.reshape(n, -1) for each in features], axis=1).astype(np.float32),
        brightness,
        np.concatenate(wide).astype(np.float32),
        measured.logs(local),
        measured.reference,
        measured.floor,
        n_channels,
    )


def rank_of(brightness: Float) -> Float:
    """Return the rank of each region by brightness, 0 to 1."""
    rank = np.empty(len(brightness), np.float32)
    rank[np.argsort(brightness, kind="stable")] = (np.arange(len(rank)) + 0.5) / len(rank)
    return rank


def near_nodes(brightness: Float) -> Float:
    """Return how near regions of these brightnesses are to each node: (regions, nodes)."""
    return node_weights(rank_of(brightness))


def node_weights(rank: Float) -> Float:
    """Return how near each region is to each node: (regions, nodes)."""
    odds = np.log(rank / (1 - rank))
    distance = (odds[:, None] - np.log(NODES / (1 - NODES))) / _NODE_WIDTH
    return np.exp(np.maximum(-0.5 * distance**2, -60.0)).astype(np.float32)


def to_opponent(pixels: Float) -> Float:
    """Return (..., 3) as luminance, red against blue, green against both; (..., 1) as it is."""
    return pixels @ OPPONENT if pixels.shape[-1] == 3 else pixels


def energies(pixels: Float) -> Float:
    """Return the energies of all regions of (y, x, 1 or 3): (ry, rx, channels, rings)."""
    opponent = to_opponent(pixels)
    found = [
        _over_regions(np.square(_blocks(opponent[..., c])) @ _TO_RINGS)
        for c in range(pixels.shape[-1])
    ]
    return np.stack(found, axis=2)


def is_live(pixels: Float) -> Array:
    """Return which regions of (y, x, 1 or 3) are not constant: (ry, rx)."""
    return energies(pixels).sum(axis=(2, 3)) > _CONSTANT * float(np.abs(pixels).max()) ** 2


def _span(planes: Sequence[Float]) -> Array:
    """Return the darkest and the brightest pixel but for a thousandth each."""
    sample = np.concatenate([plane[::2, ::2].ravel() for plane in planes])
    low, high = np.partition(sample, [sample.size // 1000, sample.size - 1 - sample.size // 1000])[
        [sample.size // 1000, sample.size - 1 - sample.size // 1000]
    ]
    if high > low:
        return np.array([low, high], np.float64)
    return np.array([min(p.min() for p in planes), max(p.max() for p in planes)], np.float64)


def _blocks(plane: Float) -> Float:
    """Return the cosine transforms of the blocks of (y, x): (by, bx, 64)."""
    windows = np.lib.stride_tricks.sliding_window_view(plane, (SIDE, SIDE))[::_STRIDE, ::_STRIDE]
    return np.ascontiguousarray(windows).reshape(*windows.shape[:2], SIDE * SIDE) @ _BASIS


def _over_regions(values: Float) -> Float:
    """Return means over 4 x 4 blocks every 2: (by, bx, n) -> (ry, rx, n)."""
    for axis in (0, 1):
        size = values.shape[axis]
        across = min(_ACROSS, size)
        count = (size - across) // _STEP + 1
        starts = np.arange(count) * _STEP
        total = values.take(starts, axis)
        for k in range(1, across):
            total += values.take(starts + k, axis)
        values = total / np.float32(across)
    return values


def region_mean(plane: Float) -> Float:
    """Return means of (y, x) over regions, by cells of 4 pixels."""
    height, width = (size // _STRIDE * _STRIDE for size in plane.shape)
    rows = (
        sum(plane[k:height:_STRIDE, :width] for k in range(1, _STRIDE))
        + plane[:height:_STRIDE, :width]
    )
    cells = sum(rows[:, k::_STRIDE] for k in range(1, _STRIDE)) + rows[:, ::_STRIDE]
    cells = cells / np.float32(_STRIDE**2)
    blocks = (cells[:-1, :-1] + cells[1:, :-1] + cells[:-1, 1:] + cells[1:, 1:]) / 4
    return _over_regions(blocks[..., None])[..., 0]


def _shares(pixels: Float, span: Array) -> Float:
    """Return shares of pixels at the least and the largest value, and equal to a neighbour."""
    black, white, same = (np.zeros(pixels.shape[:2], np.float32) for _ in range(3))
    for c in range(pixels.shape[-1]):
        plane = np.ascontiguousarray(pixels[..., c])
        black += plane <= plane.min()
        white += plane >= plane.max()
        same[:, 1:] += plane[:, 1:] == plane[:, :-1]
        same[1:] += plane[1:] == plane[:-1]
    times = np.float32(pixels.shape[-1])
    return np.stack(
        [
            region_mean(black) / times,
            region_mean(white) / times,
            region_mean(same) / (2 * times),
        ],
        axis=-1,
    )


def _grid(luma: Float) -> Float:
    """Return how much larger differences are at every eighth pixel, down and across: log2."""
    found = []
    for axis in (0, 1):
        steps = np.abs(np.diff(luma, axis=axis)).mean(axis=1 - axis)
        if len(steps) < 8:
            found.append(0.0)
            continue
        at = steps[: len(steps) // 8 * 8].reshape(-1, 8).mean(axis=0)
        at = at + 1e-3 * at.mean() + 1e-30
        found.append(float(np.log2(at.max() / np.median(at))))
    return np.array(found, np.float32)


def _least_eigenvalues(blocks: Float, low: Float) -> list[float]:
    """Return the variance of white noise at most, from all blocks (n, 64) and from the calmer half."""
    found = []
    for own in (np.arange(len(blocks)), np.flatnonzero(low <= np.median(low))):
        rows = blocks.take(own[:: max(len(own) // _N_BLOCKS, 1)], axis=0)
        covariance = (rows.T @ rows)[1:, 1:] / np.float32(len(rows))  # without the blocks' means
        eigenvalues = np.linalg.eigvalsh(covariance)
        found.append(max(float(eigenvalues[:_LEAST_EIGENVALUES].mean()), 0.0))
    return found


def _local_floors(patches: Array, energy: Array) -> Array:
    """Return the variance of white noise near each node of brightness, from patches (m, y, x)."""
    order = np.argsort(patches.mean(axis=(1, 2)), kind="stable")
    odds = np.log(NODES / (1 - NODES))
    first, last = (
        len(order) / (1 + np.exp(-(odds + way))) for way in (-_PATCH_WINDOW, _PATCH_WINDOW)
    )
    groups = [order[int(a) : max(int(b), int(a) + 1)] for a, b in zip(first, last, strict=True)]
    return np.array([patch_variance(patches[group], energy[group], _LOST) for group in groups])


def _sample_patches(plane: Float, valid: Array | None, most: int, side: int = 5) -> Array:
    """Return about ``most`` patches (m, y, x) of (y, x) at regular places; constant ones are left out."""
    rows, columns = (size - side + 1 for size in plane.shape)
    y, x = np.divmod(np.arange(0, rows * columns, max(rows * columns // most, 1)), columns)
    inside = (np.arange(side)[:, None] * plane.shape[1] + np.arange(side)).ravel()
    at = (y * plane.shape[1] + x)[:, None] + inside
    patches = plane.ravel().take(at)
    keep = (patches != patches[:, :1]).any(axis=1)
    if valid is not None:
        keep &= valid.ravel().take(at).all(axis=1)
    patches = patches[keep] if keep.any() else patches
    return patches.reshape(-1, side, side).astype(np.float64)


def _level(energy: Float, eps: np.float32) -> Float:
    """Return levels of regions (ry, rx, channels, rings): luminance low, middle, high; colour low, high."""
    log = np.log2(energy + eps)
    found = np.zeros((*log.shape[:2], 5), np.float32)
    for k, (first, last) in enumerate(GROUPS):
        found[..., k] = log[:, :, 0, first:last].mean(axis=-1)
    if log.shape[2] == 3:
        found[..., 3] = log[:, :, 1:, :3].mean(axis=(2, 3))
        found[..., 4] = log[:, :, 1:, 4:].mean(axis=(2, 3))
    return found


def _least_near(level: Float, live: Array) -> Float:
    """Return the least level among the live regions within two steps."""
    out = np.where(live[..., None], level, np.float32(np.inf))
    for axis in (0, 1):
        size = out.shape[axis]
        near = np.clip(np.arange(size)[:, None] + np.arange(-2, 3), 0, size - 1)
        out = np.take(out, near, axis).min(axis=axis + 1)
    return out


def _live(values: list[Float], live: list[Array]) -> Float:
    """Return the rows of live regions of all planes."""
    return np.concatenate([own[alive] for own, alive in zip(values, live, strict=True)])
