"""How a number is got: two devices in one process, interleaved, the least of several.

The least time is what the code takes; everything above it is the machine's other business. The two backends take turns,
so that a slow moment of the machine meets both.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

PLATFORM_VARIABLE = "TREADLE_BENCHMARK_PLATFORM"


@dataclasses.dataclass
class Row:
    """One line of the table.

    Attributes:
      group: the heading it stands under.
      name: what was measured.
      unit: of both values; smaller is better.
      ours: the platform under test.
      theirs: jaxlib's CPU backend.
    """

    group: str
    name: str
    unit: str
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """Ours to theirs: below 1 Treadle is better."""
        return self.ours / self.theirs if self.theirs > 0 else float("nan")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the command line asks for.

    Attributes:
      only: a part of the names of the rows to measure; empty for all.
      quick: fewer and shorter rounds.
      platform: the platform under test.
    """

    only: str
    quick: bool
    platform: str

    def wants(self, group: str, name: str) -> bool:
        """Whether this row was asked for."""
        return self.only.lower() in f"{group}: {name}".lower()


def select_platform(platform: str) -> None:
    """Tells JAX which backends to open. To be called before anything asks for a device."""
    jax.config.update("jax_platforms", platform if platform == "cpu" else f"{platform},cpu")
    jax.config.update("jax_enable_compilation_cache", False)
    os.environ[PLATFORM_VARIABLE] = platform


@functools.cache
def devices() -> tuple[jax.Device, jax.Device]:
    """The device under test, and jaxlib's own."""
    return jax.local_devices(backend=os.environ[PLATFORM_VARIABLE])[0], jax.local_devices(backend="cpu")[0]


def compiled_for(
    function: Callable[..., Any], arguments: Sequence[Any], device: jax.Device
) -> tuple[Any, tuple[Any, ...]]:
    """The function, jitted and warm on `device`, and its arguments there."""
    placed = jax.device_put(tuple(arguments), device)
    jitted = jax.jit(function)
    jax.block_until_ready(jitted(*placed))
    return jitted, placed


def calls_that_last(seconds: float, call: Callable[[], object]) -> int:
    """How many calls take about `seconds`, at least one."""
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        taken = time.perf_counter() - start
        if taken >= seconds / 2 or count >= 1 << 20:
            return max(1, round(count * seconds / max(taken, 1e-9)))
        count *= 4


def interleaved(calls: Sequence[Callable[[], object]], quick: bool) -> list[float]:
    """Seconds per call of each, the least of several rounds in which all take turns."""
    duration, rounds = (0.01, 3) if quick else (0.04, 7)
    counts = [min(calls_that_last(duration, call), 100_000) for call in calls]
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for which, (call, count) in enumerate(zip(calls, counts, strict=True)):
            start = time.perf_counter()
            for _ in range(count):
                call()
            best[which] = min(best[which], (time.perf_counter() - start) / count)
    return best


def run_time(function: Callable[..., Any], arguments: Sequence[Any], quick: bool) -> tuple[float, float]:
    """Seconds per blocking call on both devices."""
    calls = []
    for device in devices():
        jitted, placed = compiled_for(function, arguments, device)
        calls.append(functools.partial(_blocking, jitted, placed))
    ours, theirs = interleaved(calls, quick)
    return ours, theirs


def _blocking(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    jax.block_until_ready(function(*arguments))
