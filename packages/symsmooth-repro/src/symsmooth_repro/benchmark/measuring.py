"""One measurement: a denoiser on a picture, in the process that does nothing else meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from . import contestants
from .contestants import Contestant
from .trials import Scene, Trial, load

Result = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """What is measured once."""

    trial: Trial
    contestant: Contestant
    known: bool  # whether the noise is told
    workers: int
    repeats: int


def measure(measurement: Measurement) -> Result:
    """Measure here and now."""
    from .peers import limit_threads

    scene = _load(measurement.trial)
    asked = measurement.contestant
    kind = (asked.label, scene.noisy.ndim, scene.noisy.dtype.str)
    if kind not in _warm:
        limit_threads(measurement.workers)
        contestants.warm_up(asked, scene, measurement.workers)
        _warm.add(kind)
    found = contestants.run(
        asked, scene, measurement.known, measurement.workers, measurement.repeats
    )
    psnr, ssim = scene.score(found.image)
    before, ssim_before = scene.scores
    return {
        "psnr": psnr, "ssim": ssim, "seconds": found.seconds, "noise": found.noise,
        "kind": found.kind, "noisy_psnr": before, "noisy_ssim": ssim_before,
        "shape": list(scene.noisy.shape),
    }  # fmt: skip


_warm: set[tuple[str, int, str]] = set()  # contestants that have run here, on which kind of pixels


@lru_cache(maxsize=1)
def _load(trial: Trial) -> Scene:
    return load(trial)
