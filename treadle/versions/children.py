"""Runs a module of Treadle in a child process, where a foreign library or environment cannot hurt the caller.

The child may be another environment's interpreter. It imports this Treadle, whatever it has installed
itself, and answers with one JSON object as the last line of its standard output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SECONDS = 60.0

_ROOT = str(Path(__file__).absolute().parents[2])
_MAIN = (
    "import sys, importlib; sys.path.insert(0, sys.argv[1]); importlib.import_module(sys.argv[2]).answer(sys.argv[3:])"
)


class ChildError(Exception):
    """A child that gave no answer. Its text says what happened, for a sentence.

    Attributes:
      output: what the child had written to standard error.
    """

    def __init__(self, message: str, output: str = ""):
        super().__init__(message)
        self.output = output


class NotStartedError(ChildError):
    """The interpreter cannot be run at all."""


def run(
    module: str,
    *arguments: str,
    python: str = sys.executable,
    environment: Mapping[str, str] | None = None,
    timeout: float = SECONDS,
) -> tuple[dict[str, Any], str]:
    """The answer of `module.answer(arguments)`, and what the child wrote to standard error.

    Raises:
      ChildError: it could not be started, crashed, ended without an answer or not in time.
    """
    # -P: what lies in the caller's folder is not imported.
    command = [python, "-P", "-c", _MAIN, _ROOT, module, *arguments]
    # Neither which backend the caller selected nor how much JAX logs may change the answer.
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "TF_CPP_"))}
    try:
        done = subprocess.run(
            command,
            env=variables | {"PYTHONDONTWRITEBYTECODE": "1"} | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        written = error.stderr.decode("utf-8", "replace") if isinstance(error.stderr, bytes) else error.stderr or ""
        raise ChildError(f"did not end within {timeout:g} s", written) from None
    except OSError as error:
        raise NotStartedError(f"cannot be started: {python}: {error.strerror}") from None
    if done.returncode < 0:
        raise ChildError(f"crashed ({_signal_name(-done.returncode)})", done.stderr)
    last = done.stdout.strip().rpartition("\n")[2]
    try:
        answer = json.loads(last)
    except ValueError:
        said = done.stderr.strip().rpartition("\n")[2] or "nothing"
        raise ChildError(
            f"ended with code {done.returncode} and no answer; its last words: {said}", done.stderr
        ) from None
    if not isinstance(answer, dict):
        raise ChildError("answered with something that is no object", done.stderr)
    return answer, done.stderr


def reply(content: Mapping[str, Any]) -> None:
    """Writes the answer; called in the child."""
    print("\n" + json.dumps(content), flush=True)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
