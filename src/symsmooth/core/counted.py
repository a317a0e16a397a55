"""Which channels hold something of their own: others are constant, or follow another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_SAMPLE = 50_000  # pixels that are compared first
_ROUNDED = 0.51  # of a whole number: what rounding may have changed


@dataclass(frozen=True, eq=False)
class Counted:
    """Which channels of an image hold something of their own; others are constant, or follow one of them.

    Attributes
    ----------
    own : ndarray (channels,)
        Their numbers.
    times, plus : ndarray (channels, all channels), (all channels,)
        All channels are ``pixels @ times + plus``, pixels being those of the own channels.
    """

    own: Array
    times: Array
    plus: Array

    @property
    def words(self) -> str:
        """What the image is, as people say it."""
        n_all, n_own = len(self.plus), len(self.own)
        if (
            n_own == 1
            and n_all == 3
            and np.allclose(self.times, 1.0)
            and np.allclose(self.plus, 0.0)
        ):
            return "grey, saved as RGB"
        return f"{n_own} of {n_all} channels hold something of their own"

    def in_units(self, offset: float, scale: float) -> Counted:
        """Return the same for pixels (image - offset) / scale."""
        plus = (self.plus + offset * self.times.sum(axis=0) - offset) / scale
        return Counted(self.own, self.times, plus)

    def values(self, pixels: Array) -> Array:
        """Return the pixels of all channels."""
        return pixels @ self.times.astype(pixels.dtype) + self.plus.astype(pixels.dtype)

    def changes(self, change: Array) -> Array:
        """Return the change of all channels."""
        return change @ self.times.astype(change.dtype)

    def sizes(self, sizes: Array) -> Array:
        """Return the size of a change of all channels."""
        return sizes @ np.abs(self.times).astype(sizes.dtype)


def count_channels(pixels: Array, missing: Array | None = None) -> Counted | None:
    """Return which channels of (*spatial, channels) hold something of their own; None if all do.

    A channel follows another if it is a times the other plus b, within rounding.
    """
    n_channels = pixels.shape[-1]
    if n_channels == 1:
        return None
    flat = pixels.reshape(-1, n_channels) if missing is None else pixels[~missing]
    sample = flat[:: max(1, len(flat) // _SAMPLE)].astype(np.float64)
    spread = sample.max(axis=0) - sample.min(axis=0)
    own: list[int] = []
    times, plus = np.zeros((n_channels, n_channels)), np.zeros(n_channels)
    for c in np.argsort(-spread, kind="stable"):  # what follows is smaller than what it follows
        found = _follow(flat, sample, int(c), own)
        if found is None:
            own.append(int(c))
            times[c, c] = 1.0
        else:
            other, a, b = found
            if other >= 0:
                times[other, c] = a
            plus[c] = b
    if len(own) == n_channels:
        return None
    if not own:  # a constant image: one channel stands for all
        own, times[0, 0], plus[0] = [0], 1.0, 0.0
    own.sort()
    return Counted(np.array(own), times[own], plus)


def _follow(flat: Array, sample: Array, c: int, own: list[int]) -> tuple[int, float, float] | None:
    """Return the channel that c follows, and a and b; -1, 0 and b if it is constant; None if none."""
    first = flat[0, c]
    if (sample[:, c] == float(first)).all() and (flat[:, c] == first).all():
        return -1, 0.0, float(first)
    for other in own:
        if (sample[:, c] == sample[:, other]).all() and (flat[:, c] == flat[:, other]).all():
            return other, 1.0, 0.0
        if flat.dtype.kind not in "ui":
            continue
        x, y = sample[:, other], sample[:, c]
        centred = x - x.mean()
        a = float(centred @ y / max(centred @ centred, 1e-30))
        b = float(y.mean() - a * x.mean())
        within = _ROUNDED * (1 + abs(a))  # both are rounded to whole numbers
        if (np.abs(a * x + b - y) <= within).all():
            own_pixels, others = flat[:, c].astype(np.float64), flat[:, other].astype(np.float64)
            if (np.abs(a * others + b - own_pixels) <= within).all():
                return other, a, b
    return None
