"""What is asked for, and what came of it.

Which files, where they go, and what is done to each: method, options, noise.  Then what was found, what it
cost, and how that is told.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .. import __version__
from ..io import FileError, ImageFile, formats
from ..io.base import OpenFile
from ..io.formats import (
    FORMATS,
    detect_format,
    format_of,
    has_known_ending,
    is_raw_name,
    is_zarr,
    read_opened,
)
from ..io.images import DTYPES, Stack, Third
from ..methods import Method
from ..noise import Noise, NoiseEstimator, resolve
from ..noise.check import Check
from ..noise.resolve import check_one_noise
from .messages import JobWarning, NoiseDescription, UsageError

ChannelAxis = int | None | Literal["auto"]  # auto: as the file says
Region = tuple[int, int, int, int]  # x, y, width, height
_BECOME_MKV = (".webm", ".avi", ".y4m")  # videos that are only read, or very large
_MAX_LISTED = 6  # names in one line
_LOST = 0.1  # share of the noise reduction that rounding may throw away
_FEW_COUNTS = 64  # the brightest 8-bit pixel of a picture of counts, not of a photograph
_KEPT_WORDS = "only EXIF, XMP, ICC profile, resolution and the header of a FITS image are"


@dataclass(frozen=True)
class DenoiseJob:
    """What is done to every file of one run."""

    method: Method
    options: Mapping[str, object]
    sigma: float | None
    channel_axis: ChannelAxis
    workers: int | None
    seed: int
    third: Third = "auto"
    noise_region: Region | None = None  # x, y, width, height of a flat area
    linear: bool = False  # a raw file that is developed gets no tone curve
    dtype: str = ""  # of what is written; empty: that of the file
    frame: int | None = None  # the only one of a series that is written
    lossless: bool = False  # of a video
    was_looked_at: bool = False  # a model of noise in the options was found in this very file
    # Told which noise is removed, None if none is, as soon as that is known.
    on_noise: Callable[[Noise | None], object] = field(default=id, compare=False, repr=False)

    def __post_init__(self) -> None:

        if self.dtype and self.dtype not in DTYPES:
            raise UsageError(
                f"the dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}", "dtype"
            )
        if self.noise_region is not None and not self.method.takes_noise:
            raise UsageError(
                f"{self.method.name} handles white noise only; give its level instead", "sigma"
            )
        try:
            check_one_noise(self.sigma, self.options.get("noise", "auto"), self.noise_region)
        except ValueError as error:
            raise UsageError(str(error)) from error

    def find_noise(self, image: NoiseEstimator) -> Noise | None:
        """Return the noise that is to be removed: what was said, or measured; None if none is."""
        if not self.method.removes_noise:
            return None
        asked: Any = self.options.get("noise", "auto")
        white_only = not self.method.takes_noise
        found: Any = resolve(
            image, self.sigma, asked, region=self.noise_region, white_only=white_only
        )
        # Units were checked; dark slices of floats look like others.
        if self.has_model or self.dtype:
            found = replace(found, pixels=None)
        noise: Noise = found
        return noise

    @property
    def has_model(self) -> bool:
        """Whether a model of noise was given."""
        return not isinstance(self.options.get("noise", "auto"), str)

    @property
    def noise_is_given(self) -> bool:
        """Whether the level of the noise was said: by itself, or as a model."""
        return self.sigma is not None or (self.has_model and not self.was_looked_at)

    @cached_property
    def channels(self) -> Any:
        """Which channels are denoised together, if that was said."""
        return self.options.get("channels", "auto")

    @property
    def finds_noise(self) -> bool:
        """Whether the noise is to be found, whatever it is."""
        return self.may_warn and self.options.get("noise", "auto") == "auto"

    @cached_property
    def may_warn(self) -> bool:
        """Whether noise was left to be found: then it may be found wrong."""
        return self.method.takes_noise and not self.noise_is_given and self.noise_region is None

    @property
    def knows_time(self) -> bool:
        """Whether its method takes a series."""
        return "time_axis" in self.method.accepts

    @cached_property
    def specks(self) -> Any:
        """Whether specks are replaced; other methods keep them."""
        default = "auto" if "specks" in self.method.options else "keep"
        return self.options.get("specks", default)

    @property
    def chosen(self) -> dict[str, object]:
        """What the user chose, without the noise, which is described separately."""
        chosen = {name: value for name, value in self.options.items() if name != "noise"}
        return chosen | ({"dtype": self.dtype} if self.dtype else {})

    def note(self, noise: NoiseDescription | None) -> str:
        """Return what is noted in a file that was written."""
        level = "" if noise is None else f", {noise.words}"
        return f"symsmooth {__version__}: {self.method.name}{level}"


@dataclass(frozen=True)
class BoxOptions:
    """How the boxes are done."""

    resume: bool = False
    scheduler: str = ""  # address of a dask cluster
    notify: Callable[[JobWarning], object] = str  # called with messages for the user meanwhile


@dataclass(frozen=True)
class OutputPlan:
    """Where inputs go, in their order, the outputs that were there already, and what is left out."""

    targets: dict[Path, Path]
    done: list[Path]
    skipped: list[str]  # a line for each folder that holds more than pictures


def plan_outputs(
    names: Sequence[str], out: str, overwrite: bool, resume: bool = False
) -> OutputPlan:
    """Say where each input goes; refuse, before any work, what would destroy a file.

    Files that a pattern finds keep their folders below its fixed part: ``in/**/*.tif`` with
    ``-o out/`` sends ``in/a/b.tif`` to ``out/a/b.tif``.  A folder stands for the pictures in it, and
    so does ``out`` then, with or without a slash.
    """
    if not names:
        raise UsageError("no input file is given")
    plan = OutputPlan({}, [], [])
    found = [pair for name in names for pair in expand(name, Path(out), plan.skipped.append)]
    is_new = not Path(out).suffix and not Path(out).exists()
    is_folder = is_folder_name(out) or (is_new and any(map(is_plain_folder, names)))
    if len(found) > 1 and not is_folder:
        raise UsageError(f"-o {out} must be a folder for several files; end it with /: -o {out}/")
    if not is_folder and is_new:
        raise UsageError(f"-o {out} has no ending, such as .png; end a folder with /: -o {out}/")
    taken: set[Path] = set()
    for source, below in found:
        target = Path(out) / output_name(below) if is_folder else Path(out)
        if source in plan.targets:
            continue
        if target in taken:
            raise UsageError(f"two inputs would be written to {target}; use two folders")
        taken.add(target)
        if target.exists() and not overwrite:
            is_input = source.exists() and target.samefile(source)
            if resume and not is_input:
                plan.done.append(target)
                continue
            what = "is the input itself" if is_input else "exists"
            raise UsageError(
                f"{target} {what}; give another name, replace it, or skip it",
                "out",
                "overwrite",
                "resume",
            )
        plan.targets[source] = target
    if is_folder:
        try:
            Path(out).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{out} cannot be made: {error.strerror}", "out") from error
    return plan


def output_name(name: Path) -> Path:
    """Return the name of an output: that of the input, unless its format is only read.

    Only cameras write their raw formats; videos of other containers become .mkv, which holds all streams.
    """
    if name.suffix.lower() in _BECOME_MKV:
        return name.with_suffix(".mkv")
    return name.with_suffix(".dng") if is_raw_name(name) else name


def is_folder_name(out: str) -> bool:
    """Whether outputs go into a folder of this name; a Zarr is a folder but also a file."""
    if out.endswith(("/", os.sep)):
        return True
    return Path(out).is_dir() and Path(out).suffix.lower() != ".zarr"


def is_plain_folder(name: str) -> bool:
    """Whether a name is that of a folder that stands for the pictures in it; a Zarr is one picture."""
    path = Path(name)
    return os.path.isdir(name) and path.suffix.lower() != ".zarr" and not is_zarr(path)


def expand(
    name: str, out: Path | None = None, tell: Callable[[str], None] | None = None
) -> Iterator[tuple[Path, Path]]:
    """Yield the files a name, folder or pattern stands for, each with its place below the output folder.

    What is inside a Zarr is no file of its own; what is in the output folder is no input.  ``tell`` is
    given a line about what a folder holds beside pictures.
    """
    if is_plain_folder(name):
        pictures, others = pictures_in(Path(name))
        if not pictures:
            hint = f"for those in its folders write '{Path(name)}/**/*.tif' with the quotes"
            raise UsageError(f"{name}: holds no picture that can be read; {hint}")
        if others and tell is not None:
            more = len(others) - _MAX_LISTED
            listed = ", ".join(others[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
            tell(f"{name}: skipped what is no picture: {listed}")
        yield from ((path, Path(path.name)) for path in pictures)
        return
    if os.path.lexists(name) or not glob.has_magic(name):
        yield Path(name), Path(Path(name).name)
        return
    parts = Path(name).parts
    fixed = next(i for i, part in enumerate(parts) if glob.has_magic(part))
    root = Path(*parts[:fixed])
    kept = 0
    for path in map(Path, sorted(glob.glob(name, recursive=True))):
        below = path.relative_to(root)
        in_zarr = any(parent.suffix.lower() == ".zarr" for parent in below.parents)
        is_file = path.is_file() or path.suffix.lower() == ".zarr"
        is_output = out is not None and out.is_dir() and out.resolve() in path.resolve().parents
        if is_file and not in_zarr and not is_output:
            kept += 1
            yield path, below
    if not kept:
        raise UsageError(f"no file matches {name}")


def pictures_in(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the pictures of a folder, by name, and what else is in it; hidden files are nobody's.

    The content says what is a picture.  A file that is named like one and is none is kept among them, so
    that its error is told.
    """
    pictures: list[Path] = []
    others: list[str] = []
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder}: cannot be read: {error.strerror}") from error
    for path in inside:
        if path.name.startswith("."):
            continue
        if path.is_dir() and not is_zarr(path):
            others.append(f"{path.name}/")
            continue
        try:
            if detect_format(path) == "VIDEO":  # it takes hours: it must be asked for by its name
                others.append(path.name)
                continue
        except (FileError, OSError):
            if not has_known_ending(path):
                others.append(path.name)
                continue
        pictures.append(path)
    return pictures, others


