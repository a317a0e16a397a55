"""Random noisy pictures: the specification of what the noise estimator can do.

Each draw is a clean picture, a way to make it noisy, and two shots that went the same way.  Half
the squared difference of the two is the variance of the noise around the mean of many shots,
whatever tone curves, clipping and compression did to it, and 0 for clean pictures, compressed or
not.  When a picture fails in the field, this module is widened and the estimator fitted again.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
import scipy.ndimage as ndi
from PIL import Image, ImageDraw, ImageFont
from pool import Pool

LUMA = np.array([0.299, 0.587, 0.114], np.float32)
COLOUR = {
    "camera": 0.36,
    "phone": 0.10,
    "white": 0.12,
    "common": 0.07,
    "uneven": 0.02,
    "photons": 0.05,
    "coarse": 0.03,
    "grain": 0.06,
    "unlike": 0.01,
    "none": 0.21,
}
GREY = {
    "camera": 0.08,
    "phone": 0.03,
    "white": 0.27,
    "photons": 0.17,
    "micro": 0.14,
    "sky": 0.06,
    "magnitude": 0.03,
    "coarse": 0.06,
    "grain": 0.04,
    "none": 0.19,
}
GREY_SHARE = 0.42
# What fails most where a picture has texture or grain of its own: little noise, and none.  Cameras and
# coarse noise are among it so that soft texture is not all that is coarse.
HARD_COLOUR = {"white": 0.4, "camera": 0.3, "common": 0.1, "coarse": 0.05, "none": 0.15}
HARD_GREY = {
    "white": 0.35,
    "photons": 0.2,
    "camera": 0.1,
    "coarse": 0.1,
    "grain": 0.05,
    "none": 0.2,
}


@dataclass(frozen=True)
class Draw:
    """Two noisy shots and the clean reference, (y, x, 1 or 3), 0 to 1."""

    one: np.ndarray
    two: np.ndarray
    clean: np.ndarray
    kind: str
    step: float  # distance of neighbouring pixel values, 0 if they are not rounded


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


# ------------------------------------------------------------------------------------------- scenes


def drawing(rng: np.random.Generator, size: int, grey: bool) -> np.ndarray:
    """Return a screenshot: boxes, text, gradients."""
    light = rng.random() < 0.6
    ground = tuple(int(v) for v in (rng.integers(200, 256, 3) if light else rng.integers(0, 80, 3)))
    image = Image.new("RGB", (size, size), ground)
    draw = ImageDraw.Draw(image)

    def colour() -> tuple[int, ...]:
        return tuple(int(v) for v in rng.integers(0, 256, 3))

    for _ in range(rng.integers(2, 10)):
        x, y = rng.integers(0, size, 2)
        w, h = rng.integers(10, size, 2)
        box = (int(x), int(y), int(x + w), int(y + h))
        (draw.rectangle if rng.random() < 0.7 else draw.ellipse)(box, fill=colour())
    font = ImageFont.load_default(size=int(rng.integers(9, 22)))
    letters = list("abcdefghij klmnopqrstu vwxyzABC0123456789")
    for _ in range(rng.integers(3, 25)):
        text = "".join(rng.choice(letters) for _ in range(rng.integers(5, 40)))
        at = (int(rng.integers(-20, size)), int(rng.integers(0, size)))
        draw.text(at, text, fill=colour(), font=font)
    picture = np.asarray(image).astype(np.float32) / 255
    if rng.random() < 0.3:
        yy, xx = np.mgrid[:size, :size] / size
        ramp = (yy * rng.normal() + xx * rng.normal())[..., None] * rng.uniform(0.1, 0.6, 3)
        picture = np.clip(picture * 0.5 + 0.25 + ramp, 0, 1).astype(np.float32)
    return picture[..., 1:2] if grey else picture


def halftone(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a picture as printed: dots on a turned grid."""
    height, width = picture.shape[:2]
    pitch, out = rng.uniform(3.0, 7.0), []
    for c in range(picture.shape[-1]):
        turn = rng.uniform(0, np.pi / 2)
        yy, xx = np.mgrid[:height, :width] * (2 * np.pi / pitch)
        u, v = xx * np.cos(turn) + yy * np.sin(turn), yy * np.cos(turn) - xx * np.sin(turn)
        screen = (np.cos(u) + np.cos(v)) / 4 + 0.5
        out.append(1 / (1 + np.exp(-rng.uniform(4, 15) * (picture[..., c] - screen))))
    return blur(np.stack(out, -1).astype(np.float32), rng.uniform(0.3, 1.0))


