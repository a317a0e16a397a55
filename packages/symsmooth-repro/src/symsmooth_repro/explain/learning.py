"""What GSF learned from a picture: its clusters, and who is a neighbour of whom.

Clusters are local, so a part of a large picture is as good as the whole: the busiest part is taken.
Neighbours are those of spatially regulated NLM with the paper's settings (h_s = 10, h_r = sigma sqrt(d)):
before normalisation a pixel's answer is D^-1 W, after it D_r^-1 W D_c^-1, which divides by how popular a
patch is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.ndimage

from symsmooth.core.image import Array, Float, open_image
from symsmooth.core.parallel import Pool, Progress, part_of
from symsmooth.core.patches import Features, whiten
from symsmooth.filters.sinkhorn import normalize_rows, sinkhorn_knopp
from symsmooth.filters.weights import regulated_nlm
from symsmooth.mixture.em import neighbourhood, responsibilities
from symsmooth.mixture.gsf import GSFResult, fit_gsf
from symsmooth.reports.pictures import busiest

PATCH = 5
H_S = 10.0
WEAK = 0.1  # a neighbour whose weight W_ij is below this (its own is 1) is a weak one
_REACH = 1.5  # h_s within which clusters are looked for, as in GSF's second pass
_MIN_SHARE = 1e-3  # responsibilities below this are not looked at
_LEARNING = 0.8  # of the time, for the progress callback; neighbours take the rest
_CHROMA, _PERIOD = 0.30, 8.0 * H_S  # how strong hues are, and after how many pixels they return


@dataclass(frozen=True)
class Neighbours:
    """One pixel, and how much each other one counts for it."""

    what: str  # why it was chosen
    place: tuple[int, int]  # row, column in the part
    similarity: Array  # W_ij, (height, width), 1 for itself
    before: Array  # D^-1 W, sums to 1
    after: Array  # D_r^-1 W D_c^-1, sums to 1
    clusters: list[
        tuple[float, Array]
    ]  # (gamma, mean patch in the picture's units), strongest first

    @property
    def weak_before(self) -> float:
        """The share of the vote that weak neighbours have before normalisation."""
        return float(self.before[self.similarity < WEAK].sum())

    @property
    def weak_after(self) -> float:
        """The share of the vote that weak neighbours have after normalisation."""
        return float(self.after[self.similarity < WEAK].sum())


@dataclass(frozen=True)
class Learned:
    """What is shown."""

    part: tuple[slice, slice]  # of the picture
    noisy: Array
    result: GSFResult
    clusters: Float  # (height, width, 3): each pixel in the mixed colour of its clusters
    appearance: Float  # like noisy: each pixel as the centre of its clusters' means
    effective_clusters: Float  # (height, width): how many clusters answer for a pixel, exp(entropy)
    pixels_per_cluster: Float  # (height, width): how many pixels a pixel's clusters hold
    popularity: Float  # (height, width): column sums of W, in parts of their mean
    neighbours: list[Neighbours]


def learn(
    pixels: Array,
    sigma: float,
    *,
    side: int = 384,
    rng: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Run GSF on (at most side x side pixels of) a picture and look at what it learned.

    Parameters
    ----------
    pixels : ndarray
        (height, width) or (height, width, channels).
    sigma : float
        Noise level in the picture's units.
    side : int
        A larger picture is cut to its busiest part.

    Examples
    --------
    >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (24, 24))
    >>> learn(noisy, 20.0).clusters.shape
    (24, 24, 3)
    """
    if sigma <= 0:
        raise ValueError("there is no noise (sigma 0): nothing to explain; give another sigma")
    part = busiest(pixels, side)
    noisy = pixels[part]
    axis = -1 if noisy.ndim == 3 else None
    counted = open_image(noisy, axis).counted
    if counted is not None:  # copies of a channel have nothing to explain
        noisy = noisy[..., counted.own[0]] if len(counted.own) == 1 else noisy[..., counted.own]
        axis = -1 if noisy.ndim == 3 else None
    result = fit_gsf(
        noisy, sigma, patch_size=PATCH, h_s=H_S, channel_axis=axis, rng=rng, workers=workers,
        progress=part_of(progress, 0.0, _LEARNING),
    )  # fmt: skip
    picture = open_image(noisy, axis)
    pilot = result.pilot[..., np.newaxis] if axis is None else result.pilot
    guide = ((pilot - picture.offset) / picture.scale).astype(np.float32)
    features = whiten(guide, PATCH, H_S, result.refined_h_r / picture.scale)
    near = neighbourhood(features, result.mixture, _REACH)
    gamma = responsibilities(features, result.mixture, near, _MIN_SHARE).tocsc()
    gamma.data /= np.repeat(np.maximum(gamma.sum(axis=0), _MIN_SHARE), np.diff(gamma.indptr))
    centres, patches = _means(features, result, picture.offset, picture.scale)
    spatial = noisy.shape[:2]
    paints = _paints(result.mixture.means[:, :2] * np.float32(H_S), centres, sigma)
    mass = gamma.sum(axis=1)
    entropy = -np.add.reduceat(
        gamma.data * np.log(np.maximum(gamma.data, _MIN_SHARE)), gamma.indptr[:-1]
    )
    with Pool(workers, part_of(progress, _LEARNING, 1.0)) as pool:
        popularity, neighbours = _neighbours(picture.noisy, guide, sigma / picture.scale, pool)
    chosen = [
        Neighbours(*each, _strongest(gamma, each[1], spatial, patches)) for each in neighbours
    ]  # fmt: skip
    return Learned(
        part=part,
        noisy=noisy,
        result=result,
        clusters=(gamma.T @ paints).reshape(*spatial, 3),
        appearance=(gamma.T @ centres).reshape(noisy.shape),
        effective_clusters=np.exp(entropy).reshape(spatial),
        pixels_per_cluster=(gamma.T @ mass).reshape(spatial),
        popularity=popularity,
        neighbours=chosen,
    )


