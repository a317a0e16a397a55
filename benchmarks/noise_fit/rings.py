"""How far the errors of rings differ from each other, in what the network says of each.

    python benchmarks/noise_fit/rings.py WORK

Rings share most of their error: a level that is wrong is wrong at all of them.  ``symsmooth.noise.fit``
asks how well the shape of a spectrum is known; that is this share of the said deviation.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from symsmooth.noise import estimator, evidence


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    stored = np.load(parser.parse_args().work / "examples" / "test000.npz")
    data = {name: stored[name] for name in stored.files}
    found: dict[int, list[float]] = {1: [], 3: []}
    for k, kind in enumerate(data["kind"]):
        if str(kind).startswith("none"):
            continue
        shown = evidence.Evidence(
            *(data[name][k].astype(np.float32) for name in ("energy", "features", "rank")),
            *(data[name][k] for name in ("wide", "local")),
            reference=1.0,
            floor=float(data["floor"][k]),
            n_channels=3 if data["colour"][k] else 1,
        )
        said = estimator.estimate(shown)
        true = np.exp2(data["target"][k][:, : shown.n_channels].astype(np.float64))
        error = (np.log2(said.energy.mean(axis=0)) - np.log2(true.mean(axis=0))) / 2
        spread = np.sqrt((said.energy * said.spread**2).sum(axis=0) / said.energy.sum(axis=0))
        own = error - np.average(error, weights=1 / spread**2)
        found[shown.n_channels].append(float(np.mean((own / spread) ** 2)))
    for channels, shares in found.items():
        print(f"{channels} channels: {np.sqrt(np.median(shares)):.2f} (median of {len(shares)})")


if __name__ == "__main__":
    main()
