"""Every environment variable of Treadle, in one table.

A knob is read where it is used, each time, so that setting it in a running process (or a test)
works. `python -m treadle.compiler --knobs` prints the table.
"""

from __future__ import annotations

import dataclasses
import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from treadle.compiler.errors import CompileError, StatusCode

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Knob(Generic[T]):
    """One environment variable.

    Attributes:
      name: the variable.
      default: the value when it is unset or empty.
      parse: from its text to its value; raises ValueError with what is allowed.
      values: what may be written, for the table.
      documentation: what it does.
    """

    name: str
    default: T
    parse: Callable[[str], T]
    values: str
    documentation: str

    def get(self) -> T:
        """The value now.

        Raises:
          CompileError: INVALID_ARGUMENT if the variable holds something else.
        """
        text = os.environ.get(self.name, "")
        if not text:
            return self.default
        try:
            return self.parse(text)
        except ValueError:
            raise CompileError(
                StatusCode.INVALID_ARGUMENT,
                f"The environment variable {self.name} is {text!r}; it must be {self.values}.",
            ) from None


def _flag(text: str) -> bool:
    known = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}
    if text.lower() not in known:
        raise ValueError(text)
    return known[text.lower()]


def _between(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value

    return parse


DUMP: Knob[Path | None] = Knob(
    "TREADLE_DUMP",
    None,
    Path,
    "a folder (made if need be)",
    "Writes, for every compile, a folder with the program's bytes, the product of every stage, and the error if there "
    "was one.",
)
CHECK: Knob[bool] = Knob(
    "TREADLE_CHECK",
    False,
    _flag,
    "0 or 1",
    "Verifies the program after every pass over the tensor IR, and compares what it computes on random inputs, by the "
    "NumPy interpreter, before and after. Slow.",
)
DEBUG: Knob[int] = Knob(
    "TREADLE_DEBUG",
    0,
    _between(0, 3),
    "0, 1, 2 or 3",
    "Writes to stderr: 1 a line per compile, 2 also the time of every stage, 3 also the size of its product.",
)
CACHE: Knob[bool] = Knob(
    "TREADLE_CACHE",
    True,
    _flag,
    "0 or 1",
    "Whether compiled programs and kernels are kept on disk, and looked for there. Read once a process.",
)
CACHE_DIR: Knob[Path | None] = Knob(
    "TREADLE_CACHE_DIR",
    None,
    Path,
    "a folder (made if need be)",
    "Where they are kept, instead of `treadle` in the user's cache folder. Read once a process.",
)
CACHE_LIMIT_MB: Knob[int] = Knob(
    "TREADLE_CACHE_LIMIT_MB",
    512,
    _between(1, 1 << 20),
    "a number of megabytes, at least 1",
    "How much is kept; what was not used for longest goes first. Read once a process.",
)
NUM_THREADS: Knob[int] = Knob(
    "TREADLE_NUM_THREADS",
    0,
    _between(0, 4096),
    "a number; 0 means as many as the process may use CPUs",
    "Threads that one client computes with, matrix library included. Read by the plugin.",
)
NUM_DEVICES: Knob[int] = Knob(
    "TREADLE_NUM_DEVICES",
    1,
    _between(1, 1024),
    "a number, at least 1",
    "Devices that one client offers. Read by the plugin.",
)
HANDSHAKE_TIMEOUT: Knob[int] = Knob(
    "TREADLE_HANDSHAKE_TIMEOUT",
    300,
    _between(1, 7 * 24 * 3600),
    "a number of seconds, at least 1",
    "How long a process of a distributed program waits for the others. Read by the plugin.",
)
PERF_MAP: Knob[bool] = Knob(
    "TREADLE_PERF_MAP",
    False,
    _flag,
    "0 or 1",
    "Tells Linux's perf the names of compiled functions, in /tmp/perf-PID.map. Read by the plugin.",
)
ONEDNN_PATH: Knob[Path | None] = Knob(
    "TREADLE_ONEDNN_PATH",
    None,
    Path,
    "a file, or none",
    "The oneDNN library to use instead of the one beside the plugin; with `none`, Treadle's own loops do its work. "
    "Read by the plugin.",
)
PLUGIN_PATH: Knob[Path | None] = Knob(
    "TREADLE_PLUGIN_PATH",
    None,
    Path,
    "a file",
    "The plugin to load instead of the one that is installed.",
)

ALL: tuple[Knob[Path | None] | Knob[bool] | Knob[int], ...] = (
    DUMP,
    CHECK,
    DEBUG,
    CACHE,
    CACHE_DIR,
    CACHE_LIMIT_MB,
    NUM_THREADS,
    NUM_DEVICES,
    HANDSHAKE_TIMEOUT,
    PERF_MAP,
    ONEDNN_PATH,
    PLUGIN_PATH,
)


def table(width: int = 100) -> str:
    """The knobs as text for people."""
    lines = []
    for knob in ALL:
        default = (
            "unset"
            if knob.default is None
            else str(int(knob.default) if isinstance(knob.default, bool) else knob.default)
        )
        lines.append(f"{knob.name}  ({knob.values}; default {default})")
        lines += textwrap.wrap(knob.documentation, width, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)
