"""What all figures share: their colours, and what is said where matplotlib is missing."""

from __future__ import annotations

BLUE, ORANGE, GREY = "#1f5fbf", "#b54708", "#667085"


class MissingMatplotlib(ValueError):
    """Plots are asked for and matplotlib is not installed."""


def require_matplotlib() -> None:
    """Say what to install if plots cannot be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingMatplotlib(
            "plots need matplotlib, which is not installed; run: pip install 'symsmooth[plots]'"
        ) from error
