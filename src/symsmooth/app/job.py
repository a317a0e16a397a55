"""What is done to every file of one run: a method, its options, and what is known of the noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .. import __version__
from ..io.images import DTYPES, Third
from ..methods import Method
from ..noise import Noise, NoiseEstimator, resolve
from ..noise.resolve import check_one_noise
from .errors import UsageError
from .job_warnings import JobWarning
from .noise_report import NoiseDescription

ChannelAxis = int | None | Literal["auto"]  # auto: as the file says
Region = tuple[int, int, int, int]  # x, y, width, height


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
        if (
            self.has_model or self.dtype
        ):  # units were checked; dark slices of floats look like others
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

    @property
    def channels(self) -> Any:
        """Which channels are denoised together, if that was said."""
        return self.options.get("channels", "auto")

    @property
    def finds_noise(self) -> bool:
        """Whether the noise is to be found, whatever it is."""
        return self.may_warn and self.options.get("noise", "auto") == "auto"

    @property
    def may_warn(self) -> bool:
        """Whether noise was left to be found: then it may be found wrong."""
        return self.method.takes_noise and not self.noise_is_given and self.noise_region is None

    @property
    def knows_time(self) -> bool:
        """Whether its method takes a series."""
        return "time_axis" in self.method.accepts

    @property
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
