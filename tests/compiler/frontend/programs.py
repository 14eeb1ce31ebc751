"""Programs for tests, as the bytes that JAX sends to a plugin."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax._src.lib import _jax, xla_client
from jaxlib.mlir import passmanager
from jaxlib.mlir.dialects import stablehlo

from treadle.compiler.context import CompileContext
from treadle.compiler.driver import make_context, run
from treadle.compiler.ir.core import Op, Program


def artifact(function: Callable[..., Any], *arguments: Any, **jit_options: Any) -> bytes:
    """`function`, traced for `arguments`, as a portable artifact of the running jaxlib's version."""
    module = jax.jit(function, **jit_options).trace(*arguments).lower(lowering_platforms=("cpu",)).compiler_ir()
    stablehlo.register_stablehlo_passes()
    with module.context:
        passmanager.PassManager.parse("builtin.module(func.func(chlo-legalize-to-stablehlo))").run(module.operation)
    out = io.BytesIO()
    module.operation.write_bytecode(out)
    result: bytes = _jax.mlir.serialize_portable_artifact(out.getvalue(), stablehlo.get_current_version(), True)
    return result


def context(program: bytes | str, options: bytes = b"", num_devices: int = 1) -> CompileContext:
    """A request to compile `program`."""
    program = program.encode() if isinstance(program, str) else program
    return make_context(program, "mlir", options, num_devices, 0, 1)


def imported(program: bytes | str, options: bytes = b"") -> Program:
    """The program of the tensor IR, not optimised."""
    result = run(context(program, options), "convert")
    assert isinstance(result, Program)
    return result


def main(body: str, arguments: str = "", results: str = "") -> str:
    """A module whose `main` has this body."""
    arrow = f" -> ({results})" if results else ""
    return f"func.func @main({arguments}){arrow} {{\n{body}\n}}\n"


def ops(program: Program, name: str) -> list[Op]:
    """The ops of that name, in order."""
    return [op for op in program.entry.walk() if op.name == name]


def random_arguments(*shapes: tuple[int, ...] | tuple[tuple[int, ...], str]) -> list[np.ndarray]:
    """Arrays of these shapes (f32 unless a dtype is given); quarters, so that sums are exact."""
    rng = np.random.default_rng(7)
    result = []
    for item in shapes:
        shape: Any = item
        dtype = "float32"
        if item and isinstance(item[-1], str):
            shape, dtype = item[0], item[1]
        values = rng.integers(-8, 9, shape) / (4 if "float" in dtype else 1)
        result.append(values.astype(dtype))
    return result


def serialized(
    replicas: int = 1,
    partitions: int = 1,
    devices: list[list[int]] | None = None,
    spmd: bool = False,
    portable: bool = False,
) -> bytes:
    """Compile options as jaxlib sends them."""
    options = xla_client.CompileOptions()
    options.num_replicas = replicas
    options.num_partitions = partitions
    build = options.executable_build_options
    build.num_replicas = replicas
    build.num_partitions = partitions
    build.use_spmd_partitioning = spmd
    options.compile_portable_executable = portable
    if devices is not None:
        options.device_assignment = xla_client.DeviceAssignment.create(np.array(devices))
    data: bytes = options.SerializeAsString()
    return data
