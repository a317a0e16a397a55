"""Which frames of a series are looked at, and which help one of them."""

from __future__ import annotations

from .errors import UsageError

# Frames whose noise is looked at: neighbours in the middle, and others from all over, because a series may
# begin in the dark, and its exposure may drift.
_NEIGHBOURS, _OTHERS = 6, 6
_BLOCK = 23  # frames that are denoised as one block at most: those that one frame can gain from


def frames_looked_at(n_frames: int) -> list[int]:
    """Return the numbers of the frames from which the noise of a series is found, in order.

    Examples
    --------
    >>> frames_looked_at(3), len(frames_looked_at(1000))
    ([0, 1, 2], 12)
    """
    if n_frames <= _NEIGHBOURS + _OTHERS:
        return list(range(n_frames))
    first = (n_frames - _NEIGHBOURS) // 2
    others = ((2 * i + 1) * n_frames // (2 * _OTHERS) for i in range(_OTHERS))
    return sorted({*range(first, first + _NEIGHBOURS), *others})


def frames_around(number: int, n_frames: int) -> range:
    """Return the frames that one frame can gain from, itself among them.

    Examples
    --------
    >>> frames_around(2, 100), frames_around(98, 100)
    (range(0, 23), range(77, 100))
    """
    start = max(min(number - _BLOCK // 2, n_frames - _BLOCK), 0)
    return range(start, min(start + _BLOCK, n_frames))


def check_frame(number: int, n_frames: int) -> None:
    """Refuse the number of a frame that is not there."""
    if number >= n_frames:
        raise UsageError(f"frame {number} is not there: frames are 0 to {n_frames - 1}", "frame")
