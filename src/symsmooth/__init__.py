"""Training-free image denoising for people who have one noisy image.

The pipeline, in seven lines:

1. the border brings any image to float32 ``(*spatial, channels)`` without units (``image``);
2. the noise level is known or estimated (``noise``);
3. every pixel becomes a point: its place and the patch around it (``patches``);
4. points are compared, each with each nearby (``weights``), or with learned clusters (``mixture``);
5. weights are normalised: by rows, by columns then rows, or until both hold (``symmetrize``);
6. alike points are averaged (``filters``, ``gsf``) and the patches put back together;
7. what was not known is chosen by the data: clusters, fidelity (``selection``).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Cancelled": "tiles",
    "DenoiseResult": "automatic",
    "METHODS": "methods",
    "GSFResult": "gsf",
    "GSFWResult": "gsfw",
    "denoise": "automatic",
    "denoise_bilateral": "filters",
    "denoise_blocks": "blocks",
    "denoise_bm3d": "baselines.bm3d",
    "denoise_epll": "baselines.epll",
    "denoise_gaussian": "filters",
    "denoise_glide": "baselines.glide",
    "denoise_gsf": "gsf",
    "denoise_gsfw": "gsfw",
    "denoise_lark": "filters",
    "denoise_nl_bayes": "baselines.nl_bayes",
    "denoise_nlm": "filters",
    "denoise_ple": "baselines.ple",
    "estimate_noise": "noise",
    "estimate_sigma": "noise",
    "fit_denoise": "automatic",
    "fit_gsf": "gsf",
    "fit_gsfw": "gsfw",
    "stop_when": "tiles",
}

__all__ = [*_HOME, "__version__"]

if TYPE_CHECKING:
    from .automatic import DenoiseResult as DenoiseResult
    from .automatic import denoise as denoise
    from .automatic import fit_denoise as fit_denoise
    from .baselines.bm3d import denoise_bm3d as denoise_bm3d
    from .baselines.epll import denoise_epll as denoise_epll
    from .baselines.glide import denoise_glide as denoise_glide
    from .baselines.nl_bayes import denoise_nl_bayes as denoise_nl_bayes
    from .baselines.ple import denoise_ple as denoise_ple
    from .blocks import denoise_blocks as denoise_blocks
    from .filters import denoise_bilateral as denoise_bilateral
    from .filters import denoise_gaussian as denoise_gaussian
    from .filters import denoise_lark as denoise_lark
    from .filters import denoise_nlm as denoise_nlm
    from .gsf import GSFResult as GSFResult
    from .gsf import denoise_gsf as denoise_gsf
    from .gsf import fit_gsf as fit_gsf
    from .gsfw import GSFWResult as GSFWResult
    from .gsfw import denoise_gsfw as denoise_gsfw
    from .gsfw import fit_gsfw as fit_gsfw
    from .methods import METHODS as METHODS
    from .noise import estimate_noise as estimate_noise
    from .noise import estimate_sigma as estimate_sigma
    from .tiles import Cancelled as Cancelled
    from .tiles import stop_when as stop_when


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the package itself imports in no time.

    Methods are given what they know of dask arrays here.
    """
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    if name.startswith("denoise") and name != "denoise_blocks":
        value = importlib.import_module(".blocks", __name__).lazily(value)
    return globals().setdefault(name, value)


def __dir__() -> list[str]:
    return sorted(__all__)
