"""The README's Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_python_blocks_run(block, capsys) -> None:
    names: dict[str, object] = {}
    exec(compile(block, str(README), "exec"), names)
    assert capsys.readouterr().out


def test_commands_of_the_readme_exist() -> None:
    from symsmooth.cli import app

    commands = {info.callback.__name__ for info in app.registered_commands if info.callback}
    used = set(re.findall(r"^symsmooth (\w+)", README.read_text(), re.MULTILINE))
    assert used
    assert used <= commands


def test_links_and_pictures_are_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text()):
        assert (README.parent / target).exists(), target
