"""The partition stage: from one program for all devices to the program of one device.

With one device there is nothing to split. With several, Shardy's passes (in jaxlib's MLIR) will
propagate the shardings, make the reshards explicit, turn them into collectives and make shapes
local; `convert` then meets collectives as ordinary ops.
"""

from __future__ import annotations

from treadle.compiler.context import CompileContext
from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.frontend.mlir import Module


def partition(module: Module, context: CompileContext) -> Module:
    """The module of one device.

    Raises:
      CompileError: UNIMPLEMENTED for several devices.
    """
    options = context.options
    if options.num_devices > 1:
        raise CompileError(
            StatusCode.UNIMPLEMENTED,
            f"The program {module.name!r} is for {options.num_replicas} replicas and {options.num_partitions} "
            "partitions; Treadle compiles programs for one device only so far. Run it without a mesh and shardings, "
            "or on another backend.",
        )
    return module
