"""Other people's denoisers, those that are installed; none of them is needed by the package.

Each takes a picture of 0 to 255 and the standard deviation of its noise.  Where a peer asks for a strength
instead, a multiple of the deviation is taken: for non-local means and ffmpeg's filters about the best of a
few that were tried on one or two pictures of train400; total variation, wavelets and bilateral have values
that were not tuned.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from symsmooth.core.image import Array

Run = Callable[[Array, float], Array]
_PATCH, _WINDOW = 5, 21  # of non-local means


@dataclass(frozen=True)
class Peer:
    """A denoiser of others."""

    name: str  # on the command line
    label: str  # in tables
    needs: tuple[str, ...]  # modules, or filters of ffmpeg after "filter:"
    package: str  # whose version is reported
    run: Run

    @property
    def is_installed(self) -> bool:
        """Whether all it needs is there."""
        return all(_is_there(need) for need in self.needs)

    @property
    def version(self) -> str:
        """The version of its package or program."""
        if self.package == "ffmpeg":
            return _ffmpeg_version()
        if self.package == "OpenCV":  # its distributions have several names
            return f"OpenCV {importlib.import_module('cv2').__version__}"
        return f"{self.package} {importlib.metadata.version(self.package)}"


def _is_there(need: str) -> bool:
    kind, _, name = need.rpartition(":")
    if kind == "filter":
        return shutil.which("ffmpeg") is not None and name in _ffmpeg_filters()
    return importlib.util.find_spec(name) is not None


def _bm3d(noisy: Array, sigma: float) -> Array:
    import bm3d

    run: Any = bm3d.bm3d_rgb if noisy.ndim == 3 else bm3d.bm3d
    return 255.0 * np.asarray(run(noisy / 255.0, sigma / 255.0))


def _opencv_nlm(noisy: Array, sigma: float) -> Array:
    import cv2

    h = 0.9 * sigma
    pixels = _eight_bit(noisy)
    if noisy.ndim == 3:
        return np.asarray(cv2.fastNlMeansDenoisingColored(pixels, None, h, h, _PATCH, _WINDOW))
    return np.asarray(cv2.fastNlMeansDenoising(pixels, None, h, _PATCH, _WINDOW))


def _opencv_bilateral(noisy: Array, sigma: float) -> Array:
    import cv2

    return np.asarray(cv2.bilateralFilter(noisy.astype(np.float32), 9, 2.5 * sigma, 1.5))


def _skimage(name: str, options: Callable[[float], dict[str, object]]) -> Run:
    """Return a function of scikit-image, in its own range of 0 to 1; options follow the noise."""

    def run(noisy: Array, sigma: float) -> Array:
        from skimage import restoration

        level = sigma / 255.0
        axis = -1 if noisy.ndim == 3 else None
        result = getattr(restoration, name)(noisy / 255.0, channel_axis=axis, **options(level))
        return 255.0 * np.asarray(result)

    return run


def _ffmpeg(graph: Callable[[float], str]) -> Run:
    """Return a filter of ffmpeg; pixels pass through pipes, in 8 bits."""

    def run(noisy: Array, sigma: float) -> Array:
        pixels = _eight_bit(noisy)
        height, width = pixels.shape[:2]
        outside, inside = ("rgb24", "gbrp") if noisy.ndim == 3 else ("gray", "gray")
        raw = ["-f", "rawvideo", "-pix_fmt", outside]
        command = ["ffmpeg", "-hide_banner", "-loglevel", "error", *raw, "-s", f"{width}x{height}"]
        command += ["-i", "-", "-filter_complex", f"format={inside},{graph(sigma)}", *raw, "-"]
        done = subprocess.run(command, input=pixels.tobytes(), capture_output=True, check=False)
        if done.returncode:
            raise ValueError(f"ffmpeg: {done.stderr.decode(errors='replace').strip()}")
        return np.frombuffer(done.stdout, np.uint8).reshape(pixels.shape)

    return run


def _ffmpeg_bm3d(sigma: float) -> str:
    """Both steps.  Its sigma is not a standard deviation: 4 times that was best on trial pictures."""
    common = f"bm3d=sigma={4 * sigma:.4f}:group=16:thmse=1000000"
    return f"split[a][b];[a]{common}:estim=basic[c];[b][c]{common}:estim=final:ref=1"


def _ffmpeg_nlmeans(sigma: float) -> str:
    """Its strength, 1 to 30, has units of its own: half the deviation was best on trial pictures."""
    return f"nlmeans=s={min(max(0.5 * sigma, 1.0), 30.0):.4f}:p={_PATCH}:r={_WINDOW}"


def _eight_bit(noisy: Array) -> Array:
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


@cache
def _ffmpeg_filters() -> frozenset[str]:
    ended = subprocess.run(
        ["ffmpeg", "-hide_banner", "-filters"], capture_output=True, text=True, check=False
    )
    return frozenset(
        words[1] for line in ended.stdout.splitlines() if len(words := line.split()) > 2
    )


@cache
def _ffmpeg_version() -> str:
    ended = subprocess.run(["ffmpeg", "-version"], capture_output=True, text=True, check=False)
    return " ".join(ended.stdout.split()[:3:2])


_SK, _CV, _FF = "scikit-image", "OpenCV", "ffmpeg"
_PY = ("skimage",)
_ALL = (
    Peer("bm3d", "bm3d (non-commercial licence)", ("bm3d",), "bm3d", _bm3d),
    Peer("opencv-nlm", "OpenCV NLM (8 bit)", ("cv2",), _CV, _opencv_nlm),
    Peer("opencv-bilateral", "OpenCV bilateral", ("cv2",), _CV, _opencv_bilateral),
    Peer("skimage-nlm", "scikit-image NLM", _PY, _SK, _skimage(
        "denoise_nl_means",
        lambda level: {
            "patch_size": _PATCH, "patch_distance": _WINDOW // 2, "h": 0.6 * level, "sigma": level,
        },
    )),
    Peer("skimage-tv", "scikit-image TV", _PY, _SK, _skimage(
        "denoise_tv_chambolle", lambda level: {"weight": 1.2 * level}
    )),
    Peer("skimage-wavelet", "scikit-image wavelet", (*_PY, "pywt"), _SK, _skimage(
        "denoise_wavelet", lambda level: {"sigma": level, "method": "BayesShrink"}
    )),
    Peer("ffmpeg-bm3d", "ffmpeg bm3d (8 bit)", ("filter:bm3d",), _FF, _ffmpeg(_ffmpeg_bm3d)),
    Peer("ffmpeg-nlmeans", "ffmpeg nlmeans (8 bit)", ("filter:nlmeans",), _FF, _ffmpeg(_ffmpeg_nlmeans)),
)  # fmt: skip

PEERS = {peer.name: peer for peer in _ALL}


def installed_peers() -> list[str]:
    """Return the names of the peers that are here."""
    return [name for name, peer in PEERS.items() if peer.is_installed]


def limit_threads(workers: int) -> None:
    """Hold peers that have threads of their own to a number of them."""
    if importlib.util.find_spec("cv2") is not None:
        import cv2

        cv2.setNumThreads(workers)
