"""NIfTI: header, extensions and affine come back byte for byte; one series, one noise."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symsmooth.io import FileError, ImageFile, limit_decoded_size, read_image, write_image
from symsmooth.io.formats import format_of
from symsmooth.io.images import cut

nib = pytest.importorskip("nibabel")

AFFINE = np.array([[-2.0, 0.125, 0, 90], [0.125, 2, 0, -126], [0, 0, 2.5, -72], [0, 0, 0, 1]])
Array = np.ndarray[Any, Any]


def voxels(shape: tuple[int, ...], dtype: Any) -> Array:
    rng = np.random.default_rng(0)
    return rng.integers(0, 100, shape).astype(dtype)


def make(path: Path, data: Array, kind: Any = None, scaling: Any = (None, None)) -> None:
    """Write a file as a scanner might: an affine, a description, an extension, perhaps a scaling."""
    image = (kind or nib.Nifti1Image)(data, AFFINE, dtype=data.dtype)
    image.header["descrip"] = b"TE 30 ms"
    image.header.set_xyzt_units("mm", "sec")
    image.header.extensions.append(nib.nifti1.Nifti1Extension("comment", b"from the scanner"))
    image.header.set_slope_inter(*scaling)
    nib.save(image, path)


def content(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
def test_a_file_comes_back_byte_for_byte(tmp_path: Path, name: str, dtype: str) -> None:
    data = voxels((7, 6, 5), dtype)
    make(tmp_path / name, data)
    image = read_image(tmp_path / name)
    assert (image.pixels.dtype, image.axes) == (np.dtype(dtype), "ZYX")
    assert image.format == format_of(name)
    np.testing.assert_array_equal(image.pixels, data.T)
    write_image(tmp_path / f"out-{name}", image.pixels, like=image, note="not in the header")
    assert content(tmp_path / f"out-{name}") == content(tmp_path / name)
    again = nib.load(tmp_path / f"out-{name}")
    np.testing.assert_array_equal(again.affine, AFFINE)
    assert again.header.extensions[0].get_content().rstrip(b"\0") == b"from the scanner"


def test_packing_follows_the_name(tmp_path: Path) -> None:
    make(tmp_path / "a.nii.gz", voxels((7, 6, 5), "i2"))
    image = read_image(tmp_path / "a.nii.gz")
    write_image(tmp_path / "b.nii", image.pixels, like=image)
    assert (tmp_path / "b.nii").read_bytes() == content(tmp_path / "a.nii.gz")
    write_image(tmp_path / "c.NII.GZ", image.pixels, like=image)
    assert (tmp_path / "c.NII.GZ").read_bytes()[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("kind", ["Nifti1Image", "Nifti2Image"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_both_versions_and_byte_orders(tmp_path: Path, kind: str, order: str) -> None:
    source = getattr(nib, kind)(voxels((5, 4, 3), "i2"), AFFINE)
    swapped = source.__class__(source.dataobj, AFFINE, source.header.as_byteswapped(order))
    nib.save(swapped, tmp_path / "a.nii")
    image = read_image(tmp_path / "a.nii")
    np.testing.assert_array_equal(image.pixels, voxels((5, 4, 3), "i2").T)
    write_image(tmp_path / "b.nii", image.pixels, like=image)
    assert (tmp_path / "b.nii").read_bytes() == (tmp_path / "a.nii").read_bytes()


@pytest.mark.parametrize("dtype", ["i2", "u1", "i4", "f4"])
def test_scaled_voxels_are_physical_and_go_back_as_stored(tmp_path: Path, dtype: str) -> None:
    data = voxels((6, 5, 4), dtype)
    make(tmp_path / "a.nii", data, scaling=(0.25, -10))
    image = read_image(tmp_path / "a.nii")
    np.testing.assert_allclose(image.pixels, nib.load(tmp_path / "a.nii").get_fdata().T, rtol=1e-6)
    write_image(tmp_path / "b.nii", image.pixels, like=image)
    assert (tmp_path / "b.nii").read_bytes() == (tmp_path / "a.nii").read_bytes()
    write_image(tmp_path / "c.nii", image.pixels + np.float32(0.5), like=image)
    found = nib.load(tmp_path / "c.nii").get_fdata()
    np.testing.assert_allclose(found.T, image.pixels + 0.5, atol=1e-5)


def test_another_data_type_is_told_by_the_header(tmp_path: Path) -> None:
    make(tmp_path / "a.nii", voxels((6, 5, 4), "i2"))
    image = read_image(tmp_path / "a.nii")
    write_image(tmp_path / "b.nii", image.pixels + np.float32(0.5), like=image)
    again = nib.load(tmp_path / "b.nii")
    assert again.get_data_dtype() == np.float32
    np.testing.assert_array_equal(again.get_fdata().T, image.pixels + 0.5)
    np.testing.assert_array_equal(again.affine, AFFINE)
    assert len(again.header.extensions) == 1


def test_a_series_is_cut_into_volumes_and_a_slice_is_a_picture(tmp_path: Path) -> None:
    make(tmp_path / "series.nii.gz", voxels((9, 8, 7, 3), "i2"))
    image = read_image(tmp_path / "series.nii.gz")
    stack = cut(image)
    assert (image.pixels.shape, image.axes, len(stack), stack.third) == (
        (3, 7, 8, 9),
        "TZYX",
        3,
        "Z",
    )
    make(tmp_path / "slice.nii", voxels((9, 8, 1), "i2"))
    assert cut(read_image(tmp_path / "slice.nii")).third == ""
    make(tmp_path / "one.nii", voxels((9, 8, 7, 1), "i2"))
    assert read_image(tmp_path / "one.nii").axes == "ZYX"


def test_the_command_removes_rician_noise_from_a_series(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from symsmooth.cli import app

    rng = np.random.default_rng(0)
    clean = np.zeros((24, 24, 12, 2))
    clean[6:18, 6:18, 3:9] = 300
    real, imaginary = 20 * rng.standard_normal((2, *clean.shape))
    make(tmp_path / "a.nii.gz", np.rint(np.hypot(clean + real, imaginary)).astype(np.int16))
    options = ["--noise", "rician", "--quality", "preview"]
    names = [str(tmp_path / "a.nii.gz"), "-o", str(tmp_path / "b.nii.gz")]
    result = CliRunner().invoke(app, ["denoise", *names, *options])
    assert result.exit_code == 0, result.output
    assert "Rician" in result.output
    found = nib.load(tmp_path / "b.nii.gz")
    np.testing.assert_array_equal(found.affine, AFFINE)
    assert found.get_data_dtype() == np.int16
    assert found.get_fdata()[:4].mean() < 2.0  # the noise alone has a mean of 25


def test_pictures_of_other_formats(tmp_path: Path) -> None:
    data = voxels((3, 4, 5), "f4")
    write_image(tmp_path / "a.nii.gz", data, like=ImageFile(data, None, None, "", axes="ZYX"))
    np.testing.assert_array_equal(nib.load(tmp_path / "a.nii.gz").get_fdata().T, data)
    for bad, like in (
        (np.zeros((4, 5), np.float16), None),
        (np.zeros((4, 5, 3), np.uint8), None),
        (np.zeros((4, 5), np.uint8), np.zeros((4, 5), np.uint8)),
    ):
        image = ImageFile(bad, 2 if bad.ndim == 3 else None, like, "PNG")
        with pytest.raises(FileError, match=r"NIfTI holds .*write to"):
            write_image(tmp_path / "b.nii", bad, like=image)
    assert not (tmp_path / "b.nii").exists()


def changed(path: Path, at: int, value: bytes) -> None:
    data = bytearray(content(path))
    data[at : at + len(value)] = value
    is_packed = path.name.endswith(".gz")
    path.write_bytes(gzip.compress(bytes(data)) if is_packed else bytes(data))


LIES = {
    "large": (42, np.array([30000] * 3, "<i2").tobytes(), "claims 54000000000000 bytes"),
    "none": (42, np.array([0], "<i2").tobytes(), "dimensions.*damaged"),
    "negative": (42, np.array([-3], "<i2").tobytes(), "dimensions.*damaged"),
    "many": (40, np.array([9], "<i2").tobytes(), "dimensions.*damaged"),
    "longer": (42, np.array([8], "<i2").tobytes(), "bytes too early"),
    "complex": (70, np.array([32], "<i2").tobytes(), "holds complex64 values; save"),
    "unknown": (70, np.array([77], "<i2").tobytes(), "unknown data type 77"),
    "offset": (108, np.array([1e9], "<f4").tobytes(), "claims 1000000000 bytes"),
    "before": (108, np.array([12], "<f4").tobytes(), "start at byte 12: damaged"),
    "no number": (108, np.array([np.nan], "<f4").tobytes(), "start at byte nan: damaged"),
    "scaled": (112, np.array([2, np.inf], "<f4").tobytes(), "invalid intercept inf"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", ["a.nii", "a.nii.gz"])
def test_headers_that_lie_are_refused_in_a_line(tmp_path: Path, name: str, lie: str) -> None:
    at, value, message = LIES[lie]
    make(tmp_path / name, voxels((7, 6, 5), "i2"))
    changed(tmp_path / name, at, value)
    with pytest.raises(FileError, match=message) as caught:
        read_image(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_bombs_are_not_unpacked(tmp_path: Path) -> None:
    make(tmp_path / "a.nii", voxels((7, 6, 5), "i2"))
    start = bytearray((tmp_path / "a.nii").read_bytes())
    start[42:48] = np.array([2000, 1000, 20], "<i2").tobytes()
    (tmp_path / "b.nii.gz").write_bytes(gzip.compress(bytes(start) + bytes(80_000_000)))
    with limit_decoded_size(10_000_000), pytest.raises(FileError, match="more than the 10 MB"):
        read_image(tmp_path / "b.nii.gz")
    packed = bytearray(gzip.compress((tmp_path / "a.nii").read_bytes()))
    packed[-6] ^= 255  # the checksum
    (tmp_path / "c.nii.gz").write_bytes(packed)
    with pytest.raises(FileError, match=r"c\.nii\.gz: cannot be read: CRC"):
        read_image(tmp_path / "c.nii.gz")
    (tmp_path / "d.nii.gz").write_bytes(gzip.compress(b"a letter"))
    with pytest.raises(FileError, match="no NIfTI; unpack it first"):
        read_image(tmp_path / "d.nii.gz")
