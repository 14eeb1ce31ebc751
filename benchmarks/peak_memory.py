"""How much memory a program needs while it runs, over what the process held before the call."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import measure, programs

GROUP = "peak memory"


def temporaries() -> programs.Program:
    """Many large intermediate arrays, of which few are needed at a time."""

    def program(x: Any) -> Any:
        for _ in range(8):
            x = jnp.sin(x) @ x
        return x.sum()

    return program, (np.full((1000, 1000), 0.01, np.float32),)


def pairwise() -> programs.Program:
    """A sum over pairs, whose terms need not be kept."""
    points = np.random.default_rng(0).normal(size=(4000, 3)).astype(np.float32)
    return lambda x: jnp.sum(jnp.exp(-jnp.sum((x[:, None] - x[None]) ** 2, -1))), (points,)


PROGRAMS: dict[str, Callable[[], programs.Program]] = {
    "8 products of 1000x1000": temporaries,
    "pairwise kernel sum, 4000 points": pairwise,
    "transformer, training step": programs.transformer_step,
}


def status(field: str) -> int:
    """A field of /proc/self/status, in bytes."""
    for line in pathlib.Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def child(name: str) -> None:
    """Runs the program once in this process and prints by how many bytes the process grew at its peak."""
    device = measure.devices()[0]
    function, arguments = PROGRAMS[name]()
    placed = jax.block_until_ready(jax.device_put(arguments, device))
    compiled = jax.jit(function).lower(*placed).compile()
    pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = status("VmRSS")
    jax.block_until_ready(compiled(*placed))
    print(json.dumps(status("VmHWM") - before))


def spawn(platform: str, name: str) -> float:
    """Runs `child` in a fresh process."""
    command = [sys.executable, "-m", "benchmarks", "--platform", platform, "--child-memory", name]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"a child process failed on {platform}:\n{result.stderr.strip().splitlines()[-1]}")
    return float(json.loads(result.stdout.splitlines()[-1]))


def rows(settings: measure.Settings) -> Iterator[measure.Row]:
    """A row per program."""
    for name in PROGRAMS:
        if settings.wants(GROUP, name) and not (settings.quick and "transformer" in name):
            ours, theirs = (spawn(platform, name) for platform in (settings.platform, "cpu"))
            yield measure.Row(GROUP, name, "MB", ours / 1e6, theirs / 1e6)
