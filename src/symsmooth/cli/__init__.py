"""The command line: parses, asks ``app`` for the work, shows progress and prints.

``files`` (denoise, noise), ``blend``, ``pages`` (compare, demo), ``methods`` and ``serve`` hold the
commands, which ``commands`` loads when they are used, as those of other packages; ``arguments`` are what
they share, ``console`` prints.
At the top nothing but typer and the standard library is imported, so that ``--help`` is instant.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ..app.errors import UsageError, ending_on_signals
from .commands import TYPER_ERROR, PlainGroup, describe_usage_error
from .console import error_message, print_error, print_stopped, with_flags

app = typer.Typer(
    cls=PlainGroup,
    help="Denoise images without training.",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; every error is one line, never a traceback."""
    try:
        with ending_on_signals():
            code = app(standalone_mode=False, prog_name="symsmooth") or 0
    except (KeyboardInterrupt, typer.Abort) as error:
        code = print_stopped(error)
    except TYPER_ERROR as error:
        code = print_error(describe_usage_error(error), 2)
    except UsageError as error:
        code = print_error(with_flags(error), 2)
    except BrokenPipeError:  # as in `symsmooth methods | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:
        code = print_error(error_message(error), 1)
    sys.exit(code)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: also print which kernels are used.")
    ] = False,
) -> None:
    if version:
        from .. import __version__

        typer.echo(f"symsmooth {__version__}")
        if verbose:
            from .. import _native

            others = ", ".join(_native.instruction_sets())
            typer.echo(f"kernels for {_native.instruction_set()} (available: {others})")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)
