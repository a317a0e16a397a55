"""How much time GSF-W spends: its stages, and how they follow the noise.

Constants were chosen on 40 pictures of the development set and 8 larger ones; docs/flagship.md says what
it costs to change them.  Noise is measured against the picture's :func:`~symsmooth.noise.contrast`, so
that nothing depends on units; "grey levels" below are those of a natural picture, 56 / contrast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

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


def adapt(preset: Preset, contrast: float, n_dims: int, n_channels: int = 1) -> Preset:
    """Fit a preset to the noise and to the numbers of spatial dimensions and of channels.

    The more noise, the more the coarse picture counts.
    """
    grey_levels = 56.0 / contrast
    fitted = _fit_to_volume if n_dims == 3 else _fit_to_picture
    pilots, final = fitted(preset, grey_levels)
    if n_dims == 2 and final is not None and n_channels > 1:
        # In colour clusters are more alike, since all channels chose them: fewer, larger ones do.
        side, members = min(final.patch_size, 7), max(final.pixels_per_cluster, 30)
        final = replace(final, patch_size=side, pixels_per_cluster=members)
    return replace(
        preset,
        pilots=pilots,
        final=final,
        coarse=_rise(grey_levels, 30.0, 55.0),
        coarse_final=0.5 * _rise(grey_levels, 30.0, 100.0),
    )


def _fit_to_volume(preset: Preset, grey_levels: float) -> tuple[tuple[Stage, ...], Stage | None]:
    """Take cubes of 3 and 4 voxels a side, and clusters that span fewer slices."""
    pilots = tuple(replace(pilot, patch_size=3, h_s=4.0) for pilot in preset.pilots)
    strength = 1.75 + 0.5 * _rise(grey_levels, 0.0, 25.0)
    final = preset.final and replace(preset.final, patch_size=4, h_s=3.5, strength=strength)
    return pilots, final


def _fit_to_picture(preset: Preset, grey_levels: float) -> tuple[tuple[Stage, ...], Stage | None]:
    """Let clusters follow the noise.

    The more noise, the wider the pilots' clusters, the less of it is fed back, and the more of its
    variance a pilot has lost.  Those of the final stage become wider, too; where gradients are to be smooth
    they begin twice as wide, and all clusters begin soft and become harder.
    """
    noise_ramp = _rise(grey_levels, 15.0, 25.0)
    less_feedback = 0.1 * _rise(grey_levels, 30.0, 50.0)
    final_width, softness = 0.81 + 0.19 * noise_ramp, 1.0
    if preset.smooth_gradients:
        final_width, softness = 2.0 - noise_ramp, 0.6 + 0.4 * _rise(grey_levels, 20.0, 34.0)
    pilots = tuple(
        replace(
            pilot,
            h_s=pilot.h_s * (0.8 + 0.2 * noise_ramp),
            temperature=pilot.temperature * softness,
            feedback=pilot.feedback - less_feedback * (pilot.feedback < 1.0),
        )
        for pilot in preset.pilots
    )
    final = preset.final and replace(
        preset.final,
        h_s=preset.final.h_s * final_width,
        temperature=preset.final.temperature * softness,
        strength=1.75 + 1.25 * _rise(grey_levels, 0.0, 25.0),
    )
    return pilots, final


def widen(stage: Stage, share_repeated: float) -> Stage:
    """Let the clusters of a flat picture that repeats itself reach further: h_s of 40 pixels."""
    repetition_ramp = _rise(share_repeated, 0.3, 0.7)
    return replace(
        stage,
        h_s=stage.h_s + repetition_ramp * (40.0 - stage.h_s),
        reach=stage.reach + repetition_ramp * (1.5 - stage.reach),
    )


def calibration(preset: Preset, contrast: float) -> float:
    """Return what the clusters' own standard deviation is multiplied with.

    Seven pictures at sigma 5 to 75: Wiener stages claim 0.85 to 1.3 of the true error, 1.06 on average;
    the spectral pilot, which does not know its bias, from 0.9 at little noise to 0.5 at much.
    """
    return 1.0 + 0.8 / contrast if preset.final is None else 1.0 / 1.06


def _rise(value: float, low: float, high: float) -> float:
    """Go from 0 at low to 1 at high."""
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))
