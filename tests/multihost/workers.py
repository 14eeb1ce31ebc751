"""What the processes of the tests do. Run as `python -m tests.multihost.workers WORKER PORT COUNT INDEX ANSWER`.

A worker returns what the test is to know; the test knows what is right.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import backend
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from treadle import distributed


def _error(function: Callable[[], Any]) -> list[str]:
    """The type and text of what `function` raises."""
    try:
        return ["nothing", repr(function())]
    except Exception as error:
        return [type(error).__name__, str(error)]


def devices() -> dict[str, Any]:
    """Who has which devices."""
    return {
        "count": jax.process_count(),
        "index": jax.process_index(),
        "devices": [[d.id, d.process_index, d.local_hardware_id] for d in jax.devices()],
        "local": [d.id for d in jax.local_devices()],
        "global": jax.device_count(),
    }


def everything() -> dict[str, Any]:
    """Devices, the store, computing on each local device, an array over all devices, what cannot be done."""
    return {**devices(), **store(), **compute(), **global_array()}


def store() -> dict[str, Any]:
    """The key-value store: each process puts one value and reads everybody's."""
    index, count = jax.process_index(), jax.process_count()
    shared = distributed.key_value_store()
    shared.put(f"test/{index}", bytes([index, 0, 255]))
    if index == 0:
        shared.put("test/empty", b"")
        shared.put("test/text", "grüße")
    start = time.monotonic()
    late = _error(lambda: shared.get("test/never", timeout=0.5))
    return {
        "values": [list(shared.get(f"test/{i}", timeout=20)) for i in range(count)],
        "empty": list(shared.get("test/empty", timeout=20)),
        "text": shared.get("test/text", timeout=20).decode(),
        "tried": list(shared.try_get(f"test/{index}")),
        "late": late,
        "waited": time.monotonic() - start,
        "absent": _error(lambda: shared.try_get("test/never")),
        "endless": shared.get("test/text", timeout=float("inf")).decode(),
        "number": _error(lambda: shared.put("test/number", 5)),  # type: ignore[arg-type]
        "twice": _error(lambda: shared.put(f"test/{index}", b"again")),
        "store": [shared.process_index, shared.process_count],
    }


def _loss(x: Any, w: Any) -> Any:
    return jnp.sum(jnp.tanh(x @ w) ** 2)


def compute() -> dict[str, Any]:
    """The same program on every device of this process, and on the one that JAX picks."""
    rng = np.random.default_rng(jax.process_index())
    x, w = rng.standard_normal((5, 7), np.float32), rng.standard_normal((7, 3), np.float32)
    step = jax.jit(jax.value_and_grad(_loss, argnums=1))
    results = []
    for device in jax.local_devices():
        value, gradient = step(jax.device_put(x, device), jax.device_put(w, device))
        results.append([float(value), gradient.tolist(), [d.id for d in gradient.devices()]])
    return {"results": results, "default": [d.id for d in step(x, w)[0].devices()]}


def global_array() -> dict[str, Any]:
    """An array over the devices of all processes, of which each holds its own part."""
    index, local = jax.process_index(), jax.local_device_count()
    everywhere = Mesh(np.array(jax.devices()), ("x",))
    sharding = NamedSharding(everywhere, PartitionSpec("x"))
    first = min(d.id for d in jax.local_devices())
    own = np.arange(first * 3, (first + local) * 3, dtype=np.float32)
    array = jax.make_array_from_process_local_data(sharding, own, (jax.device_count() * 3,))
    elsewhere = next(d for d in jax.devices() if d.process_index != index)
    return {
        "shape": list(array.shape),
        "shards": [[s.device.id, np.asarray(s.data).tolist()] for s in array.addressable_shards],
        "whole": array.is_fully_addressable,
        "collective": _error(lambda: jnp.sum(array)),
        "elementwise": _error(lambda: array + 1),
        "elsewhere": _error(lambda: elsewhere.client.buffer_from_pyval(np.ones(2), elsewhere)),
        "statistics": _error(elsewhere.memory_stats),
    }


def again() -> dict[str, Any]:
    """A second client in the same processes."""
    devices()
    distributed.key_value_store().put(f"again/{jax.process_index()}", b"1")
    backend.clear_backends()
    # Without jaxlib's own CPU client, which cannot be made again: its keys are there already.
    jax.config.update("jax_platforms", "treadle")
    jax.clear_caches()
    return {
        **devices(),
        "sum": float(jnp.sum(jnp.arange(5.0))),
        "kept": distributed.key_value_store().get("again/1").decode(),
    }


def absent() -> dict[str, Any]:
    """Process 1 of the program does everything but make its client."""
    if jax._src.distributed.global_state.process_id == 1:
        return {}
    start = time.monotonic()
    return {"error": _error(jax.devices), "waited": time.monotonic() - start}


def late() -> dict[str, Any]:
    """The processes come one after the other, the first one last; process 0 needs a second attempt."""
    index: int = jax._src.distributed.global_state.process_id
    failed = _error(jax.devices) if index == 0 else []
    os.environ["TREADLE_HANDSHAKE_TIMEOUT"] = "30"
    if index == 1:
        time.sleep(3.0)
    return {"failed": failed, **devices()}


def skewed() -> dict[str, Any]:
    """Ends with the error that JAX raises, at once, as a user's program would."""
    return devices()


def forged() -> dict[str, Any]:
    """Process 1 publishes what FORGED_RECORD says instead of its own record; the others meet it."""
    state = jax._src.distributed.global_state
    if state.process_id == 1:
        state.client.key_value_set_bytes("treadle:treadle/handshake/0/1", os.environ["FORGED_RECORD"].encode())
        return {}
    return {"error": _error(jax.devices)}


def killed() -> dict[str, Any]:
    """Process 1 dies after the handshake. The other one works on."""
    answer = devices()
    shared = distributed.key_value_store()
    if jax.process_index() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1.0)
    start = time.monotonic()
    total = float(jnp.sum(jax.jit(lambda x: x * 2)(jnp.arange(1000.0))))
    return {
        **answer,
        "total": total,
        "seconds": time.monotonic() - start,
        "absent": _error(lambda: shared.try_get("x")),
    }


def main() -> None:
    worker, port, count, index, answer = sys.argv[1:]
    jax.distributed.initialize(f"127.0.0.1:{port}", int(count), int(index))
    result = globals()[worker]()
    path = Path(answer)
    path.with_suffix(".part").write_text(json.dumps(result))
    path.with_suffix(".part").rename(path)
    sys.stdin.read()  # ends when all processes have answered
    if os.environ.get("TEST_LEAVE_AT_ONCE"):
        os._exit(0)  # without the barrier in which JAX waits for processes that are gone


if __name__ == "__main__":
    main()
