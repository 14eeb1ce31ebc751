"""Tries the layouts of JAX and jaxlib that private_jax.py lists; a function raises if its layout is another one."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from treadle import private_jax
from treadle.versions import children, measure, tested
from treadle.versions.api_version import ApiVersion


def answer(arguments: Sequence[str]) -> None:
    """The child's part of `treadle versions --private`; the arguments are further names."""
    broken = private_jax.check(arguments)
    children.reply(
        {
            "jax": tested.installed("jax"),
            "jaxlib": tested.installed("jaxlib"),
            "checked": len(private_jax.ENTRIES) + len(arguments),
            "broken": [
                {
                    "name": item.entry.name,
                    "why": item.entry.why,
                    "users": list(item.entry.users),
                    "problem": item.problem,
                }
                for item in broken
            ],
        }
    )


def _same(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise ValueError(f"{what} is {found!r}, not {expected!r}")


def factory_arguments() -> None:
    """register_backend_factory takes what plugin.py gives it."""
    taken = inspect.signature(private_jax.resolve("jax.extend.backend.register_backend_factory")).parameters
    for name in ("priority", "fail_quietly", "experimental", "make_topology", "c_api"):
        if name not in taken:
            raise ValueError(f"it takes no {name}; it takes {', '.join(taken)}")


def options() -> None:
    """make_pjrt_c_api_client takes options, also as a function."""
    function = private_jax.resolve("jax._src.xla_bridge.make_pjrt_c_api_client")
    if "Callable" not in str(inspect.signature(function).parameters["options"].annotation):
        raise ValueError(f"its signature is {inspect.signature(function)}")


def log() -> None:
    """jaxlib's version can be read from its log."""
    found = measure.framework(tested.installed("jaxlib"))
    if found.source != "measured":
        raise ValueError(found.note)


def ffi_header() -> None:
    """jaxlib carries the header, and it says its version."""
    ApiVersion.from_header(private_jax.ffi_header().read_text(encoding="utf-8"), "XLA_FFI_API")


def donation() -> None:
    """JAX donates arguments on a platform called cpu."""
    platforms = private_jax.resolve("jax._src.interpreters.mlir._platforms_with_donation")
    if "cpu" not in platforms:
        raise ValueError(f"it donates on {platforms}")


def donated_arguments() -> None:
    """JAX marks a donated argument with the output that may have its memory."""
    import jax

    lowered = jax.jit(lambda x: x + 1, donate_argnums=0).lower(jax.ShapeDtypeStruct((3,), "float32"))
    if "{tf.aliasing_output = 0 : i32}" not in lowered.as_text():
        raise ValueError(f"it writes {lowered.as_text()[:300]!r}")


def passes() -> None:
    """The passes exist under these names, and an empty module goes through them."""
    from treadle.compiler.frontend import mlir

    mlir.try_passes()


def diagnostics() -> None:
    """MLIR's complaint about a program reaches Treadle's error, with its place."""
    from treadle.compiler.errors import CompileError
    from treadle.compiler.frontend import mlir

    try:
        with mlir.parse(b"module {\n  stablehlo.no_such_op\n}"):
            pass
    except CompileError as error:
        for part in ("no_such_op", ":2:3"):
            if part not in error.message:
                raise ValueError(f"the error does not say {part!r}: {error.message}") from None
    else:
        raise ValueError("a program with an op that does not exist is parsed")


_PROGRAM = b"""
func.func @main(%x: tensor<2x4xf32>, %y: tensor<3x4xf32>, %i: tensor<1x1xi32>, %n: tensor<1x5x5x2xf32>,
                %w: tensor<3x3x2x6xf32>) -> (tensor<2x3xi1>, tensor<1x4xf32>, tensor<2x4xf32>, tensor<1x3x3x6xf32>) {
  %c = stablehlo.constant dense<[[1.0, 2.0, 3.0], [-1.0, 0.5, 0x7F800000]]> : tensor<2x3xf32>
  %0 = "stablehlo.dot_general"(%x, %y) {dot_dimension_numbers = #stablehlo.dot<
      lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}
      : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.compare LT, %0, %c, TOTALORDER : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
      loc("jit(f)/lt"(callsite("f"("file.py":3:4) at "other.py":9:1)))
  %2 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 4>, indices_are_sorted = true} : (tensor<2x4xf32>, tensor<1x1xi32>) -> tensor<1x4xf32>
  %3 = "stablehlo.scatter"(%x, %i, %2) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}
      : (tensor<2x4xf32>, tensor<1x1xi32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  %4 = "stablehlo.convolution"(%n, %w) {dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
      padding = dense<[[0, 0], [1, -1]]> : tensor<2x2xi64>, window_reversal = array<i1: false, true>,
      feature_group_count = 1 : i64, batch_group_count = 1 : i64}
      : (tensor<1x5x5x2xf32>, tensor<3x3x2x6xf32>) -> tensor<1x3x3x6xf32>
  return %1, %2, %3, %4 : tensor<2x3xi1>, tensor<1x4xf32>, tensor<2x4xf32>, tensor<1x3x3x6xf32>
}
"""


def _ops() -> dict[str, Any]:
    """The ops of _PROGRAM as Treadle reads them, by name."""
    from treadle.compiler.frontend import convert, mlir, options

    with mlir.parse(_PROGRAM) as module:
        program = convert.convert(module, options.CompileOptions())
    return {op.name: op for op in program.entry.walk()}


def structs() -> None:
    """StableHLO's structs and enums have the fields that Treadle reads."""
    ops = _ops()
    structs: dict[str, dict[str, Any]] = {
        "dot_general": {
            "lhs_batching_dimensions": (),
            "rhs_batching_dimensions": (),
            "lhs_contracting_dimensions": (1,),
            "rhs_contracting_dimensions": (1,),
        },
        "compare": {"comparison_direction": "LT", "compare_type": "TOTALORDER"},
        "gather": {
            "offset_dims": (1,),
            "collapsed_slice_dims": (0,),
            "operand_batching_dims": (),
            "start_indices_batching_dims": (),
            "start_index_map": (0,),
            "index_vector_dim": 1,
        },
        "scatter": {
            "update_window_dims": (1,),
            "inserted_window_dims": (0,),
            "input_batching_dims": (),
            "scatter_indices_batching_dims": (),
            "scatter_dims_to_operand_dims": (0,),
            "index_vector_dim": 1,
        },
        "convolution": {
            "input_batch_dimension": 0,
            "input_feature_dimension": 3,
            "input_spatial_dimensions": (1, 2),
            "kernel_input_feature_dimension": 2,
            "kernel_output_feature_dimension": 3,
            "kernel_spatial_dimensions": (0, 1),
            "output_batch_dimension": 0,
            "output_feature_dimension": 3,
            "output_spatial_dimensions": (1, 2),
        },
    }
    for name, expected in structs.items():
        for attribute, value in expected.items():
            _same(f"{name}.{attribute}", ops[name].attrs[attribute], value)


def locations() -> None:
    """Names, call sites, files and lines are found in a location."""
    location = _ops()["compare"].loc
    _same("the location", (location.name, location.file, location.line), ("jit(f)/lt", "file.py", 3))


def program() -> None:
    """Attributes, types, constants and regions are read as what they are."""
    ops = _ops()
    _same("gather.slice_sizes", ops["gather"].attrs["slice_sizes"], (1, 4))
    _same("gather.indices_are_sorted", ops["gather"].attrs["indices_are_sorted"], True)
    _same("convolution.padding", ops["convolution"].attrs["padding"], ((0, 0), (1, -1)))
    _same("convolution.window_reversal", ops["convolution"].attrs["window_reversal"], (False, True))
    _same("the shape of gather", ops["gather"].result.type.shape, (1, 4))
    _same("the element type of compare", ops["compare"].result.type.dtype.name, "pred")
    constant = ops["constant"].attrs["value"]
    _same("a constant", constant.tolist(), [[1.0, 2.0, 3.0], [-1.0, 0.5, float("inf")]])
    _same("the scatter's regions", len(ops["scatter"].regions), 1)


def compile_options() -> None:
    """The protocol buffer that jaxlib writes has the fields that options.py reads."""
    from treadle.compiler.frontend.options import parse_options

    made = private_jax.resolve("jaxlib.xla_client.CompileOptions")()
    build = made.executable_build_options
    build.num_replicas, build.num_partitions, build.use_spmd_partitioning = 2, 3, True
    read = parse_options(made.SerializeAsString())
    _same("the options", (read.num_replicas, read.num_partitions, read.use_spmd_partitioning), (2, 3, True))
