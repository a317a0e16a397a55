"""How much time GSF-W spends: its stages, and how they follow the noise.

Constants were chosen on 40 pictures of the development set and 8 larger ones; docs/flagship.md says what
it costs to change them.  Noise is measured against the picture's :func:`~symsmooth.noise.contrast`, so
that nothing depends on units; grey levels are those it would have in a natural picture
(:func:`~symsmooth.noise.grey_levels`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from ..core.blocks import default_halo
from ..noise import grey_levels

PAIR = 2  # frames
SPECTRUM_BIAS = 0.95  # eigenvalues are taken in units of this * sigma^2; 1: -.02 to -.04 dB

Quality = Literal["preview", "fast", "balanced", "best"]


@dataclass(frozen=True)
class Stage:
    """One clustering and what its clusters do."""

    patch_size: int
    pixels_per_cluster: int
    h_s: float  # pixels
    h_r: float  # in units of the stage's sigma
    iterations: int  # of EM
    subsample: int  # EM looks at every so many-th position
    reach: float  # in h_s
    max_clusters: int  # that a patch may belong to
    temperature: float  # what log gamma is multiplied with: below 1, clusters overlap
    feedback: float = 1.0  # of a pilot: the share of the noise that it is given again
    strength: float = 3.0  # of the Wiener filter: what the pilot's covariance is multiplied with
    bias: float = SPECTRUM_BIAS  # of the spectral shrinkage of a pilot
    n_frames: int = 0  # that a patch of a series (y, t, x) has, 1 or a pair; 0: this is no series

    def extent(self, n_dims: int) -> tuple[int, ...]:
        """Return the extent of a patch along each spatial axis; pairs are two flat patches."""
        side = self.patch_size
        return (side, 1 if self.n_frames else side, side) if n_dims == 3 else (side, side)


@dataclass(frozen=True)
class Preset:
    """Pilots and final stage; without a final stage the last pilot is the result.

    ``smooth_gradients``: where there is little noise, gradients are given wider and softer clusters, which
    takes time.  ``coarse`` and ``coarse_final`` are the weights of the coarse picture's low frequencies in
    the first pilot and in the result; 0 where noise is not much: there is no coarse picture then.
    """

    pilots: tuple[Stage, ...]
    final: Stage | None
    smooth_gradients: bool = False
    coarse: float = 0.0
    coarse_final: float = 0.0

    @property
    def halo(self) -> int:
        """Pixels that a piece of a picture is denoised with, on each side.

        A third of the usual for a preview: it has one stage, and clusters of colours reach 1.5 h_s.
        """
        return default_halo(2) // (3 if self.final is None else 1)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages in their order."""
        return self.pilots if self.final is None else (*self.pilots, self.final)


_PILOT = Stage(
    patch_size=5,
    pixels_per_cluster=30,
    h_s=10.0,
    h_r=1.0,
    iterations=4,
    subsample=1,
    reach=2.5,
    max_clusters=10,
    temperature=0.4,
)
_FINAL = Stage(
    patch_size=8,
    pixels_per_cluster=20,
    h_s=8.0,
    h_r=0.5,
    iterations=1,
    subsample=4,
    reach=2.5,
    max_clusters=8,
    temperature=0.5,
)
_BALANCED_PILOT = replace(_PILOT, pixels_per_cluster=40, iterations=2, subsample=2, max_clusters=8)
_FAST_PILOT = replace(
    _PILOT, patch_size=4, pixels_per_cluster=60, iterations=1, subsample=2, max_clusters=6
)
_PREVIEW_PILOT = replace(
    _FAST_PILOT, pixels_per_cluster=120, h_s=8.0, reach=2.0, subsample=4, max_clusters=2
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "best": Preset(
            (_PILOT, replace(_PILOT, patch_size=4, feedback=0.6)), _FINAL, smooth_gradients=True
        ),
        "balanced": Preset(
            (_BALANCED_PILOT, replace(_BALANCED_PILOT, patch_size=4, feedback=0.6)),
            replace(_FINAL, patch_size=7, pixels_per_cluster=30, reach=1.5, max_clusters=6),
            smooth_gradients=True,
        ),
        "fast": Preset(
            (_FAST_PILOT,),
            replace(_FINAL, patch_size=6, pixels_per_cluster=40, reach=1.5, max_clusters=6),
        ),
        "preview": Preset((_PREVIEW_PILOT,), None),
    }
)

