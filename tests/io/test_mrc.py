"""MRC: headers come back, the space group says what is a stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symsmooth.io import FileError, ImageFile, read_image, write_image
from symsmooth.io.images import cut

mrcfile = pytest.importorskip("mrcfile")

Array = np.ndarray[Any, Any]
STATISTICS = ("dmin", "dmax", "dmean", "rms")
CHANGED = (*STATISTICS, "nlabl", "label")


def pixels_of(shape: tuple[int, ...], dtype: Any) -> Array:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


def make(path: Path, data: Array, group: int | None = None) -> None:
    with mrcfile.new(path, data) as file:
        file.voxel_size = 1.35
        file.header.origin.x = 12.5
        file.add_label("as it was taken")
        file.set_extended_header(np.frombuffer(b"FEI metadata " * 20, "S1"))
        file.header.exttyp = b"FEI1"
        if group is not None:
            file.header.ispg = group


@pytest.mark.parametrize("dtype", ["i1", "i2", "u2", "f4", "f2"])
def test_headers_come_back_and_statistics_are_true(tmp_path: Path, dtype: str) -> None:
    data = pixels_of((4, 6, 5), dtype)
    make(tmp_path / "a.mrc", data)
    image = read_image(tmp_path / "a.mrc")
    assert (image.pixels.dtype, image.axes) == (np.dtype(dtype), "ZYX")
    np.testing.assert_array_equal(image.pixels, data)
    halved = (image.pixels // 2).astype(dtype)
    write_image(tmp_path / "b.mrc", halved, like=image, note="denoised")
    with mrcfile.open(tmp_path / "a.mrc") as before, mrcfile.open(tmp_path / "b.mrc") as after:
        np.testing.assert_array_equal(after.data, halved)
        assert after.extended_header.tobytes() == before.extended_header.tobytes()
        for name in set(before.header.dtype.names) - set(CHANGED):
            assert after.header[name].tobytes() == before.header[name].tobytes(), name
        assert after.header.dmax == halved.max()
        assert after.header.rms == pytest.approx(halved.astype(float).std(), rel=1e-6)
        assert after.get_labels() == [*before.get_labels(), "denoised"]
    assert mrcfile.validate(tmp_path / "b.mrc")


def test_other_byte_orders_come_back(tmp_path: Path) -> None:
    make(tmp_path / "a.mrc", pixels_of((4, 6, 5), "<i2"))
    with mrcfile.open(tmp_path / "a.mrc") as file:
        header, extended, data = file.header.copy(), file.extended_header.tobytes(), file.data
        swapped = header.astype(header.dtype.newbyteorder(">"))
        swapped["machst"] = (0x11, 0x11, 0, 0)
        (tmp_path / "b.mrc").write_bytes(
            swapped.tobytes() + extended + data.astype(">i2").tobytes()
        )
    image = read_image(tmp_path / "b.mrc")
    np.testing.assert_array_equal(image.pixels, pixels_of((4, 6, 5), "i2"))
    write_image(tmp_path / "c.mrc", image.pixels, like=image)
    assert len((tmp_path / "c.mrc").read_bytes()) == len((tmp_path / "b.mrc").read_bytes())
    with mrcfile.open(tmp_path / "c.mrc") as file:
        assert file.header.nx.dtype.byteorder == ">"
        np.testing.assert_array_equal(file.data, image.pixels)


def test_what_is_not_known_stays_so(tmp_path: Path) -> None:
    make(tmp_path / "a.mrc", pixels_of((4, 6, 5), "f4"))
    with mrcfile.open(tmp_path / "a.mrc", "r+") as file:
        file.header.dmin, file.header.dmax, file.header.dmean, file.header.rms = 0, -1, -2, -1
    image = read_image(tmp_path / "a.mrc")
    write_image(tmp_path / "b.mrc", image.pixels, like=image)
    assert (tmp_path / "b.mrc").read_bytes() == (tmp_path / "a.mrc").read_bytes()


@pytest.mark.parametrize(
    ("name", "group", "shape", "axes", "pieces"),
    [
        ("a.mrc", 1, (4, 6, 5), "ZYX", 1),
        ("a.mrc", 0, (4, 6, 5), "QYX", 4),
        ("a.mrcs", 1, (4, 6, 5), "QYX", 4),
        ("a.map", 0, (6, 5), "YX", 1),
        ("a.mrc", 401, (2, 4, 6, 5), "QZYX", 2),
    ],
)
def test_the_space_group_tells_stacks_from_volumes(
    tmp_path: Path, name: str, group: int, shape: tuple[int, ...], axes: str, pieces: int
) -> None:
    data = pixels_of(shape, "f4")
    make(tmp_path / name, data, group)
    image = read_image(tmp_path / name)
    assert (image.pixels.shape, image.axes, len(cut(image))) == (shape, axes, pieces)
    write_image(tmp_path / f"out-{name}", image.pixels, like=image)
    with mrcfile.open(tmp_path / f"out-{name}") as file:
        assert file.data.tobytes() == data.tobytes()
        assert file.header.ispg == group


def test_bytes_of_imod_are_unsigned(tmp_path: Path) -> None:
    make(tmp_path / "a.mrc", pixels_of((4, 6, 5), "i1"))
    data = bytearray((tmp_path / "a.mrc").read_bytes())
    data[152:160] = b"IMOD" + bytes(4)
    data[-1] = 200
    (tmp_path / "a.mrc").write_bytes(data)
    image = read_image(tmp_path / "a.mrc")
    assert (image.pixels.dtype, image.pixels[-1, -1, -1]) == (np.uint8, 200)
    write_image(tmp_path / "b.mrc", image.pixels, like=image)
    assert (tmp_path / "b.mrc").read_bytes()[1024:] == bytes(data[1024:])


@pytest.mark.parametrize(("axes", "group"), [("YX", 0), ("QYX", 0), ("ZYX", 1)])
def test_pixels_of_other_formats(tmp_path: Path, axes: str, group: int) -> None:
    data = pixels_of((4, 6, 5)[-len(axes) :], "f4")
    write_image(tmp_path / "a.mrc", data, like=ImageFile(data, None, None, "", axes=axes), note="x")
    assert mrcfile.validate(tmp_path / "a.mrc")
    with mrcfile.open(tmp_path / "a.mrc") as file:
        np.testing.assert_array_equal(file.data, data)
        assert file.header.ispg == group


def test_what_it_cannot_hold_is_refused_and_another_mode_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"MRC holds int8.*got float64; write to"):
        write_image(tmp_path / "a.mrc", np.zeros((4, 5)))
    with pytest.raises(FileError, match=r"without colour; write to \.tif"):
        write_image(tmp_path / "a.mrc", np.zeros((4, 5, 3), np.uint16))
    make(tmp_path / "a.mrc", pixels_of((4, 6, 5), "i2"))
    image = read_image(tmp_path / "a.mrc")
    write_image(tmp_path / "b.mrc", image.pixels + np.float32(0.5), like=image)
    np.testing.assert_array_equal(read_image(tmp_path / "b.mrc").pixels, image.pixels + 0.5)


LIES = {
    "large": (0, 30000, "claims .* bytes of pixels in a file of"),
    "none": (0, 0, "header with 0 x 6 x 4 pixels"),
    "negative": (8, -4, "5 x 6 x -4 pixels"),
    "extended": (92, -1, "-1 bytes of extended header"),
    "longer": (92, 2**30, "damaged or cut off"),
    "complex": (12, 4, "complex numbers; save"),
    "unknown": (12, 55, "unknown mode 55"),
}


@pytest.mark.parametrize("lie", LIES)
def test_headers_that_lie_are_refused_in_a_line(tmp_path: Path, lie: str) -> None:
    at, value, message = LIES[lie]
    make(tmp_path / "a.mrc", pixels_of((4, 6, 5), "i2"))
    data = bytearray((tmp_path / "a.mrc").read_bytes())
    data[at : at + 4] = np.array([value], "<i4").tobytes()
    (tmp_path / "a.mrc").write_bytes(data)
    with pytest.raises(FileError, match=message) as caught:
        read_image(tmp_path / "a.mrc")
    assert "\n" not in str(caught.value)
