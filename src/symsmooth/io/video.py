"""Video by PyAV (the libraries of FFmpeg): frames as arrays and back, with all that goes beside them.

A video is looked through once before anything is done with it (:meth:`Video.survey`): what is damaged or
not what it says is refused then.  Written are H.264 (8 bits), H.265 (more bits) or FFV1 (lossless); times
of frames, rotation, colour tags and the other streams are those of the source.  Y4M, for pipes, holds
pixels and a rate: what it would lose is refused.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import av
import numpy as np

from .base import FileError, OpenFile, check_declared_size, check_place, one_line
from .images import Array, ImageFile
from .video_pixels import Pixels, pixels_of

# Constant quality (CRF) of the encoders.  At 12 coding costs 0.2 to 0.3 dB of a clip denoised at sigma 20,
# and 1.1 to 1.6 dB at sigma 5, where there are 44 dB; at 16 twice as much, for two thirds of the bytes.
QUALITY = 12
_OPTIONS = {  # x265 prints lines of its own
    "ffv1": {"level": "3", "slicecrc": "1"}, "libx264": {"crf": str(QUALITY)}, "wrapped_avframe": {},
    "libx265": {"crf": str(QUALITY), "x265-params": "log-level=none"},
}  # fmt: skip
_CONTAINERS = {
    ".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska", ".y4m": "yuv4mpegpipe"
}  # that are written, by the ending of a name  # fmt: skip
_Y4M = "yuv4mpegpipe"
_DEMUXERS = {b"\x1a\x45\xdf\xa3": "matroska", b"RIFF": "avi", b"YUV4": _Y4M}  # else MP4 or MOV
_COLOUR_TAGS = ("color_range", "colorspace", "color_primaries", "color_trc")
_FAR = 90  # frames from which on it is faster to seek than to decode
_MAX_STREAMS = 64
_MAX_BOXES = 100_000  # of an MP4 that are looked at; one that was written in fragments has many
_DAMAGED = "it is damaged or was cut off; if a player shows it, make a copy: ffmpeg -i IN -c:v ffv1 OUT.mkv"


def read(file: OpenFile) -> list[ImageFile]:
    """Refuse: a video is not read whole."""
    raise FileError(
        "is a video, not a picture; symsmooth denoise IN.mp4 -o OUT.mp4 denoises it, or one frame of it "
        "to a picture",
        "frame",
    )


@dataclass(frozen=True)
class VideoFrame:
    """A decoded frame."""

    pixels: Array  # (y, x) or (y, x, colours), in steps of the video; noise may lie beyond black or white
    planes: list[Array]  # as they were decoded
    pts: int  # its time, in units of the stream


class Video:
    """A video that is open for reading; no other file is opened, whatever the container says."""

    def __init__(self, file: OpenFile) -> None:
        file.handle.seek(0)
        self._kind = _DEMUXERS.get(file.handle.read(4), "mov")
        self._handle, self._size = file.handle, file.size
        self._container: Any = None
        self._open()
        self.times: list[int] = []  # when frames are shown, in order; known after the survey
        context = self.stream.codec_context
        if context.pix_fmt is None:
            raise FileError("does not say what its pixels are: damaged")
        self.pixels: Pixels = pixels_of(
            context.pix_fmt, context.height, context.colorspace, context.color_range
        )
        self._matrix: tuple[int, ...] | None = None
        self._tags: dict[str, int] = {}

    def _open(self) -> None:
        """Open the container at its beginning; the format is not left to be guessed."""
        self.close()
        self._handle.seek(0)
        try:
            self._container = av.open(self._handle, format=self._kind, metadata_errors="replace")
        except av.FFmpegError as error:
            raise FileError(f"cannot be read: {_words(error)}; {_DAMAGED}") from error
        streams = self._container.streams
        if len(streams) > _MAX_STREAMS:
            raise FileError(f"has {len(streams)} streams; take out those you need")
        cover = av.stream.Disposition.attached_pic
        moving = [each for each in streams.video if not each.disposition & cover]
        if not moving:
            raise FileError("has no video stream")
        self.stream: Any = moving[0]
        self._check_size(self.stream.codec_context.width, self.stream.codec_context.height)
        largest = max(self._size * 1100, 2**25)
        self.stream.codec_context.options = {"max_pixels": str(min(largest, 2**31 - 1))}
        self.stream.thread_type = "AUTO"

    def _check_size(self, width: int, height: int) -> None:
        if width < 1 or height < 1:
            raise FileError("does not say how large its frames are: damaged")
        check_declared_size(width * height * 3, self._size)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the pixels of a frame."""
        context = self.stream.codec_context
        return (context.height, context.width, 3)[: 3 if self.pixels.colours else 2]

    @property
    def format(self) -> str:
        """Codec and pixels, in a word: ``h264 yuv420p``."""
        return f"{self.stream.codec_context.name} {self.stream.codec_context.pix_fmt}"

    @property
    def rotation(self) -> int:
        """By how many quarter turns, against the clock, a frame is shown turned."""
        if self._matrix is None:
            return 0
        a, b = self._matrix[0], self._matrix[1]
        return round(np.degrees(np.arctan2(-b, a)) / 90) % 4

    def survey(self, decode: bool = True, report: Callable[[int], object] | None = None) -> None:
        """Look through all of it; refuse what is damaged, and keep the times of frames.

        Frames are decoded, by which all damage is seen, or only packets are read; ``report`` is told how
        many there are so far.
        """
        self._open()
        times: list[int] = []
        sizes: list[int] = []
        for packet in self._packets():
            if packet.stream_index != self.stream.index:
                continue
            sizes += [packet.size] if packet.size else []
            if not decode:
                times += [packet.pts] if packet.pts is not None and not packet.is_discard else []
                continue
            for frame in packet.decode():
                self._look_at(frame, len(times))
                times.append(self._time_of(frame))
                if report is not None:
                    report(len(times))
        self.times = sorted(times)
        if not times:
            raise FileError(f"has no frame that can be decoded: {_DAMAGED}")
        if (decode and times != self.times) or len(set(times)) < len(times):
            raise FileError("shows two frames at one time: its times are damaged")
        self._check_end(sizes)
        if not decode:
            self._open()
            self._look_at(next(self._decoded()), 0)

    def _check_end(self, sizes: list[int]) -> None:
        """Refuse a container that says that it has more than is there."""
        self._handle.seek(0)
        said = {
            "mov": _mp4_size, "matroska": _matroska_size,
            "avi": lambda handle, _: 8 + int.from_bytes(handle.read(8)[4:], "little"),
            _Y4M: lambda handle, size: _y4m_size(handle, size, sizes),
        }[self._kind](self._handle, self._size)  # fmt: skip
        for expected, has, what in (
            (said, self._size, "bytes"),
            (self.stream.frames if self._kind == "mov" else None, len(sizes), "frames"),
        ):
            if expected is not None and has < expected:
                raise FileError(f"says it has {expected} {what} and has {has}: {_DAMAGED}")

    def _look_at(self, frame: Any, number: int) -> None:
        """Refuse what cannot be kept; of the first frame keep what holds for all."""
        if frame.interlaced_frame:
            raise FileError(
                "is interlaced: each frame shows two moments; de-interlace it first: "
                "ffmpeg -i IN -vf bwdif -c:v ffv1 -c:a copy OUT.mkv"
            )
        if frame.is_corrupt:
            raise FileError(f"frame {number} is damaged: {_DAMAGED}")
        if number == 0:
            self._check_size(frame.width, frame.height)
            self._first = frame.width, frame.height, frame.format.name
            self.pixels = pixels_of(
                frame.format.name, frame.height, frame.colorspace, frame.color_range
            )
            self._matrix = _display_matrix(frame)
            self._tags = {name: int(getattr(frame, name)) for name in _COLOUR_TAGS}
        elif (frame.width, frame.height, frame.format.name) != self._first:
            raise FileError(
                f"frame {number} is {frame.width}x{frame.height} {frame.format.name}, the first "
                f"{self._first[0]}x{self._first[1]} {self._first[2]}; cut it there"
            )

    def _time_of(self, frame: Any) -> int:
        time = frame.pts if frame.pts is not None else frame.dts
        if time is None:
            raise FileError("does not say when its frames are shown; make it an .mkv")
        return int(time)

    def _packets(self) -> Iterator[Any]:
        """Yield packets; what FFmpeg cannot read is an error of ours."""
        try:
            yield from self._container.demux()
        except (av.FFmpegError, MemoryError) as error:
            raise FileError(f"cannot be read: {_words(error)}; {_DAMAGED}") from error

    def _decoded(self, others: Callable[[Any], object] | None = None) -> Iterator[Any]:
        """Yield decoded frames from here on; give packets of other streams away as they come."""
        for packet in self._packets():
            if packet.stream_index == self.stream.index:
                yield from packet.decode()
            elif others is not None and packet.size:
                others(packet)

    def frames(
        self, numbers: range | None = None, others: Callable[[Any], object] | None = None
    ) -> Iterator[VideoFrame]:
        """Yield frames in order, all or those of a range; packets of other streams go to ``others``."""
        self._open()
        wanted = numbers if numbers is not None else range(len(self.times))
        found = 0
        for number, frame in enumerate(self._decoded(others)):
            if number in wanted:
                found += 1
                yield self._made(frame)
            if others is None and number + 1 >= wanted.stop:
                break
        if found < len(wanted):
            raise FileError(
                f"ended after {found} of {len(wanted)} frames; it was changed meanwhile"
            )

    def some(self, numbers: Sequence[int]) -> list[VideoFrame]:
        """Return frames of these numbers, which rise, without decoding what lies between."""
        found: list[VideoFrame] = []
        self._open()
        decoded = self._decoded()
        at = 0
        for number in numbers:
            time = self.times[number]
            if number - at > _FAR:
                with suppress(av.FFmpegError):  # then the frames between are decoded
                    self._container.seek(time, stream=self.stream)
                    decoded = self._decoded()
            for frame in decoded:
                if self._time_of(frame) >= time:
                    found.append(self._made(frame))
                    break
            at = number
        if not found:
            raise FileError(f"has no frame that can be decoded: {_DAMAGED}")
        return found

    def _made(self, frame: Any) -> VideoFrame:
        if (frame.width, frame.height, frame.format.name) != self._first:
            raise FileError("has frames of two kinds; it was changed meanwhile")
        planes = self.pixels.planes(frame)
        return VideoFrame(self.pixels.unpack(planes), planes, self._time_of(frame))

    def close(self) -> None:
        """Close the container; the handle is left open."""
        if self._container is not None:
            self._container.close()
            self._container = None


