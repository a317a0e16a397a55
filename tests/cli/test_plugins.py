"""Commands of other packages join by entry points."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from symsmooth.cli import app, console
from symsmooth.cli.console import KNOWN, OWN, find_plugins

CODE = "from symsmooth.cli import main; main()"


def install(folder: Path, package: str, command: str, source: str) -> None:
    """Put a package with one command into a folder, as pip would."""
    module = package.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir()
    text = f"[console_scripts]\nx = {module}:x\n\n[{console.GROUP}]\n{command} = {module}:run\n"
    (metadata / "entry_points.txt").write_text(text)


def run(folder: Path, *words: str, code: str = CODE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing but symsmooth were installed."""
    monkeypatch.setattr("symsmooth.cli.console.find_plugins", dict)


def main(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    from symsmooth.cli import main

    monkeypatch.setattr(sys, "argv", ["symsmooth", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_command_is_listed_unloaded_and_runs(tmp_path) -> None:
    source = (
        "print('loaded')\ndef run(name: str) -> None:\n    'Greet.'\n    print('hello', name)\n"
    )
    install(tmp_path, "some-other", "greet", source)
    listed = run(tmp_path, "--help")
    assert "greet" in listed.stdout
    assert "Of some-other." in listed.stdout
    assert "loaded" not in listed.stdout
    done = run(tmp_path, "greet", "you")
    assert (done.returncode, done.stdout) == (0, "loaded\nhello you\n")
    assert "Greet." in run(tmp_path, "greet", "--help").stdout


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import nonsense_that_is_not_there", "ModuleNotFoundError: No module named"),
        ("1 / 0", "ZeroDivisionError"),
        ("", "has no attribute 'run'"),
        ("run = 3", "is not a callable object"),
    ],
)
def test_a_broken_command_is_one_line(tmp_path, source, why) -> None:
    install(tmp_path, "some-other", "greet", source)
    assert run(tmp_path, "--help").returncode == 0
    done = run(tmp_path, "greet", "--help")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("symsmooth: error: greet of some-other cannot be loaded: ")
    assert why in line


def test_what_cannot_be_read_and_our_own_names_are_passed_over(tmp_path) -> None:
    (tmp_path / "bad-1.dist-info").mkdir()
    (tmp_path / "bad-1.dist-info" / "entry_points.txt").write_bytes(b"[symsmooth.commands]\n\xff")
    (tmp_path / "odd-1.dist-info").mkdir()
    (tmp_path / "odd-1.dist-info" / "entry_points.txt").write_text("[symsmooth.commands]\nx\n[")
    install(tmp_path, "some-other", "methods", "1 / 0")
    done = run(tmp_path, "methods", "nlm", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["name"] == "nlm"


def test_without_symsmooth_repro_its_commands_say_what_to_install(
    no_plugins, monkeypatch, capsys
) -> None:
    for name in KNOWN:
        assert main(monkeypatch, name, "--quick", "somewhere") == 2
        told = capsys.readouterr()
        assert told.out == ""
        assert (
            told.err
            == f"symsmooth: error: {name} is in a package of its own: pip install symsmooth-repro\n"
        )
    assert main(monkeypatch, "--help") == 0
    listed = capsys.readouterr().out
    assert not any(name in listed for name in KNOWN)


def test_a_shell_completes_without_complaint_what_is_not_installed(no_plugins) -> None:
    group: Any = typer.main.get_command(app)
    context = group.make_context("symsmooth", [], resilient_parsing=True)
    command = group.get_command(context, "reproduce")
    assert command.make_context("reproduce", ["--"], parent=context, resilient_parsing=True)


def test_our_packages_bring_what_is_known_of_them() -> None:
    found = find_plugins()
    group: Any = typer.main.get_command(app)
    loaded = group.load_commands()
    for name, (package, told) in KNOWN.items():
        assert found[name].package == package
        assert loaded[name].help == told
    for name, (_, told) in OWN.items():
        first = " ".join(loaded[name].help.partition("\n\n")[0].split())
        assert first == told


def test_entry_points_are_those_of_the_standard_library() -> None:
    from importlib.metadata import entry_points

    standard = {each.name: each.value for each in entry_points(group=console.GROUP)}
    assert {name: each.place for name, each in find_plugins().items()} == standard


def test_the_help_loads_no_other_package(tmp_path) -> None:
    tell = "import atexit, sys; atexit.register(lambda: print('symsmooth_repro' in sys.modules)); "
    assert run(tmp_path, "--help", code=tell + CODE).stdout.splitlines()[-1] == "False"
