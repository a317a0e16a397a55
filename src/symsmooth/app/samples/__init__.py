"""Three small clean pictures for demo and page, free for everybody.

- ``camera``: a photographer, grey, 320 x 256 pixels of a picture by Lav Varshney (CC0);
- ``astronaut``: Eileen Collins, colour, 320 x 320 pixels of a photograph by NASA (public domain);
- ``galaxies``: grey, 256 x 256 pixels of the Hubble deep field by NASA (public domain).

They are cut from pictures that come with scikit-image, whose documentation says the above of them.
"""

from __future__ import annotations

from importlib.resources import as_file, files

from ...core.image import Array
from ...io import read_image


def sample(name: str) -> Array:
    """Return a picture, 8 bits.

    Examples
    --------
    >>> sample("camera").shape
    (320, 256)
    """
    with as_file(files(__name__) / f"{name}.png") as path:
        return read_image(path).channels_last
