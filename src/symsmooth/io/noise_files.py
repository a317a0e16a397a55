"""Models of noise as files, to be used for other pictures of the same camera."""

from __future__ import annotations

import os
from pathlib import Path

from ..noise import Noise
from ..noise.saved import MAX_CHARACTERS, from_json, to_json
from .base import FileError, atomic_write, check_place, naming_errors, naming_write_errors

ENDING = ".json"


def save_noise(model: Noise, path: str | os.PathLike[str]) -> None:
    """Keep a model of noise in a file, for other pictures of the same camera.

    Parameters
    ----------
    model : NoiseModel or Rician
        From :func:`estimate_noise`, :func:`calibrate_noise`, or made by hand.
    path : path
        Ends in .json; an existing file is replaced.

    Raises
    ------
    FileError
        If it cannot be written; then ``path`` is as it was.
    ValueError
        If the model is a map of levels, which is that of one picture.

    Examples
    --------
    >>> import os, tempfile, symsmooth
    >>> from symsmooth.noise import PoissonGaussian
    >>> path = os.path.join(tempfile.mkdtemp(), "camera.json")
    >>> camera = PoissonGaussian(gain=(2.2,), offset=(-207.75,), black=(100.0,))
    >>> symsmooth.save_noise(camera, path)
    >>> symsmooth.load_noise(path) == camera
    True
    """
    file = Path(path)
    check_noise_target(file)
    text = to_json(model)
    with naming_write_errors(file), atomic_write(file) as handle:
        handle.write(text.encode("utf-8"))


def check_noise_target(file: Path) -> None:
    """Refuse a place where no noise model can be written, before any work."""
    if file.suffix.lower() != ENDING:
        raise FileError(f"{file}: a noise model is JSON; name it {file.with_suffix(ENDING)}")
    check_place(file)
    if file.is_dir():
        raise FileError(f"{file}: is a folder; give a file name")


def load_noise(path: str | os.PathLike[str]) -> Noise:
    """Return the model of noise that is kept in a file.

    Parameters
    ----------
    path : path
        Written by :func:`save_noise`, or by ``symsmooth noise --save``.

    Returns
    -------
    NoiseModel or Rician
        To be given to :func:`denoise` as ``noise``: the result has the same bits as with the model that
        was saved.

    Raises
    ------
    FileError
        If the file is missing or no noise model; the message is one line.
    """
    file = Path(path)
    with naming_errors(file):
        if file.exists() and not file.is_file():  # a pipe would keep us waiting
            raise FileError("is no file")
        with open(file, "rb") as handle:
            content = handle.read(MAX_CHARACTERS + 1)
        try:
            return from_json(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise FileError("is no noise model: it is no text") from error
        except ValueError as error:
            raise FileError(str(error)) from error
