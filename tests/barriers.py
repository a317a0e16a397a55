"""Barriers: another process comes to a place in its work and waits there until the test lets it go on.

A test that sends a signal, or kills, must not bet on where the process is by then, however slow or fast
the machine.  ``code`` defines ``barrier()`` for the process, which says that it has come, and waits, and
``come()``, which does not wait.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

needs_pipes = pytest.mark.skipif(os.name != "posix", reason="named pipes and signals of POSIX")
_PATIENCE = 600  # seconds after which a test has failed: as long as nothing takes on any machine
_MANY = 4096  # bytes that fit into a pipe: as many may pass once it is open
_CODE = """
def come():
    with open({came!r}, "wb", buffering=0) as pipe:
        pipe.write(b".")
def barrier():
    come()
    with open({go!r}, "rb", buffering=0) as pipe:
        pipe.read(1)
"""


class Barrier:
    """A place where processes wait.

    Parameters
    ----------
    folder : Path
        Where its two pipes are made.
    """

    def __init__(self, folder: Path) -> None:
        came, go = folder / "barrier.came", folder / "barrier.go"
        for path in (came, go):
            os.mkfifo(path)
        self._paths = came, go
        self._came = os.open(came, os.O_RDONLY | os.O_NONBLOCK)
        self._go = os.open(go, os.O_RDWR)  # so that nobody finds the pipe without a writer
        self.code = _CODE.format(came=str(came), go=str(go))

    def wait(self, process: subprocess.Popen[Any], count: int = 1) -> None:
        """Wait until processes have come to it so many times; ``process`` must not end meanwhile."""
        for _ in range(int(_PATIENCE / 0.05)):
            if select.select([self._came], [], [], 0.05)[0]:
                count -= len(os.read(self._came, count))
                if count <= 0:
                    return
                time.sleep(0.01)  # a pipe that somebody has written to is always ready
            assert process.poll() is None, f"it ended with {process.returncode} before the barrier"
        raise AssertionError("nobody came to the barrier")

    def open(self) -> None:
        """Let all go on, those that come later too."""
        os.write(self._go, b"." * _MANY)

    def close(self) -> None:
        """Take the pipes away."""
        os.close(self._came)
        os.close(self._go)
        for path in self._paths:
            path.unlink()
