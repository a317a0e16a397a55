"""Make docs/images/before_after_*.jpg: real photographs before and after, with no settings.

Usage: python tools/before_after.py FOLDER [--out FOLDER].

FOLDER holds photographs of drewnoakes/metadata-extractor-images, whose owner lets everybody use them
however they wish.  Each is denoised by ``symsmooth denoise IN -o OUT``; of both files the same part is
shown, enlarged twice without smoothing.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

OUT = Path(__file__).parents[1] / "docs" / "images"
SIZE = 300, 190  # of the part that is shown
ZOOM = 2
GAP = 6  # pixels between the two
QUALITY = 88  # less shows JPEG's own blocks at this size
PROGRAM = Path(sys.executable).with_name("symsmooth")
PARTS = {  # name: photograph, left, top
    "receipt": ("Apple_iPhone_4.jpg", 240, 345),
    "faces": ("Sony_DSC-P52.jpg", 240, 250),
    "fabric": ("Canon_EOS_20D_2.jpg", 500, 250),
}


def part(path: Path, left: int, top: int) -> Image.Image:
    """Return a part of a picture, enlarged."""
    width, height = SIZE
    with Image.open(path) as picture:
        shown = picture.convert("RGB").crop((left, top, left + width, top + height))
    return shown.resize((ZOOM * width, ZOOM * height), Image.Resampling.NEAREST)


def beside(*pictures: Image.Image) -> Image.Image:
    """Return pictures of one size beside each other."""
    width, height = pictures[0].size
    strip = Image.new("RGB", (len(pictures) * (width + GAP) - GAP, height), "white")
    for number, picture in enumerate(pictures):
        strip.paste(picture, (number * (width + GAP), 0))
    return strip


def main() -> None:
    """Denoise the photographs and write the pairs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for name, (file, left, top) in PARTS.items():
            source, target = given.folder / file, Path(scratch) / file
            subprocess.run([PROGRAM, "denoise", source, "-o", target], check=True)
            pair = beside(part(source, left, top), part(target, left, top))
            pair.save(given.out / f"before_after_{name}.jpg", quality=QUALITY)


if __name__ == "__main__":
    main()
