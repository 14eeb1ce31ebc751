"""MLIR tensor types as `ir.types.TensorType`."""

from __future__ import annotations

from treadle.compiler.frontend.mlir import ir
from treadle.compiler.ir import types

# MLIR's text of an element type -> ours. StableHLO has no signedness on `iN`: it means signed.
_ELEMENTS: dict[str, types.DType] = {
    "i1": types.PRED,
    "i2": types.S2,
    "i4": types.S4,
    "i8": types.S8,
    "i16": types.S16,
    "i32": types.S32,
    "i64": types.S64,
    "ui2": types.U2,
    "ui4": types.U4,
    "ui8": types.U8,
    "ui16": types.U16,
    "ui32": types.U32,
    "ui64": types.U64,
    "f16": types.F16,
    "bf16": types.BF16,
    "f32": types.F32,
    "f64": types.F64,
    "complex<f32>": types.C64,
    "complex<f64>": types.C128,
    "f8E5M2": types.F8E5M2,
    "f8E4M3": types.F8E4M3,
    "f8E4M3FN": types.F8E4M3FN,
    "f8E4M3B11FNUZ": types.F8E4M3B11FNUZ,
    "f8E5M2FNUZ": types.F8E5M2FNUZ,
    "f8E4M3FNUZ": types.F8E4M3FNUZ,
    "f8E3M4": types.F8E3M4,
    "f8E8M0FNU": types.F8E8M0FNU,
    "f4E2M1FN": types.F4E2M1FN,
}


class UnsupportedTypeError(Exception):
    """A type that no Treadle value can have; the text says why."""


class TypeReader:
    """Converts types, each distinct one once."""

    def __init__(self) -> None:
        self._known: dict[ir.Type, types.TensorType] = {}

    def read(self, mlir_type: ir.Type) -> types.TensorType:
        """The tensor type; raises UnsupportedTypeError."""
        known = self._known.get(mlir_type)
        if known is None:
            known = self._known[mlir_type] = _read(mlir_type)
        return known


def _read(mlir_type: ir.Type) -> types.TensorType:
    if not isinstance(mlir_type, ir.RankedTensorType):
        raise UnsupportedTypeError(f"values of type {mlir_type}")
    if not mlir_type.has_static_shape:
        raise UnsupportedTypeError(f"the dynamic shape {mlir_type}")
    if mlir_type.encoding is not None:
        raise UnsupportedTypeError(f"the tensor encoding in {mlir_type}")
    dtype = _ELEMENTS.get(str(mlir_type.element_type))
    if dtype is None:
        raise UnsupportedTypeError(f"the element type {mlir_type.element_type}")
    if dtype not in types.COMPUTE_DTYPES:
        raise UnsupportedTypeError(f"the element type {dtype.name}")
    result = types.TensorType(dtype, tuple(mlir_type.shape))
    if result.byte_size >= 1 << 63:
        raise UnsupportedTypeError(f"a tensor of 2**63 bytes or more, {mlir_type}")
    return result
