"""Arguments that commands share, and what their words stand for: methods, axes, regions, a job.

A method is written ``NAME:option=value:...`` wherever one is chosen, as in ``nlm:sinkhorn-iters=1``; the
options of the default method are flags of ``symsmooth denoise``, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..app.messages import NOISE_KINDS, UsageError
from ..methods import QUALITIES
from .console import TYPER_ERROR

if TYPE_CHECKING:
    from ..app.compare import MethodChoice
    from ..app.job import ChannelAxis, DenoiseJob, Region
    from ..io.images import Third
    from ..methods import Method
    from ..noise import Noise

_MAX_METHODS = 12  # that are compared


def whole_number(flag: str, low: int, high: int | None = None) -> Callable[[Any], int]:
    """Return a parser for whole numbers within limits."""
    limits = f"of at least {low}" if high is None else f"from {low} to {high}"

    def parse(text: Any) -> int:
        try:
            number = int(text)
        except ValueError:
            number = low - 1
        if not low <= number <= (math.inf if high is None else high):
            raise TYPER_ERROR(f"{flag} must be a whole number {limits}, got {str(text)!r}")
        return number

    return parse


def any_number(flag: str, low: float | None = None) -> Callable[[Any], float]:
    """Return a parser for numbers; finite ones from ``low`` on, if that is given."""
    limit = "" if low is None else f" of at least {low:g}"

    def parse(text: Any) -> float:
        try:
            number = float(text)
            if low is None or low <= number < math.inf:
                return number
        except ValueError:
            pass
        raise TYPER_ERROR(f"{flag} must be a number{limit}, got {str(text)!r}")

    return parse


def _option(metavar: str, about: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=about, **more)


def _whole(flag: str, low: int, about: str) -> Any:
    return _option("N", about, flag, parser=whole_number(flag, low))


def _flag(name: str, about: str, *short: str) -> Any:
    return typer.Option(*short, name, help=about)


def _input(about: str) -> Any:
    return typer.Argument(metavar="IN", help=about)


def complete_method(incomplete: str) -> list[str]:
    """Return the methods that begin so."""
    from ..methods import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def complete_dtype(incomplete: str) -> list[str]:
    """Return the dtypes that begin so."""
    from ..io.images import DTYPES

    return [name for name in DTYPES if name.startswith(incomplete)]


def complete_methods(incomplete: str) -> list[str]:
    """Return the lists of methods that begin so: ``nlm,bm3d``."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in complete_method(last)]


Inputs = Annotated[
    list[str], _input("Pictures, stacks, arrays, folders of them, or videos; - is standard input.")
]
OneFile = Annotated[Path, _input("A picture.")]
Out = Annotated[
    str, _option("OUT", "File, folder (ending in /), or - for standard output.", "-o", "--out")
]
Page = Annotated[Path, _option("PAGE", "Page to write, .html.", "-o", "--out")]
Format = Annotated[
    str, _option("ENDING", "With -o -: png, tif, ...; by default that of the input.")
]
MethodName = Annotated[
    str,
    _option(
        "NAME",
        "One of `symsmooth methods`, options behind it: nlm:sinkhorn-iters=1.  By default the best.",
        autocompletion=complete_method,
    ),
]
NoiseFrom = Annotated[str, _option("X,Y,W,H", "Measure the noise in this flat rectangle.")]
NoiseFile = Annotated[
    str,
    _option(
        "FILE.json",
        "A noise model of `symsmooth noise --save`, for methods that know more than white noise.",
    ),
]
SaveNoise = Annotated[
    str, _option("FILE.json", "Keep the noise of all files as one model, for --noise FILE.json.")
]
Calibrate = Annotated[
    bool,
    _flag(
        "--calibrate",
        "Files are frames of still scenes, such as flats: measure the camera on their differences.",
    ),
]
Darks = Annotated[
    str,
    _option("IN", "With --calibrate: frames without light, a stack, folder or pattern in quotes."),
]
Volume = Annotated[bool, _flag("--volume", "Denoise a stack as a volume, in 3-D.")]
Slices = Annotated[
    bool, _flag("--slices", "Denoise a volume slice by slice, a video frame by frame.")
]
Time = Annotated[
    bool,
    _flag(
        "--time",
        "Denoise a time series (a stack, the pictures of a folder) as one: frames help each other, "
        "wherever things move.",
    ),
]
Frame = Annotated[
    int | None, _whole("--frame", 0, "Write one frame of a series, from 0: the best of a burst.")
]
Linear = Annotated[bool, _flag("--linear", "Develop a raw file to linear light instead of sRGB.")]
Lossless = Annotated[bool, _flag("--lossless", "Write a video without loss: FFV1 in .mkv.")]
DtypeName = Annotated[
    str,
    _option(
        "DTYPE",
        "Type of the output: float32 (not rounded), uint16, uint8, ...; by default that of the input.",
        autocompletion=complete_dtype,
    ),
]
Jobs = Annotated[int, _whole("--jobs", 1, "Number of files to process at a time.")]
Workers = Annotated[
    int | None, _whole("--workers", 1, "Number of threads; by default one per core.")
]
Seed = Annotated[int, _whole("--seed", 0, "Random seed.")]
Resume = Annotated[
    bool,
    _flag("--resume", "Skip files whose output exists; continue a large one that was interrupted."),
]
Scheduler = Annotated[str, _option("ADDRESS", "Run on this dask cluster: tcp://HOST:PORT.")]
Axis = Annotated[str, _option("AXIS", "Axis of the channels, none, or auto: as the file says.")]
Quiet = Annotated[bool, _flag("--quiet", "Print errors only.", "-q")]
Verbose = Annotated[bool, _flag("--verbose", "Print what was decided, and why.", "-v")]
AsJson = Annotated[bool, _flag("--json", "Print JSON, one object per line.")]
Overwrite = Annotated[bool, _flag("--overwrite", "Replace files that exist.")]
Sigma = Annotated[
    float | None,
    _option(
        "LEVEL",
        "Noise level in the image's units; by default estimated.",
        parser=any_number("--sigma"),
    ),
]
Slice = Annotated[
    str,
    _option(
        "N|T,Z",
        "Which slice of a stack, from 0: 7, or 2,5 for one per axis; by default the middle.",
        "--slice",
    ),
]


