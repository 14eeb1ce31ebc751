"""Starts the processes of a distributed program, and makes sure that they end."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from treadle.plugin import library_path

TIME_LIMIT = 60.0


@dataclasses.dataclass
class Process:
    """One process: what it answered and what it printed.

    Attributes:
      answer: what its worker returned; None when it raised or was killed.
      output: its stdout and stderr.
      code: its exit code, negative for a signal.
    """

    answer: Any
    output: str
    code: int


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(
    worker: str,
    environments: Sequence[Mapping[str, str]],
    folder: Path,
    *,
    expect_answers: bool = True,
) -> list[Process]:
    """Runs `worker` of workers.py in one process for each environment, all of one distributed program.

    A process that has answered stays until all have, so that none takes the coordination service away early.

    Args:
      worker: the function's name.
      environments: variables for each process, besides the common ones.
      folder: for answers and output.
      expect_answers: fail, with everybody's output, unless all of them answer and exit with code 0.
    """
    port, count = free_port(), len(environments)
    running: list[subprocess.Popen[bytes]] = []
    answers = [folder / f"answer-{i}.json" for i in range(count)]
    outputs = [folder / f"output-{i}.txt" for i in range(count)]
    try:
        for index, environment in enumerate(environments):
            with outputs[index].open("wb") as output:
                running.append(
                    subprocess.Popen(
                        _command(worker, port, count, index, answers[index]),
                        env=_environment(environment),
                        stdin=subprocess.PIPE,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,  # a group of its own, to end it with what it started
                    )
                )
        deadline = time.monotonic() + TIME_LIMIT

        def settled() -> bool:
            done = [(a.exists(), p.poll()) for a, p in zip(answers, running, strict=True)]
            lost = expect_answers and any(not answered and code is not None for answered, code in done)
            return lost or all(answered or code is not None for answered, code in done)

        _wait(deadline, settled)
        for process in running:
            assert process.stdin is not None
            process.stdin.close()  # what a process that has answered waits for
        _wait(deadline, lambda: all(p.poll() is not None for p in running))
    finally:
        for process in running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    results = [
        Process(
            json.loads(answer.read_text()) if answer.exists() else None,
            output.read_text(errors="replace"),
            process.returncode,
        )
        for answer, output, process in zip(answers, outputs, running, strict=True)
    ]
    if expect_answers:
        assert all(r.code == 0 and r.answer is not None for r in results), describe(results)
    return results


def describe(results: Sequence[Process]) -> str:
    """Everything that is known, for a failing test."""
    return "\n".join(f"---- process {i}: code {r.code}, answer {r.answer}\n{r.output}" for i, r in enumerate(results))


def _wait(deadline: float, done: Any) -> None:
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "TREADLE_", "PJRT_"))}
    return {
        **variables,
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "JAX_PLATFORMS": "treadle",
        "TREADLE_PLUGIN_PATH": str(library_path()),
        **own,
    }


def _command(worker: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.multihost.workers", worker, *map(str, arguments)]
