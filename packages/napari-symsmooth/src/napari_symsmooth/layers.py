"""Layers as pixels to be denoised, and results as layers.

Layers are asked for what all versions of napari have; napari itself is not imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from symsmooth.app.stack import Pieces
from symsmooth.io import ImageFile
from symsmooth.io.images import cut

from .axes import Role, letters_of

if TYPE_CHECKING:
    from symsmooth.core.image import Array

Box = tuple[slice, ...]  # one for each axis of the pixels
Region = tuple[int, int, int, int]  # x, y, width, height

_PREVIEW_SIDE = 512  # pixels: about a second at the fast preset
# Slices above and below: as far as the patches of volumes look; frames before and after.
_PREVIEW_DEPTH = {"volume": 2, "series": 3}
_RESULT_IS_ONE_SCALE = ("multiscale", "locked_data_level")
_APPEARANCE = (
    "contrast_limits",
    "contrast_limits_range",
    "auto_contrast",
    "gamma",
    "iso_threshold",
)


@dataclass(frozen=True)
class Source:
    """The pixels of a layer and what their axes are.

    Attributes
    ----------
    pixels : array_like
        In full resolution; may be a dask or Zarr array, which is loaded piece by piece.
    axes : str
        A letter for each axis: Y, X, Z for a volume, T for a series, C for channels, Q for one by one.
    rgb : bool
        Whether the last axis holds colours, and alpha if there are four.
    """

    pixels: Any
    axes: str
    rgb: bool

    @property
    def pieces(self) -> Pieces:
        """How the pixels are cut into pictures, volumes or series; alpha is not denoised."""
        channels = self.axes.index("C") if "C" in self.axes else None
        image = ImageFile(self.pixels, channels, None, "", axes=self.axes)
        stack = cut(image, "time" if "T" in self.axes else "auto")
        return Pieces(image, stack, 3 if self.rgb else None)

    def within(self, box: Box) -> Source:
        """Return a part of it, loaded."""
        return Source(np.asarray(self.pixels[box]), self.axes, self.rgb)


def open_layer(layer: Any, roles: Sequence[Role]) -> Source:
    """Return the pixels of an image layer, in full resolution."""
    pixels = layer.data[0] if layer.multiscale else layer.data
    if np.dtype(pixels.dtype).kind not in "uif":
        raise ValueError(f"the layer holds {pixels.dtype} values; convert it to integers or floats")
    return Source(pixels, letters_of(roles, layer.rgb), layer.rgb)


def place_in(layer: Any, point: Sequence[float]) -> tuple[int, ...]:
    """Return the indices of a point of the world in a layer's pixels, within their bounds."""
    shape = full_shape(layer)
    indices = np.rint(layer.world_to_data(point)).astype(int)[-len(shape) :]
    return tuple(int(np.clip(i, 0, n - 1)) for i, n in zip(indices, shape, strict=True))


def full_shape(layer: Any) -> tuple[int, ...]:
    """Return the shape of a layer in full resolution, without colours."""
    shape = (layer.data[0] if layer.multiscale else layer.data).shape
    return tuple(shape[: layer.ndim])


