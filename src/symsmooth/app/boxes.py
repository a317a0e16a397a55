"""The boxes of a large file: how one is read, denoised with its halo, blended and written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.parallel import Progress
from .dtypes import rounded, working_dtype

if TYPE_CHECKING:
    import numpy as np

    from ..core.blocks import Grid, Index
    from ..dask import BlockTask, GlobalStats
    from ..io.regions import Source, Target


@dataclass(frozen=True)
class BoxPlan:
    """All that a box must know; may be sent to another process."""

    source: Source
    task: BlockTask
    stats: GlobalStats
    grid: Grid
    plain: tuple[int, ...]  # axes along which every place is a picture of its own
    colours: slice  # of the channel axis: all but alpha
    dtype: np.dtype[Any]  # of what is written
    key: str

    def outer(self, index: Index, progress: Progress | None = None) -> Any:
        """Return a denoised box with its halo; alpha stays as it is."""
        import numpy as np

        pixels = self.source.read(self.grid.outer(index)).astype(self._working, copy=False)
        pixels = self.grid.prepare(pixels)
        piece = picture_in(pixels, self.plain, self.task.channel_axis, self.colours)
        start = [part.start for part in self.grid.inner(index)]
        piece[...] = self.task.apply(
            self.stats, np.ascontiguousarray(piece), start, progress=progress
        )
        return pixels

    def write(self, target: Target, index: Index, parts: list[Any]) -> None:
        """Blend a box and write it."""
        pixels = self.grid.blend(index, parts, self._working)
        target.write(self.grid.inner(index), rounded(pixels, self.dtype))

    @property
    def _working(self) -> np.dtype[Any]:
        return working_dtype(self.source.dtype, self.dtype.name)


def picture_in(pixels: Any, plain: tuple[int, ...], channels: int | None, colours: slice) -> Any:
    """Return a view of a box: one picture, its channels without alpha."""
    view = pixels[tuple(0 if axis in plain else slice(None) for axis in range(pixels.ndim))]
    return view if channels is None else view[(slice(None),) * channels + (colours,)]
