"""GSF-W, our step beyond the paper, and :func:`~symsmooth.denoise`, the front door that leads to it."""