def visible_box(layer: Any, roles: Sequence[Role], place: Sequence[int]) -> Box:
    """Return what is seen of a layer: the middle of it if it is large, with a few slices or frames."""
    factors = np.ones(layer.ndim)
    if layer.multiscale:
        factors = np.asarray(layer.downsample_factors[layer.data_level])[: layer.ndim]
    corners = np.rint(np.asarray(layer.corner_pixels)[:, : layer.ndim] * factors).astype(int)
    box = []
    for axis, (role, n) in enumerate(zip(roles, full_shape(layer), strict=True)):
        first, last = (int(corner) for corner in np.clip(corners[:, axis], 0, n - 1))
        if role == "plane" and first == last:  # nothing was drawn yet, or nothing of it is in view
            first, last = 0, n - 1
        if role == "plane":
            excess = max(last + 1 - first - _PREVIEW_SIDE, 0)
            box.append(slice(first + excess // 2, last + 1 - (excess - excess // 2)))
        elif role in _PREVIEW_DEPTH:
            depth = _PREVIEW_DEPTH[role]
            box.append(slice(max(place[axis] - depth, 0), place[axis] + depth + 1))
        else:
            whole = role == "channels"
            box.append(slice(0, n) if whole else slice(place[axis], place[axis] + 1))
    return (*box, slice(None)) if layer.rgb else tuple(box)


def seen_slice(
    pixels: Array, roles: Sequence[Role], box: Box, place: Sequence[int]
) -> tuple[Array, Box]:
    """Return the slice of a denoised box that is looked at, its axes kept, and where it is."""
    shown = list(box)
    for axis, role in enumerate(roles):
        if role in _PREVIEW_DEPTH:
            pixels = np.take(pixels, [place[axis] - box[axis].start], axis=axis)
            shown[axis] = slice(place[axis], place[axis] + 1)
    return pixels, tuple(shown)


def rectangle_in(layer: Any, roles: Sequence[Role], shapes: Any, point: Sequence[float]) -> Region:
    """Return the selected rectangle of a Shapes layer in the plane of an image layer, in pixels.

    If there is only one shape it need not be selected.
    """
    chosen = sorted(shapes.selected_data) or list(range(len(shapes.data)))
    if len(chosen) != 1:
        found = "there is none" if not chosen else f"there are {len(chosen)}"
        raise ValueError(f"select one rectangle of flat ground in {shapes.name}; {found}")
    corners = []
    for vertex in shapes.data[chosen[0]]:
        world = np.array(point, float)
        shown = np.asarray(shapes.data_to_world(vertex))[-len(world) :]
        world[len(world) - len(shown) :] = shown
        corners.append(np.asarray(layer.world_to_data(world))[-layer.ndim :])
    plane = [axis for axis, role in enumerate(roles) if role == "plane"]
    shape = [full_shape(layer)[axis] for axis in plane]
    edges = np.array(corners)[:, plane] + 0.5  # pixels are centred on whole numbers
    low = np.ceil(np.clip(edges.min(axis=0), 0, shape)).astype(int)
    high = np.floor(np.clip(edges.max(axis=0), 0, shape)).astype(int)
    height, width = (int(n) for n in np.maximum(high - low, 0))
    return int(low[1]), int(low[0]), width, height


def like_layer(layer: Any, name: str, notes: Mapping[str, object]) -> dict[str, Any]:
    """Return the attributes of a layer that lies where another does and looks like it."""
    attributes = dict(layer.as_layer_data_tuple()[1])
    for dropped in _RESULT_IS_ONE_SCALE:
        attributes.pop(dropped, None)
    metadata = {**layer.metadata, "symsmooth": dict(notes)}
    return attributes | {"name": name, "metadata": metadata, "visible": True}


def like_layer_with_other_values(
    layer: Any, name: str, notes: Mapping[str, object]
) -> dict[str, Any]:
    """Return the attributes of a grey layer that lies where another does, its contrast not chosen yet."""
    attributes = like_layer(layer, name, notes)
    for name in _APPEARANCE:
        attributes.pop(name, None)
    return attributes | {"colormap": "magma", "rgb": False, "blending": "translucent"}


def moved(layer: Any, box: Box) -> list[float]:
    """Return the translation of a layer that shows a box of another one."""
    start = np.array([part.start for part in box[: layer.ndim]], float)
    linear = np.asarray(layer.rotate) @ _shear_matrix(layer) @ np.diag(layer.scale)
    return list(np.asarray(layer.translate) + linear @ start)


def _shear_matrix(layer: Any) -> Array:
    """Return the shear of a layer as a matrix: napari has its upper triangle, or all of it."""
    shear = np.asarray(layer.shear, float)
    if shear.ndim == 2:
        return shear
    matrix = np.eye(layer.ndim)
    matrix[np.triu_indices(layer.ndim, 1)] = shear
    return matrix
