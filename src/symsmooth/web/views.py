"""Which part of which picture is to be shown: the address of a view -> what ``tasks.draw`` draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import PageError, nothing_here
from .sessions import VIEW, Picture
from .settings import whole_numbers

_NOISE_RANGE = 3.0  # sigmas of what was removed from grey to white


def view_request(picture: Picture, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what is to be drawn, or refuse what there is not.

    The query has ``what`` (noisy, clean, result, removed), ``of`` (the number of the run), ``panel``
    (which of its results), ``at`` (the slice, "3.0"), ``channel``, ``box`` ("x.y.width.height") and
    ``blend`` (strength of the result and of its colour, in percent: "70.40").
    """
    info = picture.info
    if info is None:
        raise nothing_here()
    what = query.get("what", "noisy")
    at = numbers_in(query.get("at", ""))
    box = numbers_in(query.get("box", "")) or None
    channel = next(iter(numbers_in(query.get("channel", ""))), None)
    low, high = info["ranges"].get("all" if channel is None else str(channel), (0.0, 1.0))
    tints = info["tints"] if channel is None else []
    limits = [info["ranges"].get(str(n), (low, high)) for n in range(len(tints))]
    first, second, blend = picture.folder / VIEW, None, None
    if what == "clean":
        if picture.reference is None:
            raise nothing_here()
        first = picture.reference / VIEW
    elif what in ("result", "removed"):
        folder = picture.folder_of(_number(query.get("of", "")))
        if folder is None:
            raise nothing_here()
        result = folder / f"result-{_number(query.get('panel', '0'))}.npy"
        shares = strengths_in(query.get("blend", ""))
        blend = None if shares is None else (first, *shares)
        first, second = (result, None) if what == "result" else (first, result)
        if what == "removed":
            span = _NOISE_RANGE * (_level(picture) or 0.02 * info["span"]) or 1.0
            low, high = -span, span
            limits = [(low, high)] * len(tints)
    elif what != "noisy":
        raise nothing_here()
    return {
        "first": first, "second": second, "at": at, "box": box,
        "channel": channel, "channels": info["channels"], "low": low, "high": high,
        "tints": tints, "limits": limits, "blend": blend,
    }  # fmt: skip


def _level(picture: Picture) -> float:
    """Return the level of the noise as it is shown: of a mosaic, in what was developed from it."""
    assert picture.info is not None
    if picture.info["mosaic"] and picture.result is not None:
        return float(picture.result.details["panels"][0]["removed"])
    return float(picture.info["noise"]["level"])


def strengths_in(text: str) -> tuple[float, float] | None:
    """Return the shares of "70.40", of brightness and of colour; None if all of the result is wanted."""
    if not text:
        return None
    percent = numbers_in(text)
    if len(percent) != 2 or max(percent) > 100:
        raise nothing_here()
    return percent[0] / 100, percent[1] / 100


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise nothing_here()
    return int(text)


def numbers_in(text: str) -> tuple[int, ...]:
    """Return the whole numbers of "3.0.12", or refuse what is none."""
    try:
        return whole_numbers([_number(part) for part in text.split(".") if text])
    except PageError as error:
        raise nothing_here() from error
