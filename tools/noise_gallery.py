"""Make docs/noise_gallery.md and its pictures: what noise was found in pictures of many kinds.

Usage: SYMSMOOTH_IMAGES=... python tools/noise_gallery.py [--out FOLDER]

Photographs with noise of their own are those of drewnoakes/metadata-extractor-images (look/photos and
look/clean of the development pictures), whose owner lets everybody use them; the others are those of
scikit-image, with noise that is made here, so that it is known.  The line is that of ``symsmooth noise``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.ndimage
import sentences
from before_after import PROGRAM, beside
from PIL import Image, ImageDraw
from skimage import data

import symsmooth
from symsmooth.core.metrics import psnr
from symsmooth.noise.model import noise_of_sample
from symsmooth_repro.camera import CAMERAS, photograph

Array = np.ndarray[Any, Any]
DOCS = Path(__file__).parents[1] / "docs"
SHOWN = 180, 120  # width and height of the part that is shown
QUALITY = 72  # of the JPEGs: sixteen pairs in 300 kB
HOW = "fast"
UNTOUCHED = 60.0  # dB between a picture and its result: nobody sees a difference
INTRODUCTION = """# Which noise was found: a gallery

Made by `python tools/noise_gallery.py`; nothing was set.
Left: a part of the picture as it came.
Right: denoised (`quality="fast"`).
Below: what `symsmooth noise FILE` says, how sure it is, and what is right or wrong about it.
Where the script made the noise, the truth is known.
How noise is found is told [elsewhere](noise.md).
"""


@dataclass(frozen=True)
class Case:
    """A picture: its pixels (8 bits), the truth if it is known, what is shown of it, what to say of it."""

    name: str
    title: str
    noisy: Array
    verdict: str
    truth: str = ""
    clean: Array | None = None
    corner: tuple[int, int] = (0, 0)  # left, top


def photographs(folder: Path) -> Iterator[Case]:
    """Yield pictures that came with their noise."""

    def read(name: str) -> Array:
        return np.asarray(Image.open(folder / name).convert("RGB"))

    yield Case(
        "phone",
        "A phone (Nexus 4)",
        read("photos/Nexus_4.jpg"),
        "Right in kind: phones smooth colour more than brightness, and JPEG takes what is finest.",
        corner=(420, 300),
    )
    yield Case(
        "compact",
        "A compact camera (Sony DSC-P52)",
        read("photos/Sony_DSC-P52.jpg"),
        "Right in kind: coarse, as all that was demosaiced and compressed.",
        corner=(240, 250),
    )
    yield Case(
        "film",
        "A print, scanned by a minilab (Noritsu)",
        read("photos/Noritsu_Koki_QSS.jpg"),
        "Grain is strongest in the shadows of a negative's print, as is said.\nWhether it belongs to the "
        "picture is a matter of taste, which no estimator knows: `--grain` keeps some.",
        corner=(400, 300),
    )
    yield Case(
        "clean",
        "A good camera in good light (Nikon D3100)",
        read("clean/Nikon_D3100.jpg"),
        "There is nothing to remove that anybody sees.",
        corner=(400, 300),
    )


def made(rng: np.random.Generator) -> Iterator[Case]:
    """Yield pictures whose noise is made here."""
    coffee, camera = data.coffee()[20:340, 120:440], data.camera()[30:286, 120:376]
    shot, ideal = photograph(coffee / 255.0, CAMERAS["A"], 3)
    yield Case(
        "camera",
        "A simulated camera",
        whole(255 * shot),
        "Right: fine detail has less of it, and colours are noisier than brightness.",
        "photon and read noise before demosaicing, tone curve and JPEG",
        255 * ideal,
        (60, 60),
    )
    scene = blown_out(data.astronaut()[:300, 60:360] / 255.0)
    light = scene**2.2
    sensor = 0.03 * rng.poisson(light / 0.03) + 0.02 * rng.standard_normal(light.shape)
    developed = scipy.ndimage.gaussian_filter(np.clip(sensor, 0, 1), (0.6, 0.6, 0)) ** (1 / 2.2)
    reference = scipy.ndimage.gaussian_filter(np.minimum(light, 1), (0.6, 0.6, 0)) ** (1 / 2.2)
    yield Case(
        "saturated",
        "Half blown out, half in the dark",
        whole(255 * developed),
        "Right: what is blown out shows no noise and does not count.",
        "photon noise in the dark part, none in the window",
        255 * reference,
        (60, 40),
    )
    grey = camera + rng.normal(0, 15, camera.shape)
    yield Case(
        "grey_as_rgb",
        "Black and white, saved as RGB",
        np.stack([whole(grey)] * 3, -1),
        "Right: three copies are one channel.",
        "white, sigma 15",
        np.stack([camera.astype(float)] * 3, -1),
        (20, 20),
    )
    yield Case(
        "photons",
        "Few photons",
        whole(rng.poisson(camera * (20 / 255)) * (255 / 20)),
        "Right: the square root of brightness.",
        "Poisson, 20 photons at white",
        camera.astype(float),
        (20, 20),
    )
    cell = data.cell()[150:406, 150:406].astype(float)
    cell = 255 * (cell - cell.min()) / np.ptp(cell)
    yield Case(
        "microscope",
        "A microscope: photons above a pedestal",
        whole(
            20
            + 235 / 255 * rng.poisson(cell * (40 / 255)) * (255 / 40)
            + rng.normal(0, 3, cell.shape)
        ),
        "Right: it grows with brightness from a level that is not zero.",
        "Poisson, 40 photons at white, and sigma 3",
        20 + 235 / 255 * cell,
        (20, 60),
    )
    head = 200 * data.shepp_logan_phantom()[60:340, 60:340]
    yield Case(
        "mr",
        "A magnitude, as of magnetic resonance",
        whole(np.hypot(head + rng.normal(0, 12, head.shape), rng.normal(0, 12, head.shape))),
        "Half right: magnitudes have less noise in air, which looks like photons, but in bright parts it "
        "is 12, not 26. `--noise rician` knows better; it must be asked for.",
        "Rician, sigma 12",
        head,
        (40, 40),
    )
    sky = stars(rng)
    yield Case(
        "stars",
        "Stars",
        whole(rng.poisson(sky) + rng.normal(0, 4, sky.shape)),
        "Right for the sky, whose noise is 6.0; wrong for bright stars, which are too few to "
        "show that theirs is stronger.",
        "Poisson, and sigma 4",
        sky,
        (20, 20),
    )
    yield Case(
        "drawing",
        "A drawing",
        drawing(),
        "Right that there is none; the reason is not: even ground with sharp lines is not constant.",
        "none",
        drawing().astype(float),
        (10, 10),
    )
    astronaut = data.astronaut()[:256, 60:316]
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "astronaut.jpg"
        Image.fromarray(astronaut).save(file, quality=80)
        compressed = np.asarray(Image.open(file))
    yield Case(
        "jpeg",
        "A clean picture as JPEG 80",
        compressed,
        "Right: blocks and ringing of compression are no noise.",
        "none but what JPEG 80 did",
        compressed.astype(float),
        (40, 10),
    )
    soft = scipy.ndimage.gaussian_filter(data.grass()[:256, :256].astype(float), 1.5)
    yield Case(
        "soft",
        "Grass out of focus",
        whole(soft),
        "Right here; of the 400 pictures of train400 one like it (test_149) is taken for coarse noise.",
        "none",
        whole(soft).astype(float),
        (20, 20),
    )
    gravel = data.gravel()[:256, :256].astype(float)
    yield Case(
        "texture",
        "A little noise on gravel",
        whole(gravel + rng.normal(0, 4, gravel.shape)),
        "Little noise under texture that is everywhere can only be guessed.",
        "white, sigma 4",
        gravel,
        (20, 20),
    )
    shared = coffee[:256, :256] + rng.normal(0, 12, (256, 256, 1)) + rng.normal(0, 6, (256, 256, 3))
    yield Case(
        "shared",
        "Noise that channels share",
        whole(shared),
        "Right: brightness has most of it.",
        "white, sigma 12 in all channels alike and 6 in each",
        coffee[:256, :256].astype(float),
        (60, 40),
    )


def blown_out(scene: Array) -> Array:
    """Return a dark room with a window that is blown out."""
    dark = 0.35 * scene
    dark[:, 150:] = 2.0
    return dark


def stars(rng: np.random.Generator) -> Array:
    """Return stars over a sky of 20, as a camera of 8 bits sees them."""
    sky = np.zeros((256, 256))
    y, x = rng.integers(0, 256, (2, 150))
    np.add.at(sky, (y, x), 40 * rng.uniform(0.01, 1, 150) ** -1.0)
    return np.minimum(20 + scipy.ndimage.gaussian_filter(sky, 1.3), 250.0)


def drawing() -> Array:
    """Return boxes, discs and text."""
    image = Image.new("RGB", (256, 256), "white")
    pen = ImageDraw.Draw(image)
    for k, colour in enumerate(("#c33", "#3a3", "#36c", "#fb2")):
        pen.rectangle((20 + 55 * k, 120 - 20 * k, 60 + 55 * k, 150), fill=colour)
        pen.text((20, 160 + 20 * k), "what it was in each of four years", fill=colour)
    pen.ellipse((15, 15, 85, 85), outline="black", width=3)
    return np.asarray(image)


def whole(pixels: Array) -> Array:
    """Return pixels of 8 bits."""
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def part(case: Case, pixels: Array) -> Image.Image:
    """Return the part of a picture that is shown."""
    left, top = case.corner
    whole_picture = Image.fromarray(whole(pixels)).convert("RGB")
    return whole_picture.crop((left, top, left + SHOWN[0], top + SHOWN[1]))


def say(cases: list[Case]) -> dict[str, tuple[str, float]]:
    """Return what the command line says of pictures, and how sure it is, by name."""
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch) / f"{case.name}.png" for case in cases]
        for case, file in zip(cases, files, strict=True):
            Image.fromarray(case.noisy).save(file)
        lines, fields = (
            subprocess.run(
                [PROGRAM, "noise", *files, *more], capture_output=True, text=True, check=True
            ).stdout.splitlines()
            for more in ((), ("--json",))
        )
    return {
        case.name: (
            line.removeprefix(f"{file}: "),
            float(json.loads(field)["noise"]["confidence"]),
        )
        for case, file, line, field in zip(cases, files, lines, fields, strict=True)
    }


def judge(case: Case, denoised: Array) -> str:
    """Return what is known of the result."""
    if case.clean is None:
        return ""
    if case.truth.startswith("none"):
        lost = psnr(denoised, case.clean, 255)
        return (
            "It stays as it is." if lost > UNTOUCHED else f"It is changed: {lost:.1f} dB to itself."
        )
    axis = -1 if case.noisy.ndim == 3 else None
    before, after = (psnr(each, case.clean, 255) for each in (case.noisy, denoised))
    return f"{before:.1f} dB become {after:.1f}{given_the_noise(case, axis)}."


def given_the_noise(case: Case, axis: int | None) -> str:
    """Return what the true spectrum of the noise gives, where one level serves."""
    if case.clean is None or not case.truth.startswith(("white", "photon and")):
        return ""
    if case.truth.startswith("white, sigma ") and " in " not in case.truth:
        options: dict[str, Any] = {"sigma": float(case.truth.rpartition(" ")[2])}
    else:
        options = {"noise": noise_of_sample(case.noisy - case.clean, axis)}
    known = symsmooth.denoise(case.noisy, channel_axis=axis, quality=HOW, **options)
    return f", {psnr(known, case.clean, 255):.1f} with the noise given"


def main() -> None:
    """Write the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DOCS)
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    folder = given.out / "images" / "noise"
    folder.mkdir(parents=True, exist_ok=True)
    page = [INTRODUCTION]
    look = Path(os.environ["SYMSMOOTH_IMAGES"]) / "look"
    cases = [*photographs(look), *made(np.random.default_rng(0))]
    said = say(cases)
    for case in cases:
        axis = -1 if case.noisy.ndim == 3 else None
        denoised = symsmooth.denoise(case.noisy, channel_axis=axis, quality=HOW)
        pair = beside(part(case, case.noisy), part(case, denoised))
        pair.save(folder / f"{case.name}.jpg", quality=QUALITY, optimize=True)
        line, confidence = said[case.name]
        truth = f"True: {case.truth}.\n" if case.truth else ""
        page.append(
            f"## {case.title}\n![before and after](images/noise/{case.name}.jpg)\n\n"
            f"> {line}\n\nConfidence {confidence:.2f}.\n{truth}"
            + "\n".join(text for text in (case.verdict, judge(case, denoised)) if text)
            + "\n"
        )
        print(page[-1], flush=True)
    (given.out / "noise_gallery.md").write_text(sentences.tidy("\n".join(page)))


if __name__ == "__main__":
    main()
