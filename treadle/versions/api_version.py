"""The version of a C interface of XLA's: a major number, and a minor one that only adds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, order=True, slots=True)
class ApiVersion:
    """A version; later ones are greater."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads "0.114". Raises ValueError if it is nothing of that form."""
        match = re.fullmatch(r"(\d+)\.(\d+)", text)
        if match is None:
            raise ValueError(f"{text!r} is no version of the form 0.114")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def from_header(cls, text: str, prefix: str) -> Self:
        """The version that a header defines as `<prefix>_MAJOR` and `<prefix>_MINOR`.

        Raises:
          ValueError: it defines one of them not at all or several times.
        """
        numbers = []
        for part in ("MAJOR", "MINOR"):
            found = re.findall(rf"^[ \t]*#[ \t]*define[ \t]+{prefix}_{part}[ \t]+(\d+)", text, re.MULTILINE)
            if len(found) != 1:
                raise ValueError(f"the header defines {prefix}_{part} {len(found)} times, not once")
            numbers.append(int(found[0]))
        return cls(*numbers)