@dataclass(frozen=True)
class Denoised:
    """A denoised stack, the noise it had, what the method chose, and what is doubtful."""

    pixels: Any = None
    std: Any = None  # standard deviation of the result, if it was asked for
    noise: Noise | None = None
    words: NoiseDescription | None = None
    learned: Mapping[str, object] = field(default_factory=dict)
    warnings: Sequence[JobWarning] = ()
    removed: float = 0.0  # root mean square of the change
    check: Check | None = None
    channels: str = ""  # what was found out about them

    def warn(self, warnings: Sequence[JobWarning]) -> Denoised:
        """Return the same with more that is doubtful."""
        return replace(self, warnings=[*self.warnings, *warnings])


@dataclass(frozen=True)
class Outcome:
    """What was done to one file, or to one series of files."""

    source: Path
    target: Path
    image: ImageFile  # as it was read; the first one that has noise
    stack: Stack  # how it was cut
    job: DenoiseJob
    found: Denoised  # without its pixels: the noise, what the method chose, what is doubtful
    n_images: int = 1  # in the file
    note: JobWarning | None = None  # what else could be done
    seconds: float = 0.0

    @property
    def noise(self) -> NoiseDescription | None:
        """The noise in words."""
        return self.found.words

    @property
    def parameters(self) -> Mapping[str, object]:
        """What the user chose, and what the method did."""
        return {**self.job.chosen, **self.found.learned}

    @property
    def warnings(self) -> Sequence[JobWarning]:
        """What is doubtful."""
        return self.found.warnings

    @property
    def check(self) -> Check | None:
        """What a look at what was removed says."""
        return self.found.check

    def as_line(self, verbose: bool = False) -> str:
        """Return a summary on one line."""
        facts = [describe_size(self.image, self.stack)]
        if self.found.channels:
            facts.append(self.found.channels)
        if self.n_images > 1:
            facts.append(f"the first of {self.n_images} images")
        facts.append(self.job.method.name)
        if self.noise is not None:
            facts.append(
                f"{self.noise.words} [{self.noise.detail}]" if verbose else self.noise.words
            )
        facts += _plain_parameters(self.parameters)
        facts.append(f"{self.seconds:.1f} s")
        return f"{self.source}: {', '.join(facts)} -> {self.target}"

    def decisions(self) -> list[str]:
        """Return what was decided, and why: what the file is, its noise, how it was removed."""
        image, method = self.image, self.job.method
        axis = "no channels"
        if image.channel_axis is not None:
            axis = f"channels on axis {image.channel_axis}"
        lines = [f"file: {image.format}, axes {image.axes}, {axis}"]
        if self.noise is not None:
            why = self.noise.fields.get("reasons")
            reasons = f"; {'; '.join(why)}" if isinstance(why, list) else ""
            found = "estimated" if self.noise.fields["estimated"] else "given"
            lines.append(f"noise: {found}, {self.noise.detail}{reasons}")
        options = {name: option.default for name, option in method.options.items()}
        options |= dict(self.job.options)
        chosen = ", ".join(f"{name} {value}" for name, value in options.items() if name != "noise")
        if self.check is not None:
            numbers = f"outlines {self.check.outlines:.2f}, noise left {self.check.left:.2f}"
            lines.append(f"check: {self.check} ({numbers})")
        tone = self.found.learned.get("tone", 0.0)
        if isinstance(tone, float) and tone > 0.0:
            share = f"{100 * tone:.0f} % of that was put right"
            lines.append(f"tone: noise darkens the shadows of pictures with a tone curve; {share}")
        threads = "all cores" if self.job.workers is None else f"{self.job.workers} threads"
        lines.append(f"method: {', '.join(filter(None, [method.name, chosen]))}")
        lines.append(f"run: seed {self.job.seed}, {threads}")
        return lines

    def as_json(self) -> dict[str, object]:
        """Return the same for a script."""
        more = {"slices": len(self.stack), "images": self.n_images}
        return {key: n for key, n in more.items() if n > 1} | {
            "input": str(self.source),
            "output": str(self.target),
            "method": self.job.method.name,
            "noise": None if self.noise is None else dict(self.noise.fields),
            "shape": list(self.image.pixels.shape),
            "dtype": str(self.image.pixels.dtype),
            "seconds": round(self.seconds, 3),
            "parameters": dict(self.parameters),
            "warnings": list(map(str, self.warnings)),
            "warning_codes": [warning.code for warning in self.warnings],
            "check": None if self.check is None else vars(self.check),
            "channels": self.found.channels or None,
        }