def _words(error: BaseException) -> str:
    """Return what FFmpeg says, without its numbers and the name of our handle."""
    return str(getattr(error, "strerror", None) or one_line(error)).lower()


def _matroska_size(handle: BinaryIO, size: int) -> int | None:
    """Return how many bytes a Matroska says it has; None if it does not say so."""
    start = handle.read(4096)
    length, at = _ebml_size(start, 4)
    at += length or 0
    if start[at : at + 4] != b"\x18\x53\x80\x67":  # the segment that holds all else
        return None
    length, at = _ebml_size(start, at + 4)
    return None if length is None else at + length


def _mp4_size(handle: BinaryIO, size: int) -> int:
    """Return where the last box of an MP4 or MOV ends; each says how long it is."""
    end = 0
    for _ in range(_MAX_BOXES):
        if end + 8 > size:
            break
        handle.seek(end)
        header = handle.read(16)
        length = int.from_bytes(header[:4], "big")
        if length == 1:
            length = int.from_bytes(header[8:16], "big")
        if length < 8:  # 0: to the end of the file
            break
        end += length
    return end


def _ebml_size(data: bytes, at: int) -> tuple[int | None, int]:
    """Return a size of an element of Matroska, None if it is not known, and where its content begins."""
    if at >= len(data) or data[at] == 0:
        return None, at
    n_bytes = 9 - data[at].bit_length()
    value = int.from_bytes(data[at : at + n_bytes], "big") & ((1 << 7 * n_bytes) - 1)
    return (None if value == (1 << 7 * n_bytes) - 1 else value), at + n_bytes


