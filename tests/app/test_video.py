"""Videos: frames are denoised, all else comes back, and what is damaged leaves nothing behind."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from symsmooth import cli
from symsmooth.core.metrics import psnr
from symsmooth.io import FileError, read_image, read_images
from symsmooth.io.base import naming_errors
from symsmooth.io.formats import open_file

from ..clips import COUNT, HEIGHT, WIDTH, Array, av, colours, facts, make_clip, noisy, scene

pytest.importorskip("av", reason="the extra video is not installed")
from symsmooth.io.video import Video

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> Any:
        return CliRunner().invoke(cli.app, arguments)

    return call


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Denoise nothing: what is tested is all that is around it."""
    monkeypatch.setattr("symsmooth.gsfw.denoise.denoise_frames", lambda frames, **_: iter(frames))


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def decoded(path: str) -> list[list[Array]]:
    with open_file(path) as file:
        video = Video(file)
        video.survey()
        return [frame.planes for frame in video.frames()]


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt", "out"),
    [
        ("a.mp4", "libx264", "yuv420p", "b.mp4"),
        ("a.mov", "libx264", "yuv422p", "b.mov"),
        ("a.mkv", "libx264", "yuv444p", "b.mkv"),
        ("a.mkv", "libx265", "yuv420p10le", "b.mp4"),
        ("a.mkv", "ffv1", "yuv422p10le", "b.mkv"),
        ("a.mp4", "libx264", "yuv420p", "b.mkv"),
    ],
)
def test_all_but_the_noise_comes_back(
    run: Run, name: str, codec: str, pix_fmt: str, out: str
) -> None:
    make_clip(Path(name), codec, pix_fmt, rotation=90, tags=(1, 9, 9, 16))
    result = run("denoise", name, "-o", out, "--sigma", "5")
    assert result.exit_code == 0, result.output
    before, after = facts(Path(name)), facts(Path(out))
    times, sound = (
        (before.pop("times"), after.pop("times")),
        (before.pop("sound"), after.pop("sound")),
    )
    assert len(times[0]) == COUNT
    rounding = 0.0011 if out.endswith(".mkv") else 2e-5  # Matroska counts milliseconds
    shift = 0.0  # Matroska has no time before 0: all streams start later then
    if name.endswith(".mp4") and out.endswith(".mkv"):
        shift = -sound[0][0][0]
    np.testing.assert_allclose(times[1], np.add(times[0], shift), atol=rounding)
    assert [packet for _, packet in sound[1]] == [packet for _, packet in sound[0]]
    heard = [[time for time, _ in packets] for packets in sound]
    np.testing.assert_allclose(heard[1], np.add(heard[0], shift), atol=rounding)
    assert after == before
    assert before["rotation"] == 90
    assert psnr(colours(Path(out)), colours(Path(name)), 255.0) > 30


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize(
    "pix_fmt", ["yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "gray", "gray10le", "bgr0"]
)
def test_what_is_not_changed_comes_back_to_the_bit(run: Run, pix_fmt: str) -> None:
    make_clip(Path("a.mkv"), "ffv1", pix_fmt, sound=False, tags=(2, 1, 1, 1))
    result = run("denoise", "a.mkv", "-o", "b.mkv", "--lossless", "--sigma", "5")
    assert result.exit_code == 0, result.output
    for before, after in zip(decoded("a.mkv"), decoded("b.mkv"), strict=True):
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)
    assert facts(Path("a.mkv"))["tags"] == facts(Path("b.mkv"))["tags"]


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize(
    ("name", "codec", "pix_fmt"),
    [
        ("a.webm", "libvpx-vp9", "yuv420p"),
        ("a.avi", "mjpeg", "yuvj420p"),
        ("a.avi", "rawvideo", "bgr24"),
        ("a.y4m", "wrapped_avframe", "yuv420p"),
    ],
)
def test_other_containers_become_mkv_in_a_folder(
    run: Run, name: str, codec: str, pix_fmt: str
) -> None:
    make_clip(Path(name), codec, pix_fmt, sound=False)
    result = run("denoise", name, "-o", "out/", "--sigma", "5")
    assert result.exit_code == 0, result.output
    assert [path.name for path in Path("out").iterdir()] == ["a.mkv"]
    assert len(facts(Path("out/a.mkv"))["times"]) == COUNT
    assert psnr(colours(Path("out/a.mkv")), colours(Path(name)), 255.0) > 30
    if not name.endswith(".y4m"):
        result = run("denoise", name, "-o", name.replace("a.", "b."))
        assert (result.exit_code, "a video is written as .mp4" in result.stderr) == (1, True)


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "gray"])
def test_y4m_goes_through_a_pipe_to_the_bit(run: Run, pix_fmt: str) -> None:
    source = make_clip(
        Path("a.mkv"), "ffv1", pix_fmt, frames=[noisy(n) for n in range(3)], sound=False
    )
    with av.open(source) as clip, av.open("a.y4m", "w", options={"strict": "-1"}) as out:
        stream = out.add_stream("wrapped_avframe", rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pix_fmt
        for number, frame in enumerate(clip.decode(video=0)):
            frame.pts, frame.time_base = number, Fraction(1, 25)
            out.mux(stream.encode(frame))
    given = Path("a.y4m").read_bytes()
    result = CliRunner().invoke(cli.app, ["denoise", "-", "-o", "-", "--sigma", "5"], input=given)
    assert result.exit_code == 0, result.stderr
    assert result.stdout_bytes == given
    assert names() == ["a.mkv", "a.y4m"]
    result = run("denoise", "a.y4m", "-o", "-", "--format", "mkv", "--sigma", "5")
    assert result.stdout_bytes.startswith(b"\x1a\x45\xdf\xa3")


@pytest.mark.usefixtures("nothing")
@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"sound": True}, "a stream (audio aac) does not fit into .y4m; write .mkv"),
        ({"sound": False}, "frames at uneven times, which .y4m cannot say; write .mkv"),
        ({"sound": False, "rotation": 90}, "is shown turned, which .y4m cannot say; write .mkv"),
    ],
)
def test_y4m_loses_nothing_in_silence(run: Run, made: dict[str, Any], said: str) -> None:
    frames = [noisy(number) for number in range(1 if made.get("sound") else 3)]
    make_clip(Path("a.mp4"), frames=frames, **made)
    result = run("denoise", "a.mp4", "-o", "b.y4m", "--sigma", "5")
    assert (result.exit_code, said in result.stderr) == (1, True), result.stderr
    assert names() == ["a.mp4"]


