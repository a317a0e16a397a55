"""How many of our own doors one small PNG goes through: calls between modules of symsmooth, traced.

Run: python benchmarks/crossings.py [--chain] [options of `symsmooth denoise`]

A crossing is a call of a function of one of our modules from another one (code of others in between is
looked through).  Imports are not counted, nor is what threads do: there is one worker.  Calls in loops of
the numerics are many and say little; so doors (distinct pairs of functions) are told too, and apart from
the numerics those of the shell: command line, app, files, registry.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType

import numpy as np
from PIL import Image

NUMERICS = {"core", "noise", "filters", "mixture", "gsfw", "baselines"}

Door = tuple[str, str]  # module.function that calls, and that is called


class Trace:
    """Counts the calls between modules of symsmooth, in the order of their first time."""

    def __init__(self) -> None:
        self.doors: Counter[Door] = Counter()
        self.modules: set[str] = set()
        self._generators: set[FrameType] = set()  # being resumed is no call

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Hear of a call."""
        if event != "call" or not _is_ours(frame) or frame in self._generators:
            return
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            self._generators.add(frame)
        caller = frame.f_back
        while caller is not None and not _is_ours(caller):
            if caller.f_code.co_filename.startswith("<frozen importlib"):
                return
            caller = caller.f_back
        if caller is not None and _module(caller) != _module(frame):
            self.doors[_name(caller), _name(frame)] += 1
            self.modules |= {_module(caller), _module(frame)}


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_ours(frame: FrameType) -> bool:
    own = _module(frame).partition(".")[0] == "symsmooth"
    return own and frame.f_code.co_name != "<module>"


def _name(frame: FrameType) -> str:
    return f"{_module(frame).removeprefix('symsmooth.')}.{frame.f_code.co_qualname}"


def _is_numeric(name: str) -> bool:
    return name.partition(".")[0] in NUMERICS


def trace(options: list[str]) -> Trace:
    """Denoise a PNG of 48 x 40 pixels through the command line, in this process."""
    from symsmooth import cli

    noisy = np.clip(np.random.default_rng(0).normal(120, 20, (40, 48)), 0, 255)
    heard = Trace()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.png", Path(folder) / "out.png"
        Image.fromarray(noisy.astype(np.uint8)).save(source)
        sys.argv = ["symsmooth", "denoise", str(source), "-o", str(target), "--workers", "1"]
        sys.argv += [*options, "--quiet"]
        sys.setprofile(heard)
        try:
            cli.main()
        except SystemExit:
            pass
        finally:
            sys.setprofile(None)
        assert target.exists(), "it failed"
    return heard


def main() -> None:
    """Print the counts, and with --chain every door in the order of its first use."""
    options = sys.argv[1:]
    with_chain = "--chain" in options
    heard = trace([option for option in options if option != "--chain"])
    doors = heard.doors
    shell = {
        door: n for door, n in doors.items() if not (_is_numeric(door[0]) and _is_numeric(door[1]))
    }
    for door, n in doors.items() if with_chain else ():
        print(f"{n:6d}  {door[0]} -> {door[1]}")
    print(f"crossings: {sum(doors.values())} by {len(doors)} doors of {len(heard.modules)} modules")
    print(f"of the shell: {sum(shell.values())} by {len(shell)} doors")


if __name__ == "__main__":
    main()
