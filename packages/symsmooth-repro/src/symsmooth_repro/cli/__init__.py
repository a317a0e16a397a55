"""Entry points of the group ``symsmooth.commands``: reproduce, benchmark and explain."""
