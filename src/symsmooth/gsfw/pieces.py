"""A large picture, cut into pieces that are denoised side by side.

What holds for all of it (noise, units, contrast, groups of channels, bias) is asked of a sample first:
sixteen windows.  A piece then goes all the way from its pixels to what is added to them, so memory grows
little with the picture, and no core waits for a pass over the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.blocks import BLOCK_PIXELS, Block, cut_evenly, sample_of
from ..core.channels import Channels, Groups
from ..core.image import Array, Float, Input, Picture, Piece, add_change, check_image
from ..core.parallel import Pool
from ..noise import Noise, resolve
from ..noise.specks import Rules, Specks, replace_specks, speck_rules
from .presets import PRESETS
from .removal import How, decide_for_pieces, remove_noise

# Pixels of a piece without its halo, about, for each pixel that the halo is wide.  Two at a time take half
# a gigabyte in colour.  Half of it: a seventh more halo is computed.  Twice of it, in previews: memory that
# is returned and asked for again takes 4 % more time.
_PIECE_PIXELS = 1024 * 1024 // 48
_ROWS = 16  # of the result that are made at a time: some of them stay near the processor
SURVEY_TIME = 0.04  # of all, for the progress callback


def is_large(image: Input) -> bool:
    """Whether a picture is denoised in pieces: flat ones of many pixels, none of which is missing."""
    n_dims = image.pixels.ndim - 1
    if n_dims != 2 or image.whole is not None or image.missing is not None:
        return False
    return image.pixels[..., 0].size > BLOCK_PIXELS


@dataclass(frozen=True)
class Survey:
    """What was found out about the whole picture, from a sample of it."""

    sample: Picture
    noise: Noise
    specks: Rules | None

    @property
    def groups(self) -> Groups:
        """The channels that are denoised together."""
        return self.sample.groups


def survey_picture(
    image: Input, sigma: Any, noise: Any, how: How, specks: Specks, channels: Channels, pool: Pool
) -> Survey | None:
    """Find out what holds for a large picture; None if its noise is not the same in each piece."""
    opened = check_image(sample_of(image.pixels, -1), -1).open(channels)
    if np.ndim(sigma) > 1 or (hasattr(noise, "fits") and not noise.fits(opened.noisy.shape)):
        return None
    rules = speck_rules(opened, specks)
    without = replace_specks(opened, rules)
    without = replace(without, channels=without.groups)
    found = resolve(without, sigma, noise)
    decided = decide_for_pieces(without, found, how, pool, _middles(without))
    return Survey(replace(opened, channels=without.groups, decided=decided), found, rules)


def _middles(sample: Picture) -> Picture:
    """Return the middle quarter of each window of a sample: enough to see how noise is skewed."""
    sides = [size // 4 for size in sample.spatial]  # four by four windows
    rows, columns = (
        (np.arange(4)[:, np.newaxis] * side + side // 4 + np.arange(side // 2)).ravel()
        for side in sides
    )
    at = np.ix_(rows, columns)
    mask = None if sample.mask is None else sample.mask[at]
    return replace(sample, original=sample.original[at], noisy=sample.noisy[at], mask=mask)


@dataclass(frozen=True)
class InPieces:
    """A large picture, denoised."""

    image: Array  # as it came
    survey: Survey
    n_bounded: int
    n_specks: int
    find_std: Callable[[], Float]


def denoise_in_pieces(
    image: Input, survey: Survey, how: How, rng: np.random.Generator, pool: Pool
) -> InPieces:
    """Denoise a large picture that was surveyed."""
    pixels = image.pixels
    # Whitening is a Fourier transform; of other lengths it takes up to four times as long.
    halo = PRESETS[how.quality].halo
    grid = replace(cut_evenly(pixels.shape[:2], halo, _PIECE_PIXELS * halo), fast=True)
    seeds = [own.bit_generator.seed_seq for own in rng.spawn(len(grid.blocks))]

    def denoised(numbered: tuple[Block, Any], own_pool: Pool, with_std: bool) -> _Done:
        block, seed = numbered
        own_rng = np.random.default_rng(seed)
        return _denoise_piece(pixels[block.outer], survey, how, own_rng, own_pool, with_std)

    def work(numbered: tuple[Block, Any], own_pool: Pool) -> _Done:
        done = denoised(numbered, own_pool, with_std=False)
        numbered[0].fade(done.change)
        return done

    def work_again(numbered: tuple[Block, Any], own_pool: Pool) -> Float:
        return denoised(numbered, own_pool, with_std=True).find_std()

    def find_std() -> Float:
        """Do it once more: deviations are as large as the picture, and seldom asked for."""
        with Pool(pool.workers) as again:
            total = np.zeros(pixels.shape, np.float32)
            for (block, _), std in again.side_by_side(work_again, jobs, "piece"):
                block.add_to(total, std)
        return image.finish_plain(total)

    jobs = list(zip(grid.blocks, seeds, strict=True))
    changed = _Changed(pixels)
    n_bounded = n_specks = 0
    for (block, _), done in pool.side_by_side(work, jobs, "piece"):
        changed.add(block, done.change)
        n_bounded, n_specks = n_bounded + done.n_bounded, n_specks + done.specks_inside(block)
    return InPieces(image.finish(changed.finish()), survey, n_bounded, n_specks, find_std)


@dataclass(frozen=True)
class _Done:
    """What became of a piece."""

    change: Array  # (y, x, all channels)
    specks: Array | None  # where they were
    n_bounded: int
    find_std: Callable[[], Float]

    def specks_inside(self, block: Block) -> int:
        """Return how many specks lie in the piece without its halo."""
        if self.specks is None:
            return 0
        inside = tuple(
            slice(cut.inner.start - cut.outer.start, cut.inner.stop - cut.outer.start)
            for cut in block.cuts
        )
        return int(np.count_nonzero(self.specks[inside]))


def _denoise_piece(
    pixels: Array,
    survey: Survey,
    how: How,
    rng: np.random.Generator,
    pool: Pool,
    with_std: bool,
) -> _Done:
    piece: Any = Piece(pixels, survey.sample)
    opened = check_image(piece, -1).open(survey.groups)
    picture = replace_specks(opened, survey.specks)
    found = remove_noise(picture, survey.noise, how, rng, pool, with_std=with_std)
    _, change = picture.change_of(found.image)
    speck = picture.mask  # no other pixel is missing
    if speck is not None:
        change[speck] -= opened.original[speck]
    return _Done(change, speck, found.n_bounded, found.find_std)


class _Changed:
    """Pixels plus the changes of pieces, which are faded at their ends.

    Pieces come line by line.  Rows that no later one reaches are done, and their changes, which take four
    times the memory of 8-bit pixels, are forgotten.
    """

    def __init__(self, pixels: Array) -> None:
        self._pixels, self._result = pixels, np.empty(pixels.shape, pixels.dtype)
        self._start, self._changes = 0, np.empty((0, *pixels.shape[1:]), np.float32)

    def add(self, block: Block, change: Array) -> None:
        """Add the change of a piece, which lies in memory as pixels do."""
        rows, columns = block.outer
        self._finish_until(rows.start)
        missing = rows.stop - self._start - len(self._changes)
        if missing > 0:
            new = np.zeros((missing, *self._pixels.shape[1:]), change.dtype)
            self._changes = np.concatenate([self._changes, new])
        own = self._changes[rows.start - self._start : rows.stop - self._start, columns]
        own += change

    def finish(self) -> Array:
        """Return all pixels."""
        self._finish_until(len(self._pixels))
        return self._result

    def _finish_until(self, stop: int) -> None:
        for at in range(self._start, stop, _ROWS):
            rows = slice(at, min(at + _ROWS, stop))
            changes = self._changes[rows.start - self._start : rows.stop - self._start]
            self._result[rows] = add_change(self._pixels[rows], changes)
        if stop > self._start:
            self._changes = self._changes[stop - self._start :].copy()
            self._start = stop
