"""The kinds of noise in plain words: the one list that the page, napari and reports read from.

Loads nothing, so that the server starts at once; ``tests/app`` hold it against what methods know.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NoiseKind:
    """A kind of noise that can be asked for."""

    name: str  # of the argument ``noise``
    word: str  # what people call it
    about: str  # one or two sentences


NOISE_KINDS = (
    NoiseKind("auto", "automatic", "Found from the picture."),
    NoiseKind(
        "gaussian", "white", "The same everywhere, every pixel by itself. The level may be given."
    ),
    NoiseKind(
        "poisson-gaussian", "photon", "Grows with brightness: few photons, linear sensor data."
    ),
    NoiseKind(
        "correlated", "coarse", "Grains larger than a pixel: JPEG, wide-field, enlarged pictures."
    ),
    NoiseKind(
        "rician", "Rician", "Magnitudes of an MR scanner: dark parts lose their false brightness."
    ),
)
