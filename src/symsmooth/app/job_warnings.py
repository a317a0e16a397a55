"""What is doubtful about a result: a code, and words that each surface says with controls of its own.

A remedy is named by what it does, in braces: ``{coarse}`` is a flag on the command line and "Coarse noise"
on the page.  So nobody has to find the options of the command line in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Code = Literal[
    "almost-nothing", "noise-left", "texture", "units", "unchanged", "clipped", "metadata", "rounding",
    "bilevel", "streams", "frames", "kept",
]  # fmt: skip
Remedy = Literal[
    "level", "coarse", "region", "this-region", "stronger", "floats", "series", "resume"
]  # fmt: skip

# Where there are no controls; {value} is what goes with a remedy: a number, or where to write.
PLAIN: Mapping[Remedy, str] = {
    "level": "give its level, such as {value}",
    "coarse": "coarse noise",
    "region": "a noise region",
    "this-region": "a noise region at {value}",
    "stronger": "a strength of {value}",
    "floats": "write float32{value}",
    "series": "time as a series",
    "resume": "resuming",
}
_REMEDY = re.compile(rf"\{{({'|'.join(PLAIN)})\}}")


@dataclass(frozen=True)
class JobWarning:
    """A warning about a result.

    Examples
    --------
    >>> warning = JobWarning("texture", "it may be texture; {coarse} removes all of it")
    >>> str(warning), warning.remedies
    ('it may be texture; coarse noise removes all of it', ('coarse',))
    >>> warning.say({"coarse": "Coarse noise"})
    'it may be texture; Coarse noise removes all of it'
    """

    code: Code  # what it is about; what a program should compare
    message: str  # one line, with remedies in braces
    value: str = ""  # what goes with its remedy: a number, or where to write

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What may help, in the order in which it is named."""
        return tuple(_REMEDY.findall(self.message))

    def say(self, words: Mapping[Remedy, str]) -> str:
        """Return the message with remedies in these words."""

        def name(found: re.Match[str]) -> str:
            remedy: Remedy = found[1]  # type: ignore[assignment]
            return words[remedy].replace("{value}", self.value)

        return _REMEDY.sub(name, self.message)

    def __str__(self) -> str:
        return self.say(PLAIN)