def smooth(rng: np.random.Generator, size: int, grey: bool) -> np.ndarray:
    """Return a scene without detail: even ground, a gradient, a vignette, something out of focus."""
    yy, xx = np.mgrid[:size, :size] / size - 0.5
    turn, way = rng.uniform(0, 2 * np.pi), rng.choice(["even", "ramp", "vignette", "cloud"])
    if way == "ramp":
        shape = yy * np.sin(turn) + xx * np.cos(turn)
    elif way == "vignette":
        shape = -np.hypot(yy - rng.uniform(-0.5, 0.5), xx - rng.uniform(-0.5, 0.5))
    elif way == "cloud":
        shape = ndi.gaussian_filter(rng.standard_normal((size, size)), size / rng.uniform(4, 30))
        shape = shape / (4 * shape.std())
    else:
        shape = np.zeros((size, size))
    colours = rng.uniform(0.3, 1.0, 1 if grey else 3)
    out = rng.uniform(0.1, 0.9) + rng.uniform(0.05, 1.2) * shape[..., None] * colours
    return np.clip(out, 0, 1).astype(np.float32)


def phantom(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return a slice of a body: ovals of tissue in an oval, even or with a gradient, black around."""
    big = 2 * size
    image = Image.new("F", (big, big))
    draw = ImageDraw.Draw(image)
    outer = rng.uniform(0.55, 0.98, 2) * size
    for number in range(int(rng.integers(3, 14))):
        half = outer if number == 0 else outer * rng.uniform(0.04, 0.85, 2)
        x, y = size + (outer - half) * rng.uniform(-0.6, 0.6, 2) * (number > 0)
        box = (x - half[0], y - half[1], x + half[0], y + half[1])
        draw.ellipse(box, fill=float(rng.uniform(0.15, 1.0)))
    out = np.asarray(image).reshape(size, 2, size, 2).mean(axis=(1, 3))
    out = ndi.gaussian_filter(out, rng.uniform(0.0, 1.2))
    if rng.random() < 0.5:  # the coil sees what is near
        yy, xx = np.mgrid[:size, :size] / size - 0.5
        out = out * np.exp(yy * rng.normal(0, 0.6) + xx * rng.normal(0, 0.6))
    return np.clip(out, 0, 1).astype(np.float32)[..., None]


def dim_scene(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a saturated or bright object in a dark textured picture, or the reverse."""
    height, width = picture.shape[:2]
    mask = np.zeros((height, width), np.float32)
    for _ in range(rng.integers(1, 4)):
        y, x = rng.integers(0, height), rng.integers(0, width)
        h, w = rng.integers(height // 8, height), rng.integers(width // 8, width)
        mask[max(y - h // 2, 0) : y + h // 2, max(x - w // 2, 0) : x + w // 2] = 1
    mask = ndi.gaussian_filter(mask, rng.uniform(0.5, 3))[..., None]
    dark = picture * rng.uniform(0.08, 0.5)
    bright = 1.0 - (1 - picture) * rng.uniform(0.0, 0.15) if rng.random() < 0.7 else picture
    return (dark * (1 - mask) + bright * mask).astype(np.float32)


def cells(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return bright structures on dark ground: filaments, spots, nuclei, haze."""
    big = 2 * size
    out = np.zeros((size, size), np.float32)
    for kind in rng.choice(
        ["filaments", "spots", "nuclei", "rings"], rng.integers(1, 4), replace=False
    ):
        image = Image.new("F", (big, big))
        draw = ImageDraw.Draw(image)
        if kind == "filaments":
            for _ in range(int(log_uniform(rng, 5, 150))):
                x, y, turn = rng.uniform(0, big), rng.uniform(0, big), rng.uniform(0, 2 * np.pi)
                points, bend = [], rng.normal(0, 0.03)
                for _ in range(rng.integers(10, 60)):
                    points.append((x, y))
                    turn += bend + rng.normal(0, 0.06)
                    x, y = x + 8 * np.cos(turn), y + 8 * np.sin(turn)
                draw.line(points, fill=float(rng.uniform(0.2, 1.0)), width=int(rng.integers(1, 7)))
        else:
            smallest, largest = {"spots": (1, 8), "nuclei": (15, 80), "rings": (10, 60)}[kind]
            for _ in range(
                int(log_uniform(rng, 4, {"spots": 300, "nuclei": 30, "rings": 30}[kind]))
            ):
                x, y = rng.uniform(0, big, 2)
                r = log_uniform(rng, smallest, largest)
                e = r * rng.uniform(0.6, 1.0)
                box, value = (x - r, y - e, x + r, y + e), float(rng.uniform(0.2, 1.0))
                if kind == "rings":
                    draw.ellipse(box, outline=value, width=int(rng.integers(2, 6)))
                else:
                    draw.ellipse(box, fill=value)
        layer = np.asarray(image).reshape(size, 2, size, 2).mean(axis=(1, 3))
        layer = ndi.gaussian_filter(layer, rng.uniform(0.4, 1.8))
        if kind == "nuclei" and rng.random() < 0.7:  # chromatin
            grain = ndi.gaussian_filter(rng.standard_normal((size, size)), rng.uniform(1, 3))
            layer = layer * np.clip(1 + rng.uniform(0, 0.6) * grain / grain.std(), 0, 2)
        out += rng.uniform(0.3, 1.0) * layer
    haze = ndi.gaussian_filter(out, size / rng.uniform(8, 40)) * rng.uniform(0, 0.6)
    out = out + haze
    return (out / max(out.max(), 1e-6)).astype(np.float32)[..., None]


def sky(rng: np.random.Generator, size: int) -> np.ndarray:
    """Return stars over a sky, faint ones many and bright ones few, some with a gradient or a nebula."""
    out = np.zeros((size, size), np.float32)
    number = int(log_uniform(rng, 20, 600))
    y, x = rng.integers(0, size, (2, number))
    np.add.at(
        out,
        (y, x),
        log_uniform(rng, 0.02, 0.5) * rng.uniform(1e-3, 1, number) ** -rng.uniform(0.5, 1.2),
    )
    deep = rng.random() < 0.5  # bright stars, whose flanks reach far above little noise
    out = ndi.gaussian_filter(out, rng.uniform(0.7, 2.2), truncate=9.0)
    out *= log_uniform(rng, 3.0, 1e4) if deep else 1.0
    yy, xx = np.mgrid[:size, :size] / size
    ground = rng.uniform(0.02, 0.3) * (
        1 + rng.uniform(0, 0.5) * (yy * rng.normal() + xx * rng.normal())
    )
    if rng.random() < 0.5:
        cloud = ndi.gaussian_filter(rng.standard_normal((size, size)), size / rng.uniform(4, 20))
        ground = ground + rng.uniform(0, 0.2) * np.maximum(cloud / cloud.std(), 0)
    out = out + np.maximum(ground, 0)
    return (
        np.minimum(out, np.inf if deep else rng.uniform(0.5, 3.0)) * rng.uniform(0.2, 1.0)
    ).astype(np.float32)[..., None]


# -------------------------------------------------------------------------------------------- steps


def to8(picture: np.ndarray) -> np.ndarray:
    """Return a picture in 8 bits, 0 to 1."""
    return np.floor(np.clip(picture, 0, 1) * 255 + 0.5).astype(np.float32) / 255


def compress(picture: np.ndarray, codec: str, quality: int, subsampling: int) -> np.ndarray:
    """Return a picture through JPEG or WebP, whose blocks are those of a video codec."""
    stored = np.floor(np.clip(picture, 0, 1) * 255 + 0.5).astype(np.uint8)
    grey = stored.shape[-1] == 1
    file = io.BytesIO()
    image = Image.fromarray(stored[..., 0] if grey else stored)
    if codec == "JPEG":
        image.save(file, "JPEG", quality=quality, **({} if grey else {"subsampling": subsampling}))
    else:
        image.convert("RGB").save(file, "WEBP", quality=quality, method=2)
    out = np.asarray(Image.open(file).convert("L" if grey else "RGB")).astype(np.float32) / 255
    return out[..., None] if grey else out


def draw_codecs(
    rng: np.random.Generator, share: float, twice: float, lowest: int
) -> list[tuple[str, int, int]]:
    """Return how a picture is compressed: not at all, once, or twice."""
    if rng.random() >= share:
        return []
    number = 2 if rng.random() < twice else 1
    found = []
    for _ in range(number):
        codec = "WEBP" if rng.random() < 0.12 else "JPEG"
        found.append((codec, int(rng.integers(lowest, 99)), int(rng.choice([0, 2]))))
    return found


def resize(picture: np.ndarray, size: list[int], how: int) -> np.ndarray:
    """Return (y, x, channels) at another size."""
    height, width = size
    planes = [
        np.asarray(Image.fromarray(picture[..., c].astype(np.float32)).resize((width, height), how))
        for c in range(picture.shape[-1])
    ]
    return np.stack(planes, -1)


def blur(picture: np.ndarray, width: float) -> np.ndarray:
    """Return (y, x, channels) blurred."""
    return ndi.gaussian_filter(picture, (width, width, 0.0), truncate=3.0) if width > 0 else picture


_BILINEAR = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], np.float32) / 4
# Malvar, He, Cutler 2004
_GREEN = (
    np.array(
        [[0, 0, -1, 0, 0], [0, 0, 2, 0, 0], [-1, 2, 4, 2, -1], [0, 0, 2, 0, 0], [0, 0, -1, 0, 0]],
        np.float32,
    )
    / 8
)
_ALONG = (
    np.array(
        [
            [0, 0, 0.5, 0, 0],
            [0, -1, 0, -1, 0],
            [-1, 4, 5, 4, -1],
            [0, -1, 0, -1, 0],
            [0, 0, 0.5, 0, 0],
        ],
        np.float32,
    )
    / 8
)
_ACROSS = (
    np.array(
        [
            [0, 0, -1.5, 0, 0],
            [0, 2, 0, 2, 0],
            [-1.5, 0, 6, 0, -1.5],
            [0, 2, 0, 2, 0],
            [0, 0, -1.5, 0, 0],
        ],
        np.float32,
    )
    / 8
)


def mosaic(picture: np.ndarray) -> np.ndarray:
    """Return what a Bayer sensor sees, (y, x)."""
    out = picture[..., 1].copy()
    out[0::2, 0::2] = picture[0::2, 0::2, 0]
    out[1::2, 1::2] = picture[1::2, 1::2, 2]
    return out


def demosaic(raw: np.ndarray, how: str) -> np.ndarray:
    """Return a mosaic in colour."""
    height, width = raw.shape
    red, blue = np.zeros((height, width), np.float32), np.zeros((height, width), np.float32)
    red[0::2, 0::2] = 1
    blue[1::2, 1::2] = 1
    green = 1 - red - blue
    if how == "bilinear":
        planes = [
            ndi.convolve(raw * mask, _BILINEAR, mode="mirror")
            / ndi.convolve(mask, _BILINEAR, mode="mirror")
            for mask in (red, green, blue)
        ]
        return np.stack(planes, -1)
    centre, along, across, opposite = (
        ndi.convolve(raw, kernel, mode="mirror") for kernel in (_GREEN, _ALONG, _ALONG.T, _ACROSS)
    )
    red_rows = np.zeros((height, 1), np.float32)
    red_rows[0::2] = 1
    g = np.where(green > 0, raw, centre)
    r = np.where(red > 0, raw, np.where(blue > 0, opposite, np.where(red_rows > 0, along, across)))
    b = np.where(blue > 0, raw, np.where(red > 0, opposite, np.where(red_rows > 0, across, along)))
    return np.stack([r, g, b], -1)


def srgb(light: np.ndarray) -> np.ndarray:
    """Return gamma-encoded light."""
    light = np.clip(light, 0, 1)
    return np.where(
        light <= 0.0031308, 12.92 * light, 1.055 * np.maximum(light, 1e-9) ** (1 / 2.4) - 0.055
    )


def linear(shown: np.ndarray) -> np.ndarray:
    """Return the light of gamma-encoded pixels."""
    return np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)


# ------------------------------------------------------------------------------------------ cameras


class Camera:
    """A random camera or phone, from exposure to compression."""

    def __init__(self, rng: np.random.Generator, grey: bool, phone: bool) -> None:
        chance = rng.random
        self.grey = grey
        if phone and chance() < 0.6:
            self.exposure = log_uniform(rng, 1.0, 6.0)
        else:
            self.exposure = log_uniform(rng, 0.15, 1.0)
        if not phone and chance() < 0.3:
            self.exposure = log_uniform(rng, 1.0, 3.0)
        self.gain = log_uniform(rng, 0.002, 0.06) if phone else log_uniform(rng, 0.0002, 0.02)
        self.read = log_uniform(rng, 0.002, 0.05) if phone else log_uniform(rng, 0.0005, 0.012)
        if chance() < 0.15:  # good light
            self.gain, self.read = self.gain * 0.05, self.read * 0.2
        self.balance = np.array([rng.uniform(0.35, 0.9), 1.0, rng.uniform(0.35, 0.9)], np.float32)
        matrix = rng.uniform(0, 1) * np.array(
            [[1.7, -0.5, -0.2], [-0.2, 1.5, -0.3], [0.0, -0.5, 1.5]]
        )
        matrix = matrix + rng.normal(0, 0.05, (3, 3)) + np.eye(3) * 0.4
        self.matrix = (matrix / matrix.sum(1, keepdims=True)).astype(np.float32)
        self.demosaic = str(rng.choice(["bilinear", "malvar", "none"], p=[0.35, 0.5, 0.15]))
        self.black_cut = chance() < 0.5
        reduction = chance() * (1.5 if phone else 1.0)
        self.luma_blur = rng.uniform(0.3, 1.4) if reduction < 0.55 else 0.0
        self.chroma_blur = rng.uniform(0.4, 4.0) if reduction < 0.65 else 0.0
        self.share = rng.uniform(0.5, 1.0) if chance() < 0.5 else 1.0
        self.edge_aware = chance() < 0.4
        self.bands = None  # or noise reduction by bands, fine to coarse: luminance, colour
        if chance() < 0.5:
            fine, middle = rng.uniform(0, 0.6) ** 1.5, rng.uniform(0.2, 1.0)
            colour = [
                fine * rng.uniform(0, 0.8),
                middle * rng.uniform(0, 0.7),
                rng.uniform(0.2, 1.0),
                1.0,
            ]
            self.bands = np.array([[fine, middle, 1.0, 1.0], colour], np.float32)
            self.band_width = rng.uniform(0.5, 0.9)
        self.monochrome = chance() < 0.06  # colour noise was removed, that of luminance is left
        lifted = 1 / max(self.exposure, 0.15) ** rng.uniform(0, 0.9) if self.exposure < 1 else 1.0
        self.digital = log_uniform(rng, 0.6, 1.6) * lifted
        self.tone = str(rng.choice(["srgb", "power", "none"], p=[0.7, 0.25, 0.05]))
        self.power = rng.uniform(1.6, 2.6)
        self.contrast = rng.uniform(0, 0.8) if chance() < 0.6 else 0.0
        self.lift = (
            rng.uniform(0.0, 0.08) if chance() < 0.15 else 0.0
        )  # of black, as in a haze or a scan
        sharpened = chance() < 0.4 and not (phone and chance() < 0.7)
        self.sharpen = rng.uniform(0.2, 1.5) if sharpened else 0.0
        self.sharpen_width = rng.uniform(0.6, 1.5)
        self.size = 1.0
        if chance() < 0.25:
            self.size = rng.uniform(0.5, 1.0)
        elif chance() < 0.08:
            self.size = rng.uniform(1.0, 2.0)
        self.how = rng.choice(
            [Image.Resampling.BICUBIC, Image.Resampling.BILINEAR, Image.Resampling.LANCZOS]
        )
        self.codecs = draw_codecs(rng, 0.3 if phone else 0.75, 0.3, 68)
        self.shift = int(rng.integers(0, 8)) if chance() < 0.7 else 0  # of the second grid
        self.step = 1 / 255

    def shots(
        self, picture: np.ndarray, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return two noisy pictures and the clean one."""
        light = (linear(picture) * self.exposure * self.balance).astype(np.float32)
        whole = self.demosaic == "none"
        raw = light if whole else mosaic(light)

        def develop(pixels: np.ndarray) -> np.ndarray:
            return self._tone(pixels if whole else demosaic(pixels, self.demosaic))

        clean = develop(np.minimum(raw, 1.0))
        weight: np.ndarray | float = 1.0
        if self.edge_aware:
            gradient = ndi.gaussian_gradient_magnitude(clean.mean(-1), 1.5)
            weight = (0.03 / (0.03 + gradient))[..., None]
        found = []
        for _ in range(2):
            noisy = self.gain * rng.poisson(raw / self.gain) + self.read * rng.standard_normal(
                raw.shape
            )
            noisy = np.clip(noisy, 0.0 if self.black_cut else -1.0, 1.0).astype(np.float32)
            noisy = clean + self._reduce(develop(noisy) - clean, weight)
            found.append(self._finish(noisy, self.codecs))
        return found, self._finish(clean, [])

    def _tone(self, light: np.ndarray) -> np.ndarray:
        light = np.clip(light / self.balance, 0, None) if self.black_cut else light / self.balance
        light = np.clip(light, None, 1.0) @ self.matrix.T * self.digital
        if self.tone == "srgb":
            shown = srgb(light)
        elif self.tone == "power":
            shown = np.clip(light, 1e-5, 1) ** (1 / self.power)
        else:
            shown = np.clip(light, 0, 1)
        shown = shown + self.contrast * (shown * shown * (3 - 2 * shown) - shown)
        return self.lift + (1 - self.lift) * shown

    def _reduce(self, noise: np.ndarray, weight: np.ndarray | float) -> np.ndarray:
        luma = noise.mean(-1, keepdims=True)
        if self.monochrome:
            noise = np.repeat(luma, 3, -1)
        if self.bands is not None:
            both = [luma, noise - luma]
            for j in (0, 1):
                left, kept = both[j], np.zeros_like(both[j])
                for i, width in enumerate((1, 2, 4)):
                    smooth = blur(left, self.band_width * width)
                    gain = 1 - weight * (1 - self.bands[j, i])
                    kept, left = kept + gain * (left - smooth), smooth
                both[j] = kept + left
            return both[0] + both[1]
        if not (self.luma_blur or self.chroma_blur):
            return noise
        chroma, share = noise - luma, self.share * weight
        luma = luma + share * (blur(luma, self.luma_blur) - luma)
        return luma + chroma + share * (blur(chroma, self.chroma_blur) - chroma)

    def _finish(self, shown: np.ndarray, codecs: list[tuple[str, int, int]]) -> np.ndarray:
        if self.sharpen:
            shown = shown + self.sharpen * (shown - blur(shown, self.sharpen_width))
        shown = np.clip(shown, 0, 1)
        if self.size != 1.0:
            size = [round(n * self.size) for n in shown.shape[:2]]
            shown = np.clip(resize(shown, size, self.how), 0, 1)
        if self.grey:
            shown = (shown @ LUMA)[..., None]
        shown = to8(shown)
        for k, codec in enumerate(codecs):
            if k and self.shift:  # cropped in between
                moved = np.roll(shown, (self.shift, self.shift // 2), (0, 1))
                shown = np.roll(compress(moved, *codec), (-self.shift, -(self.shift // 2)), (0, 1))
            else:
                shown = compress(shown, *codec)
        return shown.astype(np.float32)


# ------------------------------------------------------------------------------------- other noise


class Added:
    """Noise of one kind added to a finished picture."""

    size = 1.0

    def __init__(self, rng: np.random.Generator, kind: str, grey: bool, hard: bool = False) -> None:
        chance = rng.random
        self.kind, self.grey, self.hard = kind, grey, hard
        self.sigma = log_uniform(rng, 0.5, 80) / 255
        self.little = kind == "white" and (hard or chance() < 0.45)
        if self.little:
            self.sigma = log_uniform(rng, 0.7, 10) / 255
        self.levels = (
            np.exp(rng.normal(0, 0.5, 3)).astype(np.float32) if kind == "uneven" else np.float32(1)
        )
        # correlation between the channels, and whether luminance noise is all there is
        self.common = 0.0
        if not grey and (kind == "common" or (kind in ("coarse", "photons") and chance() < 0.15)):
            self.common = 1.0 if chance() < 0.35 else rng.uniform(0.2, 1.0)
        self.peak = log_uniform(rng, 30 if hard else 3, 1000)
        self.excess = rng.uniform(1.5, 2.0) if kind == "micro" and chance() < 0.15 else 1.0  # EMCCD
        self.pedestal = 0.0 if chance() < 0.5 else rng.uniform(0.01, 0.3 if chance() < 0.3 else 0.1)
        self.read = 0.0 if chance() < 0.5 else log_uniform(rng, 0.3, 15) / 255
        self.kernel = "band"
        if kind in ("coarse", "common"):
            self.kernel = str(
                rng.choice(["gauss", "band", "rows", "floor"], p=[0.3, 0.35, 0.1, 0.25])
            )
        if kind == "grain":
            self.kernel = str(rng.choice(["gauss", "band", "floor"]))
        self.is_white = kind in ("white", "uneven", "photons", "none", "unlike", "magnitude", "sky")
        self.is_white |= (kind == "micro" and chance() < 0.55) or (
            kind == "common" and chance() < 0.6
        )
        self.width, self.cut, self.mixture = (
            rng.uniform(0.4, 1.6),
            rng.uniform(0.3, 0.9),
            rng.uniform(0, 0.5),
        )
        self.chroma = rng.uniform(0, 1) if chance() < 0.6 else 0.0
        self.slope = rng.normal(0, 1)  # of film grain against density
        self.rounded, self.clipped = chance() < (0.3 if kind == "sky" else 0.6), chance() < 0.8
        if kind == "sky" and chance() < 0.7:
            self.clipped = self.rounded = False
            self.read, self.peak = log_uniform(rng, 1e-4, 0.05), log_uniform(rng, 100, 1e7)
        share = {"none": 0.7, "white": 0.1, "grain": 0.5, "coarse": 0.15, "common": 0.2}.get(
            kind, 0.0
        )
        self.codecs = draw_codecs(rng, share, 0.15, 60)
        if self.codecs:
            self.rounded = self.clipped = True
        self.dim = (
            rng.uniform(0.05, 0.5) if kind in ("photons", "micro") and chance() < 0.6 else 1.0
        )
        bent = kind == "micro" or (kind == "photons" and grey and chance() < 0.6)
        self.power = rng.uniform(1.0, 3.5) if bent else 1.0
        self.step = 1 / 255 if self.rounded else 0.0

    def _noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Return noise of variance 1 (y, x, c), coarse and common to the channels as drawn."""
        noise = rng.standard_normal(shape).astype(np.float32)
        if self.common > 0.0:
            shared = rng.standard_normal((*shape[:2], 1)).astype(np.float32)
            noise = np.sqrt(1 - self.common) * noise + np.sqrt(self.common) * shared
        return noise if self.is_white else self._coarsen(noise)

    def _coarsen(self, noise: np.ndarray) -> np.ndarray:
        height, width = noise.shape[:2]
        fy, fx = np.fft.fftfreq(height)[:, None, None], np.fft.rfftfreq(width)[None, :, None]
        radius = np.hypot(fy, fx)
        if self.kernel == "band":
            gain = 1 / (1 + (radius / (0.5 * self.cut)) ** 10)
        elif self.kernel == "rows":
            gain = np.exp(-2 * (np.pi * self.width * np.abs(fx)) ** 2) + 0 * fy
        else:
            gain = np.exp(-2 * (np.pi * self.width * radius) ** 2)
            if self.kernel == "floor":
                gain = gain * (1 - self.mixture) + self.mixture
        gain = gain / np.sqrt((gain**2).mean())
        spectrum = np.fft.rfft2(noise, axes=(0, 1)) * gain
        return np.fft.irfft2(spectrum, s=(height, width), axes=(0, 1)).astype(np.float32)

    def _noisy(self, clean: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        kind = self.kind
        if kind == "none":
            return clean
        if kind in ("photons", "micro", "sky", "unlike"):
            light = np.maximum(clean - self.pedestal, 0)
            if not self.is_white or self.common > 0.0:
                level = np.sqrt(self.excess * light / self.peak + self.read**2)
                return clean + level * self._noise(clean.shape, rng)
            counts = rng.poisson(light * self.peak).astype(np.float32)
            if self.excess > 1.0:  # of electron multiplication
                counts = rng.gamma(np.maximum(counts, 1e-9), 1.0).astype(np.float32) * (counts > 0)
            return self.pedestal + counts / self.peak + self.read * rng.standard_normal(clean.shape)
        if kind == "magnitude":
            real, imaginary = (self.sigma * rng.standard_normal(clean.shape) for _ in range(2))
            return np.hypot(clean + real, imaginary)
        noise = self._noise(clean.shape, rng)
        if kind == "grain":
            if noise.shape[-1] == 3:
                luma = noise.mean(-1, keepdims=True) * np.float32(np.sqrt(3))
                noise = luma + self.chroma * (noise - luma / np.float32(np.sqrt(3)))
            level = (0.3 + 2.8 * clean * (1 - clean)) * 2.0 ** (self.slope * (clean - 0.5))
            return clean + min(self.sigma, 0.12) * noise * level
        return clean + self.sigma * self.levels * noise

    def shots(
        self, picture: np.ndarray, rng: np.random.Generator
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return two noisy pictures and the clean one."""
        clean = picture
        if self.kind in ("photons", "micro", "sky", "unlike"):
            clean = self.pedestal + (1 - self.pedestal) * self.dim * picture**self.power
        if self.kind == "none" and self.rounded:
            clean = to8(clean)
        found = []
        for _ in range(2):
            noisy = self._noisy(clean, rng)
            if self.clipped:
                noisy = np.clip(noisy, 0, 1)
            if self.rounded:
                noisy = np.floor(noisy * 255 + 0.5) / 255
            for codec in self.codecs:
                noisy = compress(noisy, *codec)
            found.append(noisy.astype(np.float32))
        return found, clean.astype(np.float32)


# -------------------------------------------------------------------------------------------- draws


def draw(
    rng: np.random.Generator,
    pool: Pool,
    *,
    size: int | None = None,
    grey: bool | None = None,
    kind: str | None = None,
    hard: bool = False,
) -> Draw:
    """Draw a noisy picture; ``hard``: of those that fail most."""
    grey = rng.random() < GREY_SHARE if grey is None else grey
    table = (HARD_GREY if grey else HARD_COLOUR) if hard else (GREY if grey else COLOUR)
    kind = kind or str(
        rng.choice(list(table), p=np.array(list(table.values())) / sum(table.values()))
    )
    size = size or int(rng.choice([64, 96, 128, 192, 192, 256, 256, 384]))
    pipe: Camera | Added
    if kind in ("camera", "phone"):
        pipe = Camera(rng, grey, kind == "phone")
        side = int(np.ceil(size / pipe.size / 2) * 2)
        drawn = rng.random() < 0.03
        picture = (
            drawing(rng, side, False) if drawn else pool.crop(rng, side, False, rng.random() < 0.15)
        )
        if rng.random() < 0.02:
            picture = smooth(rng, side, False)
        if rng.random() < (0.4 if kind == "phone" else 0.1):
            picture = dim_scene(picture, rng)
    else:
        pipe = Added(rng, kind, grey, hard)
        picture = _scene(rng, pool, pipe, size)
    (one, two), clean = pipe.shots(picture, rng)
    if rng.random() < (0.3 if kind == "magnitude" else 0.06):
        one, two, clean = _masked(rng, one, two, clean)
    return Draw(one, two, clean, kind, pipe.step)


def _scene(rng: np.random.Generator, pool: Pool, pipe: Added, size: int) -> np.ndarray:
    """Return what a picture with added noise shows."""
    kind, grey = pipe.kind, pipe.grey
    if kind == "sky":
        return sky(rng, size)
    if kind == "unlike" or (kind == "photons" and grey and rng.random() < 0.2):
        planes = [cells(rng, size) for _ in range(1 if grey else 3)]
        return np.concatenate(planes, -1)
    if kind == "micro" and rng.random() < 0.7:
        return cells(rng, size)
    if rng.random() < (0.5 if kind == "magnitude" else 0.03):
        picture = phantom(rng, size)
        picture = picture if grey else picture * rng.uniform(0.5, 1.0, 3).astype(np.float32)
    elif rng.random() < 0.06:
        picture = smooth(rng, size, grey)
    elif rng.random() < (0.2 if kind == "none" else 0.05):
        picture = drawing(rng, size, grey)
    else:
        likely = kind == "none" or pipe.little or pipe.hard
        textured = rng.random() < (0.5 if likely else 0.2)
        scan = pipe.hard and not grey and rng.random() < 0.5
        picture = pool.scan(rng, size) if scan else pool.crop(rng, size, grey, textured)
    if pipe.common == 1.0 and rng.random() < 0.5:  # black and white, perhaps toned
        picture = picture.mean(-1, keepdims=True) * (
            1 - rng.uniform(0, 0.15, 3) * (rng.random() < 0.5)
        )
    if kind == "none" and rng.random() < 0.06:
        picture = halftone(picture, rng)
    if kind == "magnitude":
        yy, xx = np.mgrid[:size, :size] / size - 0.5
        picture = (
            picture
            * (np.hypot(yy / rng.uniform(0.3, 0.6), xx / rng.uniform(0.3, 0.6)) < 1)[..., None]
        )
    if rng.random() < 0.25:  # another exposure or contrast
        bent = rng.uniform(0.3, 1.0) * picture ** rng.uniform(0.6, 1.8) + rng.uniform(0, 0.3)
        picture = np.clip(bent, 0, 1)
    if rng.random() < 0.08:
        picture = dim_scene(picture, rng)
    if kind in ("none", "white") and rng.random() < 0.5:
        picture = to8(picture)
    if kind == "none" and pipe.hard and rng.random() < 0.5:  # out of focus
        picture = blur(picture, log_uniform(rng, 0.5, 4.0))
        picture = to8(picture) if rng.random() < 0.5 else picture
    elif kind == "none" and rng.random() < 0.15:  # soft
        picture = blur(picture, rng.uniform(0.4, 1.5))
    return picture.astype(np.float32)


def _masked(rng: np.random.Generator, *pictures: np.ndarray) -> list[np.ndarray]:
    """Return pictures whose ground was cut away: a disc, a box, or bars above and below."""
    height, width = pictures[0].shape[:2]
    yy, xx = np.mgrid[:height, :width]
    shape = rng.choice(["disc", "box", "bars"])
    if shape == "disc":
        y, x = rng.uniform(0.3, 0.7) * height, rng.uniform(0.3, 0.7) * width
        inside = np.hypot(yy - y, xx - x) < rng.uniform(0.25, 0.6) * min(height, width)
    elif shape == "box":
        y, x = int(rng.integers(0, height // 2)), int(rng.integers(0, width // 2))
        inside = (yy >= y) & (xx >= x) & (yy < y + height // 2) & (xx < x + width // 2)
    else:
        bar = int(rng.uniform(0.05, 0.25) * height)
        inside = (yy >= bar) & (yy < height - bar)
    ground = float(rng.choice([0.0, 0.0, 1.0, np.round(rng.uniform(0, 1) * 255) / 255]))
    return [np.where(inside[..., None], picture, np.float32(ground)) for picture in pictures]