def test_a_series_gains_and_frame_by_frame_too(run: Run) -> None:
    make_clip(Path("a.mp4"))
    clean = np.stack([scene(number) for number in range(COUNT)])
    before = psnr(colours(Path("a.mp4")), clean, 255.0)
    result = run("denoise", "a.mp4", "-o", "b.mp4", "--quality", "preview", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["shape"] == [COUNT, HEIGHT, WIDTH, 3]
    assert 0.5 * 9 < told["noise"]["level"] < 1.5 * 12
    series = psnr(colours(Path("b.mp4")), clean, 255.0)
    assert series > before + 5
    result = run("denoise", "a.mp4", "-o", "c.mp4", "--quality", "preview", "--slices")
    assert result.exit_code == 0, result.output
    assert "10 slices" in result.stdout
    assert before + 3 < psnr(colours(Path("c.mp4")), clean, 255.0) < series


def test_one_frame_is_a_picture(run: Run) -> None:
    make_clip(Path("a.mp4"), rotation=90)
    result = run("denoise", "a.mp4", "-o", "one.png", "--frame", "4", "--quality", "preview")
    assert result.exit_code == 0, result.output
    picture = read_image("one.png").pixels
    assert (picture.shape, picture.dtype) == ((WIDTH, HEIGHT, 3), np.uint8)  # upright
    turned = np.rot90(scene(4), 1)
    assert psnr(picture, turned, 255.0) > psnr(np.rot90(noisy(4), 1), turned, 255.0) + 4
    make_clip(Path("b.mkv"), "ffv1", "yuv420p10le", sound=False)
    result = run("denoise", "b.mkv", "-o", "two.png", "--frame", "0", "--quality", "preview")
    assert result.exit_code == 0, result.output
    assert read_image("two.png").pixels.dtype == np.uint16
    result = run("denoise", "b.mkv", "-o", "three.png", "--frame", str(COUNT))
    assert (result.exit_code, "frames are 0 to 9" in result.stderr) == (1, True)
    result = run("denoise", "b.mkv", "-o", "three.mp4", "--frame", "1")
    assert (result.exit_code, "cannot write a picture to '.mp4'" in result.stderr) == (1, True)


def test_constant_frames_stay(run: Run) -> None:
    flat = [np.zeros((HEIGHT, WIDTH, 3), np.uint8)] * 3
    frames = [*flat, *(noisy(number) for number in range(4)), *flat]
    make_clip(Path("a.mkv"), "ffv1", frames=frames, sound=False)
    options = ("--quality", "preview", "--lossless")
    for more in ((), ("--slices",)):
        result = run("denoise", "a.mkv", "-o", "b.mkv", "--overwrite", *options, *more)
        assert result.exit_code == 0, result.output
        before, after = decoded("a.mkv"), decoded("b.mkv")
        for number in (0, 2, 7, 9):
            for one, other in zip(before[number], after[number], strict=True):
                np.testing.assert_array_equal(one, other)
        assert not np.array_equal(before[4][0], after[4][0])


def test_the_noise_of_a_video_and_of_pictures(run: Run) -> None:
    make_clip(Path("a.mp4"))
    result = run("noise", "a.mp4", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["range"] == 255.0
    assert told["shape"][0] == COUNT
    assert 3 < told["noise"]["level"] < 18
    Path("in").mkdir()
    from symsmooth.io import write_image

    for number in range(4):
        write_image(f"in/{number}.png", noisy(number))
    result = run("noise", "in", "--time")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 1
    assert result.stdout.startswith("in: 64x48x4 uint8 3 channels, series, ")
    assert len(run("noise", "in").stdout.splitlines()) == 4


@pytest.mark.parametrize(
    ("name", "codec"),
    [("a.mp4", "libx264"), ("a.mkv", "ffv1"), ("a.webm", "libvpx-vp9"), ("a.avi", "mjpeg")],
)
def test_cut_containers_are_refused(run: Run, name: str, codec: str) -> None:
    pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    content = make_clip(Path(name), codec, pix_fmt, sound=False).read_bytes()
    draw = random.Random(0)
    for size in [
        0,
        1,
        12,
        100,
        len(content) - 1,
        *(draw.randrange(len(content)) for _ in range(12)),
    ]:
        Path(name).write_bytes(content[:size])
        with pytest.raises(FileError) as raised:
            decoded_by_name(name)
        assert len(str(raised.value).splitlines()) == 1
        assert str(raised.value).startswith(name)
    result = run("denoise", name, "-o", "b.mkv")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert names() == [name]


def test_a_cut_y4m_is_refused(run: Run) -> None:
    content = make_clip(Path("a.y4m"), "wrapped_avframe", sound=False).read_bytes()
    for size in (30, 3000, len(content) // 2 + 7, len(content) - 1):
        Path("a.y4m").write_bytes(content[:size])
        with pytest.raises(FileError):
            decoded_by_name("a.y4m")


def test_changed_bytes_are_read_or_refused(run: Run) -> None:
    draw = random.Random(0)
    for name, codec in (("a.mp4", "libx264"), ("a.mkv", "ffv1")):
        content = make_clip(Path(name), codec, sound=False).read_bytes()
        for _ in range(20):
            changed = bytearray(content)
            for _ in range(draw.choice([1, 5, 50])):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            Path(name).write_bytes(changed)
            with suppress(FileError):
                assert decoded_by_name(name) <= 2 * COUNT
        Path(name).write_bytes(content[:40] + draw.randbytes(2000))
        with pytest.raises(FileError):
            decoded_by_name(name)


def decoded_by_name(name: str) -> int:
    with open_file(name) as file, naming_errors(Path(name)):
        video = Video(file)
        video.survey()
        return sum(1 for _ in video.frames())


def test_a_frame_that_is_too_large_for_its_file_is_refused_before_it_is_decoded(run: Run) -> None:
    content = make_clip(Path("a.y4m"), "wrapped_avframe", sound=False).read_bytes()
    Path("a.y4m").write_bytes(content.replace(b"W64 H48", b"W60000 H60000", 1))
    result = run("denoise", "a.y4m", "-o", "b.mkv")
    assert result.exit_code == 1
    assert "damaged" in result.stderr
    assert names() == ["a.y4m"]


def test_an_interrupt_or_error_leaves_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    make_clip(Path("a.mp4"))
    Path("b.mp4").write_bytes(b"mine")

    def failing(error: type[BaseException]) -> Any:
        def frames(given: Any, **_: Any) -> Iterator[Array]:
            yield next(iter(given))
            raise error("stopped")

        return frames

    for error, code in ((KeyboardInterrupt, 130), (ValueError, 1)):
        monkeypatch.setattr("symsmooth.gsfw.denoise.denoise_frames", failing(error))
        result = run("denoise", "a.mp4", "-o", "b.mp4", "--overwrite", "--sigma", "5")
        assert result.exit_code == code
        assert names() == ["a.mp4", "b.mp4"]
        assert Path("b.mp4").read_bytes() == b"mine"


@pytest.mark.usefixtures("nothing")
def test_a_video_may_replace_itself(run: Run) -> None:
    make_clip(Path("a.mp4"))
    result = run("denoise", "a.mp4", "-o", "a.mp4", "--overwrite", "--sigma", "5")
    assert result.exit_code == 0, result.output
    assert len(facts(Path("a.mp4"))["times"]) == COUNT


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "b.png"), "one frame of it can be a picture (--frame N)"),
        (("-o", "b.mp4", "--lossless"), "goes into .mkv"),
        (("-o", "b.mp4", "--volume"), "no slices of a volume"),
        (("-o", "b.mp4", "--dtype", "uint16"), "leave the dtype out (--dtype)"),
        (("-o", "b.mp4", "--time", "--method", "nlm"), "nlm knows of no time"),
    ],
)
def test_what_cannot_be_done_is_one_line(run: Run, arguments: tuple[str, ...], words: str) -> None:
    make_clip(Path("a.mp4"))
    result = run("denoise", "a.mp4", *arguments)
    assert result.exit_code in (1, 2)
    assert len(result.stderr.splitlines()) == 1
    assert words in result.stderr
    assert names() == ["a.mp4"]


