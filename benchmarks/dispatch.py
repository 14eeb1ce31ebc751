"""What one call costs besides its work: asynchronous and blocking, one argument and twenty."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from benchmarks import measure

GROUP = "dispatch"
BURST = 200


def rows(settings: measure.Settings) -> Iterator[measure.Row]:
    """Microseconds per call."""
    twenty = tuple(np.full(8, k, np.float32) for k in range(20))
    programs: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
        ("1 in, 1 out", lambda x: x + 1, (np.zeros(8, np.float32),)),
        ("20 in, 1 out", lambda *xs: functools.reduce(lambda a, b: a + b, xs), twenty),
        ("20 in, 20 out", lambda *xs: [x + 1 for x in xs], twenty),
    ]
    for name, function, arguments in programs:
        pairs = [measure.compiled_for(function, arguments, device) for device in measure.devices()]
        if settings.wants(GROUP, f"{name}, asynchronous"):
            ours, theirs = measure.interleaved([functools.partial(_burst, *pair) for pair in pairs], settings.quick)
            yield measure.Row(GROUP, f"{name}, asynchronous", "us", ours / BURST * 1e6, theirs / BURST * 1e6)
        if settings.wants(GROUP, f"{name}, blocking"):
            ours, theirs = measure.interleaved([functools.partial(_one, *pair) for pair in pairs], settings.quick)
            yield measure.Row(GROUP, f"{name}, blocking", "us", ours * 1e6, theirs * 1e6)
    if settings.wants(GROUP, "eager x * 2 + y"):
        pairs = [(_eager, jax.device_put((np.ones(8, np.float32),) * 2, device)) for device in measure.devices()]
        ours, theirs = measure.interleaved([functools.partial(_one, *pair) for pair in pairs], settings.quick)
        yield measure.Row(GROUP, "eager x * 2 + y", "us", ours * 1e6, theirs * 1e6)
    host = np.zeros(1 << 18, np.float32)
    for name, call in (("host to device, 1 MB", _to_device), ("device to host, 1 MB", _to_host)):
        if settings.wants(GROUP, name):
            calls = [
                functools.partial(call, jax.device_put(host, device), host, device) for device in measure.devices()
            ]
            ours, theirs = measure.interleaved(calls, settings.quick)
            yield measure.Row(GROUP, name, "us", ours * 1e6, theirs * 1e6)


def _eager(x: Any, y: Any) -> Any:
    return x * 2 + y


def _burst(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    result = None
    for _ in range(BURST):
        result = function(*arguments)
    jax.block_until_ready(result)


def _one(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    jax.block_until_ready(function(*arguments))


def _to_device(_: jax.Array, host: Any, device: jax.Device) -> None:
    jax.device_put(host, device).block_until_ready()


def _to_host(x: jax.Array, _host: Any, _device: jax.Device) -> None:
    # The array caches its host copy: a sum that costs nothing beside it gives a new array each time.
    np.asarray(jax.device_put(x, may_alias=False))
