"""Training-free image denoising for people who have one noisy image.

The way of an image through the package:

1. ``core.image`` brings it to float32 ``(*spatial, channels)`` without units;
2. ``noise`` says which noise it has, and how much;
3. ``core.patches`` makes every pixel a point: its place and the patch around it;
4. points are compared, each with each nearby (``filters.weights``) or with clusters (``mixture.em``);
5. weights are normalised: by rows, by columns then rows, or until both hold (``filters.sinkhorn``);
6. similar points are averaged (``filters``, ``mixture.gsf``) or filtered by what they share (``gsfw``);
7. what was not given, such as the number of clusters, is chosen from the image (``mixture.selection``).

The public names are listed in ``__init__.pyi`` and imported when they are first used.
"""

from typing import Any

import lazy_loader

_PACKAGES = ("io", "noise", "raw")  # found without being imported by name
_find, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    """Return a public name or package; the version is the one that was installed, made of the tag."""
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name in _PACKAGES:
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    return _find(name)
