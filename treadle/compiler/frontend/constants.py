"""MLIR's dense elements as NumPy arrays, without a copy where MLIR lets its memory be read."""

from __future__ import annotations

import re

import numpy as np

from treadle.compiler.frontend.mlir import ir
from treadle.compiler.ir.types import DType, Kind, TensorType


def read_constant(op: ir.Operation, tensor: TensorType) -> np.ndarray:
    """The value of a `stablehlo.constant`.

    A splat is a broadcast view of one element. Other values are views of MLIR's memory when the
    element type has a buffer format, and else are read from the op's text, which MLIR writes as hex
    digits when it is long.
    """
    try:
        attribute = op.attributes["value"]
    except (TypeError, ValueError):  # no binding for elements of this type
        return _from_text(_value_text(op), tensor)
    if not isinstance(attribute, ir.DenseElementsAttr):
        return _from_text(str(attribute), tensor)
    try:
        view = memoryview(attribute)
    except BufferError:
        return _from_text(str(attribute), tensor)
    array = np.asarray(view).view(tensor.dtype.numpy)
    if attribute.is_splat:
        return np.broadcast_to(_first(array), tensor.shape)
    return array.reshape(tensor.shape)


def _first(array: np.ndarray) -> np.ndarray:
    """The one value of a splat, as an array of its own."""
    return np.array(array.reshape(-1)[0] if array.size else 0, array.dtype)


def _value_text(op: ir.Operation) -> str:
    return str(op.get_asm(assume_verified=True))


_HEX_BLOB = re.compile(r'dense<"0x([0-9A-Fa-f]*)">')
_DENSE = re.compile(r"dense<(.*)>\s*:", re.DOTALL)
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|[-+]?[0-9][-+.0-9eE]*|true|false")


def _from_text(text: str, tensor: TensorType) -> np.ndarray:
    """Parses `dense<...>`; raises ValueError for a form that it does not know."""
    dtype = tensor.dtype
    blob = _HEX_BLOB.search(text)
    if blob is not None:
        raw = np.frombuffer(bytes.fromhex(blob.group(1)), np.uint8)
        values = _from_blob(raw, dtype)
    else:
        dense = _DENSE.search(text)
        if dense is None:
            raise ValueError(f"a constant written as {text[:80]!r}")
        numbers = _NUMBER.findall(dense.group(1))
        if dtype.kind is Kind.COMPLEX:
            part = np.dtype(np.float32 if dtype.bits == 64 else np.float64)
            flat = np.array([_number(n, part) for n in numbers], part)
            values = flat.view(dtype.numpy)
        else:
            values = np.array([_number(n, dtype.numpy) for n in numbers], dtype.numpy)
    if values.size == 1:
        return np.broadcast_to(values.reshape(()), tensor.shape)
    return values.reshape(tensor.shape)


def _from_blob(raw: np.ndarray, dtype: DType) -> np.ndarray:
    """Elements from MLIR's raw bytes: little-endian, sub-byte integers one in a byte."""
    if dtype.kind is Kind.SIGNED and dtype.bits < 8:
        shift = 8 - dtype.bits
        return ((raw << shift).view(np.int8) >> shift).astype(dtype.numpy)
    if dtype.kind is Kind.UNSIGNED and dtype.bits < 8:
        return raw.astype(dtype.numpy)
    return raw.view(dtype.numpy)


def _number(text: str, dtype: np.dtype) -> np.generic:
    """One element as MLIR prints it: decimal, or the bits in hex for NaN, infinity and the like."""
    if text in ("true", "false"):
        return np.bool_(text == "true")
    if text.startswith("0x"):
        width = dtype.itemsize
        bits: np.generic = np.frombuffer(int(text, 16).to_bytes(width, "little"), dtype)[0]
        return bits
    if "." in text or "e" in text or "E" in text:
        value: np.generic = dtype.type(float(text))
        return value
    number: np.generic = dtype.type(int(text))
    return number