def _of_default(metavar: str, about: str) -> Any:
    """Declare an option of the default method; its record (``methods``) reads the words."""
    choices = [word for word in metavar.split("|") if word.islower()]

    def complete(incomplete: str) -> list[str]:
        return [word for word in choices if word.startswith(incomplete)]

    panel = "Options of the default method"
    return _option(metavar, about, rich_help_panel=panel, autocompletion=complete)


Quality = Annotated[
    str | None, _of_default("|".join(QUALITIES), "How much time to spend; default balanced.")
]
NoiseKind = Annotated[
    str | None,
    _of_default(
        "|".join([*(kind.name for kind in NOISE_KINDS), "FILE.json"]),
        "What kind of noise, or a model of `symsmooth noise --save`.",
    ),
]
Strength = Annotated[str | None, _of_default("NUMBER", "Multiplies the noise level, 0.01 to 100.")]
ChromaStrength = Annotated[
    str | None, _of_default("NUMBER", "Strength for colour, if not that for luminance.")
]
Grain = Annotated[
    str | None,
    _of_default("NUMBER", "Share of the removed luminance noise that is put back, 0 to 1."),
]
Tone = Annotated[
    str | None,
    _of_default(
        "auto|srgb|linear", "Whether shadows that noise has darkened are brightened again."
    ),
]
Channels = Annotated[
    str | None, _of_default("auto|together|apart", "Which channels are denoised together.")
]
Specks = Annotated[
    str | None,
    _of_default(
        "auto|keep|remove",
        "Whether single pixels that no noise explains (salt and pepper, hot pixels, cosmic rays) are "
        "replaced.",
    ),
]
# As they are called in Python; each is a parameter of `symsmooth denoise`.
DEFAULT_OPTIONS = (
    "quality", "noise", "strength", "chroma_strength", "grain", "tone", "channels", "specks",
)  # fmt: skip


def parse_job(given: Mapping[str, Any]) -> DenoiseJob:
    """Return what `symsmooth denoise` is asked to do to every file, from its parameters by name."""
    from ..app.job import DenoiseJob

    check_sigma(given["sigma"])
    flags = {name: given[name] for name in DEFAULT_OPTIONS if given[name] is not None}
    return DenoiseJob(
        *parse_method(given["method"], flags),
        given["sigma"],
        parse_channel_axis(given["channel_axis"]),
        third=_parse_third(given["volume"], given["slices"], given["time"], given["frame"]),
        noise_region=_parse_region(given["noise_from"]),
        **{
            name: given[name]
            for name in ("workers", "seed", "linear", "dtype", "frame", "lossless")
        },
    )


