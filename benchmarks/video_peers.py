"""What others have for video, where it is installed: OpenCV, and filters of the program ffmpeg.

All take frames of 8 bits and a strength.  ffmpeg runs as a program of its own, with one thread.
"""

from __future__ import annotations

import importlib.util
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_OPENCV_FRAMES = 5  # that OpenCV looks at for one
_BM3D = "block=4:bstep=4:group=1"  # groups of 8 and of 16 take thrice the time and do less


@dataclass(frozen=True)
class Found:
    """Denoised frames, and the CPU seconds they took."""

    frames: np.ndarray
    seconds: float


@dataclass(frozen=True)
class Peer:
    """A method with one strength."""

    name: str
    factors: Sequence[float]  # strengths that are tried, in units of sigma
    run: Callable[[np.ndarray, float], Found]

    def strengths(self, sigma: float) -> list[float]:
        """Return the strengths to try where noise has this level."""
        return [factor * sigma for factor in self.factors]


def installed() -> Iterator[Peer]:
    """Yield what is installed."""
    if importlib.util.find_spec("cv2") is not None:
        yield Peer("OpenCV `fastNlMeansDenoisingColoredMulti`", (0.5, 0.6, 0.7, 0.8, 0.9), _opencv)
    if shutil.which("ffmpeg") is None:
        return
    available = subprocess.run(
        ["ffmpeg", "-hide_banner", "-filters"], capture_output=True, text=True, check=True
    ).stdout
    for peer in _FILTERS:
        if f" {peer.name.split('`')[1]} " in available:
            yield peer


def _opencv(noisy: np.ndarray, strength: float) -> Found:
    """Non-local means over five frames; the ends of the series are mirrored."""
    import cv2

    cv2.setNumThreads(1)
    half = _OPENCV_FRAMES // 2
    padded = list(np.pad(noisy, [(half, half), (0, 0), (0, 0), (0, 0)], mode="reflect"))
    began = time.process_time()
    frames = [
        cv2.fastNlMeansDenoisingColoredMulti(
            padded, t + half, _OPENCV_FRAMES, None, strength, strength, 7, 21
        )
        for t in range(len(noisy))
    ]
    return Found(np.stack(frames), time.process_time() - began)


def _ffmpeg(graph: Callable[[float], str]) -> Callable[[np.ndarray, float], Found]:
    """Return what sends frames through a graph of filters."""

    def run(noisy: np.ndarray, strength: float) -> Found:
        height, width = noisy.shape[1:3]
        raw = ["-f", "rawvideo", "-pix_fmt", "rgb24"]
        command = [
            "ffmpeg", "-loglevel", "error", "-threads", "1", "-filter_complex_threads", "1", *raw,
            "-s", f"{width}x{height}", "-r", "25", "-i", "-", "-filter_complex", graph(strength),
            *raw, "-",
        ]  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, input=noisy.tobytes(), capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Found(np.frombuffer(done.stdout, np.uint8).reshape(noisy.shape), seconds)

    return run


def _bm3d(strength: float) -> str:
    basic = f"bm3d=sigma={strength}:{_BM3D}:estim=basic"
    final = f"bm3d=sigma={strength}:{_BM3D}:estim=final:ref=1"
    return f"format=gbrp,split[a][b];[a]{basic}[c];[b][c]{final}"


_FILTERS = (
    Peer(
        "ffmpeg `nlmeans`",
        (0.6, 0.75, 0.9, 1.1),
        _ffmpeg(lambda s: f"format=gbrp,nlmeans=s={min(s, 30)}:p=7:r=15"),
    ),
    Peer("ffmpeg `hqdn3d`", (0.6, 0.9, 1.1, 1.3), _ffmpeg(lambda s: f"hqdn3d={s}")),
    Peer(
        "ffmpeg `atadenoise`",
        (0.006, 0.008, 0.01, 0.013),
        _ffmpeg(
            lambda s: (
                "format=gbrp,atadenoise=s=9:"
                + ":".join(f"{c}a={min(s, 0.3)}:{c}b={min(4 * s, 4)}" for c in range(3))
            )
        ),
    ),
    Peer("ffmpeg `bm3d`", (2.5, 4.0, 6.0, 9.0), _ffmpeg(_bm3d)),
)
