"""The command line: parses, asks ``app`` for the work, shows progress and prints.

``files`` (denoise, noise), ``blend``, ``pages`` (compare, demo), ``methods`` and ``serve`` hold the
commands, which ``commands`` loads when they are used, as those of other packages; ``arguments`` are what
they share, ``console`` prints.
At the top nothing but typer and the standard library is imported, so that ``--help`` is instant.
"""

from .commands import app, main

__all__ = ["app", "main"]
