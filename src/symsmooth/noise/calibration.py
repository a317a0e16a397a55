"""The noise of a camera from several frames of still scenes: the most exact way to know it.

Variance over frames against brightness, in blocks, is fitted by a line (photons and electronics) for each
channel.  The line is taken if the blocks follow it to two hundredths of their level; noise whose level
hardly changes is a constant, and where neither holds the blocks themselves are the curve.  The same
differences, divided by their level, tell the spectrum and what channels share.

References
----------
J. R. Janesick, "Photon transfer", SPIE Press 2007, doi:10.1117/3.725073.
EMVA Standard 1288, release 4.0, 2021: characterisation of image sensors and cameras.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..core.blocks import windows
from ..core.image import Array, ChannelAxis, find_channel_axis
from ..core.parallel import Pool
from .evidence import SIDE
from .finding import Finding, PixelRange
from .frames import BLOCK, Blocks, Still, Waves
from .levels import Constant, Curve, Level, Photons
from .mean_variance import MeanVariance, fit_blocks
from .model import NoiseModel

_SMALLEST = 2 * BLOCK  # pixels a side
_SAME_LIGHT = 0.05  # of the brightness: frames further apart are of another exposure
_SURE = 0.05  # of the gain: if it is not known so well, brightness differs too little
_WIDE = 0.3  # of the largest brightness: without darks, frames must differ by as much
_STRAIGHT = 0.02  # of the level: blocks that follow a line so well follow it
_POINTS = 65  # of a curve
_MOST_REJECTED = 0.1  # share of the blocks: with more, something moved
_SCATTER = 4.0  # times what noise makes of it: blocks that differ by more show what moves
_OUTLIER, _OUTLIER_COUNTS = 6.0, 12.0  # deviations and photons from which a pixel is no noise
_WHITE = 0.03  # root mean square of what energies differ by, relative to their mean
_SHARED = 0.02  # correlation of channels that is none
_CHANCE = 4.0  # standard errors that are chance
_LEAST_ENERGY = 1e-4  # of the mean: what is less cannot be divided by
_MOSTLY = 0.5  # share of the blocks
_COUNTS = 0.25  # how far the variance of clipped darks may lie from the law of counts


def calibrate_noise(
    frames: Iterable[ArrayLike],
    darks: Iterable[ArrayLike] = (),
    *,
    channel_axis: ChannelAxis = "auto",
) -> NoiseModel:
    """Measure the noise of a camera on frames of still scenes: flats, darks, or anything that stands still.

    Parameters
    ----------
    frames : iterable of array_like
        Pictures, 2-D plus channels, of one shape and dtype; at least two of each exposure, and together at
        more than one brightness: several exposures, an uneven scene, or one exposure and darks.  A stack
        (frames, y, x) is an iterable of them.
    darks : iterable of array_like
        Frames without light, at least two: they tell black and read noise.
    channel_axis : int, None or "auto"
        Axis of the channels of a frame; None if there is none.

    Returns
    -------
    NoiseModel
        In the units of the pixels.  ``model.photons`` has gain, offset and black of each channel if the
        variance follows a line; ``model.finding.reasons`` says what was found.

    Raises
    ------
    ValueError
        If frames differ by more than noise, or do not tell the law; the message says what to do.

    Notes
    -----
    Light that drifts from frame to frame is corrected.  Pixels that are clipped and those that no noise
    explains (hot pixels, cosmic rays) are left out.  Of frames with more than 2^20 pixels sixteen windows
    are looked at.

    Examples
    --------
    >>> import numpy as np, symsmooth
    >>> rng = np.random.default_rng(0)
    >>> scene = np.linspace(20.0, 400.0, 128)
    >>> flats = [100 + 2.0 * rng.poisson(scene, (128, 128)) for _ in range(6)]
    >>> camera = symsmooth.calibrate_noise(flats)
    >>> bool(abs(camera.photons.gain[0] - 2.0) < 0.1)
    True
    """
    shots = [_Shot.open(frame, channel_axis) for frame in frames]
    black_shots = [_Shot.open(frame, channel_axis) for frame in darks]
    if not shots:
        raise ValueError("darks alone show read noise only; add frames with light, two or more")
    _check_alike([*shots, *black_shots])
    low = min(shot.low for shot in (*shots, *black_shots))
    high = max(shot.high for shot in (*shots, *black_shots))
    scenes = [Still([s.windows for s in group], low, high) for group in _by_light(shots)]
    if black_shots:
        if len(black_shots) < 2:
            raise ValueError("one dark frame shows no noise by itself; give two or more")
        scenes.append(Still([shot.windows for shot in black_shots], low, high))
    with Pool(1):  # many small products: threads of the BLAS would only wait for each other
        found = _model(scenes, has_darks=bool(black_shots))
    n_frames = len(shots) + len(black_shots)
    n_light = len(scenes) - bool(black_shots)
    told = f"it was measured on {n_frames} frames"
    told += f" at {n_light} brightnesses" if n_light > 1 else ""
    told += ", darks among them" if black_shots else ""
    assert found.finding is not None
    finding = replace(found.finding, reasons=(told, *found.finding.reasons))
    about = PixelRange(shots[0].dtype, low, high)
    return replace(found, finding=finding, pixels=about)


@dataclass(frozen=True)
class _Shot:
    """What is looked at of a frame."""

    windows: list[Array]  # (y, x, channels), sides multiples of a block
    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float

    @classmethod
    def open(cls, frame: ArrayLike, channel_axis: ChannelAxis) -> _Shot:
        """Look at a frame."""
        pixels = np.asarray(frame)
        if pixels.dtype.kind not in "uif":
            raise ValueError(f"frames must be integers or floats, got {pixels.dtype}")
        axis = find_channel_axis(frame, pixels.shape, channel_axis)
        pixels = pixels[..., np.newaxis] if axis is None else np.moveaxis(pixels, axis, -1)
        if pixels.ndim != 3 or min(pixels.shape[:2]) < _SMALLEST:
            raise ValueError(
                f"frames must be flat pictures of at least {_SMALLEST} pixels a side, got shape "
                f"{np.shape(frame)}; a stack is an iterable of its frames, with time as its first axis"
            )
        finite = pixels[np.isfinite(pixels)]
        if not finite.size:
            raise ValueError("a frame has no usable pixel: none is finite")
        looked = [pixels[box] for box in windows(pixels.shape, (0, 1))]
        cut = [
            w[: w.shape[0] // BLOCK * BLOCK, : w.shape[1] // BLOCK * BLOCK].copy() for w in looked
        ]
        low, high = float(finite.min()), float(finite.max())
        return cls(cut, pixels.shape, pixels.dtype.name, low, high)

    @property
    def mean(self) -> float:
        """Its brightness."""
        return float(np.mean([np.nanmean(w, dtype=np.float64) for w in self.windows]))


def _check_alike(shots: Sequence[_Shot]) -> None:
    """Refuse frames that cannot be of one camera in one mode."""
    if len(shots) < 2:
        raise ValueError("one frame shows no noise by itself; give two or more of a still scene")
    for number, shot in enumerate(shots):
        if (shot.shape, shot.dtype) != (shots[0].shape, shots[0].dtype):
            raise ValueError(
                f"frames must have one shape and dtype: frame {number} has {shot.shape} {shot.dtype}, the "
                f"first {shots[0].shape} {shots[0].dtype}"
            )


def _by_light(shots: Sequence[_Shot]) -> list[list[_Shot]]:
    """Return frames of about one brightness together.

    If two exposures that are nearly alike go together nothing is lost: the mean of their variances lies
    on the line at the mean of their brightnesses.
    """
    groups: list[list[_Shot]] = []
    for shot in sorted(shots, key=lambda shot: shot.mean):
        near = groups and shot.mean - groups[-1][-1].mean <= _SAME_LIGHT * abs(shot.mean)
        if near:
            groups[-1].append(shot)
        else:
            groups.append([shot])
    alone = next((group[0] for group in groups if len(group) == 1), None)
    if alone is not None:
        raise ValueError(
            f"a frame of mean {alone.mean:.6g} has no other of its brightness; give two or more of each "
            "exposure"
        )
    return groups


def _model(scenes: Sequence[Still], *, has_darks: bool) -> NoiseModel:
    """Return the noise of scenes, of which the last may be dark."""
    for scene in scenes:
        scene.check_still()
    blocks = [scene.blocks() for scene in scenes]
    rough = _laws(blocks)
    limits = [_limits(rough, each.brightness) for each in blocks]
    blocks = [scene.blocks(limit) for scene, limit in zip(scenes, limits, strict=True)]
    laws = _laws(blocks)
    waves = _waves(scenes, blocks, laws, limits)
    waves.check_even()
    spectra = np.einsum("ccuv->cuv", waves.energies) / max(waves.n_squares, 1)
    _check_scatter(laws, spectra)
    _check_known(laws, has_darks)
    if has_darks:
        _check_darks(blocks)
    black = tuple(blocks[-1].brightness.mean(axis=0).tolist()) if has_darks else ()
    level, reasons = _level(laws, black)
    mixed, spectrum, more = _spectrum(waves)
    return NoiseModel(level, mixed, spectrum, finding=Finding(1.0, (*reasons, *more)))


def _laws(blocks: Sequence[Blocks]) -> list[MeanVariance]:
    """Return how the variance of each channel follows brightness."""
    return [_law(blocks, c) for c in range(blocks[0].brightness.shape[1])]


def _law(blocks: Sequence[Blocks], c: int) -> MeanVariance:
    """Return how the variance of a channel follows brightness.

    Blocks with pixels at the low end of the range count if they lie on one line with the others: counts of
    photons are 0 without being clipped there.
    """
    if np.mean([each.at_high[:, c].mean() for each in blocks]) == 1.0:
        raise ValueError(
            "frames are clipped everywhere: give shorter exposures, and calibrate again"
        )
    if not any(each.variance[:, c].any() for each in blocks):
        raise ValueError(
            "frames are the same, or a channel of them is: give frames as the camera wrote them, "
            "and no channel without noise"
        )
    law = fit_blocks(blocks, c, with_low=True)
    bent = law is None or law.bent_from(law.line(law.nodes)) > _STRAIGHT
    if bent and any(each.at_low[:, c].any() for each in blocks):
        law = fit_blocks(blocks, c, with_low=False) or law
    if law is None:
        raise ValueError("frames are clipped nearly everywhere: give shorter exposures")
    return law


def _limits(laws: Sequence[MeanVariance], brightness: Array) -> Array:
    """Return how far a pixel may be from its mean by noise, (blocks, channels)."""
    found = [
        _OUTLIER * np.sqrt(law.smooth(brightness[:, c])) + _OUTLIER_COUNTS * max(law.gain, 0.0)
        for c, law in enumerate(laws)
    ]
    return np.stack(found, axis=1)


def _waves(
    scenes: Sequence[Still],
    blocks: Sequence[Blocks],
    laws: Sequence[MeanVariance],
    limits: Sequence[Array],
) -> Waves:
    """Return what the differences of frames look like once their level is 1."""
    good = np.logical_and.reduce([law.good for law in laws])
    starts = np.cumsum([0, *(len(each.brightness) for each in blocks)])
    found = [
        scene.waves(np.sqrt(each.variance), good[start : start + len(each.brightness)], limit)
        for scene, each, start, limit in zip(scenes, blocks, starts, limits, strict=False)
    ]
    total = found[0]
    for other in found[1:]:
        total = total + other
    return total


def _check_scatter(laws: Sequence[MeanVariance], spectra: Array) -> None:
    """Refuse blocks that differ by more than noise does: something moves in some of them."""
    for law, energies in zip(laws, spectra, strict=True):
        coarse = float(np.mean(energies**2) / max(np.mean(energies) ** 2, 1e-300))
        if law.scatter > _SCATTER * np.sqrt(max(coarse, 1.0)) or law.rejected > _MOST_REJECTED:
            raise ValueError(
                "frames differ by more than noise in parts of the picture: something moved or changed "
                "there; give frames of a scene that stands still"
            )


def _check_known(laws: Sequence[MeanVariance], has_darks: bool) -> None:
    """Refuse frames of so few brightnesses that they do not tell how noise follows it."""
    for law in laws:
        wide = law.is_wide_of(_WIDE)
        line = law.gain_error < _SURE * abs(law.gain) and (has_darks or wide)
        even = wide and law.gain_error * law.width < 2 * _STRAIGHT * law.mean
        if not (line or even):
            low, high = law.span
            raise ValueError(
                f"brightness differs too little between frames ({low:.6g} to {high:.6g}) to tell how noise "
                "follows it; add darks, or frames of another exposure"
            )


def _check_darks(blocks: Sequence[Blocks]) -> None:
    """Refuse darks whose noise was clipped at the smallest pixel: they tell neither black nor read noise.

    Dark counts of a photon counter are mostly 0, too, but lie on the line of the other frames.
    """
    *others, darks = blocks
    for c in range(darks.brightness.shape[1]):
        if darks.at_low[:, c].mean() < _MOSTLY:
            continue
        law = _law(others, c)
        found, x = (float(values[:, c].mean()) for values in (darks.variance, darks.brightness))
        away = abs(law.gain * x + law.offset - found)
        if away > _COUNTS * found + _CHANCE * law.error_at(x):
            raise ValueError(
                "darks are clipped at their smallest value: the camera subtracts its black; calibrate "
                "without darks, with flats of several exposures"
            )


def _level(laws: Sequence[MeanVariance], black: tuple[float, ...]) -> tuple[Level, list[str]]:
    """Return the level of all channels, and why it has this law."""
    change = max(abs(law.gain) * law.width / (2 * law.mean) for law in laws)
    uneven = max(law.bent_from(np.full_like(law.nodes, law.mean)) for law in laws)
    if change < _STRAIGHT and uneven < _STRAIGHT:
        values = np.sqrt([law.mean for law in laws])
        reason = "its level is the same at all brightnesses"
        return Constant(values if len(laws) > 1 else np.array(values[0])), [reason]
    bent = max(law.bent_from(law.line(law.nodes)) for law in laws)
    if bent <= _STRAIGHT and all(law.gain > 0.0 for law in laws):
        reasons = [f"its variance follows a line, to {max(bent, 1e-3):.1%} of its level"]
        gain, offset = (
            tuple(values) for values in zip(*((w.gain, w.offset) for w in laws), strict=True)
        )
        if black:  # without light there is read noise, which is not below 0
            offset = tuple(max(b, -a * m) for a, b, m in zip(gain, offset, black, strict=True))
            read = [np.sqrt(a * m + b) for a, b, m in zip(gain, offset, black, strict=True)]
            words = (", ".join(f"{v:.4g}" for v in values) for values in (black, read))
            reasons.append("black {}, read noise {}".format(*words))
        return Photons(gain, offset, black), reasons
    x = [np.linspace(*law.span, _POINTS) for law in laws]
    level = [np.sqrt(law.smooth(at)) for law, at in zip(laws, x, strict=True)]
    reason = "its level follows a curve: its variance does not grow along a line"
    span = np.array([[-np.inf, np.inf]] * len(laws))
    return Curve(np.stack(x), np.stack(level), span), [reason]


def _spectrum(waves: Waves) -> tuple[Array | None, Array | None, list[str]]:
    """Return the mix of channels and the spectrum of each, if noise is not white, and what they are."""
    energies = waves.energies / max(waves.n_squares, 1)  # (channels, channels, 8, 8)
    covariance = energies.mean(axis=(2, 3))
    n_channels = len(covariance)
    level = np.sqrt(np.diag(covariance))
    shared = covariance / np.outer(level, level) - np.eye(n_channels)
    strongest = float(np.abs(shared).max())
    mixed = None
    own = np.einsum("ccuv->cuv", energies)
    if strongest > _SHARED + _CHANCE / (SIDE * np.sqrt(max(waves.n_squares, 1))):
        mixed = _mix(covariance)
        own = np.einsum("ka,kluv,la->auv", mixed, energies, mixed)
    differs = own / own.mean(axis=(1, 2), keepdims=True) - 1
    excess = np.square(differs).mean(axis=(1, 2)) - 2 / max(waves.n_squares, 1)
    white = bool((excess < _WHITE**2).all())
    reasons = (
        ["it is white"] if white else ["its energy depends on frequency: it is coarse or in lines"]
    )
    if mixed is not None:
        reasons.append(f"channels share it (correlation up to {strongest:.2f})")
    elif white:
        return None, None, reasons
    if white:
        own = np.broadcast_to(own.mean(axis=(1, 2), keepdims=True), own.shape)
    own = np.maximum(own / own.mean(), _LEAST_ENERGY)
    return mixed, own / own.mean(), reasons


def _mix(covariance: Array) -> Array:
    """Return eigenvectors, the one that is most like luminance first: what follows are colours."""
    vectors = np.linalg.eigh(covariance)[1]
    brightest = int(np.argmax(np.abs(vectors.sum(axis=0))))
    order = [brightest, *(i for i in range(len(covariance)) if i != brightest)]
    return vectors[:, order]
