"""Bias that is left when noise is removed faithfully: of a tone curve, of clipped noise.

Whether there is any is asked of the whole picture.  Of one that is denoised in pieces a sample is asked,
once, and its pieces are told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.image import Float, Picture
from ..noise.clipping import End, correct_clipping, may_be_clipped
from ..noise.tone import correct_tone, removed_level, tone_share

Tone = Literal["auto", "srgb", "linear"]


@dataclass(frozen=True)
class Bias:
    """What was found out about a picture."""

    tone: float = 0.0  # how much of the correction is due, 0 to 1
    white: float = 1.0  # pixel value of white, in the units of the image
    ends: tuple[End, ...] = ()  # at which noise was clipped


def may_be_biased(picture: Picture, tone: Tone) -> bool:
    """Whether a picture must be denoised to know what bias there is; if not, there is none."""
    return _white_of(picture, tone) is not None or may_be_clipped(picture.noisy)


def remove_bias(
    picture: Picture, denoised: Float, tone: Tone, level_at_end: float, known: Bias | None = None
) -> tuple[Float, Bias]:
    """Remove bias from denoised pixels, and say what was found.

    Parameters
    ----------
    picture : Picture
    denoised : float32 ndarray (*spatial, channels)
    tone : {"auto", "srgb", "linear"}
        As for :func:`symsmooth.denoise`.
    level_at_end : float
        Of the noise before clipping; 0 if that is not known.
    known : Bias or None
        Of the picture that this is a piece of.
    """
    if picture.time_axis is None:  # shadows of frames that are corrected one by one would flicker
        denoised, found = _without_tone_bias(picture, denoised, tone, known)
        if found.tone > 0.0:
            return denoised, found
    if level_at_end > 0.0:
        ends = None if known is None else known.ends
        denoised, cut = correct_clipping(picture.noisy, denoised, level_at_end, ends)
        return denoised, Bias(ends=cut)
    return denoised, Bias()


def _without_tone_bias(
    picture: Picture, denoised: Float, tone: Tone, known: Bias | None
) -> tuple[Float, Bias]:
    """Remove tone bias from gamma-encoded pixels, and say how much of that was used."""
    white = _white_of(picture, tone) if known is None else known.white
    if white is None or (known is not None and known.tone == 0.0):
        return denoised, Bias()
    scale, offset = np.float32(picture.scale / white), np.float32(picture.offset / white)
    level = removed_level(picture.noisy, denoised)
    if known is None:
        noisy, shown = picture.noisy * scale + offset, denoised * scale + offset
        share = tone_share(noisy, shown, level * scale)
    else:
        share = known.tone
    if share == 0.0:
        return denoised, Bias()
    return correct_tone(denoised, level, share, float(scale), float(offset)), Bias(share, white)


def _white_of(picture: Picture, tone: Tone) -> float | None:
    """Return the pixel value of white if pixels are gamma-encoded, else None."""
    if tone == "linear":
        return None
    dtype = picture.original.dtype
    low, high = picture.original.min(), picture.original.max()
    if dtype == np.uint8:
        eight_bit, white = True, 255.0
    elif dtype.kind == "f":  # 8 bits that became floats
        step = picture.step * picture.scale
        unit = max(float(round(step)), 1.0) if step >= 0.5 else 1 / 255
        eight_bit = bool(abs(step / unit - 1) < 0.01 and low >= 0 and high <= 255.5 * unit)
        white = 255 * unit if eight_bit else 1.0
    else:
        eight_bit, white = False, float(np.iinfo(dtype).max)
    if tone == "srgb":
        return white
    return white if eight_bit and picture.noisy.shape[-1] == 3 else None
