"""One call of a denoiser, ours or a peer's, and the time it takes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from symsmooth.core.image import Array
from symsmooth.methods import Method, find_method
from symsmooth.noise import estimate_sigma

from .peers import PEERS
from .trials import Scene

_WARM_UP = 64  # sides of what a denoiser sees before its time is taken


@dataclass(frozen=True)
class Contestant:
    """A method of ours with its options, or a peer."""

    label: str
    method: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    peer: str = ""


@dataclass(frozen=True)
class Answer:
    """What came out."""

    image: Array
    seconds: float
    noise: str = ""  # which noise was found: its kind, and in words
    kind: str = ""


def peer(name: str) -> Contestant:
    """Return a peer as a contestant."""
    return Contestant(PEERS[name].label, peer=name)


def run(contestant: Contestant, scene: Scene, known: bool, workers: int, repeats: int) -> Answer:
    """Denoise a scene, told its noise or not; the shortest of some times counts.

    A peer that is told nothing is given the level of ``estimate_sigma``, whose time counts.
    """
    answers = [_run_once(contestant, scene, known, workers) for _ in range(repeats)]
    return replace(answers[0], seconds=min(answer.seconds for answer in answers))


def _run_once(contestant: Contestant, scene: Scene, known: bool, workers: int) -> Answer:
    if contestant.peer:
        return _run_peer(contestant.peer, scene, known)
    return _run_method(find_method(contestant.method), contestant.options, scene, known, workers)


def _run_method(
    method: Method, options: Mapping[str, Any], scene: Scene, known: bool, workers: int
) -> Answer:
    shared = {"channel_axis": scene.channel_axis, "rng": 0, "workers": workers}
    arguments: dict[str, Any] = {k: v for k, v in shared.items() if k in method.accepts} | {
        **options
    }
    sigma = None
    takes_noise = "noise" in method.accepts
    if known and takes_noise and scene.model is not None:
        arguments["noise"] = scene.model
    elif known:
        sigma = scene.sigma
    tells = takes_noise and method.fit is not None
    start = time.perf_counter()
    if not tells:
        image = method.function(scene.noisy, sigma, **arguments)
        return Answer(image, time.perf_counter() - start)
    assert method.fit is not None
    found = method.fit(scene.noisy, sigma, **arguments)
    seconds = time.perf_counter() - start
    return Answer(found.image, seconds, str(found.noise), found.noise.kind)


def _run_peer(name: str, scene: Scene, known: bool) -> Answer:
    """Run a peer on a picture of 0 to 255."""
    scale = 255.0 / scene.peak
    denoise = PEERS[name].run
    noisy = scene.noisy.astype(np.float64)
    start = time.perf_counter()
    sigma = scene.sigma
    if not known:
        sigma = float(np.mean(estimate_sigma(noisy, channel_axis=scene.channel_axis)))
    image = denoise(noisy * scale, max(sigma * scale, 1e-3))
    return Answer(np.asarray(image, np.float64) / scale, time.perf_counter() - start)


def warm_up(contestant: Contestant, scene: Scene, workers: int) -> None:
    """Let libraries load and tables be made, on a corner of a scene: its kind of pixels matters."""
    corner = (slice(_WARM_UP), slice(_WARM_UP))
    small = Scene(scene.noisy[corner], scene.clean[corner], scene.peak, scene.sigma)
    with suppress(Exception):  # what is wrong is reported when it is measured
        _run_once(contestant, small, True, workers)
