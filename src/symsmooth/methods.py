"""METHODS: name -> function, the only registry.

The command line, the experiments and the contract test go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from .automatic import denoise
from .baselines.glide import denoise_glide
from .filters import denoise_bilateral, denoise_gaussian, denoise_lark, denoise_nlm
from .gsf import denoise_gsf
from .gsfw import denoise_gsfw
from .image import Array

METHODS: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {
        "denoise": denoise,
        "gaussian": denoise_gaussian,
        "bilateral": denoise_bilateral,
        "nlm": denoise_nlm,
        "lark": denoise_lark,
        "glide": denoise_glide,
        "gsf": denoise_gsf,
        "gsfw": denoise_gsfw,
    }
)
