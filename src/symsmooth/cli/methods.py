"""``symsmooth methods``: what there is to choose from."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import methods as registry
from .arguments import AsJson, complete_method, find_method
from .console import handling_errors

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Methods; by default all.", autocompletion=complete_method),
]


def methods(names: Names = None, as_json: AsJson = False) -> None:
    """List the methods, their own options, defaults and choices; of named ones also what options do."""
    with handling_errors(as_json):
        listed = [find_method(name) for name in names or registry.METHODS]
    if as_json:
        for method in listed:
            options = {option.key: option.default for option in method.options.values()}
            row = {
                "name": method.name,
                "summary": method.summary,
                "options": options,
                "choices": {o.key: o.choices for o in method.options.values() if o.choices},
            }
            typer.echo(json.dumps(row, default=str))
        return

    table = Table("method", "what it does", "its own options and defaults", show_lines=True)
    for method in listed:
        lines = []
        for option in method.options.values():
            default = "none" if option.default is None else option.default
            choices = f" (of {', '.join(option.choices)})" if option.choices else ""
            about = f": {option.help}" if names and option.help else ""
            lines.append(f"{option.key}={default}{choices}{about}")
        label = f"{method.name} (default)" if method.name == registry.DEFAULT else method.name
        table.add_row(Text(label), Text(method.summary), Text("\n".join(lines)))
    Console().print(table)
