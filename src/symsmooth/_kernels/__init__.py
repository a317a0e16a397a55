"""Numba loops and nothing else.

A kernel takes contiguous arrays and fills arrays it is given; it checks nothing and has no
defaults.  All kernels release the GIL and none starts threads: :mod:`symsmooth.tiles` does.
Images come as ``(z, y, x, channels)``; a flat picture is a volume of one slice, so there is one
loop for two and three dimensions.  Each kernel has a literal NumPy twin in ``tests/oracles.py``.
"""
