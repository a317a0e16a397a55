"""Examples to fit on: the evidence of simulated and real pictures, and their true noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import simulate
from PIL import Image
from pool import Pool, images_folder

from symsmooth.noise import evidence
from symsmooth.noise.evidence import node_weights, rank_of

N_REGIONS = 256  # of a picture
N_VIEWS = 12  # of a real pair
MIN_VIEW = 128  # pixels a side
NAMES = ("features", "energy", "rank", "wide", "local", "target", "floor", "colour", "kind")


def example(
    noisy: np.ndarray, noise: np.ndarray, step: float, rng: np.random.Generator
) -> tuple | None:
    """Return the evidence of a picture, and log2 of its true noise energies (nodes, 3, rings).

    ``noise`` is a sample of it; None if the picture is constant.
    """
    found = evidence.measure([noisy], [None], step)
    if found is None:
        return None
    live = evidence.is_live(noisy)
    true = evidence.energies(noise.astype(np.float32))[live] / np.float32(found.reference)
    if true.shape[1] == 1:
        true = np.concatenate([true, np.zeros((len(true), 2, evidence.N_RINGS), np.float32)], 1)
    rank = rank_of(found.brightness)
    near = node_weights(rank)
    near = near / near.sum(axis=0, keepdims=True)
    target = np.log2(np.einsum("nk,ncr->kcr", near, true) + found.floor)
    take = np.sort(rng.choice(len(rank), N_REGIONS, replace=len(rank) < N_REGIONS))
    return (
        found.features[take].astype(np.float16),
        found.energy[take],
        rank[take],
        found.wide,
        found.local,
        target.astype(np.float32),
        np.float32(found.floor),
        np.float32(found.n_channels == 3),
    )


def simulated(pool: Pool, seed: int, count: int, hard: bool = False) -> dict[str, np.ndarray]:
    """Return examples of simulated pictures; ``hard``: of those that fail most."""
    rng = np.random.default_rng(seed)
    rows, kinds = [], []
    while len(rows) < count:
        found = simulate.draw(rng, pool, hard=hard)
        row = example(found.one, (found.one - found.two) / np.float32(np.sqrt(2)), found.step, rng)
        if row is not None:
            rows.append(row)
            kinds.append(f"{found.kind}-{found.one.shape[-1]}")
    return _stack(rows, kinds)


def real_pairs() -> list[tuple[str, str, np.ndarray, np.ndarray]]:
    """Return (collection, name, noisy, reference) of the development pairs, 8 bits, (y, x, channels)."""

    def read(file: Path) -> np.ndarray:
        pixels = np.asarray(Image.open(file))
        return pixels if pixels.ndim == 3 else pixels[..., None]

    folder, found = images_folder() / "real", []
    for file in sorted((folder / "polyu").glob("*_real.JPG")):
        other = file.with_name(file.name.replace("_real", "_mean"))
        found.append(("polyu", file.name.removesuffix("_real.JPG"), read(file), read(other)))
    for collection, noisy in (("sidd", "noisy"), ("fmd", "raw")):
        found += [
            (collection, file.name, read(file), read(folder / collection / "gt" / file.name))
            for file in sorted((folder / collection / noisy).iterdir())
        ]
    return found


def may_be_learnt_from(collection: str, name: str) -> bool:
    """Whether the fit may see a real pair: by scenes, about half of each collection.

    PolyU: the Canon and four scenes of the Nikon; SIDD: every other scene; FMD: every other picture.
    """
    if collection == "polyu":
        return name.startswith("Canon") or name.split("_")[1] in ("10", "11", "5-6", "6-3")
    if collection == "sidd":
        return int(name.split("_")[0]) % 4 == 1
    return int(Path(name).stem.rpartition("_")[2]) % 2 == 0


def real() -> dict[str, np.ndarray]:
    """Return examples of the real pairs; those that are learnt from in several views, and clean."""
    rng = np.random.default_rng(0)
    rows, kinds = [], []
    for collection, name, noisy, clean in real_pairs():
        one, two = noisy.astype(np.float32) / 255, clean.astype(np.float32) / 255
        views = [(one, two)]
        if may_be_learnt_from(collection, name):
            views += [view(rng, one, two) for _ in range(N_VIEWS)]
            if (
                collection != "fmd"
            ):  # whose references are means of 50 frames, with noise of their own
                views += [(two, two), (shown := view(rng, one, two)[1], shown)]
        for noisy_view, clean_view in views:
            row = example(noisy_view, noisy_view - clean_view, 1 / 255, rng)
            if row is not None:
                rows.append(row)
                kinds.append(f"{collection}/{name}")
    return _stack(rows, kinds)


def view(
    rng: np.random.Generator, one: np.ndarray, two: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a part of a noisy picture and its reference, turned, half of the time made smaller."""
    side = int(rng.integers(min(192, len(one)), min(one.shape[:2]) + 1))
    y, x = (int(rng.integers(n - side + 1)) for n in one.shape[:2])
    turns, mirrored = int(rng.integers(4)), rng.random() < 0.5
    small = round(side * rng.uniform(0.5, 1.0)) if rng.random() < 0.5 else side
    found = []
    for picture in (one, two):
        part = np.rot90(picture[y : y + side, x : x + side], turns)
        part = part[:, ::-1] if mirrored else part
        if small != side and small >= MIN_VIEW:
            part = simulate.to8(simulate.resize(part, [small, small], Image.Resampling.BICUBIC))
        found.append(np.ascontiguousarray(part))
    return found[0], found[1]


def _stack(rows: list[tuple], kinds: list[str]) -> dict[str, np.ndarray]:
    columns = [np.stack(column) for column in zip(*rows, strict=True)]
    return dict(zip(NAMES, [*columns, np.array(kinds)], strict=True))


def write_shards(
    work: Path, kept_back: bool, first: int, last: int, hard: bool = False, count: int = 500
) -> None:
    """Write shards of simulated examples; those that exist are kept, so that a run can be resumed."""
    pool = Pool(work, kept_back)
    name = ("test" if kept_back else "train") + ("-hard" if hard else "")
    folder = work / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(first, last):
        target = folder / f"{name}{k:03d}.npz"
        if target.exists():
            continue
        seed = (50_000 if kept_back else 10_000) + (20_000 if hard else 0) + k
        found = simulated(pool, seed, count, hard)
        part = target.with_suffix(".part.npz")
        np.savez(part, **found)
        part.rename(target)
        print(target.name, flush=True)


def write_real(work: Path) -> None:
    """Write the examples of real pairs."""
    target = work / "examples" / "real.npz"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        np.savez(target, **real())