# Coarse noise of cameras and phones is known less well than white noise, and clusters that fit closely keep
# some of it: few, wide and soft ones are better there, and a second pilot is worse (-.09 dB on phones).
# Four clusters a patch, three in colour: six and four take 3 % more time for .004 dB at most.
_COARSE_PILOT_STAGE = replace(
    _FAST_PILOT, pixels_per_cluster=80, subsample=4, max_clusters=4, temperature=0.24
)
_COARSE_FINAL_STAGE = replace(
    _FINAL,
    patch_size=7,
    pixels_per_cluster=60,
    h_r=0.7,
    reach=1.5,
    max_clusters=4,
    temperature=0.3,
)
COARSE_PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "best": Preset(
            (_COARSE_PILOT_STAGE,),
            replace(_COARSE_FINAL_STAGE, pixels_per_cluster=40, max_clusters=6),
        ),
        "balanced": Preset((_COARSE_PILOT_STAGE,), _COARSE_FINAL_STAGE),
        "fast": Preset((_COARSE_PILOT_STAGE,), replace(_COARSE_FINAL_STAGE, patch_size=6)),
        "preview": PRESETS["preview"],
    }
)


class Ramp(NamedTuple):
    """A number that follows another: ``start`` up to ``low``, linearly to ``start + rise`` at ``high``."""

    low: float
    high: float
    start: float = 0.0
    rise: float = 1.0

    def __call__(self, value: float) -> float:
        """Return the number at this value."""
        way = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return self.start + self.rise * way


# How stages follow the noise, in grey levels.
#
# The more noise, the more patches it takes to average it out: clusters become wider.  Factors of h_s;
# pilots with 0.8 throughout: -.01 to -.02 dB.  In the final stage it matters less: 1 throughout is
# +.001 dB (fast), with more patches to look at.
_PILOT_WIDTH = Ramp(15.0, 25.0, start=0.8, rise=0.2)
_FINAL_WIDTH = Ramp(15.0, 25.0, start=0.81, rise=0.19)
# For smooth gradients the final clusters begin wide (gradients +0.5 dB, photographs +.02 dB), and all
# begin soft, by a factor of the temperature (gradients +0.2 to +0.4 dB, photographs -.003 dB).  Both
# together take a sixth of the time.
_SMOOTH_FINAL_WIDTH = Ramp(15.0, 25.0, start=2.0, rise=-1.0)
_SMOOTH_TEMPERATURE = Ramp(20.0, 34.0, start=0.6, rise=0.4)
# What is added to the share of the noise that a second pilot is given again.  Nothing: -.005 dB at 40
# to 75 grey levels; -0.2: +.002 dB.
_FEEDBACK_CHANGE = Ramp(30.0, 50.0, rise=-0.1)
# Strength of the Wiener filter: a pilot has lost the more variance the more noise there was.
# Throughout 3 in a picture: -.03 to -.07 dB at 5 grey levels; in a volume: -.15 to -.25 dB on cells.
_PICTURE_STRENGTH = Ramp(0.0, 25.0, start=1.75, rise=1.25)
_VOLUME_STRENGTH = Ramp(0.0, 25.0, start=1.75, rise=0.5)
# Weight of what half size says of low frequencies, in the first pilot and in the result.  From 0 grey
# levels on: a quarter more time for .015 dB at most; pilots from 35 to 60: -.006 to +.013 dB; none in
# the result: -.001/-.017/-.025 dB at 50/75/100 grey levels.
_COARSE_PILOT = Ramp(30.0, 55.0)
_COARSE_FINAL = Ramp(30.0, 100.0, rise=0.5)