def _plain_parameters(parameters: Mapping[str, object]) -> list[str]:
    """Return what was chosen and found, each in a few words; how the tone was put right is no news.

    Examples
    --------
    >>> _plain_parameters({"quality": "fast", "strength": 0.70001, "tone": 0.3861, "hot_pixels": 57})
    ['quality fast', 'strength 0.7', '57 hot pixels replaced']
    """
    found = []
    for name, value in parameters.items():
        if name == "hot_pixels":
            found.append(f"{value} hot pixel{'' if value == 1 else 's'} replaced")
        elif name == "n_specks":
            found.append(f"{value} specks replaced")
        elif name != "tone":
            found.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
    return found


def dtype_warnings(image: ImageFile, asked: str, pixels: Any) -> list[JobWarning]:
    """Return what another dtype than the file's own costs; pixels, or a sample, are not rounded yet."""
    if asked in ("", image.pixels.dtype.name):
        return []
    warnings = []
    if np.dtype(asked).kind in "ui":
        limits = np.iinfo(asked)
        outside = 1 - ((pixels >= limits.min - 0.5) & (pixels <= limits.max + 0.5)).mean()
        if outside > 0:
            share = f"{100 * outside:.2g} % of the pixels"
            text = f"{share} do not fit into {asked} and are clipped; {{floats}}"
            warnings.append(JobWarning("clipped", text))
    known = FORMATS.get(image.format)
    if (known is not None and known.tied) or image.details.n_parts > 1:
        own = f"{image.format} metadata is that of {image.pixels.dtype} pixels"
        warnings.append(JobWarning("metadata", f"{own}: {_KEPT_WORDS} kept in {asked}"))
    return warnings


