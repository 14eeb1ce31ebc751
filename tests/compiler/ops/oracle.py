"""Runs a Program on jaxlib's CPU backend: the independent word on what StableHLO means.

The program is written as StableHLO text and compiled by jaxlib in this process; nothing of Treadle but the IR's classes
takes part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax._src.lib import xla_client

from treadle.compiler.ir.core import Input, Op, Output, Program, Region, Value
from treadle.compiler.ir.types import DType, Kind, TensorType
from treadle.compiler.ops.build import Builder

_ELEMENT = {Kind.SIGNED: "i", Kind.UNSIGNED: "ui", Kind.FLOAT: "f"}
_ARRAY_OF_BOOL = {"window_reversal"}
_INTEGER_ATTRIBUTES = {
    "iota_dimension", "dimension", "feature_group_count", "batch_group_count"
}  # fmt: skip
_I32_ATTRIBUTES = {"exponent_bits", "mantissa_bits"}
_PLAIN_BOOL = {"indices_are_sorted", "unique_indices"}
_DOT = (
    "lhs_batching_dimensions",
    "rhs_batching_dimensions",
    "lhs_contracting_dimensions",
    "rhs_contracting_dimensions",
)
_GATHER = (
    "offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map",
    "index_vector_dim",
)  # fmt: skip
_SCATTER = (
    "update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims", "index_vector_dim",
)  # fmt: skip
_CONVOLUTION = (
    "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions", "kernel_input_feature_dimension",
    "kernel_output_feature_dimension", "kernel_spatial_dimensions", "output_batch_dimension",
    "output_feature_dimension", "output_spatial_dimensions",
)  # fmt: skip
_GROUPED = {
    "dot_general": ("dot_dimension_numbers", "dot", _DOT),
    "gather": ("dimension_numbers", "gather", _GATHER),
    "scatter": ("scatter_dimension_numbers", "scatter", _SCATTER),
    "convolution": ("dimension_numbers", "conv", _CONVOLUTION),
}


def program_of(region: Region, name: str = "test") -> Program:
    """A program with plain inputs and outputs around `region`."""
    return Program(name, region, [Input() for _ in region.args], [Output() for _ in region.results])


def program(types: Sequence[TensorType], build: Any) -> Program:
    """The program with arguments of `types` whose results `build(builder, *args)` gives (one Value or several)."""
    region = Region(types)
    results = build(Builder(region), *region.args)
    region.results = [results] if isinstance(results, Value) else list(results)
    return program_of(region)


def element_type(dtype: DType) -> str:
    if dtype.kind is Kind.PRED:
        return "i1"
    return "bf16" if dtype.name == "bf16" else f"{_ELEMENT[dtype.kind]}{dtype.bits}"


def tensor_type(t: TensorType) -> str:
    return f"tensor<{''.join(f'{n}x' for n in t.shape)}{element_type(t.dtype)}>"


def _function_type(op: Op) -> str:
    operands = ", ".join(tensor_type(v.type) for v in op.operands)
    results = ", ".join(tensor_type(v.type) for v in op.results)
    return f"({operands}) -> ({results})"


def _literal(value: np.ndarray) -> str:
    if value.dtype == np.bool_:
        return f"dense<{str(value.tolist()).lower()}>"
    return f'dense<"0x{np.ascontiguousarray(value).tobytes().hex()}">'


def _ints(values: Any) -> str:
    return "[" + ", ".join(map(str, values)) + "]"


def _attribute(name: str, value: Any) -> str:
    if name in _ARRAY_OF_BOOL:
        return "array<i1: " + ", ".join(str(bool(v)).lower() for v in value) + ">" if len(value) else "array<i1>"
    if name in _INTEGER_ATTRIBUTES:
        return f"{value} : i64"
    if name in _I32_ATTRIBUTES:
        return f"{value} : i32"
    if name in _PLAIN_BOOL:
        return str(bool(value)).lower()
    if name == "padding":
        return f"dense<{[list(p) for p in value]}> : tensor<{len(value)}x2xi64>"
    if name == "comparison_direction":
        return f"#stablehlo<comparison_direction {value}>"
    if name == "compare_type":
        return f"#stablehlo<comparison_type {value}>"
    return "array<i64: " + ", ".join(map(str, value)) + ">" if len(value) else "array<i64>"


def _attributes(op: Op) -> str:
    attrs = dict(op.attrs)
    parts = []
    if op.name == "constant":
        return f" <{{value = {_literal(np.asarray(attrs['value']))} : {tensor_type(op.result.type)}}}>"
    if op.name in _GROUPED:
        attr, mnemonic, names = _GROUPED[op.name]
        fields = []
        for name in names:
            value: Any = attrs.pop(name)
            if isinstance(value, int) or op.name == "convolution" or len(value):
                fields.append(f"{name} = {_ints(value) if isinstance(value, tuple | list) else value}")
        raw = "raw " if mnemonic == "conv" else ""
        parts.append(f"{attr} = #stablehlo.{mnemonic}<{raw}{', '.join(fields)}>")
    if attrs.get("compare_type") == "NOTYPE":
        attrs.pop("compare_type")
    parts += [f"{name} = {_attribute(name, value)}" for name, value in attrs.items() if name not in ("trip_count",)]
    return f" <{{{', '.join(parts)}}}>" if parts else ""


class _Text:
    def __init__(self) -> None:
        self.names: dict[Value, str] = {}
        self.lines: list[str] = []
        self.count = 0

    def new(self, values: Sequence[Value]) -> None:
        for value in values:
            self.names[value] = f"%v{self.count}"
            self.count += 1

    def region(self, region: Region, terminator: str) -> None:
        for op in region.ops:
            self.op(op)
        names = ", ".join(self.names[v] for v in region.results)
        types = ", ".join(tensor_type(v.type) for v in region.results)
        self.lines.append(f'"{terminator}"({names}) : ({types}) -> ()')

    def op(self, op: Op) -> None:
        operands = ", ".join(self.names[v] for v in op.operands)
        self.new(op.results)
        left = ", ".join(self.names[v] for v in op.results) + " = " if op.results else ""
        head = f'{left}"stablehlo.{op.name}"({operands}){_attributes(op)}'
        if not op.regions:
            self.lines.append(f"{head} : {_function_type(op)}")
            return
        self.lines.append(f"{head} ({{")
        for i, region in enumerate(op.regions):
            if i:
                self.lines.append("}, {")
            self.new(region.args)
            args = ", ".join(f"{self.names[v]}: {tensor_type(v.type)}" for v in region.args)
            self.lines.append(f"^bb0({args}):" if region.args else "^bb0:")
            self.region(region, "stablehlo.return")
        self.lines.append(f"}}) : {_function_type(op)}")


def stablehlo_text(p: Program) -> str:
    text = _Text()
    text.new(p.entry.args)
    args = ", ".join(f"{text.names[v]}: {tensor_type(v.type)}" for v in p.entry.args)
    results = ", ".join(tensor_type(v.type) for v in p.entry.results)
    text.lines.append(f"module {{ func.func @main({args}) -> ({results}) {{")
    text.region(p.entry, "func.return")
    text.lines.append("}}")
    return "\n".join(text.lines)


def run_on_jaxlib(p: Program, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of `p` according to jaxlib's CPU backend."""
    device = jax.local_devices(backend="cpu")[0]
    devices = xla_client.DeviceList((device,))
    compiled = device.client.compile_and_load(stablehlo_text(p), devices, xla_client.CompileOptions())
    with jax.enable_x64(True):
        arrays = [jax.device_put(x, device) for x in inputs]
    outputs = compiled.execute_sharded(arrays).disassemble_into_single_device_arrays()
    return [np.asarray(shards[0]) for shards in outputs]


