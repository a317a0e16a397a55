"""Strength after the fact: a result between the layer it was made from and what was made of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symsmooth.core.blend import blend
from symsmooth.core.image import Array

from .layers import Source


@dataclass(frozen=True)
class Blendable:
    """A denoised layer that can be made weaker without denoising again.

    Attributes
    ----------
    source : Source
        The pixels it was made from.
    denoised : ndarray
    """

    source: Source
    denoised: Array

    @property
    def has_colour(self) -> bool:
        """Whether colour can have a strength of its own."""
        return self.source.rgb

    def write(self, into: Array, strength: float, colour: float | None) -> None:
        """Write what lies between: 0 is the layer, 1 the result, to the bit; plane by plane.

        ``colour`` is for what channels differ in, ``strength`` for their mean then.
        """
        pieces = self.source.pieces
        apart = colour if self.has_colour else None
        for index in pieces.stack:
            noisy, denoised = pieces.load(index), pieces.colours(self.denoised[index])
            axis = pieces.stack.channel_axis
            pieces.colours(into[index])[...] = blend(
                noisy.astype(denoised.dtype, copy=False), denoised, strength, apart, axis
            )

    def made(self) -> Array:
        """Return the result in full strength, to be written to."""
        return np.array(self.denoised)