def rounding_warning(
    pixels: Any, n_channels: int, dtype: np.dtype[Any], removed: float, target: Path
) -> list[JobWarning]:
    """Say if rounding to integers throws away more than a tenth of the noise reduction.

    Only where somebody may want to measure: in a format for data, and with 8 bits for few counts in grey.
    In a photograph nobody sees it.  ``pixels`` are those before, or a sample; ``removed`` is the root mean
    square of the change: where it is less than that of rounding, there is nothing to lose.
    """
    cost = 1 / 12  # variance of rounding to whole numbers
    if dtype.kind not in "ui" or not cost <= removed**2 < cost / _LOST:
        return []
    format = FORMATS[format_of(target)]
    if format.for_the_eye or format.is_raw:
        return []
    if dtype.itemsize == 1 and (n_channels == 3 or float(pixels.max()) >= _FEW_COUNTS):
        return []
    place = "" if format.holds_floats else " and -o to a .tif"
    text = (
        f"rounding to {dtype.name} throws away more than a tenth of the noise reduction; {{floats}}"
    )
    return [JobWarning("rounding", text, place)]


def no_progress(fraction: float, what: str) -> None:
    """Ignore progress."""


def open_file(source: Path, channel_axis: ChannelAxis) -> list[ImageFile]:
    """Open and read a file, as :func:`read_file` does."""
    with formats.open_file(source) as file:
        return read_file(file, channel_axis)


