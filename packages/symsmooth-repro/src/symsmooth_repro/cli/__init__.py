"""``symsmooth reproduce`` and ``symsmooth benchmark``: entry points of the group ``symsmooth.commands``."""
