"""What a run was: date, code, command, versions, machine."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import symsmooth
from symsmooth import __version__

ROOT = Path(symsmooth.__file__).parent  # of what is measured
_PACKAGES = ("numpy", "scipy", "scikit-image", "Pillow", "matplotlib")


@dataclass(frozen=True)
class Provenance:
    """Facts about a run."""

    date: str
    version: str
    commit: str
    command: str
    packages: str
    machine: str
    jobs: int
    seconds: float

    def facts(self) -> dict[str, str]:
        """Return them in words."""
        return {
            "Date": self.date,
            "symsmooth": f"{self.version}{f', commit {self.commit}' if self.commit else ''}",
            "Command": self.command,
            "Machine": self.machine,
            "Versions": self.packages,
            "Noise": "clean + σ N(0, 1), NumPy's default_rng; the ten pictures have seeds 0 to 9 in the "
            "order of their names, trials 0, 1, 2, and so on; nothing is clipped or rounded",
            "Time": f"{duration(self.seconds)} with {self.jobs} process{'es' if self.jobs > 1 else ''}, "
            "without measurements that were there already",
        }


def provenance(command: str, jobs: int, seconds: float) -> Provenance:
    """Collect the facts; neither paths nor the machine's name are."""
    versions = [f"Python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    packages = ", ".join(versions)
    version = __version__
    return Provenance(now, version, _commit(), command, packages, _machine(), jobs, seconds)


def duration(seconds: float) -> str:
    """Return seconds in words: 40 s, 3 min 20 s, 1 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def command_line(arguments: list[str]) -> str:
    """Return the command as given; of folders only the last name."""
    words = [Path(word).name if "/" in word or "\\" in word else word for word in arguments]
    return " ".join(["symsmooth", *words])


def _commit() -> str:
    """Return the commit, with a + if the package was changed since; "" outside its repository."""
    try:
        _git(
            "ls-files", "--error-unmatch", "__init__.py"
        )  # an environment inside another repository
        changed = _git("status", "--porcelain", "--untracked-files=no", ".")
        return _git("describe", "--always", "--exclude=*") + "+" * bool(changed)
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*words: str) -> str:
    command = ["git", "-C", str(ROOT), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


def _machine() -> str:
    from symsmooth.core.parallel import default_workers

    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        pass
    return f"{name}, {default_workers()} cores, {platform.system()} ({sys.byteorder} endian)"
