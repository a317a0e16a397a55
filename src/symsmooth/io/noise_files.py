"""Models of noise as files, to be used for other pictures of the same camera."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..noise import Noise
from ..noise.saved import MAX_CHARACTERS, from_json, to_json
from .base import FileError, atomic_write, naming_errors, one_line

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
    try:
        with atomic_write(file) as handle:
            handle.write(text.encode("utf-8"))
    except OSError as error:
        raise FileError(f"{file}: cannot be written: {one_line(error)}") from error


def check_noise_target(file: Path) -> None:
    """Refuse a place where no noise model can be written, before any work."""
    if file.suffix.lower() != ENDING:
        raise FileError(f"{file}: a noise model is JSON; name it {file.with_suffix(ENDING)}")
    if not file.parent.is_dir():
        raise FileError(f"{file}: there is no folder {file.parent}; make it first")
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
        with open(file, "rb", opener=_without_waiting) as handle:
            if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
                raise FileError("is no file")
            content = handle.read(MAX_CHARACTERS + 1)
        try:
            return from_json(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise FileError("is no noise model: it is no text") from error
        except ValueError as error:
            raise FileError(str(error)) from error


def _without_waiting(name: str, flags: int) -> int:
    """Open a file; a pipe must not keep us waiting."""
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
