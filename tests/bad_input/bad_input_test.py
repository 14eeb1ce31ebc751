"""Damaged programs end in an error, never in a dead or hanging process.

Each runs in a child. `corpus/` holds programs that MLIR died of when it saw them.
"""

from __future__ import annotations

import collections
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.bad_input.mutants import mutate
from tests.compiler.frontend.cases import Case
from tests.compiler.frontend.programs import artifact

HERE = Path(__file__).parent
CORPUS = sorted((HERE / "corpus").iterdir())

# Seconds without a sign of life. MLIR's endless loops allocate; a slow machine needs a second.
PATIENCE = 60

X = np.ones((4, 6), np.float32)
SOURCES: dict[str, Case] = {
    "loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) @ c.T @ c + i, x), [X]),
    "branches": (lambda i, x: lax.switch(i, [lambda y: y * 2, jnp.negative, lambda y: y.at[i].set(1.0)], x), [1, X]),
    "convolution": (
        jax.grad(lambda w, x: lax.conv_general_dilated(x, w, (1, 1), "SAME").sum()),
        [np.ones((2, 1, 3, 3), np.float32), np.ones((1, 1, 8, 8), np.float32)],
    ),
    "random": (lambda k: jax.random.normal(jax.random.wrap_key_data(k), (7,)), [np.array([3, 7], np.uint32)]),
    "lapack": (lambda x: jnp.linalg.eigh(x.T @ x), [X]),
}  # fmt: skip
MUTANTS_PER_FILE = 50  # of 5 programs, as bytecode and as text: 500


def children(arguments: list[str]) -> tuple[dict[str, str], int | None]:
    """Runs replay.py; returns name -> outcome, and how it died (None: of impatience, 0: it did not)."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, str(HERE / "replay.py"), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment) as process:
        assert process.stdout is not None
        output = b""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if not select.select([process.stdout], [], [], 1)[0]:
                continue
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                break
            output += chunk
            deadline = time.monotonic() + PATIENCE
        else:
            process.kill()
            process.wait()
            return _outcomes(output), None
    return _outcomes(output), process.returncode


def _outcomes(output: bytes) -> dict[str, str]:
    lines = output.decode().splitlines()
    return {name: outcome for name, _, outcome in (line.partition(" ") for line in lines)}


def test_corpus():
    outcomes, code = children(["pack", *map(str, CORPUS)])
    assert code == 0, f"the process died ({code}) of {list(outcomes)[-1]}"
    assert set(outcomes) == {path.name for path in CORPUS}
    exhausted = {name for name, outcome in outcomes.items() if outcome == "RESOURCE_EXHAUSTED"}
    assert exhausted == {"calls_that_double_60_times.mlir"}
    assert {outcome for name, outcome in outcomes.items() if name not in exhausted} == {"INVALID_ARGUMENT"}


@pytest.mark.parametrize("form", ["bytecode", "text"])
@pytest.mark.parametrize("name", SOURCES)
def test_mutants(name, form, tmp_path):
    function, arguments = SOURCES[name]
    if form == "bytecode":
        path = tmp_path / f"{name}.mlirbc"
        path.write_bytes(artifact(function, *arguments))
    else:
        path = tmp_path / f"{name}.mlir"
        module = jax.jit(function).lower(*arguments).compiler_ir()
        path.write_text(module.operation.get_asm(enable_debug_info=True))
    first = sum(name.encode()) * 1000
    outcomes, code = children(["pack", str(path), "--seeds", str(first), str(first + MUTANTS_PER_FILE)])
    assert code == 0, f"the process died ({code}) of {list(outcomes)[-1]}"
    assert len(outcomes) == MUTANTS_PER_FILE
    kinds = collections.Counter(outcome.split(" ")[0] for outcome in outcomes.values())
    assert set(kinds) <= {"OK", "INVALID_ARGUMENT", "UNIMPLEMENTED", "RESOURCE_EXHAUSTED"}, outcomes


def test_mutants_are_repeatable_and_different():
    program = artifact(lambda x: x + 1, X)
    assert mutate(program, 5) == mutate(program, 5)
    assert len({mutate(program, seed) for seed in range(50)}) > 40
