"""How long a compile takes: from lowered StableHLO to a loaded executable, in fresh processes.

Treadle is measured with its kernel cache off, empty, and warm from an earlier process; jaxlib's CPU backend has no such
cache. A child process compiles every program in turn and prints its times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

import jax

from benchmarks import measure, programs

GROUP = "compile"

# The order matters: the first compile of a process pays for what the backend loads.
PROGRAMS: dict[str, Callable[[], programs.Program]] = {
    "x + 1, first in the process": programs.add_one,
    "x + 1, later": lambda: programs.add_one(1000),
    "MLP, loss and gradients": programs.mlp_step,
    "switch, 20 branches": lambda: programs.switch_with(20),
    "RK4, 2 steps unrolled": lambda: programs.unrolled_rk4(2),
    "RK4, 8 steps unrolled": lambda: programs.unrolled_rk4(8),
    "digits, training step": programs.digits_step,
    "transformer, training step": programs.transformer_step,
}


def child(names: list[str]) -> None:
    """Compiles the programs in this process on the platform under test and prints their times as JSON."""
    device = measure.devices()[0]
    times = {}
    for name in names:
        function, arguments = PROGRAMS[name]()
        lowered = jax.jit(function).lower(*jax.device_put(arguments, device))
        start = time.perf_counter()
        lowered.compile()
        times[name] = time.perf_counter() - start
    print(json.dumps(times))


def spawn(platform: str, names: list[str], cache: str | None) -> dict[str, float]:
    """Runs `child` in a fresh process; `cache` is the folder of the kernel cache, or None for none."""
    environment = dict(os.environ)
    environment.pop("JAX_PLATFORMS", None)
    environment.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # pip compiles what it installs; a first import is not what is measured
    if cache is None:
        environment["TREADLE_CACHE"] = "0"
    else:
        environment["TREADLE_CACHE"] = "1"
        environment["TREADLE_CACHE_DIR"] = cache
    command = [sys.executable, "-m", "benchmarks", "--platform", platform, "--child-compile", json.dumps(names)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(
            f"a child process failed to compile on {platform}:\n{result.stderr.strip().splitlines()[-1]}"
        )
    times: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return times


def rows(settings: measure.Settings) -> Iterator[measure.Row]:
    """A row per program and state of the kernel cache."""
    names = [name for name in PROGRAMS if settings.wants(GROUP, name)]
    if settings.quick:
        names = [name for name in names if "transformer" not in name and "8 steps" not in name]
    if not names:
        return
    states: dict[str, list[dict[str, float]]] = {"cache off": [], "cache empty": [], "cache warm": []}
    theirs: list[dict[str, float]] = []
    spawn(settings.platform, names[:1], None)  # leaves the bytecode of a fresh checkout's modules
    for _ in range(1 if settings.quick else 2):
        theirs.append(spawn("cpu", names, None))
        states["cache off"].append(spawn(settings.platform, names, None))
        with tempfile.TemporaryDirectory() as folder:
            states["cache empty"].append(spawn(settings.platform, names, folder))
            states["cache warm"].append(spawn(settings.platform, names, folder))
    for name in names:
        reference = min(times[name] for times in theirs)
        for state, runs in states.items():
            yield measure.Row(
                GROUP, f"{name} ({state})", "ms", 1e3 * min(times[name] for times in runs), 1e3 * reference
            )