def ulp_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many representable floats lie between `a` and `b`; 0 for two NaN and for zeros of either sign."""
    integer = np.dtype(f"i{a.dtype.itemsize}")

    def ordered(x: np.ndarray) -> np.ndarray:
        bits = x.view(integer).astype(object)
        low = -(2 ** (8 * integer.itemsize - 1))
        return np.where(bits < 0, low - bits, bits)

    both_nan = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
    return np.where(both_nan, 0, np.abs(ordered(a) - ordered(b))).astype(np.float64)


def assert_same(ours: np.ndarray, theirs: np.ndarray, ulps: float = 0, atol: float = 0.0, what: str = "") -> None:
    """Equal bit for bit (NaN payloads and, with a tolerance, signs of zero aside), or within `ulps` or `atol`."""
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    assert ours.dtype == theirs.dtype, (what, ours.dtype, theirs.dtype)
    if ours.dtype.kind in "biu":
        np.testing.assert_array_equal(ours, theirs, err_msg=what)
        return
    distance = ulp_distance(ours, theirs)
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(invalid="ignore"):
        bad = (distance > ulps) & ~(np.abs(a - b) <= atol)
    if not ulps and not atol:
        bad |= (np.signbit(a) != np.signbit(b)) & ~(np.isnan(a) & np.isnan(b))
    smallest_normal = 2.0**-1022 if ours.dtype.itemsize == 8 else 2.0**-126
    bad &= ~((b == 0) & (np.abs(a) < smallest_normal) & (a != 0))  # jaxlib flushes subnormal results
    if bad.any():
        places = np.argwhere(bad)[:5]
        shown = [f"{tuple(p.tolist())}: ours {ours[tuple(p)]!r}, theirs {theirs[tuple(p)]!r}" for p in places]
        raise AssertionError(f"{what}: {int(bad.sum())} of {bad.size} differ: " + "; ".join(shown))
