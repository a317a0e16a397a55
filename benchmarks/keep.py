"""Measure what the pages print, and keep it in ``benchmarks/stored``.

Usage: python benchmarks/keep.py [--quiet] [--every N] [PLAN ...].

Plans are those of ``plans.toml`` (pictures of SYMSMOOTH_IMAGES), and ``speed``, ``large``, ``raw``,
``rician``, ``series`` and ``front``, which are scripts beside this one; without a name all but ``raw``,
``series`` and ``front``, which take a quarter of an hour each and no times of the wall, are measured one
after another.  With --quiet nothing else runs on this machine, and times are kept too; ``speed`` and
``large`` are left out without it.  A plan that was
stopped goes on where it was.  With --every a plan takes every N-th picture only, as a trial.  At the end
the pages are made again (``pages.py``).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import stored

HERE = Path(__file__).parent
SCRIPTS = ("speed", "large", "rician", "raw", "series", "front")
WORK = HERE.parent / "build" / "evidence"  # cells of measurements, shared by all plans


def plans() -> dict[str, dict[str, str]]:
    """Return what ``symsmooth benchmark`` is asked for, by name."""
    return tomllib.loads((HERE / "plans.toml").read_text("utf-8"))


def scripts(quiet: bool = False) -> dict[str, list[str]]:
    """Return what the plans that are scripts are called with."""
    out = ["--out", str(stored.FOLDER)]
    return {
        "speed": [str(HERE / "run.py"), *out],
        "large": [str(HERE / "large.py"), *out],
        "front": [str(HERE / "front.py"), str(WORK / "front"), "--quality", "fast,balanced", *out],
        "rician": [str(HERE / "rician.py"), *out, *["--quiet"] * quiet],
        "raw": [str(HERE / "raw.py"), *_images("kodak24"), *out],
        "series": [str(HERE / "series.py"), *out, *["--quiet"] * quiet],
    }


def main() -> int:
    """Measure, keep, and make the pages again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plans", nargs="*", metavar="PLAN")
    parser.add_argument("--quiet", action="store_true", help="nothing else runs: keep times")
    parser.add_argument("--every", type=int, help="every so many-th picture only: a trial")
    asked = parser.parse_args()
    known = [*plans(), *SCRIPTS]
    if unknown := set(asked.plans) - set(known):
        parser.error(f"there is no plan {', '.join(sorted(unknown))}; use {', '.join(known)}")
    names = asked.plans or [*plans(), *["speed", "large"] * asked.quiet, "rician"]
    for name in names:
        print(f"--- {name}", flush=True)
        if name in plans():
            run_plan(name, asked.quiet, asked.every)
        else:
            run([sys.executable, *scripts(asked.quiet)[name]])
    return subprocess.run([sys.executable, str(HERE / "pages.py")], check=False).returncode


def run_plan(name: str, quiet: bool, every: int | None = None) -> None:
    """Run ``symsmooth benchmark`` as a plan says, and keep what it found."""
    plan = plans()[name]
    thinned = ["--every", str(every)] if every else []
    program = str(Path(sys.executable).with_name("symsmooth"))
    command = [program, "benchmark", *_images(plan["folder"]), "-o", str(WORK)]
    run([*command, "--label", plan["label"], *plan["options"].split(), *thinned])
    found = json.loads((WORK / "benchmark.json").read_text("utf-8"))
    if found["failures"]:
        raise SystemExit(f"{name}: {found['failures'][0]}")
    stored.keep(name, found, quiet)


def run(words: list[str]) -> None:
    """Run a command; end if it fails."""
    if subprocess.run(words, check=False).returncode:
        raise SystemExit(f"failed: {' '.join(words)}")


def _images(folder: str) -> list[str]:
    """Return where the pictures of a plan are."""
    place = os.environ.get("SYMSMOOTH_IMAGES")
    if not place:
        raise SystemExit("set SYMSMOOTH_IMAGES to the folder with kodak24/, train400/ and real/")
    return [str(Path(place) / folder)]


if __name__ == "__main__":
    sys.exit(main())