# In colour clusters are more alike, since all channels chose them: larger ones do in the final stage, and
# fewer for each patch.  White noise of 10, 25, 50: -.03 dB (fast), -.01 (balanced, best) for a third of the
# time; coarse noise: nothing.
_COLOUR_PATCH = 7  # at most
_COLOUR_MORE_PIXELS = 20  # of a cluster
_COLOUR_CLUSTERS = 0.7  # of those that a patch belongs to

# A preview of colours: one cluster a patch, and large ones.  160 pixels a cluster: +.13, +.09 dB on white
# noise of 8 and 25, PolyU +.05, SIDD -.65 dB.  Within 2 h_s, and EM at every fourth position: white noise
# +.04, SIDD -.06, others within .03 dB, for 6 % more time.
_COLOUR_PREVIEW: Mapping[str, Any] = MappingProxyType(
    {"max_clusters": 1, "pixels_per_cluster": 240, "reach": 1.5, "subsample": 8}
)

# Squares of a series are followed (motion.py), so that what is alike is near.  At sigma 10 and 40, a pilot
# within 0.35: -.009 and -.026 dB for 3 % less time; the final stage within 0.7: +.012 and +.017 dB for 4 %
# more.
_SERIES_PILOT_REACH, _SERIES_FINAL_REACH = 0.8, 0.6
# Eigenvalues of pairs are a little larger; .95: -.009, -.014, -.027 dB at sigma 10, 20, 40; .87: -.001 dB.
_SERIES_BIAS = 0.9
# Of the final stage.  60 and one iteration of EM: -.026, -.018, -.010 dB for 6 % less time; 40: +.007 dB
# for 2 % more.
_SERIES_FINAL_PIXELS, _SERIES_FINAL_ITERATIONS = 45, 2
# Of pilots and of the final stage.  As in pictures, 1 and 0.5: +.004 dB for 3 % more time.
_SERIES_PILOT_H_R, _SERIES_FINAL_H_R = 0.8, 0.6
_SERIES_CLUSTERS = 2  # of a patch; 3: 8 % more time for +.01 dB
# The final stage takes one up to so many grey levels: 2 give +.003/+.014/+.039 dB at sigma 10/20/40, and
# take 7 to 11 % more time.
_SERIES_ONE_CLUSTER = 30.0
# EM on every second position.  1: +.008 dB in the final stage for 3 % more time; 4: -.04 dB there, -.014 dB
# in the pilot.
_SERIES_SUBSAMPLE = 2
_SERIES_PILOT_PIXELS = 112  # 80: +.013 dB for 7 % more time; 140: -.011 dB

# From which share on noise is coarse: half of the energy at high frequencies is missing.
_COARSE_SHARE = 0.5

# Where a picture repeats itself, by the share of its patches that occur again (below 0.15 in
# photographs, near 1 in a checkerboard): how wide clusters become, and within how many h_s EM looks
# for them; +2 to +5 dB there.
_REPEATED = Ramp(0.3, 0.7)
_REPEATED_H_S, _REPEATED_REACH = 40.0, 1.5

# Seven pictures at sigma 5 to 75: Wiener stages claim 0.85 to 1.3 of the true error, 1.06 on average;
# the spectral pilot, which does not know its bias, from 0.9 at little noise to 0.5 at much.
_WIENER_CLAIM = 1.06
_PILOT_BIAS = 0.8  # over the contrast


def adapt(
    preset: Preset, contrast: float, n_dims: int, n_channels: int = 1, *, is_series: bool = False
) -> Preset:
    """Fit a preset to the noise and to the numbers of spatial dimensions and of channels.

    The more noise, the more the coarse picture counts.
    """
    noise = grey_levels(contrast)
    if is_series:
        return _fit_to_series(preset, noise)
    fitted = _fit_to_volume if n_dims == 3 else _fit_to_picture
    pilots, final = fitted(preset, noise)
    if n_dims == 2 and final is None and n_channels > 1:
        pilots = tuple(replace(pilot, **_COLOUR_PREVIEW) for pilot in pilots)
    elif n_dims == 2 and final is not None and n_channels > 1:
        pilots = tuple(
            replace(pilot, max_clusters=round(_COLOUR_CLUSTERS * pilot.max_clusters))
            for pilot in pilots
        )
        final = replace(
            final,
            patch_size=min(final.patch_size, _COLOUR_PATCH),
            pixels_per_cluster=final.pixels_per_cluster + _COLOUR_MORE_PIXELS,
            max_clusters=round(_COLOUR_CLUSTERS * final.max_clusters),
        )
    return replace(
        preset,
        pilots=pilots,
        final=final,
        coarse=_COARSE_PILOT(noise),
        coarse_final=_COARSE_FINAL(noise),
    )


