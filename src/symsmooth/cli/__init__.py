"""The command line: parses, asks ``app`` for the work, shows progress and prints.

``files`` (denoise, noise, blend), ``methods`` (methods, compare, demo) and ``serve`` hold the commands,
which ``console`` loads when they are used, as those of other packages, and for which it prints;
``arguments`` are what they share.
At the top nothing but typer and the standard library is imported, so that ``--help`` is instant.
"""

from .console import app, main

__all__ = ["app", "main"]
