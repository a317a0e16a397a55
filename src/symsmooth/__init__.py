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
    "METHODS": "methods",
    "GSFResult": "gsf",
    "GSFWResult": "gsfw",
    "denoise": "methods",
    "denoise_bilateral": "methods",
    "denoise_blocks": "blocks",
    "denoise_bm3d": "methods",
    "denoise_epll": "methods",
    "denoise_gaussian": "methods",
    "denoise_glide": "methods",
    "denoise_gsf": "methods",
    "denoise_gsfw": "methods",
    "denoise_lark": "methods",
    "denoise_nl_bayes": "methods",
    "denoise_nlm": "methods",
    "denoise_ple": "methods",
    "estimate_noise": "noise",
    "estimate_sigma": "noise",
    "fit_gsf": "gsf",
    "fit_gsfw": "gsfw",
    "stop_when": "tiles",
}

__all__ = [*_HOME, "__version__"]

if TYPE_CHECKING:
    from .blocks import denoise_blocks as denoise_blocks
    from .gsf import GSFResult as GSFResult
    from .gsf import fit_gsf as fit_gsf
    from .gsfw import GSFWResult as GSFWResult
    from .gsfw import fit_gsfw as fit_gsfw
    from .methods import METHODS as METHODS
    from .methods import denoise as denoise
    from .methods import denoise_bilateral as denoise_bilateral
    from .methods import denoise_bm3d as denoise_bm3d
    from .methods import denoise_epll as denoise_epll
    from .methods import denoise_gaussian as denoise_gaussian
    from .methods import denoise_glide as denoise_glide
    from .methods import denoise_gsf as denoise_gsf
    from .methods import denoise_gsfw as denoise_gsfw
    from .methods import denoise_lark as denoise_lark
    from .methods import denoise_nl_bayes as denoise_nl_bayes
    from .methods import denoise_nlm as denoise_nlm
    from .methods import denoise_ple as denoise_ple
    from .noise import estimate_noise as estimate_noise
    from .noise import estimate_sigma as estimate_sigma
    from .tiles import Cancelled as Cancelled
    from .tiles import stop_when as stop_when


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the package itself imports in no time."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