def read_file(file: OpenFile, channel_axis: ChannelAxis) -> list[ImageFile]:
    """Read a file; a channel axis other than "auto" replaces what the file says."""
    source, images = file.path, read_opened(file)
    if images[0].details.raw is not None:
        raise FileError(f"{source}: is a raw mosaic; denoise it to a .tif, which develops it")
    if channel_axis == "auto":
        return images
    for image in images:
        ndim = image.pixels.ndim
        if channel_axis is not None and not -ndim <= channel_axis < ndim:
            shape = image.pixels.shape
            raise FileError(f"{source}: has no axis {channel_axis}; its shape is {shape}")
    return [image.with_channels(channel_axis) for image in images]


def describe_size(image: ImageFile, stack: Stack) -> str:
    """Return width x height (x depth), dtype, channels, and how it is cut, in words."""
    channels = f" {image.n_channels} channels" if image.channel_axis is not None else ""
    if image.details.painted is not None:
        channels = ", grey in false colours"
    elif image.ramp is not None:
        channels = ", grey with a palette"
    elif image.details.from_palette:
        channels += ", its palette made RGB"
    cut = f", {len(stack)} slices" if len(stack) > 1 else ""
    if stack.third:
        kind = "volume" if stack.time_axis is None else "series"
        cut = (
            f", {len(stack)} {kind}{'s' if kind == 'volume' else ''}"
            if len(stack) > 1
            else f", {kind}"
        )
    dtype = "1 bit" if image.is_bilevel else image.pixels.dtype
    return f"{image.size} {dtype}{channels}{cut}"
