"""``symsmooth methods``: what there is to choose from."""

from __future__ import annotations

import json

import typer

from .arguments import AsJson


def methods(as_json: AsJson = False) -> None:
    """List the methods, their own options, defaults and choices."""
    from ..methods import DEFAULT, METHODS

    if as_json:
        for method in METHODS.values():
            options = {option.flag: option.default for option in method.options.values()}
            row = {
                "name": method.name,
                "summary": method.summary,
                "options": options,
                "choices": {o.flag: o.choices for o in method.options.values() if o.choices},
            }
            typer.echo(json.dumps(row, default=str))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("method", "what it does", "its own options and defaults", show_lines=True)
    for method in METHODS.values():
        lines = []
        for option in method.options.values():
            default = "none" if option.default is None else option.default
            choices = f" (of {', '.join(option.choices)})" if option.choices else ""
            lines.append(f"{option.flag} {default}{choices}")
        label = f"{method.name} (default)" if method.name == DEFAULT else method.name
        table.add_row(Text(label), Text(method.summary), Text("\n".join(lines)))
    Console().print(table)
