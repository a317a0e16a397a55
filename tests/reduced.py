"""All experiments on a few pixels: what the tests of experiments and of pages look at."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from symsmooth_repro import find
from symsmooth_repro.images import CLASSICS, ImageSet, draw
from symsmooth_repro.model import Cell, Entry, Plan, Reproduction, Result, Setting
from symsmooth_repro.provenance import provenance
from symsmooth_repro.runner import measure_cell

SIDE = 28
_known: dict[str, Result] = {}


def tiny_image_set() -> ImageSet:
    """Three of the ten, one other, and pictures 11 to 15, all of them pieces of a photograph."""
    from skimage import data

    camera = data.camera()
    pieces = {
        name: camera[80 + 20 * n : 144 + 20 * n, 200:264]
        for n, name in enumerate(["baboon", "house", "man", "dev-one"])
    }
    return ImageSet(pieces | draw(), missing=tuple(n for n in CLASSICS if n not in pieces))


def shrink(cell: Cell) -> Cell:
    """The same cell on a few pixels."""
    options = {k: min(v, SIDE) if k in ("side", "crop") else v for k, v in cell.options.items()}
    if "k" in options:
        options["k"] = min(options["k"], 60)
    return dataclasses.replace(cell, options=options)


def observations(count: int) -> list[Cell]:
    return [Cell("observe", "man", {"sigma": 20, "seed": seed}) for seed in range(count)]


def measured(image_set: ImageSet, plan: Plan) -> dict[Any, Result]:
    """Measure shrunk cells here, each once."""
    results = {}
    for key, cell in plan.items():
        small = shrink(cell)
        name = json.dumps([small.task, small.picture, dict(small.options)], sort_keys=True)
        if name not in _known:
            _known[name] = measure_cell(small.task, image_set[small.picture], small.options)
        results[key] = _known[name]
    return results


def run_all() -> Reproduction:
    setting = Setting(tiny_image_set(), True)
    entries = []
    for experiment in find():
        plan = experiment.plan(setting)
        if experiment.follow is not None:
            plan |= experiment.follow(setting, measured(setting.image_set, plan))
        results = measured(setting.image_set, plan)
        entries.append(Entry(experiment, experiment.report(setting, results), seconds=1.0))
    return Reproduction(entries, setting, provenance("symsmooth reproduce", 1, 2.0), 3, 4)
