"""What all kernels share: the compiler's options and a fast power of two."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.caching import FunctionCache

LOG2E = np.float32(1.4426950408889634)

# Sums may be reordered; quotients and roots stay exact: approximate ones are used only where a loop is
# vectorised, and whether it is may depend on the addresses of its arrays.
_FAST = {"nnan", "ninf", "nsz", "contract", "reassoc"}
_OPTIONS = {"nogil": True, "fastmath": _FAST, "error_model": "numpy"}


def cache_folder() -> Path:
    """Return where compiled kernels are kept: NUMBA_CACHE_DIR, or the user's cache directory."""
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"])
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "symsmooth" / "kernels"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "symsmooth"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "symsmooth"


class _MendedCache(FunctionCache):
    """Numba's cache; a damaged file in it is as good as none: it is forgotten and compiled again."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled kernel, or None if there is none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a pickle that was cut off or written over can raise anything
            with suppress(OSError):
                self.flush()
            return None


def _compiled(**more: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator: compile when first called, keep the result on disk if there is a place.

    The installation itself may be read-only.  Several processes may start at once: numba writes
    to a temporary file and renames it.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        elsewhere = numba.config.CACHE_DIR  # looked at while decorating only
        try:
            numba.config.CACHE_DIR = str(cache_folder())
            kernel = numba.njit(**_OPTIONS, **more)(function)
            kernel._cache = _MendedCache(function)
            return kernel
        except (RuntimeError, OSError):  # nowhere to write, or no home: compile in each process
            return numba.njit(**_OPTIONS, **more)(function)
        finally:
            numba.config.CACHE_DIR = elsewhere

    return decorate


jit = _compiled()

# Pasted into its caller before compiling: a function with one caller is then compiled once, not twice.
inlined = _compiled(inline="always")


# A sum over a loop that also writes to another array is vectorised only where the compiler's check of
# their addresses says so, that is, at some addresses and not at others: not the same bits.  Sum in a loop
# of its own; tests/test_startup.py looks for such loops.

# Compiled into its callers.  As a function of its own it would be optimised apart from the copy in a
# caller that comes from the disk, and fast arithmetic be rounded in another way: not the same bits.
# (A function without arithmetic of its own, such as ``linalg.multiply``, may stay apart.)
part = _compiled(forceinline=True)


@inlined
def exp2(x):
    """Return 2^x for float32 x <= 127, relative error below 6e-5; zero below -126.

    The integer part of x becomes the exponent bits, the rest a polynomial of degree four: 0.25 ns
    an element, where ``np.exp`` in a kernel takes 3.7 ns.
    """
    clamped = x if x > np.float32(-126.0) else np.float32(-126.0)
    exponent = np.int32(clamped + np.float32(127.5))
    f = clamped + np.float32(127.0) - np.float32(exponent)
    power = np.float32(0.00961812910762848)
    power = power * f + np.float32(0.0555041086648216)
    power = power * f + np.float32(0.240226506959101)
    power = power * f + np.float32(0.693147180559945)
    power = power * f + np.float32(1.0)
    return power * np.int32(exponent << np.int32(23)).view(np.float32)
