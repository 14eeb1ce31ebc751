"""Random programs through the whole of Treadle: the plugin's outputs are the interpreter's.

TREADLE_FUZZ_SEEDS says how many programs (a failure names its seed), TREADLE_FUZZ_FIRST_SEED where to begin.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import jax
import numpy as np
import pytest
from jax._src.lib import xla_client

from tests.compiler.ops.oracle import stablehlo_text
from tests.compiler.passes.random_programs import random_program
from treadle.compiler import interp
from treadle.compiler.ir.core import Program
from treadle.compiler.ir.printer import print_program

FIRST = int(os.environ.get("TREADLE_FUZZ_FIRST_SEED", "0"))
COUNT = int(os.environ.get("TREADLE_FUZZ_SEEDS", "60"))


def run_on_treadle(program: Program, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of `program`, compiled and executed by the plugin."""
    (device,) = jax.local_devices(backend="treadle")[:1]
    devices = xla_client.DeviceList((device,))
    compiled = device.client.compile_and_load(stablehlo_text(program), devices, xla_client.CompileOptions())
    with jax.enable_x64(True):
        arrays = [jax.device_put(x, device) for x in inputs]
    outputs = compiled.execute_sharded(arrays).disassemble_into_single_device_arrays()
    return [np.asarray(shards[0]) for shards in outputs]


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_programs(seed: int) -> None:
    program, inputs = random_program(seed, count=12, neutral=True)
    expected, actual = interp.run(program, inputs), run_on_treadle(program, inputs)
    for i, (a, b) in enumerate(zip(expected, actual, strict=True)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        x, y = a.astype(np.float64), b.astype(np.float64)
        with np.errstate(all="ignore"):
            # The sign of a zero that a sum of products makes depends on what the sum begins with.
            same = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= 1e-3 * np.abs(x))
        assert same.all(), f"result {i}: {a.tolist()} and {b.tolist()}\n{print_program(program)}"
