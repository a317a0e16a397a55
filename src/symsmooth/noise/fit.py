"""The noise model of a picture: evidence is measured, noise at nodes of brightness estimated and fused.

Level against brightness is the mean of three laws (a constant, a line of the variance, the nodes as
they are), each weighted by how likely it makes the nodes, given the uncertainty that they are said
to have, with the Bayesian information criterion for its freedom.  So is the spectrum: white and alike
in all channels, white in each, or as it was found.  So white noise gets a constant and a flat spectrum,
photon noise a line, and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.image import Array, Float, Picture
from ..core.parallel import Pool
from .changes import Changes, measure_changes, runs_of
from .estimator import Estimate, estimate, load_weights
from .evidence import CENTRES, NODES, OPPONENT, PER_RING, RADIUS, SIDE, Evidence, measure
from .level import FINEST, picture_sigma
from .levels import Constant, Curve, Level, Photons, PlaceCurve
from .model import Finding, NoiseModel, White
from .spectrum import coarse_shares
from .stillness import correct, find_stillness

_SMALLEST = (
    32  # pixels a side: a smaller picture shows too few regions; its noise is taken for white
)
_LARGEST = 512 * 768  # pixels that are looked at; of a larger picture sixteen windows
_MAX_SLICES = 4  # of a volume or a stack
_POINTS = 129  # of a curve
_DENSE = 4096  # brightnesses that these are chosen from
# Of the mean level: where noise was cut off there is less, but what is divided by it stays finite.
_LEAST_LEVEL = 0.2
_MOST_LEVEL = 4.0  # times the level at the next node, beyond the nodes
_HIDDEN = 0.1  # of a rounding step: less noise changes no pixel
# The least share of the mean energy that a channel is given: where the noise of colour was removed, exact
# colours would split clusters that are alike.
_LEAST_CHANNEL = 0.01
# Of the said deviation: by so much the errors of rings differ from each other, the rest they share
# (benchmarks/noise_fit/rings.py: 0.3 in grey, 0.5 in colour).
_OWN_ERROR = 0.5


def find_model(pictures: Sequence[Picture]) -> NoiseModel:
    """Return the noise of pictures that have it in common, in the units of the first."""
    first = pictures[0]
    if min(first.noisy.shape[-3:-1]) < _SMALLEST:
        reason = f"it is taken for white: a picture below {_SMALLEST} pixels shows no more"
        return White(picture_sigma(first), finding=Finding(0.5, (reason,)))
    planes, valid = zip(
        *(each for picture in pictures for each in _windows(picture, first, len(pictures))),
        strict=True,
    )
    n_channels = first.noisy.shape[-1]
    together = n_channels == 1 or (n_channels == 3 and len(first.groups) == 1)
    apart = [slice(None)] if together else [slice(c, c + 1) for c in range(n_channels)]
    with Pool(1):  # many small products: threads of the BLAS would only wait for each other
        own = [
            _fit([p[..., c] for p in planes], valid, first, _changes(pictures, c)) for c in apart
        ]
    return own[0] if together else _side_by_side(own, *_extremes(planes))


def photon_law(pictures: Sequence[Picture]) -> NoiseModel:
    """Return the line that the variance of each channel follows; white noise if it does not grow."""
    first = pictures[0]
    if min(first.noisy.shape[-3:-1]) < _SMALLEST:
        return White(picture_sigma(first))
    zero = -first.offset / first.scale
    lines = []
    planes, valid = zip(
        *(each for picture in pictures for each in _windows(picture, first, len(pictures))),
        strict=True,
    )
    with Pool(1):
        for c in range(first.noisy.shape[-1]):
            evidence = measure([p[..., c : c + 1] for p in planes], valid, first.step)
            if evidence is None:
                return White(0.0)
            changes = _changes(pictures, slice(c, c + 1))
            nodes = nodes_of(estimate(evidence), evidence, changes)
            slope, start = _line(nodes) if nodes.level > 0.0 else (0.0, 0.0)
            if slope <= 0.0:
                return White(picture_sigma(first))
            darkest = float(nodes.brightness[0])
            lines.append((slope, max(start, -slope * darkest)))
    gain, offset = zip(*lines, strict=True)
    return NoiseModel(Photons(gain, offset, (zero,) * len(gain)))


def _fit(
    planes: Sequence[Float],
    valid: Sequence[Array | None],
    picture: Picture,
    changes: Changes | None,
) -> NoiseModel:
    """Return the model of one channel, or of three together."""
    evidence = measure(planes, valid, picture.step)
    if evidence is None:
        return White(0.0, finding=Finding(1.0, ("the picture is constant",)))
    nodes = nodes_of(estimate(evidence), evidence, changes)
    if nodes.level <= _HIDDEN * picture.step or nodes.level == 0.0:
        reason = "none is seen above the rounding of pixels"
        return White(0.0, finding=Finding(confidence(nodes), (reason,)))
    return fuse(nodes, planes)


def fuse(nodes: Nodes, planes: Sequence[Float]) -> NoiseModel:
    """Return the model of noise that is known at nodes of brightness, in planes (y, x, 1 or 3)."""
    nodes = _simplified(nodes)
    spectrum = _spectrum(nodes)
    coarse, in_colour = coarse_shares(spectrum), len(spectrum) == 3
    return NoiseModel(
        _level(nodes, planes, in_colour),
        OPPONENT.astype(np.float64) if in_colour else None,
        spectrum,
        _margin(coarse, nodes),
        finding=_finding(nodes, spectrum, coarse),
    )


@dataclass(frozen=True)
class Nodes:
    """Noise at nodes of brightness."""

    brightness: Array  # (nodes,), ascending
    energy: Array  # (nodes, channels, rings)
    variance: Array  # (nodes,): mean over channels and frequencies
    spread: Array  # (nodes,): said deviation of log2 of the level
    ring_spread: Array  # (channels, rings): the same of all nodes together
    share: Array  # (nodes,): of the picture
    texture: float  # log2 of the level of the middling region in that of the noise, 0 to 3
    still: float  # how far it is what frames show where nothing moves, 0 to 1

    @property
    def level(self) -> float:
        """Root mean square."""
        return float(np.sqrt(self.share @ self.variance))

    @property
    def colour(self) -> float:
        """How much stronger the noise of colours is than that of luminance, at middle frequencies: log2."""
        energy = (self.share @ self.energy.reshape(len(self.share), -1)).reshape(
            self.energy.shape[1:]
        )
        middle = energy[:, 3:5].mean(axis=1)
        if len(middle) == 1:
            return 0.0
        ratio = float(middle[1:].mean() / max(float(middle[0]), 1e-30))
        return float(np.clip(np.log2(max(ratio, 1e-30)) / 2, -3.0, 2.0))

    @property
    def said(self) -> float:
        """Mean said deviation of log2 of the level: nodes count by their noise."""
        weight = self.share * self.variance + 1e-30
        return float(weight @ self.spread / weight.sum())


def nodes_of(found: Estimate, evidence: Evidence, changes: Changes | None = None) -> Nodes:
    """Return what was estimated, less what is as good as none, and what frames show where nothing moves."""
    least = evidence.floor * evidence.reference
    energy, spread, learnt = np.maximum(found.energy - least, 0.0), found.spread, 0.0
    counts = found.energy
    if changes is not None:
        still = find_stillness(changes, evidence.brightness)
        energy, spread, learnt = correct(energy, spread, still, least)
        counts = energy + least if learnt > 0.0 else counts
    mean = energy @ PER_RING  # (nodes, channels)
    weight = counts * PER_RING
    said = np.sqrt((weight * spread**2).sum(axis=(1, 2)) / weight.sum(axis=(1, 2)))
    by_node = counts + 1e-30
    ring_spread = np.sqrt((by_node * spread**2).sum(axis=0) / by_node.sum(axis=0))
    ends = np.concatenate([[0.0], (NODES[1:] + NODES[:-1]) / 2, [1.0]])
    rising = np.maximum.accumulate(found.brightness)
    share = np.diff(ends)
    middle = float(share @ counts[:, 0, 3:5].mean(axis=1))
    typical = float(np.median(evidence.energy[:, 0, 3:5].mean(axis=1))) * evidence.reference
    texture = float(np.clip(np.log2(typical / middle) / 2, 0.0, 3.0))
    return Nodes(rising, energy, mean.mean(axis=1), said, ring_spread, share, texture, learnt)


def _simplified(nodes: Nodes) -> Nodes:
    """Return noise whose spectrum is as simple as what is known of it allows.

    The mean of three laws: white and alike in all channels, white in each, and as it was found.
    """
    energy = np.einsum("k,kcr->cr", nodes.share, nodes.energy)
    found = np.log2(np.maximum(energy, _LEAST_CHANNEL * energy.max())) / 2
    spread = _OWN_ERROR * nodes.ring_spread
    sure = 1 / spread**2
    alike = np.full_like(found, np.average(found, weights=sure))
    white = np.average(found, axis=1, weights=sure)[:, None] + np.zeros_like(found)
    laws = [(1, alike), (len(found), white), (found.size, found)]
    belief = _beliefs(found, spread, laws if len(found) > 1 else laws[1:])
    simple = sum(share * law for share, (_, law) in zip(belief, laws[-len(belief) :], strict=True))
    energy = nodes.energy * np.exp2(2 * (simple - found))
    return replace(nodes, energy=energy, variance=(energy @ PER_RING).mean(axis=1))


def _beliefs(known: Array, spread: Array, laws: list[tuple[int, Array]]) -> Array:
    """Return how far each law (its freedom, what it says) is believed, given what is known: sum 1.

    ``known`` and ``spread`` are log2 of levels and their deviation.
    """
    doubt = np.array(
        [
            np.sum(((law - known) / spread) ** 2) / 2 + freedom * np.log(known.size) / 2
            for freedom, law in laws
        ]
    )
    belief = np.exp(doubt.min() - doubt)
    return belief / belief.sum()


def _spectrum(nodes: Nodes) -> Array:
    """Return energies of cosines (channels, 8, 8), 1 on average: nodes count by their noise."""
    rings = np.einsum("k,kcr->cr", nodes.share, nodes.energy)
    rings = np.maximum(rings, _LEAST_CHANNEL * (rings @ PER_RING).mean())
    found = np.stack([np.exp(np.interp(RADIUS, CENTRES, np.log(row))) for row in rings])
    return found / found.mean()


def _line(nodes: Nodes) -> tuple[float, float]:
    """Return slope and start of the line that the variance follows, by least squares of relative errors.

    The slope is shrunk by its own uncertainty: where brightness hardly differs it says nothing.
    """
    scale = np.maximum(nodes.variance, 1e-3 * nodes.variance.mean())
    error = 2 * np.log(2) * nodes.spread  # of the variance, relative
    x, y = nodes.brightness, nodes.variance
    weight = 1 / (scale * error) ** 2
    centre, mean = (float(weight @ values / weight.sum()) for values in (x, y))
    away = x - centre
    sure = float(weight @ away**2)  # one over the slope's variance
    slope = float(weight @ (away * y)) / max(sure, 1e-300)
    evidence = slope**2 * sure
    slope *= evidence / (1 + evidence)
    return slope, mean - slope * centre


def _level(nodes: Nodes, planes: Sequence[Float], in_colour: bool) -> Level:
    """Return the level against brightness."""
    mean = float(nodes.share @ nodes.variance)
    least = _LEAST_LEVEL**2 * mean
    variance = np.maximum(nodes.variance, least)
    slope, start = _line(nodes)

    def line(x: Array) -> Array:
        return np.maximum(slope * x + start, least)

    constant = np.full(
        len(variance),
        float(np.exp(np.average(np.log(variance), weights=nodes.share / nodes.spread**2))),
    )
    laws = [(1, constant), (2, line(nodes.brightness)), (len(variance), variance)]
    belief = _beliefs(
        np.log2(variance) / 2, nodes.spread, [(freedom, np.log2(law) / 2) for freedom, law in laws]
    )
    at_nodes = np.exp(
        sum(share * np.log(law) for share, (_, law) in zip(belief, laws, strict=True))
    )
    if belief[0] > 0.999:  # as good as certain
        return Constant(np.array(np.sqrt(mean)))
    if not in_colour:
        span = np.array(
            [[min(float(p.min()) for p in planes), max(float(p.max()) for p in planes)]]
        )
        first, last = span[0]
    else:
        means = [p[::4, ::4].mean(axis=-1) for p in planes]
        first, last = min(float(m.min()) for m in means), max(float(m.max()) for m in means)
    x, known = _beyond(nodes.brightness, at_nodes, first, last, line, belief[0])
    fine = _spaced(x, known)
    level = np.sqrt(np.interp(fine, x, known))
    if not in_colour:
        return Curve(fine[np.newaxis], level[np.newaxis], span)
    return PlaceCurve(fine, level)


def _spaced(x: Array, variance: Array) -> Array:
    """Return the brightnesses of a curve's points: as far apart as the level is high.

    So the ground of a picture is seen, however bright the few bright things on it are.
    """
    dense = np.union1d(x, np.linspace(x[0], x[-1], _DENSE))
    level = np.sqrt(np.interp(dense, x, variance))
    way = np.concatenate([[0.0], np.cumsum(np.diff(dense) / (level[1:] + level[:-1]))])
    return np.interp(np.linspace(0, way[-1], _POINTS), way, dense)


def _beyond(
    x: Array, variance: Array, first: float, last: float, line: Any, constant: float
) -> tuple[Array, Array]:
    """Continue variances beyond the outer nodes as the line goes on, as far as noise is no constant."""
    ends = []
    for at, k in ((first, 0), (last, -1)):
        times = float(line(np.array(at)) / line(x[k]))
        times = float(np.clip(times, 1 / _MOST_LEVEL**2, _MOST_LEVEL**2)) ** (1 - constant)
        ends.append(variance[k] * times)
    gap = 1e-6 * max(float(np.ptp(x)), 1e-30)
    inside = (x > first + gap) & (x < last - gap)
    inside &= np.concatenate([[True], np.diff(x) > gap])
    points = np.concatenate([[first], x[inside], [max(last, first + gap)]])
    return points, np.concatenate([ends[:1], variance[inside], ends[1:]])


def _margin(coarse: Array, nodes: Nodes) -> Array | None:
    """Return how many times its level the denoiser is told, for each channel: fitted by its regret."""
    fitted = load_weights().get("margin")
    if fitted is None:
        return None
    numbers = fitted[[0] if len(coarse) == 1 else [1, 2, 2]]  # of grey; of luminance and colours
    shown = [1.0, np.log2(nodes.said), nodes.texture, nodes.colour]
    return 2.0 ** (coarse.max() * (numbers @ shown))


def confidence(nodes: Nodes) -> float:
    """Return how likely the result lies within half a decibel of that with the true noise: calibrated."""
    fitted = load_weights().get("confidence")
    if fitted is None:
        return float(np.exp(-nodes.said))
    return float(1 / (1 + np.exp(-(fitted[0] + fitted[1] * np.log2(nodes.said)))))


def _finding(nodes: Nodes, spectrum: Array, coarse_channels: Array) -> Finding:
    """Say what noise was found, in words."""
    reasons = []
    dark, bright = np.sqrt(nodes.variance[[0, -1]])
    times = bright / max(dark, 1e-30)
    if times > 1.3:
        reasons.append(
            f"it is {times:.1f} times stronger in the brightest than in the darkest parts"
        )
    elif times < 1 / 1.3:
        reasons.append(
            f"it is {1 / max(times, 1e-2):.1f} times stronger in the darkest than in the brightest parts"
        )
    coarse = float(np.median(coarse_channels))
    if coarse > 0.3:
        reasons.append(
            f"it is coarse: fine detail has {1 - coarse:.0%} of the energy that middling detail has"
        )
    if len(spectrum) == 3:
        rms = np.sqrt(spectrum.mean(axis=(1, 2)))
        reasons.append(f"colour has {rms[1:].mean() / rms[0]:.2f} times the noise of luminance")
    if not reasons:
        reasons.append("it is the same at all frequencies and at all brightnesses")
    if nodes.still > 0.5:
        reasons.append("it was measured on what changes between frames where nothing moves")
    more = nodes.level * (2.0 ** (2 * nodes.said) - 1)  # at two deviations
    return Finding(confidence(nodes), tuple(reasons), float(more))


def _extremes(planes: Sequence[Float]) -> tuple[Array, Array]:
    """Return the least and the largest pixel of each channel of planes (y, x, channels)."""
    ends = np.array([(p.min(axis=(0, 1)), p.max(axis=(0, 1))) for p in planes], np.float64)
    return ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)


def _side_by_side(models: list[NoiseModel], low: Array, high: Array) -> NoiseModel:
    """Return the model of channels (pixels from ``low`` to ``high``) that each have noise of their own."""
    findings = [model.finding for model in models if model.finding is not None]
    finding = min(findings, key=lambda each: each.confidence) if findings else None
    spectra = [model.spectrum for model in models]
    spectrum = None
    margin = None
    if any(own is not None for own in spectra):
        flat = np.ones((1, SIDE, SIDE))
        spectrum = np.concatenate([flat if own is None else own for own in spectra])
        ones = np.ones(1)
        margin = np.concatenate([ones if m.margin is None else m.margin for m in models])
    levels = [model.level for model in models]
    if all(isinstance(level, Constant) for level in levels):
        values = np.array([level.typical for level in levels])
        return NoiseModel(Constant(values), None, spectrum, margin, finding=finding)
    curves = [
        level if isinstance(level, Curve) else _flat_curve(level.typical, *ends)
        for level, *ends in zip(levels, low, high, strict=True)
    ]
    together = Curve(
        np.concatenate([c.brightness for c in curves]),
        np.concatenate([c.level for c in curves]),
        np.concatenate([c.span for c in curves]),
    )
    return NoiseModel(together, None, spectrum, margin, finding=finding)


def _flat_curve(level: float, low: float, high: float) -> Curve:
    """Return a constant level as a curve over pixels from ``low`` to ``high``; none is the finest level."""
    own = max(level, FINEST)
    x = np.linspace(low, high + own, _POINTS)[np.newaxis]
    return Curve(x, np.full(x.shape, own), np.array([[-np.inf, np.inf]]))


def _windows(
    picture: Picture, first: Picture, n_pictures: int
) -> Iterable[tuple[Float, Array | None]]:
    """Return planes (y, x, channels) and their valid pixels: all, or windows of a large picture."""
    slices, valid = _slices(picture, first)
    chosen = range(0, len(slices), -(-len(slices) // _MAX_SLICES))
    for z in chosen:
        for y, x in _boxes(slices.shape[1:3], len(chosen) * n_pictures):
            yield slices[z, y, x], None if valid is None else valid[z, y, x]


def _changes(pictures: Sequence[Picture], channels: slice) -> Changes | None:
    """Measure what changes between frames in some channels; None if these are no frames, or too few."""
    windows = []
    for picture in pictures:
        if picture.time_axis is None:
            continue
        frames, valid = _slices(picture, pictures[0])
        runs = runs_of(frames)
        for y, x in _boxes(frames.shape[1:3], len(runs) * len(pictures)) if runs else ():
            window = np.stack([frames[run, y, x, channels] for run in runs])
            known = None if valid is None else np.stack([valid[run, y, x] for run in runs])
            windows.append((window, known))
    return measure_changes(windows) if windows else None


def _slices(picture: Picture, first: Picture) -> tuple[Float, Array | None]:
    """Return slices or frames (n, y, x, channels) in the units of the first picture, and valid pixels."""
    noisy = picture.noisy
    if picture is not first:
        scale = np.float32(picture.scale / first.scale)
        noisy = noisy * scale + np.float32((picture.offset - first.offset) / first.scale)
    slices = noisy.reshape(-1, *noisy.shape[-3:])
    if picture.mask is None and picture.constant is None:
        return slices, None
    without = [mask for mask in (picture.mask, picture.constant) if mask is not None]
    return slices, ~np.logical_or.reduce(without).reshape(slices.shape[:-1])


def _boxes(plane: Sequence[int], number: int) -> Iterable[tuple[slice, slice]]:
    """Return all of a plane (y, x), or windows if it and others, so many in all, are large."""
    height, width = plane
    side = max(int((_LARGEST / 16 / number) ** 0.5), 4 * SIDE)
    if number * height * width <= _LARGEST:
        side = max(height, width)
    for y in _starts(height, side):
        for x in _starts(width, side):
            yield slice(y, y + side), slice(x, x + side)


def _starts(size: int, side: int) -> list[int]:
    """Return where windows begin: one that holds all, or four spread evenly."""
    if size <= side:
        return [0]
    return [round(at) for at in np.linspace(0, size - side, 4)]