def _y4m_size(handle: BinaryIO, size: int, frames: list[int]) -> int | None:
    """Return how many bytes a Y4M with one frame more would have, if it has a part of that frame."""
    header, _, rest = handle.read(4096).partition(b"\n")
    if not rest.startswith(b"FRAME\n"):
        return None
    whole = len(header) + 1 + sum(frames) + 6 * len(frames)
    return whole if size == whole else whole + frames[0] + 6


def _display_matrix(frame: Any) -> tuple[int, ...] | None:
    """Return how a frame is turned or mirrored when it is shown."""
    for data in frame.side_data:
        if getattr(data.type, "name", "") == "DISPLAYMATRIX":
            return tuple(int(n) for n in np.frombuffer(bytes(data), np.int32)[:9])
    return None


class VideoWriter:
    """Writes frames, and the packets of the other streams of their source, which was surveyed.

    The ending of the name says the container; frames are kept to the bit if they are lossless, by FFV1.
    """

    def __init__(
        self, handle: BinaryIO, name: Path, video: Video, lossless: bool, note: str
    ) -> None:
        self._video = video
        container = _CONTAINERS[name.suffix.lower()]
        _check_container(video, name)
        # Y4M of more than 8 bits is read by everybody and in no standard.
        options = {"strict": "-1"} if container == _Y4M else {}
        self._container: Any = av.open(handle, "w", format=container, options=options)
        self.dropped: list[str] = []  # streams of data that the container cannot hold
        self._copies: dict[int, Any] = {}
        source = video._container
        try:
            for stream in source.streams:
                if stream.index == video.stream.index:
                    self._add_video(*encoder_of(video.pixels, lossless, name))
                else:
                    self._add_copy(stream, name)
            self._container.metadata.update(_metadata(source.metadata))
            self._container.metadata.setdefault("comment", note)
            with suppress(av.FFmpegError, ValueError):
                self._container.set_chapters(source.chapters())
            self._container.start_encoding()
        except (av.FFmpegError, ValueError) as error:
            raise FileError(f"cannot be written: {one_line(error)}") from error

    def _add_video(self, codec: str, pix_fmt: str) -> None:
        video, source = self._video, self._video.stream
        rate = source.average_rate or source.guessed_rate or Fraction(25)
        stream: Any = self._container.add_stream(codec, rate=rate)
        context = stream.codec_context
        context.width, context.height = source.codec_context.width, source.codec_context.height
        context.pix_fmt = pix_fmt
        context.time_base = stream.time_base = source.time_base
        context.options = dict(_OPTIONS[codec])  # a copy that is its own
        if source.sample_aspect_ratio:
            context.sample_aspect_ratio = source.sample_aspect_ratio
        for name, value in (video._tags | video.pixels.tags(pix_fmt)).items():
            setattr(context, name, value)
        if video._matrix is not None:
            stream.set_display_matrix(video._matrix)
        stream.metadata.update(_metadata(source.metadata))
        stream.disposition = source.disposition
        self._stream, self._pix_fmt = stream, pix_fmt

    def _add_copy(self, stream: Any, name: Path) -> None:
        """Copy a stream as it is; sound and subtitles must fit, other data may be left out, and is told."""
        what = f"{stream.type} {getattr(stream.codec_context, 'name', '') or 'of unknown kind'}".strip()
        if not _fits(stream, _CONTAINERS[name.suffix.lower()]):
            if stream.type in ("audio", "subtitle"):
                raise FileError(
                    f"a stream ({what}) does not fit into {name.suffix}; write .mkv, or the container "
                    "it is in now"
                )
            self.dropped.append(what)
            return
        copy: Any = self._container.add_stream_from_template(stream, opaque=True)
        copy.time_base = stream.time_base
        copy.metadata.update(_metadata(stream.metadata))
        copy.disposition = stream.disposition
        self._copies[stream.index] = copy

    def copy(self, packet: Any) -> None:
        """Write a packet of another stream."""
        stream = self._copies.get(packet.stream_index)
        if stream is not None:
            packet.stream = stream
            self._container.mux(packet)

    def write(self, frame: VideoFrame, pixels: Array) -> None:
        """Write a frame with other pixels; an encoder is given those that did not change as they were."""
        source = self._video.pixels
        made = source.frame(source.pack(frame.planes, frame.pixels, pixels), self._pix_fmt)
        made.pts, made.time_base = frame.pts, self._video.stream.time_base
        for packet in self._stream.encode(made):
            self._container.mux(packet)

    def close(self) -> None:
        """Write what is left and the end of the container."""
        for packet in self._stream.encode():
            self._container.mux(packet)
        self._container.close()

    def discard(self) -> None:
        """Let go of what was written: the file will not be kept."""
        with suppress(Exception):
            self._container.close()


