"""Ours and the peers side by side, in one run on the same noise.

Usage: python benchmarks/run.py [PART ...] [--out FOLDER].

Parts: speed (seconds with the noise known and blind, ratio to bm3d, megapixels a second, PSNR, peak
memory), scaling (time against pixels), em (the E+M step as a share of this machine's matrix-product rate).
Repeats are interleaved and the smallest time counts.  Nothing is clipped; PSNR has the data range as its
peak.  ``speed.json`` and ``front.svg`` are written into the folder; ``benchmarks/keep.py`` keeps them for
the pages.  Many pictures: ``symsmooth benchmark``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from symsmooth.core.metrics import psnr
from symsmooth_repro.benchmark.peers import PEERS, Peer, installed_peers, limit_threads
from symsmooth_repro.provenance import provenance

SIGMA = 25 / 255
FOLDER = Path(__file__).parent
RATIO_TO = PEERS["bm3d"].label  # what times are compared with
PRESETS = ("preview", "fast", "balanced", "best")
Rows = dict[str, dict[str, float | None]]
Denoiser = Callable[[np.ndarray, float | None], np.ndarray]


def scene(side: int = 512) -> tuple[np.ndarray, np.ndarray]:
    """Return a photograph in [0, 1], mirrored to any size, and the same with noise (seed 0)."""
    from skimage import data

    clean = data.camera() / 255.0
    if side > 512:
        clean = np.pad(clean, [(0, side - 512)] * 2, mode="symmetric")
    clean = np.ascontiguousarray(clean[:side, :side])
    return clean, clean + SIGMA * np.random.default_rng(0).standard_normal(clean.shape)


def ours() -> dict[str, Denoiser]:
    import symsmooth as s

    def preset(quality: str) -> Denoiser:
        return lambda y, sigma: s.denoise(y, sigma, quality=quality)

    presets = {f"symsmooth {q}": preset(q) for q in PRESETS}
    return presets | {
        "symsmooth GSF": s.denoise_gsf,
        "symsmooth GSF, k given": lambda y, sigma: s.denoise_gsf(y, sigma, n_clusters=y.size // 40),
        "symsmooth BM3D": s.denoise_bm3d,
        "symsmooth NL-Bayes": s.denoise_nl_bayes,
        "symsmooth EPLL": s.denoise_epll,
        "symsmooth PLE": s.denoise_ple,
        "symsmooth GLIDE": s.denoise_glide,
        "symsmooth NLM": s.denoise_nlm,
        "symsmooth NLM one-step": lambda y, sigma: s.denoise_nlm(y, sigma, sinkhorn_iters=1),
        "symsmooth NLM balanced": lambda y, sigma: s.denoise_nlm(y, sigma, sinkhorn_iters=None),
        "symsmooth bilateral": s.denoise_bilateral,
        "symsmooth LARK": s.denoise_lark,
        "symsmooth Gaussian": s.denoise_gaussian,
    }


def peers(threads: int) -> dict[str, Denoiser]:
    """Return the peers that are installed, for pictures of 0 to 1."""
    limit_threads(threads)

    def denoiser(peer: Peer) -> Denoiser:
        return lambda y, sigma: peer.run(255.0 * y, 255.0 * sigma) / 255.0

    return {PEERS[name].label: denoiser(PEERS[name]) for name in installed_peers()}


def everything(threads: int) -> dict[str, Denoiser]:
    return ours() | peers(threads)


def peak_memory(name: str, side: int, threads: int) -> float:
    """Megabytes a fresh process needs beyond importing and the picture itself."""
    command = [sys.executable, __file__, "--memory-of", name, "--side", str(side)]
    done = subprocess.run(
        [*command, "--threads", str(threads)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.strip().splitlines()[-1])


def memory_of(name: str, side: int, threads: int) -> float:
    methods = everything(threads)
    _, small = scene(64)
    methods[name](small, SIGMA)  # libraries loaded
    _, noisy = scene(side)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = _peak_kilobytes()
    methods[name](noisy, SIGMA)
    return (_peak_kilobytes() - before) / 1024


def _peak_kilobytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def speed(side: int, repeats: int, threads: int) -> Rows:
    clean, noisy = scene(side)
    methods = everything(threads)
    blind: dict[str, list[float]] = {name: [] for name in ours()}
    times: dict[str, list[float]] = {name: [] for name in methods}
    quality: dict[str, float] = {}
    for method in methods.values():
        method(noisy[:64, :64], SIGMA)
    for repeat in range(repeats):
        for name, method in methods.items():
            if repeat and times[name][0] > 20:
                continue
            start = time.perf_counter()
            denoised = method(noisy, SIGMA)
            times[name].append(time.perf_counter() - start)
            quality[name] = psnr(denoised, clean)
            if name in blind:
                blind[name].append(_time(lambda method=method: method(noisy, None)))
    best = {name: min(values) for name, values in times.items()}
    return {
        name: {
            "seconds": best[name],
            "seconds_blind": min(blind[name]) if name in blind else None,
            "ratio": best[name] / best[RATIO_TO],
            "megapixels_per_second": clean.size / best[name] / 1e6,
            "psnr": quality[name],
            "peak_megabytes": peak_memory(name, side, threads),
        }
        for name in sorted(best, key=best.__getitem__)
    }


def facts(repeats: int, threads: int) -> dict[str, object]:
    """Return what a reader must know of the numbers."""
    told = provenance("", 1, 0.0)
    versions = {PEERS[name].version for name in installed_peers()}
    return {
        "date": told.date.split()[0], "symsmooth": f"{told.version}, commit {told.commit}",
        "machine": told.machine, "versions": ", ".join([told.packages, *sorted(versions)]),
        "threads": threads, "repeats": repeats,
    }  # fmt: skip


def print_speed(rows: Rows, side: int, threads: int) -> None:
    print(f"\n{side}x{side}, sigma 25, {threads} threads; ratio of time to bm3d\n")
    print("| method | seconds | blind | ratio | MP/s | PSNR dB | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        blind = row["seconds_blind"]
        print(
            f"| {name} | {row['seconds']:.3f} | {f'{blind:.3f}' if blind else ''} | {row['ratio']:.3f} | "
            f"{row['megapixels_per_second']:.2f} | {row['psnr']:.2f} | {row['peak_megabytes']:.0f} |"
        )


def scaling(repeats: int) -> None:
    """Time against pixels, and the exponent fitted from 256^2 up."""
    sides = [128, 256, 512, 1024, 2048]
    wanted = ("symsmooth balanced", "symsmooth GSF", "symsmooth NLM")
    chosen = {name: method for name, method in ours().items() if name in wanted}
    print("\n| method | " + " | ".join(f"{s}x{s}" for s in sides) + " | exponent |")
    print("|---" * (len(sides) + 2) + "|")
    for name, method in chosen.items():
        method(scene(64)[1], SIGMA)
        seconds = []
        for side in sides:
            _, noisy = scene(side)
            runs = []
            for _ in range(repeats if side < 2048 else 1):
                start = time.perf_counter()
                method(noisy, SIGMA)
                runs.append(time.perf_counter() - start)
            seconds.append(min(runs))
        exponent = np.polyfit(np.log([s**2 for s in sides[1:]]), np.log(seconds[1:]), 1)[0]
        print(f"| {name} | " + " | ".join(f"{t:.3f} s" for t in seconds) + f" | {exponent:.3f} |")


def em_rate() -> None:
    """Rate of one E+M step, 4 p flops for each pair of pixel and cluster, against sgemm alone."""
    from symsmooth.core.parallel import Pool
    from symsmooth.core.patches import whiten
    from symsmooth.mixture.em import e_step, initial_mixture, neighbourhood

    _, noisy = scene(512)
    features = whiten(noisy.astype(np.float32)[..., None], 5, 10.0, SIGMA)
    with Pool(1) as pool:
        mixture = initial_mixture(features, features.n_pixels // 40, np.random.default_rng(0))
        near = neighbourhood(features, mixture)
        pairs = 256.0 * len(near.ids)
        step = min(_time(lambda: e_step(features, mixture, near, pool)) for _ in range(5))
        n_near = len(near.ids) // len(near.tiles.boxes)
        a = np.random.default_rng(0).random((256, features.dim + 2), np.float32)
        m = np.random.default_rng(1).random((n_near, features.dim + 2), np.float32)
        product = np.empty((256, n_near), np.float32)

        def both() -> None:
            for _ in range(200):
                np.dot(a, m.T, out=product)
                np.dot(product.T, a)

        gemm = min(_time(both) for _ in range(5)) / 200
    ours_rate = 4 * features.dim * pairs / step / 1e9
    gemm_rate = 4 * (features.dim + 2) * 256 * n_near / gemm / 1e9
    print(
        f"\nE+M step on one thread: {ours_rate:.1f} GFLOP/s, {100 * ours_rate / gemm_rate:.0f} % of "
        f"sgemm's {gemm_rate:.1f} on tiles of 256 x {features.dim + 2} x {n_near}"
    )


def _time(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def plot(rows: Rows, path: Path) -> None:
    """PSNR against time: what is above and left of all others is the front."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for name, row in rows.items():
        if name in ("symsmooth GSF, k given", "symsmooth NLM balanced"):
            continue  # on top of others
        is_ours = name.startswith("symsmooth")
        at = (row["seconds"], row["psnr"])
        colour = (
            "tab:red" if name.split()[-1] in PRESETS else "tab:orange" if is_ours else "tab:gray"
        )
        axes.plot(*at, "o", color=colour)
        place = (-3, 6) if is_ours else (5, -12)
        label = name.removeprefix("symsmooth ")
        axes.annotate(label, at, xytext=place, textcoords="offset points", fontsize=8)
    axes.margins(x=0.12)
    axes.set(
        xscale="log",
        xlabel="seconds, 512 x 512",
        ylabel="PSNR, dB",
        title="sigma 25; red: denoise, orange: other methods of symsmooth, grey: peers",
    )
    axes.grid(alpha=0.3)
    with matplotlib.rc_context({"svg.hashsalt": "front"}):  # the same figure is the same file
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["speed", "scaling", "em"])
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=FOLDER / "results")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(memory_of(arguments.memory_of, arguments.side, arguments.threads))
        return
    arguments.out.mkdir(exist_ok=True)
    if "speed" in arguments.parts:
        rows = speed(arguments.side, arguments.repeats, arguments.threads)
        print_speed(rows, arguments.side, arguments.threads)
        kept = {"facts": facts(arguments.repeats, arguments.threads), "methods": rows}
        (arguments.out / "speed.json").write_text(json.dumps(kept, indent=1) + "\n")
        plot(rows, arguments.out / "front.svg")
    if "scaling" in arguments.parts:
        scaling(arguments.repeats)
    if "em" in arguments.parts:
        em_rate()


if __name__ == "__main__":
    main()
