"""Commands: each with its output in a log, a time limit, and no child left behind."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# What a step runs must not depend on how the job was started: by Bazel, in an environment, with a backend chosen.
_FOREIGN = ("PYTHON", "RUNFILES_", "BUILD_", "TEST_", "JAX_", "XLA_", "TREADLE_")
# How the developer has ./bazelw find its tools; that is theirs to say.
_BAZELW = ("TREADLE_PYTHON", "TREADLE_JAXLIB", "TREADLE_BAZEL", "TREADLE_NO_INSTALL", "TREADLE_WHEELHOUSE")

TAIL_LINES = 30

# A command: a program and its arguments.
Words = list[str | Path]


def environment(extra: Mapping[str, str] | None = None, bazel: bool = False) -> dict[str, str]:
    """The variables for a child: the caller's without those that choose a Python, a backend or a Bazel run.

    With `bazel` the settings of ./bazelw stay.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if (bazel and name in _BAZELW) or not (name.startswith(_FOREIGN) or name == "VIRTUAL_ENV")
    }
    return kept | dict(extra or {})


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    output: str
    seconds: float
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and not self.timed_out

    def tail(self, lines: int = TAIL_LINES) -> str:
        """The end of what it printed."""
        return "\n".join(self.output.rstrip().splitlines()[-lines:])

    def ending(self) -> str:
        """In words, for a report."""
        if self.timed_out:
            return f"was ended after {self.seconds:.0f} s"
        if self.returncode < 0:
            return f"died of the signal {signal.Signals(-self.returncode).name}"
        return f"ended with code {self.returncode}"


def run(
    command: Iterable[str | Path],
    log: Path,
    *,
    timeout: float,
    cwd: Path | None = None,
    variables: Mapping[str, str] | None = None,
    bazel: bool = False,
) -> Done:
    """Runs a command; what it prints on either stream is appended to `log` and given back.

    When the time is over, or this process is interrupted, the command and all that it started is ended.
    """
    words = [str(word) for word in command]
    begun = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        settings = [f"{name}={shlex.quote(value)}" for name, value in (variables or {}).items()]
        file.write(f"$ {without_passwords(' '.join([*settings, shlex.join(words)]))}\n".encode())
        file.flush()
        start = file.tell()
        child = subprocess.Popen(
            words,
            cwd=cwd,
            env=environment(variables, bazel=bazel),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        timed_out = False
        try:
            child.wait(timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            if child.returncode is None:
                _end(child)
    with log.open("rb") as file:
        file.seek(start)
        output = file.read().decode(errors="replace")
    return Done(child.returncode, output, time.monotonic() - begun, timed_out)


def without_passwords(text: str) -> str:
    """The text, with nothing before the host of an address."""
    return re.sub(r"(?<=://)[^/@\s]+@", "", text)


def _end(child: subprocess.Popen[bytes], grace: float = 5) -> None:
    """Asks the command's whole process group to end, then makes it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        try:
            child.wait(grace)
        except subprocess.TimeoutExpired:
            continue
    child.wait()