def test_a_picture_is_not_lossless_and_a_video_no_picture(run: Run) -> None:
    from symsmooth.io import write_image

    write_image("a.png", noisy(0))
    result = run("denoise", "a.png", "-o", "b.png", "--lossless")
    assert "only a video is written without loss; leave that out (--lossless)" in result.stderr
    make_clip(Path("a.mp4"))
    with pytest.raises(FileError, match="is a video, not a picture"):
        read_images("a.mp4")
    Path("in").mkdir()
    for name in ("a.png", "a.mp4"):
        Path(name).rename(Path("in") / name)
    result = run("denoise", "in", "-o", "out", "--sigma", "5", "--quality", "preview")
    assert "skipped what is no picture: a.mp4" in result.output


def test_without_pyav_it_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    make_clip(Path("a.mp4"))
    for name in ("symsmooth.io.video", "symsmooth.io.video_pixels"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "av", None)
    result = run("denoise", "a.mp4", "-o", "b.mp4")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert "pip install 'symsmooth[video]'" in result.stderr
    assert names() == ["a.mp4"]


@pytest.mark.usefixtures("nothing")
def test_subtitles_that_do_not_fit_are_refused(run: Run) -> None:
    import av

    Path("a.srt").write_text("1\n00:00:00,000 --> 00:00:00,300\nhello\n")
    make_clip(Path("v.mkv"), "ffv1", sound=False)
    with av.open("v.mkv") as video, av.open("a.srt") as text, av.open("a.mkv", "w") as out:
        streams = {}
        for key, source in (("v", video.streams[0]), ("s", text.streams[0])):
            streams[key] = out.add_stream_from_template(source, opaque=True)
        for key, source in (("v", video), ("s", text)):
            for packet in source.demux():
                if packet.size:
                    packet.stream = streams[key]
                    out.mux(packet)
    result = run("denoise", "a.mkv", "-o", "b.mkv", "--sigma", "5")
    assert result.exit_code == 0, result.output
    with av.open("b.mkv") as out:
        assert [stream.type for stream in out.streams] == ["video", "subtitle"]
        assert b"hello" in b"".join(bytes(packet) for packet in out.demux(out.streams[1]))
    result = run("denoise", "a.mkv", "-o", "b.mp4", "--sigma", "5")
    assert (result.exit_code, "does not fit into .mp4" in result.stderr) == (1, True)
    assert not Path("b.mp4").exists()


def test_an_encoder_that_is_missing_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from symsmooth.io import video as module

    make_clip(Path("a.mkv"), "ffv1", sound=False)

    class NoCodec:
        def __init__(self, name: str, mode: str) -> None:
            raise module.av.codec.codec.UnknownCodecError(name)

    monkeypatch.setattr(module.av.codec, "Codec", NoCodec)
    result = run("denoise", "a.mkv", "-o", "b.mkv")
    assert result.exit_code == 1
    assert "the FFmpeg in use has no libx264; write .mkv without loss (--lossless)" in result.stderr
    assert names() == ["a.mkv"]
