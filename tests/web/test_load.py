"""Fifty people at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_fifty_visitors_are_served_in_turn_and_leave_nothing() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "load.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