def _check_container(video: Video, name: Path) -> None:
    """Refuse what Y4M cannot say of a video: how frames are turned, and times that are not even."""
    if _CONTAINERS[name.suffix.lower()] != _Y4M:
        return
    if video.rotation:
        raise FileError("is shown turned, which .y4m cannot say; write .mkv")
    steps = np.diff(video.times)
    if len(steps) and np.ptp(steps) > 1:  # by rounding to the units of the container
        raise FileError("has frames at uneven times, which .y4m cannot say; write .mkv")


def encoder_of(pixels: Pixels, lossless: bool, name: Path) -> tuple[str, str]:
    """Return the encoder for pixels that a file of this name holds, and the format it is given."""
    if _CONTAINERS[name.suffix.lower()] == _Y4M:
        return "wrapped_avframe", pixels.encoded_as(lossless=False)[0]
    codec = "ffv1" if lossless else "libx264" if pixels.depth == 8 else "libx265"
    better = "" if lossless else "; write .mkv without loss"
    options = () if lossless else ("lossless",)
    try:
        known = {each.name for each in av.codec.Codec(codec, "w").video_formats or ()}
    except av.codec.codec.UnknownCodecError:  # FFmpeg may be built without it, for its licence
        raise FileError(f"the FFmpeg in use has no {codec}{better}", *options) from None
    for pix_fmt in pixels.encoded_as(lossless):
        if pix_fmt in known:
            return codec, pix_fmt
    raise FileError(f"has pixels ({pixels.name}) that {codec} cannot hold{better}", *options)


def check_name(path: Path, lossless: bool) -> None:
    """Refuse a name whose container cannot be written, before the work."""
    suffix = path.suffix.lower()
    if suffix not in _CONTAINERS:
        raise FileError(
            f"{path}: a video is written as {', '.join(_CONTAINERS)}, not {suffix!r}; one frame of "
            "it can be a picture",
            "frame",
        )
    if lossless and suffix not in (".mkv", ".y4m"):
        raise FileError(f"{path}: lossless video (FFV1) goes into .mkv; end the name so")
    check_place(path)


def _fits(stream: Any, container: str) -> bool:
    """Whether a container can hold a stream: by writing the beginning of one."""
    try:
        with av.open(io.BytesIO(), "w", format=container) as trial:
            trial.add_stream_from_template(stream, opaque=True)
            trial.start_encoding()
    except (av.FFmpegError, ValueError, TypeError, RuntimeError):
        return False
    return True


def _metadata(found: Any) -> dict[str, str]:
    """Return tags without those that a muxer writes by itself."""
    own = ("major_brand", "minor_version", "compatible_brands", "encoder", "duration", "vendor_id")
    return {key: value for key, value in found.items() if key.lower() not in own}
