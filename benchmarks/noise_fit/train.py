"""Fit the network of :mod:`symsmooth.noise.estimator` to simulated and a few real examples, with torch.

The network here is the one there, in a form that torch can differentiate; ``tests/noise`` holds
them together by the weights that are shipped.  The loss is the likelihood of log2 of the noise
energies under the uncertainty that the network says itself (beta-NLL, Seitzer et al. 2022), nodes
weighted by their share of the noise.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from dataset import may_be_learnt_from
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from symsmooth.noise import estimator, evidence

HEADS, FIRST, CONTEXT, SECOND, THIRD, FOURTH = 6, 72, 40, 48, 96, 64
N_ENERGIES = 3 * evidence.N_RINGS
IN_COLOUR = sum(number for _, number in evidence.PICTURE_FEATURES[:3])  # place of that feature
BATCH = 24
REAL_SHARE, HARD_SHARE = 0.1, 0.25  # of the batches: real pairs, pictures that fail most
STEPS_AVERAGED = (
    1000  # weights are averaged over about so many: single ones swing between clean and noisy
)


class Net(nn.Module):
    """The network."""

    def __init__(self, feature_mean, feature_std, wide_mean, wide_std) -> None:
        super().__init__()
        named = {
            "feature_mean": feature_mean,
            "feature_std": feature_std,
            "wide_mean": wide_mean,
            "wide_std": wide_std,
        }
        for name, values in named.items():
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.float32))
        self.register_buffer("to_groups", torch.as_tensor(estimator._TO_GROUPS), persistent=False)
        self.register_buffer(
            "from_groups", torch.as_tensor(estimator._FROM_GROUPS), persistent=False
        )
        candidates = 2 * HEADS + evidence.N_FLOORS + 2
        self.one = nn.Linear(evidence.N_FEATURES, FIRST)
        self.context = nn.Linear(FIRST + evidence.N_WIDE, CONTEXT)
        self.two = nn.Linear(FIRST + CONTEXT, SECOND)
        self.score = nn.Linear(SECOND, HEADS)
        own = 9 * HEADS + HEADS + SECOND + 1
        shared = 9 * HEADS + HEADS + CONTEXT + N_ENERGIES + 9 * evidence.N_FLOORS
        self.three = nn.Linear(own + shared, THIRD)
        self.four = nn.Linear(THIRD, FOURTH)
        self.gate = nn.Linear(FOURTH, 9 * candidates)
        self.correction = nn.Linear(FOURTH, N_ENERGIES)
        self.spread = nn.Linear(FOURTH, N_ENERGIES)

    def forward(self, features, energy, near, wide, local, floor):
        """Return log2 of the energies (pictures, nodes, 3, rings) and the logarithm of their deviation."""
        b, n, k = near.shape
        near = near / near.sum(1, keepdim=True)
        energy = energy.reshape(b, n, N_ENERGIES)
        h = torch.relu(self.one((features - self.feature_mean) / self.feature_std))
        scaled = (wide - self.wide_mean) / self.wide_std
        context = torch.relu(self.context(torch.cat([h.mean(1), scaled], -1)))
        h = torch.relu(self.two(torch.cat([h, context[:, None].expand(-1, n, -1)], -1)))
        limit = float(estimator._SCORE_LIMIT)
        score = limit * torch.tanh(self.score(h) / limit)
        top = score.detach().amax(1, keepdim=True)
        weight = torch.exp(score - top)  # (b, n, heads)
        small, half = (floor / 4)[:, None, None], HEADS // 2
        both = torch.cat([energy, (energy + small).sqrt().sqrt()], -1)

        def logs(pooled, small):
            plain = torch.log2(pooled[..., :half, :N_ENERGIES] + small)
            return torch.cat([plain, 4 * torch.log2(pooled[..., half:, N_ENERGIES:])], -2)

        sums = near.transpose(1, 2) @ weight + 1e-30  # (b, k, heads)
        joint = (near[..., None] * weight[:, :, None]).reshape(b, n, k * HEADS)
        here = (joint.transpose(1, 2) @ both).reshape(b, k, HEADS, -1) / sums[..., None]
        here = logs(here, small[:, None])
        total = weight.sum(1)  # (b, heads)
        everywhere = logs((weight.transpose(1, 2) @ both) / total[..., None], small)
        middle = everywhere[:, -1:]
        floors = wide[:, -3 * evidence.N_FLOORS :].reshape(b, evidence.N_FLOORS, 3)
        alike = torch.where(wide[:, IN_COLOUR] > 0.5, floors[:, 0, 1:].mean(-1), floors[:, 0, 0])
        floors = floors.repeat_interleave(evidence.N_RINGS, 2)
        lift = local - wide[:, -3 * evidence.N_FLOORS, None]  # (b, k)
        near_floor = floors[:, :1] + lift[..., None]  # (b, k, energies)
        shared = [
            ((everywhere - middle) @ self.to_groups).flatten(1),
            torch.log(total) + top[:, 0] - float(np.log(n)),
            context,
            (middle[:, 0] - self.feature_mean[:N_ENERGIES]) / self.feature_std[:N_ENERGIES],
            ((floors - middle) @ self.to_groups).flatten(1),
        ]
        own = [
            ((here - middle[:, None]) @ self.to_groups).flatten(2),
            torch.log(sums) + top,
            near.transpose(1, 2) @ h,
            lift[..., None],
        ]
        whole = torch.cat(shared, -1)[:, None].expand(-1, k, -1)
        t = torch.relu(self.three(torch.cat([*own, whole], -1)))
        t = torch.relu(self.four(t))
        candidates = torch.cat(
            [
                here,
                everywhere[:, None].expand(-1, k, -1, -1),
                floors[:, None].expand(-1, k, -1, -1),
                alike[:, None, None, None].expand(-1, k, 1, N_ENERGIES),
                near_floor[:, :, None],
            ],
            2,
        )
        gate = torch.softmax(self.gate(t).reshape(b, k, 9, candidates.shape[2]), -1)
        share = torch.einsum("eg,bkgm->bkme", self.from_groups, gate)
        found = (share * candidates).sum(2) + self.correction(t)
        least = torch.log2(floor)[:, None, None]
        found = least + nn.functional.softplus(2 * (found - least)) / 2
        spread = (self.spread(t) - 1.0).clamp(-5, 3)
        shape = (b, k, 3, evidence.N_RINGS)
        return found.reshape(shape), spread.reshape(shape)


def loss_of(found, log_spread, target, colour, beta=0.5):
    """Return the loss, the errors of log2 of the level, and their weights."""
    error = (found - target) / 2
    variance = torch.exp(2 * log_spread) + 4e-4
    energy = torch.exp2(target)
    weight = (energy / energy.mean(1, keepdim=True)).clamp(0.15, 3.0)
    mask = torch.ones_like(weight)
    mask[:, :, 1:] *= colour[:, None, None, None]
    weight = weight * mask
    likelihood = 0.5 * error**2 / variance + 0.5 * torch.log(variance)
    return (weight * likelihood * variance.detach() ** beta).sum() / weight.sum(), error, weight


class Examples:
    """Shards of examples in memory; new ones are taken in as they are written."""

    def __init__(self, pattern: Path) -> None:
        self._pattern, self._files = pattern, []
        self.shards: list[dict[str, torch.Tensor]] = []
        self.refresh()

    def refresh(self) -> None:
        """Take in new shards."""
        for file in sorted(self._pattern.parent.glob(self._pattern.name)):
            if file not in self._files and ".part" not in file.name:
                self._files.append(file)
                self.shards.append(to_tensors(np.load(file)))

    def __len__(self) -> int:
        return len(self.shards)


def to_tensors(stored) -> dict[str, torch.Tensor]:
    """Return the numbers of some examples as tensors."""
    names = ("features", "energy", "rank", "wide", "local", "target", "floor", "colour")
    return {
        name: torch.as_tensor(np.nan_to_num(stored[name], posinf=0.0, neginf=0.0)) for name in names
    }


def run(net: Net, data: dict[str, torch.Tensor], rows: torch.Tensor, regions: torch.Tensor):
    """Return what the network says of some rows, seen through some of their regions."""
    rank = data["rank"][rows][:, regions]
    near = torch.as_tensor(evidence.node_weights(rank.numpy().ravel())).reshape(*rank.shape, -1)
    return net(
        data["features"][rows][:, regions].float(),
        data["energy"][rows][:, regions],
        near,
        data["wide"][rows],
        data["local"][rows],
        data["floor"][rows],
    )


def report(net: Net, data: dict[str, torch.Tensor], kinds: np.ndarray) -> tuple[float, str]:
    """Return the mean error of log2 of the level, and say it with its bias and the worst, by kind."""
    everything = torch.arange(256)
    with torch.no_grad():
        out = [run(net, data, rows, everything) for rows in torch.arange(len(kinds)).split(100)]
    found, spread = (torch.cat([each[i] for each in out]) for i in (0, 1))
    _, error, weight = loss_of(found, spread, data["target"], data["colour"])
    total = weight.sum((1, 2, 3))
    size, bias = ((e * weight).sum((1, 2, 3)) / total for e in (error.abs(), error))
    parts = []
    for kind in np.unique(kinds):
        own = torch.as_tensor(kinds == kind)
        parts.append(f"{kind} {size[own].mean():.3f}/{bias[own].mean():+.2f}/{size[own].max():.2f}")
    return float(size.mean()), f"{size.mean():.3f} | " + "  ".join(parts)


class Judges:
    """Pictures that are not learnt from: simulated ones, hard ones, and real pairs."""

    def __init__(self, folder: Path) -> None:
        stored = np.load(folder / "real.npz")
        learnt = [may_be_learnt_from(*str(kind).split("/", 1)) for kind in stored["kind"]]
        use, real = torch.as_tensor(learnt), to_tensors(stored)
        self.known = {name: values[use] for name, values in real.items()}
        collections = np.array([str(kind).split("/")[0] for kind in stored["kind"]])
        unseen = {name: values[~use] for name, values in real.items()}
        self._sets = {"real": (unseen, collections[~use.numpy()])}
        for name, pattern in (("simulated", "test0*.npz"), ("hard", "test-hard*.npz")):
            files = [f for f in sorted(folder.glob(pattern)) if ".part" not in f.name]
            if files:
                parts = [np.load(f) for f in files]
                tensors = [to_tensors(part) for part in parts]
                data = {key: torch.cat([t[key] for t in tensors]) for key in tensors[0]}
                self._sets[name] = data, np.concatenate([part["kind"] for part in parts])

    def ask(self, net: Net) -> float:
        """Return the sum of the mean errors, each set counting the same; print them."""
        total = 0.0
        for name, (data, kinds) in self._sets.items():
            error, words = report(net, data, kinds)
            print(f"   {name} {words}", flush=True)
            total += error
        return total


def train(
    work: Path, steps: int, out: Path, start: Path | None = None, rate: float = 4e-3, seed: int = 0
) -> None:
    """Fit the network and write the weights that the judges liked best; ``start``: go on from these."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    folder = work / "examples"
    shards, hard = (Examples(folder / f"train{which}*.npz") for which in ("[0-9]", "-hard"))
    judges = Judges(folder)
    net = _beginning(shards) if start is None else _go_on(np.load(start))
    print(sum(p.numel() for p in net.parameters()), "weights,", len(shards), "shards", flush=True)
    optimiser = torch.optim.AdamW(net.parameters(), rate / 2, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, rate, total_steps=steps, pct_start=0.1
    )
    averaged = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(1 - 1 / STEPS_AVERAGED))
    began, total, best = time.time(), 0.0, judges.ask(net) if start else float("inf")
    for step in range(steps):
        if step % 200 == 0:
            shards.refresh()
            hard.refresh()
        among = hard if len(hard) and rng.random() < HARD_SHARE else shards
        seen = rng.random() < REAL_SHARE
        data = judges.known if seen else among.shards[rng.integers(len(among))]
        rows = torch.as_tensor(rng.choice(len(data["rank"]), BATCH, replace=False))
        regions = torch.as_tensor(rng.permutation(256)[: int(rng.choice([96, 128, 224]))])
        found, spread = run(net, data, rows, regions)
        loss, _, _ = loss_of(found, spread, data["target"][rows], data["colour"][rows])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        averaged.update_parameters(net)
        total += loss.item()
        if step % 500 == 499 or step == steps - 1:
            print(f"step {step + 1}, {time.time() - began:.0f} s, loss {total / 500:.4f}, ", end="")
            print(f"{len(shards)} and {len(hard)} shards")
            total, error = 0.0, judges.ask(averaged.module)
            if error < best:
                best = error
                print("   best", round(best, 4), flush=True)
                state = averaged.module.state_dict().items()
                np.savez(out, **{name: values.detach().numpy() for name, values in state})


def _beginning(shards: Examples) -> Net:
    """Return a network that has learnt nothing but how features spread."""
    features = [s["features"][::9].reshape(-1, evidence.N_FEATURES) for s in shards.shards[:40]]
    sample, wide = torch.cat(features).float(), torch.cat([s["wide"] for s in shards.shards])
    return Net(sample.mean(0), sample.std(0) + 1e-2, wide.mean(0), wide.std(0) + 1e-2)


def _go_on(stored) -> Net:
    """Return a network with stored weights."""
    net = Net(*(stored[f"{of}_{what}"] for of in ("feature", "wide") for what in ("mean", "std")))
    net.load_state_dict({k: torch.as_tensor(v) for k, v in stored.items() if k in net.state_dict()})
    return net
