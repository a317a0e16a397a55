"""Axes: channels together, Z a volume, time and pages slice by slice, unless told otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.io import FileError, ImageFile, read_image
from symsmooth.io.images import cut

from ..fakes import use_methods
from .test_roundtrip import make_ome_zarr, means

Array = np.ndarray[Any, Any]

CUTS = {
    # axes, shape, third: number of pieces, shape of one, channel axis in it, letter of depth
    ("YX", (9, 8), "auto"): (1, (9, 8), None, ""),
    ("YXC", (9, 8, 3), "auto"): (1, (9, 8, 3), 2, ""),
    ("ZYX", (5, 9, 8), "auto"): (1, (5, 9, 8), None, "Z"),
    ("ZYX", (5, 9, 8), "none"): (5, (9, 8), None, ""),
    ("ZYX", (1, 9, 8), "auto"): (1, (9, 8), None, ""),
    ("TYX", (5, 9, 8), "auto"): (5, (9, 8), None, ""),
    ("TYX", (5, 9, 8), "time"): (1, (5, 9, 8), None, "T"),
    ("TYX", (5, 9, 8), "volume"): (1, (5, 9, 8), None, "T"),
    ("QYX", (5, 9, 8), "auto"): (5, (9, 8), None, ""),
    ("QYX", (5, 9, 8), "volume"): (1, (5, 9, 8), None, "Q"),
    ("QYX", (5, 9, 8), "time"): (1, (5, 9, 8), None, "Q"),
    ("IYXS", (5, 9, 8, 3), "time"): (1, (5, 9, 8, 3), 3, "I"),
    ("TZCYX", (4, 5, 2, 9, 8), "auto"): (4, (5, 2, 9, 8), 1, "Z"),
    ("TZCYX", (4, 5, 2, 9, 8), "none"): (20, (2, 9, 8), 0, ""),
    ("TZCYX", (4, 5, 2, 9, 8), "time"): (5, (4, 2, 9, 8), 1, "T"),
    ("TCZYX", (4, 2, 5, 9, 8), "auto"): (4, (2, 5, 9, 8), 0, "Z"),
    ("CYXS", (2, 9, 8, 3), "auto"): (2, (9, 8, 3), 2, ""),
    ("QQYX", (1, 5, 9, 8), "volume"): (1, (5, 9, 8), None, "Q"),
    ("TYXS", (4, 9, 8, 3), "auto"): (4, (9, 8, 3), 2, ""),
}


@pytest.mark.parametrize("case", CUTS, ids=lambda case: f"{case[0]} {case[2]}")
def test_pieces(case: Any) -> None:
    axes, shape, third = case
    channel = axes.index("S") if "S" in axes else axes.find("C")
    pixels = np.arange(np.prod(shape)).reshape(shape)
    image = ImageFile(pixels, None if channel < 0 else channel, None, "TIFF", {}, axes)
    stack = cut(image, third)
    n_pieces, piece, channel_axis, letter = CUTS[case]
    assert (len(stack), stack.channel_axis, stack.third) == (n_pieces, channel_axis, letter)
    assert {pixels[index].shape for index in stack} == {piece}
    seen = np.concatenate([pixels[index].ravel() for index in stack])
    assert sorted(seen.tolist()) == list(range(pixels.size))  # each pixel once


def test_what_is_no_volume_is_refused_with_what_would_work() -> None:
    for axes, shape, third, says in (
        ("YX", (9, 8), "volume", "is no volume.*denoise it slice by slice"),
        ("TQYX", (4, 5, 9, 8), "volume", "axes are TQYX"),
        ("ZYX", (4, 9, 8), "time", "no axis of time.*as a volume, or slice by slice"),
    ):
        with pytest.raises(FileError, match=says):
            cut(ImageFile(np.zeros(shape), None, None, "", {}, axes), third)  # type: ignore[arg-type]


SEEN: list[tuple[tuple[int, ...], int | None]] = []


def watch(image: Array, sigma: float, *, channel_axis: int | None = None) -> Array:
    """Add one, and remember what was asked for."""
    SEEN.append((image.shape, channel_axis))
    return np.asarray(image + image.dtype.type(1))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    SEEN.clear()
    use_methods(monkeypatch, {"watch": watch})
    monkeypatch.chdir(tmp_path)

    def call(source: str, target: str, *options: str) -> Any:
        arguments = ["denoise", source, "-o", target, "--method", "watch", *options]
        return CliRunner().invoke(cli.app, [*arguments, "--sigma", "1"])

    return call


FILES: dict[str, tuple[tuple[int, ...], dict[str, Any], list[tuple[tuple[int, ...], int | None]]]]
FILES = {
    "z": ((5, 9, 8), {"imagej": True, "metadata": {"axes": "ZYX"}}, [((5, 9, 8), None)]),
    "t": ((5, 9, 8), {"imagej": True, "metadata": {"axes": "TYX"}}, [((9, 8), None)] * 5),
    "pages": ((5, 9, 8), {"photometric": "minisblack"}, [((9, 8), None)] * 5),
    "channels": ((2, 9, 8), {"ome": True, "metadata": {"axes": "CYX"}}, [((2, 9, 8), 0)]),
    "all": (
        (3, 5, 2, 9, 8),
        {"imagej": True, "metadata": {"axes": "TZCYX"}},
        [((5, 2, 9, 8), 1)] * 3,
    ),
    "rgb": ((4, 9, 8, 3), {"photometric": "rgb"}, [((9, 8, 3), 2)] * 4),
}


@pytest.mark.parametrize("name", FILES)
def test_axes_come_from_the_metadata_of_a_tiff(run: Any, name: str) -> None:
    shape, options, expected = FILES[name]
    stored = np.arange(np.prod(shape)).reshape(shape).astype(np.uint8)
    tifffile.imwrite("in.tif", stored, **options)
    result = run("in.tif", "out.tif")
    assert result.exit_code == 0, result.output
    assert expected == SEEN
    np.testing.assert_array_equal(tifffile.imread("out.tif"), stored + np.uint8(1))


def test_axes_come_from_ome_zarr(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    make_ome_zarr(tmp_path / "in.zarr", np.zeros((2, 2, 3, 16, 16), np.uint16), 3, means)
    assert run("in.zarr", "out.zarr").exit_code == 0
    assert SEEN == [((2, 3, 16, 16), 0)] * 2
    assert (read_image("out.zarr").pixels == 1).all()


def test_three_unnamed_planes_of_fits_are_colours_but_a_spectrum_is_not(run: Any) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    fits.PrimaryHDU(np.zeros((3, 9, 8), np.float32)).writeto("rgb.fits")
    cube = fits.PrimaryHDU(np.zeros((3, 9, 8), np.float32))
    cube.header["CTYPE3"] = "FREQ"
    cube.writeto("cube.fits")
    assert run("rgb.fits", "a.fits").exit_code == 0
    assert run("cube.fits", "b.fits").exit_code == 0
    assert [((3, 9, 8), 0), *[((9, 8), None)] * 3] == SEEN


@pytest.mark.parametrize(
    ("option", "calls"), [("--volume", [(5, 9, 8)]), ("--slices", [(9, 8)] * 5), ("", [(9, 8)] * 5)]
)
def test_arrays_are_stacks_unless_called_volumes(run: Any, option: str, calls: Any) -> None:
    np.save("a.npy", np.zeros((5, 9, 8), np.float32))
    result = run("a.npy", "b.npy", *([option] if option else []))
    assert [shape for shape, _ in SEEN] == calls
    assert (", volume," in result.output) == (option == "--volume")
    assert (", 5 slices," in result.output) == (option != "--volume")


def test_only_one_can_be_asked_for(run: Any) -> None:
    np.save("a.npy", np.zeros((5, 9, 8), np.float32))
    result = run("a.npy", "b.npy", "--volume", "--time")
    assert result.exit_code == 2
    assert "give one of --volume, --slices and --time" in result.stderr


def test_an_empty_frame_stays_one_and_the_noise_is_that_of_the_others(run: Any) -> None:
    frames = np.random.default_rng(0).normal(100, 5, (4, 32, 32)).astype(np.float32)
    frames[1] = np.nan
    np.save("a.npy", frames)
    arguments = ["denoise", "a.npy", "-o", "b.npy", "--method", "watch", "--json"]
    report = json.loads(CliRunner().invoke(cli.app, arguments).stdout)
    assert report["slices"] == 4
    assert report["noise"]["level"] == pytest.approx(5, rel=0.15)
    back = np.load("b.npy")
    assert np.isnan(back[1]).all()
    np.testing.assert_array_equal(back[2], frames[2] + 1)


def test_a_real_volume_is_better_in_3d_than_slice_by_slice(tmp_path: Path) -> None:
    z, y, x = np.indices((12, 24, 24))
    clean = 100 + 60 * np.sin(x / 4) * np.cos(y / 5) + 3 * z
    noisy = clean + np.random.default_rng(0).normal(0, 20, clean.shape)
    source = tmp_path / "in.tif"
    tifffile.imwrite(source, noisy.astype(np.float32), imagej=True, metadata={"axes": "ZYX"})
    errors = []
    for name, options in (("v.tif", []), ("s.tif", ["--slices"])):
        arguments = ["denoise", str(source), "-o", str(tmp_path / name), "--method", "nlm"]
        result = CliRunner().invoke(cli.app, [*arguments, "--sigma", "20", *options])
        assert result.exit_code == 0, result.output
        errors.append(np.mean((read_image(tmp_path / name).pixels - clean) ** 2))
    assert errors[0] < 0.8 * errors[1]
