"""The noise of a camera from several frames of still scenes: the most exact way to know it.

Variance over frames against brightness, in blocks, is fitted by a line (photons and electronics) for each
channel.  The line is taken if the blocks follow it to two hundredths of their level; noise whose level
hardly changes is a constant, and where neither holds the blocks themselves are the curve.  The same
differences, divided by their level, tell the spectrum and what channels share.

No outlier bends the curve: blocks that differ by more than chance do not count.

References
----------
J. R. Janesick, "Photon transfer", SPIE Press 2007, doi:10.1117/3.725073.
EMVA Standard 1288, release 4.0, 2021: characterisation of image sensors and cameras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from numpy.typing import ArrayLike

from ..core.blocks import windows
from ..core.image import Array, ChannelAxis, find_channel_axis
from ..core.parallel import Pool
from .frames import BLOCK, CHANCE, TOLERANCE, Blocks, Still, Waves
from .levels import Constant, Curve, Level, Photons
from .model import Finding, NoiseModel, PixelRange

_SMALLEST = 2 * BLOCK  # pixels a side
_SAME_LIGHT = 0.05  # of the brightness: frames further apart are of another exposure
_WIDE = 0.3  # of the largest brightness: without darks, frames must differ by as much
_POINTS = 65  # of a curve
_MOST_REJECTED = 0.1  # share of the blocks: with more, something moved
_RARE = 1e-8  # chance of a pixel that no noise explains: of ten frames 10^7 are looked at
_CLIPPED = "frames are clipped nearly everywhere: give shorter exposures"
_NODES = 8  # of brightness, in each scene
_BLOCKS_A_NODE = 12  # at least, if a scene has so many
_SPREAD = 1 / scipy.special.ndtri(3 / 4)  # deviation over median distance, of Gaussian numbers
_LEAST = 1e-9  # of the largest variance: what is less cannot be divided by


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
    dark_shots = [_Shot.open(frame, channel_axis) for frame in darks]
    if not shots:
        raise ValueError("darks alone show read noise only; add frames with light, two or more")
    if len(dark_shots) == 1:
        raise ValueError("one dark frame shows no noise by itself; give two or more")
    _check_alike([*shots, *dark_shots])
    low = min(shot.low for shot in (*shots, *dark_shots))
    high = max(shot.high for shot in (*shots, *dark_shots))
    groups = _by_light(shots)
    told = f"it was measured on {len(shots) + len(dark_shots)} frames"
    told += f" at {len(groups)} brightnesses" if len(groups) > 1 else ""
    told += ", darks among them" if dark_shots else ""
    groups += [dark_shots] if dark_shots else []
    scenes = [Still([shot.blocks for shot in group], low, high) for group in groups]
    with Pool(1):  # many small products: threads of the BLAS would only wait for each other
        level, mixed, spectrum, reasons = _measure(scenes, has_darks=bool(dark_shots))
    finding, about = Finding(1.0, (told, *reasons)), PixelRange(shots[0].dtype, low, high)
    return NoiseModel(level, mixed, spectrum, finding=finding, pixels=about)


@dataclass(frozen=True)
class _Shot:
    """What is looked at of a frame."""

    blocks: Array  # (blocks, 16, 16, channels)
    shape: tuple[int, ...]
    dtype: str
    low: float
    high: float
    mean: float

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
        blocks = np.concatenate([_cut(pixels[box]) for box in windows(pixels.shape, (0, 1))])
        ends = float(finite.min()), float(finite.max())
        mean = float(np.nanmean(blocks, dtype=np.float64))
        return cls(blocks, pixels.shape, pixels.dtype.name, *ends, mean)


def _cut(pixels: Array) -> Array:
    """Return the whole blocks of (y, x, channels)."""
    rows, columns = (size // BLOCK for size in pixels.shape[:2])
    whole = pixels[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK, -1)
    return whole.swapaxes(1, 2).reshape(rows * columns, BLOCK, BLOCK, -1)


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


def _measure(
    scenes: Sequence[Still], *, has_darks: bool
) -> tuple[Level, Array | None, Array | None, list[str]]:
    """Return level, mix and spectrum of the noise of scenes, of which the last may be dark, and reasons."""
    for scene in scenes:
        scene.check_still()
    blocks = Blocks.of(scenes)
    limit = _limit(_laws(blocks), blocks.brightness)
    for number, scene in enumerate(scenes):
        scene.leave_out(limit[blocks.scene == number])
    blocks = Blocks.of(scenes)
    laws = _laws(blocks)
    good = np.logical_and.reduce([law.good for law in laws])
    if not good.any():
        raise ValueError(_CLIPPED)
    waves = Waves.of(scenes, blocks, good)
    waves.check_even()
    _check_scatter(laws, waves.spectra)
    _check_known(laws, has_darks)
    black: tuple[float, ...] = ()
    if has_darks:
        dark = blocks.scene == len(scenes) - 1
        _check_darks(blocks.where(dark), blocks.where(~dark))
        black = tuple(blocks.brightness[dark].mean(axis=0).tolist())
    level, reasons = _level(laws, black)
    mixed, spectrum, more = _spectrum(waves)
    return level, mixed, spectrum, [*reasons, *more]


def _laws(blocks: Blocks) -> list[MeanVariance]:
    """Return how the variance of each channel follows brightness."""
    return [_law(blocks, c) for c in range(blocks.brightness.shape[1])]


def _law(blocks: Blocks, c: int) -> MeanVariance:
    """Return how the variance of a channel follows brightness.

    Blocks with pixels at the low end of the range count if they lie on one line with the others: counts of
    photons are 0 without being clipped there.
    """
    if blocks.at_high[:, c].all():
        raise ValueError(
            "frames are clipped everywhere: give shorter exposures, and calibrate again"
        )
    if not blocks.variance[:, c].any():
        raise ValueError(
            "frames are the same, or a channel of them is: give frames as the camera wrote them, "
            "and no channel without noise"
        )
    law = fit_blocks(blocks, c, with_low=True)
    if blocks.at_low[:, c].any() and (law is None or law.bend > TOLERANCE):
        law = fit_blocks(blocks, c, with_low=False) or law
    if law is None:
        raise ValueError(_CLIPPED)
    return law


def _limit(laws: Sequence[MeanVariance], brightness: Array) -> Array:
    """Return how far a pixel may be from its mean by noise, (blocks, channels).

    By Bernstein's inequality: counts of photons that are far away are more frequent than in Gaussian noise.
    """
    found = []
    for c, law in enumerate(laws):
        counts = max(law.line.gain, 0.0) / 3 * np.log(1 / _RARE)
        variance = law.smooth(brightness[:, c])
        found.append(counts + np.sqrt(counts**2 + 2 * np.log(1 / _RARE) * variance))
    return np.stack(found, axis=1)


def _check_scatter(laws: Sequence[MeanVariance], spectra: Array) -> None:
    """Refuse blocks that differ by more than noise does: something moves in some of them."""
    for law, energies in zip(laws, spectra, strict=True):
        coarse = np.sqrt(np.mean(energies**2)) / np.mean(energies)  # neighbours are alike in part
        if law.scatter > CHANCE * coarse or law.rejected > _MOST_REJECTED:
            raise ValueError(
                "frames differ by more than noise in parts of the picture: something moved or changed "
                "there; give frames of a scene that stands still"
            )


def _check_known(laws: Sequence[MeanVariance], has_darks: bool) -> None:
    """Refuse frames of so few brightnesses that they do not tell how noise follows it."""
    for law in laws:
        wide = law.width >= _WIDE * max(map(abs, law.span))
        line = law.gain_error < 2 * TOLERANCE * abs(law.line.gain) and (has_darks or wide)
        even = law.gain_error * law.width < 2 * TOLERANCE * law.mean and wide
        if not (line or even):
            low, high = law.span
            raise ValueError(
                f"brightness differs too little between frames ({low:.6g} to {high:.6g}) to tell how noise "
                "follows it; add darks, or frames of another exposure"
            )


def _check_darks(darks: Blocks, others: Blocks) -> None:
    """Refuse darks whose noise was clipped at the smallest pixel: they tell neither black nor read noise.

    Dark counts of a photon counter are mostly 0, too, but lie on the line of the other frames.
    """
    for c in np.flatnonzero(darks.at_low.mean(axis=0) >= 0.5):
        law = _law(others, int(c))
        found, x = (float(values[:, c].mean()) for values in (darks.variance, darks.brightness))
        above = law.line.gain * x + law.line.offset - found
        if abs(above) > 2 * TOLERANCE * found + CHANCE * law.error_at(x):
            raise ValueError(
                "darks are clipped at their smallest value: the camera subtracts its black; calibrate "
                "without darks, with flats of several exposures"
            )


def _level(laws: Sequence[MeanVariance], black: tuple[float, ...]) -> tuple[Level, list[str]]:
    """Return the level of all channels, and why it has this law."""
    if max(law.change for law in laws) < TOLERANCE:
        values = np.sqrt([law.mean for law in laws])
        reason = "its level is the same at all brightnesses"
        return Constant(values if len(laws) > 1 else np.array(values[0])), [reason]
    bend = max(law.bend for law in laws)
    if bend <= TOLERANCE and all(law.line.gain > 0.0 for law in laws):
        reasons = [f"its variance follows a line, to {max(bend, 1e-3):.1%} of its level"]
        gain = tuple(law.line.gain for law in laws)
        offset = tuple(law.line.offset for law in laws)
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
    covariance = waves.energies.mean(axis=(2, 3))
    level = np.sqrt(np.diag(covariance))
    shared = np.abs(covariance / np.outer(level, level) - np.eye(len(level))).max()
    mixed, own = None, waves.spectra
    if shared > TOLERANCE + CHANCE / np.sqrt(waves.n_squares * own[0].size):
        mixed = _mix(covariance)
        own = np.einsum("ka,kluv,la->auv", mixed, waves.energies, mixed)
    mean = own.mean(axis=(1, 2), keepdims=True)
    excess = np.square(own / mean - 1).mean(axis=(1, 2)) - 2 / waves.n_squares
    white = bool((excess < (2 * TOLERANCE) ** 2).all())
    words = "it is white" if white else "its energy depends on frequency: it is coarse or in lines"
    if mixed is None and white:
        return None, None, [words]
    reasons = [] if mixed is None else [f"channels share it (correlation up to {shared:.2f})"]
    own = np.broadcast_to(mean, own.shape) if white else own
    own = np.maximum(own / own.mean(), TOLERANCE**2)  # what is less is hardly known
    return mixed, own / own.mean(), [words, *reasons]


def _mix(covariance: Array) -> Array:
    """Return eigenvectors, the one that is most like luminance first: what follows are colours."""
    vectors = np.linalg.eigh(covariance)[1]
    brightest = int(np.argmax(np.abs(vectors.sum(axis=0))))
    order = [brightest, *(i for i in range(len(covariance)) if i != brightest)]
    return vectors[:, order]


class Line(NamedTuple):
    """Variance = gain * brightness + offset, by weighted least squares.

    It is known best at a ``centre``; ``precision`` is one over the variances of its value there, and of
    the gain.
    """

    gain: float
    offset: float
    centre: float
    precision: tuple[float, float]

    @classmethod
    def fit(cls, x: Array, v: Array, weight: Array) -> Line:
        """Return the line that variances follow."""
        total = float(weight.sum())
        centre, mean = float(weight @ x) / total, float(weight @ v) / total
        away = x - centre
        sure = max(float(weight @ away**2), 1e-300)
        gain = float(weight @ (away * v)) / sure
        return cls(gain, mean - gain * centre, centre, (total, sure))

    def at(self, x: Array, least: Array | float) -> Array:
        """Return its variance, not below the least."""
        return np.maximum(self.gain * x + self.offset, least)


@dataclass(frozen=True, eq=False)
class MeanVariance:
    """How variance follows brightness in one channel.

    Attributes
    ----------
    line : Line
    nodes, variances, errors : ndarray (nodes,)
        Brightness, ascending; mean variance there; its standard error.
    span : (float, float)
        The least and the largest brightness of blocks that count.
    good : ndarray of bool (blocks,)
        Blocks that count.
    scatter : float
        How much more blocks differ than white noise makes them, at least 1.
    rejected : float
        Share of the blocks that differ by too much.
    """

    line: Line
    nodes: Array
    variances: Array
    errors: Array
    span: tuple[float, float]
    good: Array
    scatter: float
    rejected: float

    def smooth(self, brightness: Array) -> Array:
        """Return the variance that blocks of a brightness have."""
        return _curve(brightness, self.line, self.nodes, self.variances)

    def error_at(self, brightness: float) -> float:
        """Return the standard error of the line at a brightness."""
        centre_error = self.scatter / np.sqrt(self.line.precision[0])
        return float(np.hypot(centre_error, self.gain_error * (brightness - self.line.centre)))

    @property
    def gain_error(self) -> float:
        """Standard error of the gain."""
        return float(self.scatter / np.sqrt(self.line.precision[1]))

    @property
    def mean(self) -> float:
        """Mean variance of the nodes."""
        return float(self.variances.mean())

    @property
    def width(self) -> float:
        """How far brightnesses are apart."""
        return self.span[1] - self.span[0]

    @property
    def bend(self) -> float:
        """How far the level lies from the line."""
        return self._away_from(self.line.at(self.nodes, _LEAST * float(self.variances.max())))

    @property
    def change(self) -> float:
        """How far the level lies from a constant."""
        return self._away_from(np.full_like(self.nodes, self.mean))

    def _away_from(self, law: Array) -> float:
        """Return how far the level at the nodes lies from a law there, beyond its error: relative, rms."""
        law = np.maximum(law, 1e-300)
        squares = (np.sqrt(self.variances / law) - 1) ** 2 - (self.errors / law / 2) ** 2
        return float(np.sqrt(max(float(squares.mean()), 0.0)))


def fit_blocks(blocks: Blocks, c: int, *, with_low: bool) -> MeanVariance | None:
    """Return how the variance of channel ``c`` follows brightness; None if too few blocks count.

    Those with pixels at the low end of the range count if ``with_low``.
    """
    x, v, n = (values[:, c] for values in (blocks.brightness, blocks.variance, blocks.n_pixels))
    use = (n > 0.5 * n.max()) & ~blocks.at_high[:, c] & (with_low | ~blocks.at_low[:, c])
    if use.sum() < 4 or not v[use].any():  # of the smallest frames
        return None
    nodes = _nodes(x, v, blocks.scene, use, np.median)
    if not nodes[1].any():  # a photon here and there
        nodes = _nodes(x, v, blocks.scene, use, np.mean)
    line = Line.fit(*nodes[:2], 1 / np.maximum(nodes[1], _LEAST * nodes[1].max()) ** 2)
    for _ in range(4):  # each line weighs blocks for the next, and says which count
        curve = _curve(x, line, *nodes[:2])
        kurtosis = max(line.gain, 0.0) ** 2 / curve  # of photons
        error = np.sqrt((2 / (blocks.n_frames - 1) + kurtosis / blocks.n_frames) / np.maximum(n, 1))
        z = (v / curve - 1) / error
        scatter = max(_SPREAD * float(np.median(np.abs(z[use] - np.median(z[use])))), 1.0)
        good = use & (np.abs(z) < CHANCE * scatter)
        # Not of the curve: blocks would weigh more where it is too low.
        expected = line.at(x, curve / 4)
        line = Line.fit(x, v, np.where(good, 1 / (expected * error) ** 2, 0.0))
        nodes = _nodes(x, v, blocks.scene, good, np.mean)
    span = float(x[good].min()), float(x[good].max())
    return MeanVariance(line, *nodes, span, good, scatter, float(1 - good.sum() / use.sum()))


def _nodes(
    x: Array, v: Array, scene: Array, use: Array, middle: Callable[[Array], Any]
) -> tuple[Array, Array, Array]:
    """Return brightness, variance and its error at nodes: groups of blocks of one scene, by brightness."""
    found = []
    for number in np.unique(scene[use]):
        own = np.flatnonzero(use & (scene == number))
        own = own[np.argsort(x[own], kind="stable")]
        for group in np.array_split(own, max(1, min(_NODES, len(own) // _BLOCKS_A_NODE))):
            error = float(v[group].std() / np.sqrt(len(group)))
            found.append((float(middle(x[group])), float(middle(v[group])), error))
    nodes, variances, errors = np.array(sorted(found)).T
    return nodes, variances, errors


def _curve(x: Array, line: Line, nodes: Array, variances: Array) -> Array:
    """Return variances between nodes, and beyond them as the line goes on, to a quarter of the least."""
    least = max(float(variances.min()) / 4, _LEAST * float(variances.max()))
    bent = np.interp(x, nodes, variances / line.at(nodes, least))
    return np.maximum(line.at(x, least) * bent, least)
