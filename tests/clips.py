"""Clips of a few small frames, made by PyAV: with sound, rotation, uneven times, tags of colour."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

av: Any
try:
    import av
except ModuleNotFoundError:
    av = None

Array = np.ndarray[Any, Any]
WIDTH, HEIGHT, COUNT = 64, 48, 10
TICK = Fraction(1, 12800)
STEPS = (512, 1400, 512)  # between frames, in ticks: the rate is not constant
SIGMA = 12.0


def scene(number: int = 0) -> Array:
    """Return a frame without noise; a disc moves through it."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    ground = 110 + 40 * np.sin(y / 9) * np.cos(x / 11)
    disc = 50.0 * ((x - 12 - 3 * number) ** 2 + (y - 24) ** 2 < 64)
    return np.stack([ground + disc, 0.9 * ground, 190 - 0.6 * ground], axis=-1)


def noisy(number: int) -> Array:
    noise = np.random.default_rng(number).standard_normal((HEIGHT, WIDTH, 3))
    return np.clip(np.rint(scene(number) + SIGMA * noise), 0, 255).astype(np.uint8)


def times(count: int = COUNT) -> list[int]:
    """Return when frames are shown."""
    return [sum(STEPS[i % 3] for i in range(number)) for number in range(count)]


def make_clip(
    path: Path,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    *,
    frames: list[Array] | None = None,
    sound: bool = True,
    rotation: int = 0,
    tags: tuple[int, int, int, int] = (1, 1, 1, 1),
) -> Path:
    """Write a clip; tags are range, matrix, primaries and transfer."""
    pixels = [noisy(number) for number in range(COUNT)] if frames is None else frames
    uneven = path.suffix not in (".avi", ".y4m")
    with av.open(path, "w") as out:
        stream = out.add_stream(codec, rate=25)
        context = stream.codec_context
        context.width, context.height, context.pix_fmt = WIDTH, HEIGHT, pix_fmt
        if uneven:
            context.time_base = stream.time_base = TICK
        if path.suffix != ".avi":
            context.sample_aspect_ratio = Fraction(4, 3)
        names = ("color_range", "colorspace", "color_primaries", "color_trc")
        for name, value in zip(names, tags, strict=True):
            setattr(context, name, value)
        context.options = {
            "libx264": {"crf": "1"},
            "libx265": {"crf": "4", "x265-params": "log-level=none"},
        }.get(codec, {})
        if rotation:
            stream.set_display_rotation(rotation)
        audio = out.add_stream("aac", rate=44100, layout="mono") if sound else None
        out.metadata["title"] = "a clip"
        for number, (time, colours) in enumerate(zip(times(len(pixels)), pixels, strict=True)):
            frame = av.VideoFrame.from_ndarray(colours, format="rgb24").reformat(
                format=pix_fmt,
                dst_colorspace="ITU709",
                dst_color_range="JPEG" if tags[0] == 2 else "MPEG",
            )
            frame.pts, frame.time_base = (time, TICK) if uneven else (number, Fraction(1, 25))
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
        if audio is not None:
            rng = np.random.default_rng(0)
            for number in range(20):
                wave = rng.normal(0, 0.1, (1, 1024)).astype(np.float32)
                sample = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
                sample.sample_rate, sample.pts = 44100, number * 1024
                out.mux(audio.encode(sample))
            out.mux(audio.encode())
    return path


def facts(path: Path) -> dict[str, Any]:
    """Return all that must come back from a clip."""
    with av.open(path) as clip:
        stream = clip.streams.video[0]
        context = stream.codec_context
        told = {
            "streams": [each.type for each in clip.streams],
            "size": (context.width, context.height),
            "pix_fmt": context.pix_fmt.replace("yuvj", "yuv"),
            "tags": (
                int(context.color_range),
                int(context.colorspace),
                int(context.color_primaries),
                int(context.color_trc),
            ),
            "aspect": stream.sample_aspect_ratio,
            "title": clip.metadata.get("title"),
        }
        frames = list(clip.decode(stream))
        told["times"] = [float(frame.pts * frame.time_base) for frame in frames]
        told["rotation"] = frames[0].rotation
    with av.open(path) as clip:
        told["sound"] = [
            (float(packet.pts * packet.time_base), bytes(packet))
            for packet in clip.demux(clip.streams.audio)
            if packet.size
        ]
    return told


def colours(path: Path) -> Array:
    """Return the frames of a clip in RGB."""
    with av.open(path) as clip:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)])
