"""The command-line reference, made of the commands themselves and of the methods' records."""

from __future__ import annotations

from typing import Any

import typer

from symsmooth import METHODS
from symsmooth.cli import app


def commands() -> str:
    """Return all commands with their arguments and options, as Markdown."""
    group: Any = typer.main.get_command(app)
    return "\n\n".join(_command(name, each) for name, each in group.load_commands().items())


def methods() -> str:
    """Return all methods with the options that are their own, as Markdown."""
    return "\n\n".join(_method(name) for name in METHODS)


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = " ".join(["symsmooth", name, *map(_placeholder, arguments), "[OPTIONS]"])
    rows = [(p.metavar or p.name.upper(), p.help or "", "") for p in arguments]
    rows += [(_flags(p), p.help or "", _default(p)) for p in options if p.name != "help"]
    lines = [f"### {name}", "", command.help or "", "", f"`{usage}`", ""]
    return "\n".join(lines + _table(("", "what it is", "default"), rows))


def _placeholder(argument: Any) -> str:
    """Return an argument as usage shows it: IN, IN ... or [NAME ...]."""
    text = argument.metavar or argument.name.upper()
    text += " ..." if argument.nargs == -1 else ""
    return text if argument.required else f"[{text}]"


def _method(name: str) -> str:
    method = METHODS[name]
    rows = [
        (option.key, option.expects, "none" if option.default is None else str(option.default))
        for option in method.options.values()
    ]
    lines = [f"### {name} (method)", "", _escape(method.summary), ""]
    return "\n".join(lines + (_table(("option", "may be", "default"), rows) if rows else []))


def _flags(option: Any) -> str:
    kind = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    return ", ".join(option.opts) + kind


def _default(option: Any) -> str:
    unsaid = option.default is None or option.default is False or callable(option.default)
    return "" if unsaid else str(option.default)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return a Markdown table whose first column is code."""
    lines = [_row(head), _row(("---",) * len(head))]
    return lines + [_row((f"`{first}`", *map(_escape, rest))) for first, *rest in rows]


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _escape(text: str) -> str:
    """Keep Markdown from reading stars, underscores and angle brackets as markup."""
    for sign in "\\*_<[":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
