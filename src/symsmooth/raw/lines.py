"""A line through the variances of groups of patches, fitted robustly: texture only adds to them."""

from __future__ import annotations

import numpy as np

from ..core.image import Array

_ROUNDS, _SETTLED = 30, 1e-4  # of the fit, unless it moves by less
_TEXTURE = 1.5  # a variance above the line is doubted so much more than one below


def fit_line(levels: Array, variances: Array) -> tuple[float, float]:
    """Fit variance = gain * level + offset by reweighting (Cauchy)."""
    tiny = 1e-12 + 1e-6 * float(variances.max(initial=0.0))
    gain, offset = _least_squares(levels, variances, 1.0 / np.maximum(variances, tiny) ** 2)
    for _ in range(_ROUNDS):
        predicted = np.maximum(gain * levels + offset, tiny)
        residuals = (variances - predicted) / predicted
        scaled = np.where(residuals > 0, _TEXTURE, 1.0) * residuals / _spread(residuals)
        before = np.array([gain, offset])
        gain, offset = _least_squares(levels, variances, 1.0 / (1.0 + scaled**2) / predicted**2)
        if np.abs([gain, offset] - before).max() <= _SETTLED * max(abs(gain), abs(offset)):
            break
    return float(gain), float(offset)


def _least_squares(levels: Array, variances: Array, weights: Array) -> tuple[float, float]:
    """Fit a line by weighted least squares."""
    total = weights.sum()
    centre, mean = weights @ levels / total, weights @ variances / total
    away = levels - centre
    gain = weights @ (away * variances) / max(weights @ away**2, 1e-300)
    return gain, mean - gain * centre


def _spread(residuals: Array) -> float:
    """Return their robust standard deviation; groups of patches are not surer than 3 %."""
    return max(1.4826 * float(np.median(np.abs(residuals))), 0.03)
