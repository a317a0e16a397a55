"""``symsmooth reproduce`` and ``symsmooth benchmark``, which join it by entry points ``symsmooth.commands``."""
