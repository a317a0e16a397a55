"""A series of frames: the same mixture, with time as one more position.

A generalised patch is [x / h_s, patch / h_r]; in a series the position x has a time.  Nothing else of
the method changes: clusters gather patches of all frames within reach, wherever a thing has moved to;
squares that move by more are followed (``motion``).  Pilots have patches of two frames, by which what moves
is told from noise; the final stage has flat ones (``presets``).

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

from ..core.blocks import Block, Grid, cut_series, overlap_add
from ..core.channels import Channels, Groups
from ..core.image import Array, Float, Picture, Piece, open_image
from ..core.parallel import Pool
from ..noise import Noise, resolve
from ..noise.changes import RUN
from ..noise.specks import Specks, count_specks, without_specks
from .removal import How, Removed, remove_noise

BLOCK, HALO = 12, 3  # frames of a block, and on both sides of it
# Frames of a block whose pictures are large, in two runs: what holds for all is asked of them; and where
# nothing moves, noise is what changes in a run.
_SURVEYED = 2 * RUN

Frame = tuple[Array, Array | None]  # pixels (y, x, channels), and which are missing


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
            yield faded(changes[t], before.get(t), t - first)
        before = {t: changes[t].change for t in range(last, stop)}
        number, first = number + 1, last
        window.forget_until(first - HALO)


def faded(found: Change, before: Array | None, number: int) -> Change:
    """Return what becomes of a frame of a block; the block before fades out where its halo reaches.

    Parameters
    ----------
    found : Change
    before : ndarray or None
        The change that the block before makes of the same frame, if its halo reaches so far.
    number : int
        Of the frame in its block, from 0.
    """
    if before is None:
        return found
    weight = (number + 1) / (HALO + 1)
    return found._replace(change=weight * found.change + (1 - weight) * before)


def block_edges(n_frames: int) -> list[int]:
    """Return where blocks of so many frames begin, and the end of the last; none is shorter than others.

    Examples
    --------
    >>> block_edges(40), block_edges(5)
    ([0, 12, 24, 40], [0, 5])
    """
    return [*range(0, n_blocks(n_frames) * BLOCK, BLOCK), n_frames]


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
    with_std : bool
        Whether the deviations of the result are wanted: of twenty frames of 1920 x 1080 in colour they
        take 0.5 GB.
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
        *,
        with_std: bool = True,
    ) -> None:
        self._asked = sigma, noise
        self._with_std = with_std
        self._how, self._specks, self._channels = how, specks, channels
        self._rng, self._pool = rng, pool
        self.noise: Noise | None = None  # of the first block
        self.groups: Groups = ()
        self.known_groups: dict[int, Groups] = {}  # by the number of channels that count
        self.n_bounded = self.n_specks = 0
        self.n_expected = 1  # for the progress callback

    def __call__(self, frames: Sequence[Frame], number: int) -> list[Change]:
        """Denoise frames (y, x, channels), each with its mask, together."""
        (own_rng,) = self._rng.spawn(1)
        if number > 0 and _are_constant(frames):  # a film fades to black: no noise is there
            nothing = np.zeros(frames[0][0].shape, np.float32)
            return [Change(pixels, nothing, nothing) for pixels, _ in frames]
        grid = cut_series(len(frames), frames[0][0].shape[:2])
        is_whole = len(grid.blocks) == 1
        survey, without = self.survey(frames, is_whole)
        groups = without.groups
        noise = resolve(without, *self._asked)
        if self.noise is None:
            self.noise, self.groups = noise, groups
        with self._pool as pool:
            left = max(self.n_expected - number, 1)
            name = f"block {number + 1} of {self.n_expected}" if self.n_expected > 1 else ""
            with pool.part(1 / left, name):
                if is_whole:
                    self.n_specks += count_specks(survey, without)
                    found = remove_noise(without, noise, self._how, own_rng, pool)
                    self.n_bounded += found.n_bounded
                    pixels, change = without.change_of(found.image)
                    return _by_frames(pixels, change, self._std_of(found), len(frames))
                return self._in_parts(
                    frames, grid, replace(survey, channels=groups), noise, own_rng
                )

    def survey(self, frames: Sequence[Frame], is_whole: bool) -> tuple[Picture, Picture]:
        """Open what is looked at for choices about a block; return it as it came, and without specks.

        Channels that are denoised together stay the same through all blocks.
        """
        survey = self._open(frames if is_whole else [frames[t] for t in _surveyed(len(frames))])
        without = without_specks(survey, self._specks)
        groups = self.known_groups.setdefault(without.noisy.shape[-1], without.groups)
        return survey, replace(without, channels=groups)

    def _in_parts(
        self,
        frames: Sequence[Frame],
        grid: Grid,
        survey: Picture,
        noise: Noise,
        rng: np.random.Generator,
    ) -> list[Change]:
        """Denoise parts of large frames one after the other, as pieces of what was surveyed."""

        def work(block: Block, own_rng: np.random.Generator) -> tuple[Float, ...]:
            _, y, x = block.outer
            part = [(p[y, x], None if mask is None else mask[y, x]) for p, mask in frames]
            opened = self._open(part, survey)
            picture = without_specks(opened, self._specks)
            self.n_specks += count_specks(opened, picture)
            found = remove_noise(picture, noise, self._how, own_rng, self._pool)
            self.n_bounded += found.n_bounded
            _, change = picture.change_of(found.image)
            if (
                picture.mask is not None
            ):  # specks were there, and their change is to be added to them
                given = np.zeros_like(picture.mask) if opened.mask is None else opened.mask
                speck = picture.mask & ~given
                change[speck] -= opened.original[speck]
            return (change, found.find_std()) if self._with_std else (change,)

        change, *stds = overlap_add(grid, work, rng, self._pool)
        std = stds[0] if stds else _nothing(change.shape)
        pixels = [_zero_where_missing(*frame) for frame in frames]
        return [Change(*each) for each in zip(pixels, change, std, strict=True)]

    def _std_of(self, found: Removed) -> Float:
        return found.find_std() if self._with_std else _nothing(found.image.shape)

    def _open(self, frames: Sequence[Frame], whole: Picture | None = None) -> Picture:
        """Open frames as a series, or as a piece of one; one frame alone is a picture."""
        masks = [mask for _, mask in frames]
        if len(frames) == 1 and whole is None:
            return open_image(frames[0][0], -1, masks[0], self._channels)
        pixels = np.stack([pixels for pixels, _ in frames])
        mask = None
        if any(each is not None for each in masks):
            mask = np.stack(
                [np.zeros(p.shape[:-1], bool) if each is None else each for p, each in frames]
            )
        given: Any = pixels if whole is None else Piece(pixels, whole)
        return open_image(given, -1, mask, self._channels, time_axis=0)


def _surveyed(n_frames: int) -> list[int]:
    """Return the numbers of the frames that are surveyed, if their pictures are large."""
    if n_frames <= _SURVEYED:
        return list(range(n_frames))
    first = (n_frames // 2 - RUN) // 2
    return [start + t for start in (first, n_frames // 2 + first) for t in range(RUN)]


def _nothing(shape: tuple[int, ...]) -> Float:
    """Return zeros that take no memory."""
    return np.broadcast_to(np.float32(0.0), shape)


def _are_constant(frames: Sequence[Frame]) -> bool:
    """Whether all pixels of all frames are the same, and none is missing."""
    first = frames[0][0].reshape(-1, frames[0][0].shape[-1])[0]
    return all(mask is None and (pixels == first).all() for pixels, mask in frames)


def _by_frames(pixels: Array, change: Array, std: Float, n_frames: int) -> list[Change]:
    """Return what becomes of each frame; one alone is no series."""
    if n_frames == 1:
        return [Change(pixels, change, std)]
    return [Change(*each) for each in zip(pixels, change, std, strict=True)]


def _zero_where_missing(pixels: Array, mask: Array | None) -> Array:
    """Return a frame whose missing pixels are 0, to which their change is added."""
    if mask is None:
        return pixels
    pixels = pixels.copy()
    pixels[mask] = 0
    return pixels
