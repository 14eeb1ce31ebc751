"""JAX's persistent compilation cache: what one process compiled, the next one loads."""

import json
import os
import subprocess
import sys

from tests.ops import harness

PROGRAM = """
import json, os, sys
import jax, jax.numpy as jnp, numpy as np
platform = os.environ["TREADLE_TEST_PLATFORM"]
jax.config.update("jax_platforms", platform if platform == "cpu" else platform + ",cpu")
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
events = {"hits": 0, "misses": 0}
def count(name, **_):
    if name.endswith("cache_hits"):
        events["hits"] += 1
    elif name.endswith("cache_misses"):
        events["misses"] += 1
jax.monitoring.register_event_listener(count)
device = jax.local_devices(backend=platform)[0]
table = np.arange(60, dtype=np.float32).reshape(12, 5)

def program(x):
    y = jax.lax.fori_loop(0, 4, lambda i, c: jnp.tanh(c @ table.T[:, :5]) + i, x)
    return jax.nn.softmax(y @ table.T), jnp.argmax(y)

x = jax.device_put(np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5), device)
probabilities, best = jax.jit(program)(x)
print(json.dumps({"events": events, "values": [np.asarray(probabilities).tolist(), int(best)]}))
"""


def run(folder, **environment):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)],
        env={
            **os.environ,
            "TREADLE_TEST_PLATFORM": harness.PLATFORM,
            "JAX_ENABLE_COMPILATION_CACHE": "true",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return json.loads(result.stdout.splitlines()[-1]), result.stderr


def entries(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith("-cache"))


def test_a_second_process_loads_what_the_first_compiled(tmp_path):
    first, _ = run(tmp_path)
    assert first["events"]["misses"] >= 1
    assert first["events"]["hits"] == 0
    assert entries(tmp_path)
    second, _ = run(tmp_path)
    assert second["events"]["hits"] >= 1
    assert second["events"]["misses"] == 0
    assert second["values"] == first["values"]


def test_a_corrupt_entry_is_compiled_anew(tmp_path):
    first, _ = run(tmp_path)
    for path in entries(tmp_path):
        content = bytearray(path.read_bytes())
        for position in range(len(content) // 4, len(content), max(1, len(content) // 50)):
            content[position] ^= 0x5A
        path.write_bytes(bytes(content))
    second, _ = run(tmp_path)
    assert second["values"] == first["values"]