def _means(
    features: Features, result: GSFResult, offset: float, scale: float
) -> tuple[Float, Float]:
    """Return the clusters' mean patches in the picture's units: their centres (k, c), all (k, s, s, c)."""
    means = result.mixture.means[:, features.n_dims :]
    patches = means.reshape(-1, PATCH, PATCH, features.channels)
    patches = patches * np.float32(features.h_r * scale) + np.float32(offset)
    return patches[:, PATCH // 2, PATCH // 2], patches


def _paints(places: Float, centres: Float, sigma: float) -> Float:
    """Return a colour for each cluster: its hue by place and brightness, as light as it is bright.

    Hues of neighbours are alike, so a mix of clusters that lie together keeps its colour, and hues
    jump where clusters on two sides of an edge do not mix.
    """
    grey = centres.mean(axis=1)
    low, high = np.quantile(grey, [0.01, 0.99])
    part = np.clip((grey - low) / max(high - low, 4.0 * sigma), 0.0, 1.0)
    light = 0.2 + 0.68 * part
    turn = 2.0 * np.pi * (places / np.float32(_PERIOD) + part[:, np.newaxis] * (0.8, -0.6))
    u, v = (_CHROMA * np.cos(turn)).T
    colours = np.stack([light + v, light - 0.35 * u - 0.5 * v, light + u], axis=1)
    return np.clip(colours, 0.0, 1.0).astype(np.float32)


def _strongest(
    gamma: object,
    place: tuple[int, int],
    spatial: tuple[int, ...],
    patches: Float,
    max_count: int = 6,
) -> list[tuple[float, Array]]:
    """Return the clusters that answer for a pixel, strongest first."""
    column = gamma[:, [int(np.ravel_multi_index(place, spatial))]].tocoo()  # type: ignore[index]
    order = [n for n in np.argsort(-column.data)[:max_count] if column.data[n] >= 0.01]
    return [(float(column.data[n]), patches[column.coords[0][n]]) for n in order]


Seen = tuple[str, tuple[int, int], Array, Array, Array]


def _neighbours(noisy: Float, guide: Float, sigma: float, pool: Pool) -> tuple[Float, list[Seen]]:
    """Return how popular patches are, and (what, place, W, before, after) of a few pixels."""
    spatial = noisy.shape[:2]
    h_r = sigma * (PATCH**2 * noisy.shape[-1]) ** 0.5
    W = regulated_nlm(noisy, PATCH, H_S, h_r, pool)
    plain, once = normalize_rows(W), sinkhorn_knopp(W, 1)
    sums = 1.0 / plain.row_scale  # W is symmetric: columns have the sums of rows
    popularity = (sums / sums.mean()).reshape(spatial).astype(np.float32)
    places = _places(guide, popularity)
    units = np.zeros((W.shape[0], len(places)), np.float32)
    numbers = [int(np.ravel_multi_index(place, spatial)) for place in places.values()]
    units[numbers, range(len(places))] = 1.0
    rows = W @ units
    shares = []
    for n, (what, place) in enumerate(places.items()):
        row, i = rows[:, n], numbers[n]
        before = plain.row_scale[i] * row
        after = once.row_scale[i] * row * once.col_scale
        shaped = (each.reshape(spatial) for each in (row, before, after))
        shares.append((what, place, *shaped))
    return popularity, shares  # type: ignore[return-value]


def _places(guide: Float, popularity: Float) -> dict[str, tuple[int, int]]:
    """Return a pixel on an edge, in a texture, on plain ground, and one of the least popular kind."""
    tensor = np.zeros((*guide.shape[:2], 3), np.float32)
    for channel in np.moveaxis(guide, -1, 0):
        dy, dx = (
            scipy.ndimage.gaussian_filter(channel, 1.0, order, mode="nearest")
            for order in ((1, 0), (0, 1))
        )
        tensor += np.stack([dy * dy, dy * dx, dx * dx], axis=-1)
    tensor = scipy.ndimage.gaussian_filter(tensor, (2.5, 2.5, 0), mode="nearest")
    half, apart = (tensor[..., 0] + tensor[..., 2]) / 2, (tensor[..., 0] - tensor[..., 2]) / 2
    spread = np.hypot(apart, tensor[..., 1])
    strong, weak = half + spread, half - spread
    wants = {
        "An edge": spread / (1.0 + weak / max(float(weak.mean()), 1e-12)),
        "A texture": weak,
        "Plain ground": -strong,
        "A rare patch": -popularity,
    }
    taken = np.zeros(guide.shape[:2], bool)
    sizes: tuple[int, ...] = guide.shape[:2]
    margins = [min(24, (size - 1) // 2) for size in sizes]
    inside = tuple(slice(m, size - m) for m, size in zip(margins, sizes, strict=True))
    places = {}
    for what, want in wants.items():
        free = np.where(taken, -np.inf, want)[inside]
        y, x = np.unravel_index(int(np.argmax(free)), free.shape)
        place = (int(y) + margins[0], int(x) + margins[1])
        taken[max(place[0] - 12, 0) : place[0] + 13, max(place[1] - 12, 0) : place[1] + 13] = True
        places[what] = place
    return places
