"""The command: what it says, what it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from symsmooth import cli

from ..serving import Server


def test_without_its_libraries_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = CliRunner().invoke(cli.app, ["serve"])
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "pip install 'symsmooth[web]'" in line


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    """The library loads no server, and the server no library of numbers: its workers do."""
    code = (
        "import sys, symsmooth, symsmooth.cli, symsmooth.web.guard; "
        "print([m for m in ('starlette', 'uvicorn') if m in sys.modules]); "
        "import symsmooth.web.server, symsmooth.web.handlers; "
        "print([m for m in ('numpy', 'scipy', 'matplotlib', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]


def test_a_port_in_use_is_one_line(server: Server) -> None:
    result = CliRunner().invoke(cli.app, ["serve", "--no-browser", "--port", str(server.port)])
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert "cannot listen at" in line
