"""What the command line calls the options that messages of the application speak of."""

from __future__ import annotations

from collections.abc import Mapping

from ..app.job_warnings import JobWarning, Remedy

# Remedies for what is doubtful; {value} is what goes with one: a number, or where to write.
REMEDIES: Mapping[Remedy, str] = {
    "level": "give its level, such as --sigma {value}",
    "coarse": "--noise correlated",
    "region": "--noise-from X,Y,W,H",
    "this-region": "--noise-from {value}",
    "stronger": "--strength {value}",
    "floats": "write --dtype float32{value}",
    "series": "--time",
    "resume": "--resume",
}
# Options whose flag is not their name with two dashes.
_FLAGS = {
    "out": "-o",
    "series": "--time",
    "frame": "--frame N",
    "region": "--noise-from",
    "model": "--noise FILE.json",
}


def flag_of(option: str) -> str:
    """Return the flag of an option.

    Examples
    --------
    >>> flag_of("dtype"), flag_of("series")
    ('--dtype', '--time')
    """
    return _FLAGS.get(option, f"--{option.replace('_', '-')}")


def with_flags(error: BaseException) -> str:
    """Return the message of an error, with the flags of the options that it is about.

    Examples
    --------
    >>> from symsmooth.app.errors import UsageError
    >>> with_flags(UsageError("a video keeps its depth; leave the dtype out", "dtype"))
    'a video keeps its depth; leave the dtype out (--dtype)'
    """
    flags = ", ".join(map(flag_of, getattr(error, "options", ())))
    return f"{error} ({flags})" if flags else str(error)


def said(message: str | JobWarning) -> str:
    """Return a message, or a warning with its remedies as flags."""
    return message if isinstance(message, str) else message.say(REMEDIES)
