"""Every table and figure of the paper, one module each, and what runs them.

An experiment plans cells (``model.Cell``), the ``runner`` measures them in processes and keeps what is
finished, and the experiment makes tables, plots and claims of the results; ``report`` writes them down.
Experiments that need the same cell share it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence

from .model import Experiment

_MODULES = {
    "gain": "gain",
    "sinkhorn-iterations": "sinkhorn_iterations",
    "negative-gain": "negative_gain",
    "gain-vs-hr": "gain_vs_hr",
    "sure": "sure",
    "cross-validation": "cross_validation",
    "sigma": "sigma",
    "hs": "hs",
    "main": "main_table",
    "glide": "glide",
    "epll": "epll",
    "clusters-sigma": "clusters_sigma",
    "clusters-size": "clusters_size",
    "mean-subtraction": "mean_subtraction",
    "beyond": "beyond",
}
NAMES = tuple(_MODULES)


def find(names: Sequence[str] = ()) -> list[Experiment]:
    """Return experiments by name, in the paper's order; all if none is named.

    Examples
    --------
    >>> [experiment.item for experiment in find(["sigma", "gain"])]
    ['Figure 1', 'Table IV']
    """
    unknown = [name for name in names if name not in _MODULES]
    if unknown:
        raise ValueError(f"there is no experiment {unknown[0]!r}; use one of {', '.join(NAMES)}")
    wanted = [name for name in NAMES if name in names or not names]
    found: list[Experiment] = [
        importlib.import_module(f".{_MODULES[name]}", __name__).EXPERIMENT for name in wanted
    ]
    return found