def find_method(name: str) -> Method:
    """Return a method by name; the default one for an empty name."""
    from .. import methods

    try:
        return methods.find_method(name or methods.DEFAULT)
    except ValueError as error:
        raise UsageError(str(error)) from error


def parse_method(
    text: str, flags: Mapping[str, str] | None = None
) -> tuple[Method, dict[str, object]]:
    """Return a method with its options, such as ``denoise:fast``, ``nlm:window=9``; flags add to them."""
    name, *rest = text.split(":")
    method, given = find_method(name), dict(flags or {})
    for part in rest:
        key, equals, value = part.partition("=")
        if not equals and "quality" not in method.options:
            raise UsageError(f"method {method.name} has no quality, got {text}; use {method.name}")
        key, value = (key.replace("-", "_"), value) if equals else ("quality", part)
        if key in given:
            raise UsageError(f"{key.replace('_', '-')} is given twice")
        given[key] = value
    return method, parse_options(method, given)


def parse_methods(text: str) -> list[MethodChoice]:
    """Return the methods of a list such as ``denoise:fast,nlm:sinkhorn-iters=1,bm3d``."""
    from ..app.compare import DEFAULT_METHODS, MethodChoice

    names = [name.strip() for name in text.split(",")] if text else DEFAULT_METHODS
    if not all(name.partition(":")[0] for name in names):
        raise UsageError("--methods has an empty name; give names such as denoise:fast,nlm")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--methods names {twice} twice")
    if len(names) > _MAX_METHODS:
        raise UsageError(f"--methods names {len(names)} methods; use at most {_MAX_METHODS}")
    return [MethodChoice(name, *parse_method(name)) for name in names]


def parse_options(method: Method, given: Mapping[str, str]) -> dict[str, object]:
    """Return the values of options of a method, whose words are given by name; the noise may be a file."""
    for name in given:
        if name not in method.options:
            keys = ", ".join(option.key for option in method.options.values())
            text = f"method {method.name} has no option {name.replace('_', '-')}"
            raise UsageError(f"{text}; it has {keys or 'none'}")
    values: dict[str, object] = {}
    for name, text in given.items():
        if name == "noise" and text.lower().endswith(".json"):
            values[name] = parse_noise_file(text)
            continue
        try:
            values[name] = method.options[name].parse(text)
        except ValueError as error:
            more = "; a file of `symsmooth noise --save` ends in .json" if name == "noise" else ""
            raise UsageError(f"{error}{more}") from error
    return values


def parse_noise_file(text: str) -> Noise | None:
    """Return the noise model of a file; None for no name."""
    if not text:
        return None
    from ..io.noise_files import load_noise

    try:
        return load_noise(text)
    except ValueError as error:
        raise UsageError(f"--noise {error}") from error


def _parse_third(volume: bool, slices: bool, time: bool, frame: int | None) -> Third:
    """Return what is said of the third axis, once at most; a frame is one of a series."""
    if volume + slices + time > 1:
        raise UsageError("give one of --volume, --slices and --time")
    if frame is not None and (volume or slices):
        raise UsageError("--frame is for a series, whose frames help each other; leave it out")
    time = time or frame is not None
    return "volume" if volume else "none" if slices else "time" if time else "auto"


def _parse_region(text: str) -> Region | None:
    """Return x, y, width, height, or None if nothing was given."""
    if not text:
        return None
    try:
        x, y, width, height = (int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--noise-from must be X,Y,WIDTH,HEIGHT in pixels, such as 10,20,64,64, got {text!r}"
        ) from None
    return x, y, width, height


def parse_slice(text: str) -> tuple[int, ...] | None:
    """Return the number of a slice, or one number for each axis; None if nothing was given."""
    if not text:
        return None
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--slice must be a number such as 7, or one for each axis such as 2,5, got {text!r}"
        ) from None


def parse_channel_axis(text: str) -> ChannelAxis:
    """Return an axis, None for "none", or "auto"."""
    if text == "auto":
        return "auto"
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--channel-axis must be a number, none or auto, got {text!r}") from None


def check_sigma(sigma: float | None) -> None:
    """Refuse what is no noise level."""
    if sigma is not None and not (math.isfinite(sigma) and sigma >= 0):
        raise UsageError(f"--sigma must be a number of 0 or more, got {sigma}")
