"""Pictures that photographs are not: text, line art, ramps, checkerboards, stars; drawn here, no files."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SHAPE = (96, 128)
Y, X = np.indices(SHAPE, dtype=float)


def text() -> np.ndarray:
    """Black on white in Pillow's bitmap font, which has the same pixels everywhere."""
    page = Image.new("L", SHAPE[::-1], 255)
    draw = ImageDraw.Draw(page)
    for line in range(8):
        words = f"Symmetric filters {line}: the quick fox"[line:]
        draw.text((3, 2 + 12 * line), words, fill=0, font=ImageFont.load_default_imagefont())
    return np.asarray(page) / 255.0


def stroke(distance: np.ndarray, width: float) -> np.ndarray:
    """Ink of a line at a distance, with soft edges of one pixel."""
    return np.clip(width / 2 + 0.5 - np.abs(distance), 0.0, 1.0)


def line_art() -> np.ndarray:
    ink = np.zeros(SHAPE)
    for number, angle in enumerate(np.linspace(0.1, np.pi, 9, endpoint=False)):
        across = (X - 64) * np.cos(angle) + (Y - 48) * np.sin(angle)
        ink = np.maximum(ink, stroke(across - 5 * number + 20, 1 + number % 3))
    for radius in (12, 25, 40):
        ink = np.maximum(ink, stroke(np.hypot(X - 64, Y - 48) - radius, 1.5))
    return 1 - ink


def stars() -> np.ndarray:
    rng = np.random.default_rng(7)
    sky = np.full(SHAPE, 0.05)
    places = rng.uniform(0, 96, 60), rng.uniform(0, 128, 60)
    for y, x, light in zip(*places, rng.power(0.4, 60), strict=True):
        sky += light * np.exp(-((X - x) ** 2 + (Y - y) ** 2) / (2 * 1.1**2))
    return np.minimum(sky, 1.0)


def saturated() -> np.ndarray:
    """A photograph with large areas clipped at either end."""
    from skimage import data

    return np.clip(data.camera()[100:196, 150:278] / 255.0 * 3 - 1, 0, 1)


def checkerboard(period: int) -> np.ndarray:
    return (Y // (period // 2) + X // (period // 2)) % 2


def pictures() -> dict[str, np.ndarray]:
    """All of them, values in [0, 1]."""
    from skimage import data

    tiny = data.camera() / 255.0
    return {
        "text": text(),
        "faint text": 0.4 + 0.2 * text(),
        "line art": line_art(),
        "constant": np.full(SHAPE, 0.5),
        "ramp": X / 127,
        "shallow ramp": 0.4 + 0.1 * X / 127,
        "steep ramps": (X % 32) / 31,
        "diagonal ramp": (X + Y) / 222,
        "round gradient": np.exp(-((X - 64) ** 2 + (Y - 48) ** 2) / (2 * 30.0**2)),
        "steps": (X // 16) / 7,
        "checkerboard 2": checkerboard(2),
        "checkerboard 4": checkerboard(4),
        "checkerboard 8": checkerboard(8),
        "checkerboard 16": checkerboard(16),
        "saturated": saturated(),
        "stars": stars(),
        "thin stripes": (X % 5 == 0) * 1.0,
        "slanted stripes": 0.5 + 0.5 * np.sin(2 * np.pi * (X + 0.4 * Y) / 4.5),
        "zone plate": 0.5 + 0.5 * np.cos(np.pi * ((X - 64) ** 2 + (Y - 48) ** 2) / 160),
        "tiny 8x8": tiny[100:108, 200:208],
        "tiny 12x12": tiny[100:112, 200:212],
        "tiny 16x16": tiny[60:76, 230:246],
        "tiny 20x24": tiny[100:120, 200:224],
        "tiny 24x24": tiny[80:104, 220:244],
    }
