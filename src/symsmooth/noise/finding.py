"""What speaks for a model of noise that was found, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

from ..core.image import Float


@dataclass(frozen=True)
class Finding:
    """Why an estimate is what it is.

    Attributes
    ----------
    confidence : float
        0 to 1: how far what was found can only be noise.
    reasons : tuple of str
        In words, the weightiest first.
    suspected : float
        Standard deviation of coarse noise that may be there but could be texture, in the image's units;
        0 if there is no such doubt.
    """

    confidence: float
    reasons: tuple[str, ...]
    suspected: float = 0.0

    def in_units(self, scale: float) -> Finding:
        """Return the finding for pixels that were divided by ``scale``."""
        return replace(self, suspected=self.suspected / scale)


@dataclass(frozen=True)
class Found:
    """What models of noise have in common: ``finding`` says how they were found, None if given."""

    finding: Finding | None = field(default=None, compare=False, repr=False, kw_only=True)

    def bind(self, noisy: Float) -> Self:
        """Return the model for one picture, (*spatial, channels), which ``restore`` is not shown."""
        return self

    def finding_in(self, scale: float) -> Finding | None:
        """Return the finding for pixels that were divided by ``scale``."""
        return None if self.finding is None else self.finding.in_units(scale)

    def plot(self, signal: tuple[float, float] = (0.0, 255.0)) -> Any:
        """Return a matplotlib figure: the level between two pixel values, and the spectrum.

        Needs the extra ``repro``.

        Examples
        --------
        >>> import numpy as np, symsmooth
        >>> noisy = np.random.default_rng(0).normal(100.0, 20.0, (64, 64))
        >>> figure = symsmooth.estimate_noise(noisy).plot()
        """
        from .figures import noise_figure

        return noise_figure(self, signal)
