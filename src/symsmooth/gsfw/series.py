"""A series of frames: the same mixture, with time as one more position.

A generalised patch is [x / h_s, patch / h_r]; in a series the position x has a time.  Nothing else of
the method changes: clusters gather patches of all frames within reach, wherever a thing has moved to, so
no motion is estimated.  Pilots have patches of two frames, by which what moves is told from noise; the
final stage has flat ones (``presets``).

Here frames are taken in blocks with a halo in time, and blocks are cross-faded: memory does not grow with
the length, and a series that comes frame by frame (a camera, a video, a folder) has the bits of one that
is an array.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..core.alike import Channels, Groups
from ..core.image import Array, Float, Picture, open_image
from ..core.parallel import Pool
from ..noise import Noise, resolve
from ..noise.specks import Specks, count_specks, without_specks
from .removal import How, remove_noise

BLOCK, HALO = 12, 3  # frames of a block, and on both sides of it


class Change(NamedTuple):
    """What becomes of a frame."""

    pixels: Array  # as they came
    change: Array  # what is to be added to them
    std: Float  # standard deviation of the result


Work = Callable[[Sequence[Any], int], Sequence[Change]]


def denoise_in_blocks(frames: Iterable[Any], work: Work) -> Iterator[Change]:
    """Yield what becomes of each frame.

    Parameters
    ----------
    frames : iterable
        Read only so far ahead as a block and its halo need.
    work : callable
        Denoises frames, those of the block of a number with its halo, together.
    """
    window = _Window(iter(frames))
    before: dict[int, Array] = {}  # changes by the block before, of frames that are not its own
    number = first = 0
    while True:
        known = window.read_until(first + 2 * BLOCK + HALO)
        if known == first:
            return
        last = (
            first + BLOCK if known >= first + 2 * BLOCK else known
        )  # no block is shorter than others
        start, stop = max(first - HALO, 0), min(last + HALO, known)
        found = work(window.frames(start, stop), number)
        changes = {t: found[t - start] for t in range(start, stop)}
        for t in range(first, last):
            found_here = changes[t]
            if t in before:  # as far as the halo of the block before reaches, it fades out
                weight = (t - first + 1) / (HALO + 1)
                both = weight * found_here.change + (1 - weight) * before[t]
                found_here = found_here._replace(change=both)
            yield found_here
        before = {t: changes[t].change for t in range(last, stop)}
        number, first = number + 1, last
        window.forget_until(first - HALO)


class _Window:
    """Frames of an iterator that are still needed."""

    def __init__(self, source: Iterator[Any]) -> None:
        self._source, self._kept, self._start = source, deque[Any](), 0

    def read_until(self, stop: int) -> int:
        """Read frames up to a number, if there are so many; return how many are known."""
        while self._start + len(self._kept) < stop:
            try:
                self._kept.append(next(self._source))
            except StopIteration:
                break
        return self._start + len(self._kept)

    def frames(self, start: int, stop: int) -> list[Any]:
        """Return some of the frames."""
        return [self._kept[t - self._start] for t in range(start, stop)]

    def forget_until(self, start: int) -> None:
        """Forget what is before a frame."""
        while self._start < start:
            self._kept.popleft()
            self._start += 1


def n_blocks(n_frames: int) -> int:
    """Return how many blocks so many frames make."""
    return max(n_frames // BLOCK, 1)


class Blocks:
    """Denoises the blocks of a series one after the other.

    Noise that is not given is found in each block anew: levels drift where a camera sets its exposure, and
    black or grey frames in a film of colours have a noise of their own.

    Parameters
    ----------
    sigma, noise
        As for :func:`symsmooth.denoise`.
    how : How
    specks, channels
        As for :func:`symsmooth.denoise`.
    rng : Generator
    pool : Pool
    """

    def __init__(
        self,
        sigma: Any,
        noise: Any,
        how: How,
        specks: Specks,
        channels: Channels | Groups,
        rng: np.random.Generator,
        pool: Pool,
    ) -> None:
        self._asked = sigma, noise
        self._how, self._specks, self._channels = how, specks, channels
        self._rng, self._pool = rng, pool
        self.noise: Noise | None = None  # of the first block
        self.groups: Groups = ()
        self._known_groups: dict[int, Groups] = {}  # by the number of channels that count
        self.n_bounded = self.n_specks = 0
        self.n_expected = 1  # for the progress callback

    def __call__(self, frames: Sequence[tuple[Array, Array | None]], number: int) -> list[Change]:
        """Denoise frames (y, x, channels), each with its mask, together."""
        opened = self._open(frames)
        picture = without_specks(opened, self._specks)
        self.n_specks += count_specks(opened, picture)
        (own_rng,) = self._rng.spawn(1)
        if (
            self.noise is not None and np.ptp(picture.noisy) == 0.0
        ):  # black frames: no noise is theirs
            return self._changes(picture, picture.noisy, np.zeros_like(picture.noisy), len(frames))
        groups = self._known_groups.setdefault(picture.noisy.shape[-1], picture.groups)
        picture = replace(picture, channels=groups)
        noise = resolve(picture, *self._asked)
        if self.noise is None:
            self.noise, self.groups = noise, groups
        with self._pool as pool:
            left = max(self.n_expected - number, 1)
            name = f"block {number + 1} of {self.n_expected}" if self.n_expected > 1 else ""
            with pool.part(1 / left, name):
                found = remove_noise(picture, noise, self._how, own_rng, pool)
        self.n_bounded += found.n_bounded
        return self._changes(picture, found.image, found.find_std(), len(frames))

    @staticmethod
    def _changes(picture: Picture, denoised: Float, std: Float, n_frames: int) -> list[Change]:
        pixels, change = picture.change_of(denoised)
        if n_frames == 1:
            return [Change(pixels, change, std)]
        return [Change(*each) for each in zip(pixels, change, std, strict=True)]

    def _open(self, frames: Sequence[tuple[Array, Array | None]]) -> Picture:
        """Open frames as a series; one frame alone is a picture."""
        masks = [mask for _, mask in frames]
        if len(frames) == 1:
            return open_image(frames[0][0], -1, masks[0], self._channels)
        pixels = np.stack([pixels for pixels, _ in frames])
        mask = None
        if any(each is not None for each in masks):
            mask = np.stack(
                [np.zeros(p.shape[:-1], bool) if each is None else each for p, each in frames]
            )
        return open_image(pixels, -1, mask, self._channels, time_axis=0)