def for_noise(quality: Quality, coarse_share: float) -> Preset:
    """Return the preset for noise that is 0 for white noise, 1 if there is none at high frequencies."""
    return (PRESETS if coarse_share < _COARSE_SHARE else COARSE_PRESETS)[quality]


def _fit_to_volume(preset: Preset, noise: float) -> tuple[tuple[Stage, ...], Stage | None]:
    """Take cubes of 3 and 4 voxels a side, and clusters that span fewer slices."""
    pilots = tuple(replace(pilot, patch_size=3, h_s=4.0) for pilot in preset.pilots)
    final = preset.final and replace(
        preset.final, patch_size=4, h_s=3.5, strength=_VOLUME_STRENGTH(noise)
    )
    return pilots, final


def _fit_to_series(preset: Preset, noise: float) -> Preset:
    """Let pilots have patches of two frames, which tell what moves from noise; the final ones are flat."""
    pilots = tuple(
        replace(
            pilot,
            patch_size=4,
            n_frames=PAIR,
            pixels_per_cluster=_SERIES_PILOT_PIXELS,
            h_r=_SERIES_PILOT_H_R,
            iterations=1,
            bias=_SERIES_BIAS,
            subsample=_SERIES_SUBSAMPLE,
            reach=_SERIES_PILOT_REACH,
            max_clusters=_SERIES_CLUSTERS,
        )
        for pilot in preset.pilots
    )
    final = preset.final and replace(
        preset.final,
        patch_size=8,
        n_frames=1,
        pixels_per_cluster=_SERIES_FINAL_PIXELS,
        h_r=_SERIES_FINAL_H_R,
        iterations=_SERIES_FINAL_ITERATIONS,
        subsample=_SERIES_SUBSAMPLE,
        reach=_SERIES_FINAL_REACH,
        max_clusters=1 if noise < _SERIES_ONE_CLUSTER else _SERIES_CLUSTERS,
        strength=_PICTURE_STRENGTH(noise),
    )
    return replace(preset, pilots=pilots, final=final)


def _fit_to_picture(preset: Preset, noise: float) -> tuple[tuple[Stage, ...], Stage | None]:
    """Let clusters, feedback and the Wiener filter follow the noise."""
    final_width, softness = _FINAL_WIDTH(noise), 1.0
    if preset.smooth_gradients:
        final_width, softness = _SMOOTH_FINAL_WIDTH(noise), _SMOOTH_TEMPERATURE(noise)
    pilots = tuple(
        replace(
            pilot,
            h_s=pilot.h_s * _PILOT_WIDTH(noise),
            temperature=pilot.temperature * softness,
            feedback=pilot.feedback + _FEEDBACK_CHANGE(noise) * (pilot.feedback < 1.0),
        )
        for pilot in preset.pilots
    )
    final = preset.final and replace(
        preset.final,
        h_s=preset.final.h_s * final_width,
        temperature=preset.final.temperature * softness,
        strength=_PICTURE_STRENGTH(noise),
    )
    return pilots, final


def widen(stage: Stage, share_repeated: float) -> Stage:
    """Let the clusters of a flat picture that repeats itself reach further."""
    repeated = _REPEATED(share_repeated)
    return replace(
        stage,
        h_s=stage.h_s + repeated * (_REPEATED_H_S - stage.h_s),
        reach=stage.reach + repeated * (_REPEATED_REACH - stage.reach),
    )


def calibration(preset: Preset, contrast: float) -> float:
    """Return what the clusters' own standard deviation is multiplied with to be true on average."""
    return 1.0 + _PILOT_BIAS / contrast if preset.final is None else 1.0 / _WIENER_CLAIM
