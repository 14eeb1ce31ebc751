"""Constants of every element type, in every form that MLIR writes them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.frontend.programs import artifact, imported
from treadle.compiler.frontend import mlir
from treadle.compiler.frontend.constants import read_constant
from treadle.compiler.frontend.types import _ELEMENTS
from treadle.compiler.ir.types import BF16, C64, F32, PRED, DType, TensorType


def read(literal: str, element: str, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    extents = "x".join(map(str, (*shape, element)))
    text = f"func.func @main() {{ %0 = stablehlo.constant dense<{literal}> : tensor<{extents}>\n return }}"
    with mlir.parse(text.encode()) as module:
        op = module.op.body.operations[0].regions[0].blocks[0].operations[0].operation
        return np.array(read_constant(op, TensorType(dtype, shape)))


def literal(element: str, value: int) -> str:
    if element == "i1":
        return "true" if value else "false"
    if element.startswith("complex"):
        return f"({value}.5, -{value}.0)"
    return f"{value}.0" if "f" in element else str(value)


@pytest.mark.parametrize("element", _ELEMENTS)
@pytest.mark.parametrize("size", [1, 3, 150])
def test_values(element, size):
    dtype = _ELEMENTS[element]
    # 1 and 2 are values of every type, but for a bit and the two-bit signed integer.
    values = [1 + (i % 3 == 1) * (element not in ("i1", "i2")) for i in range(size)]
    text = literal(element, values[0]) if size == 1 else "[" + ", ".join(literal(element, v) for v in values) + "]"
    array = read(text, element, dtype, (size,))
    assert array.dtype == dtype.numpy
    expected = [complex(v + 0.5, -v) if element.startswith("complex") else v for v in values]
    assert array.astype(np.complex128).tolist() == expected


@pytest.mark.parametrize("element", _ELEMENTS)
def test_splat_is_a_view_of_one_element(element):
    dtype = _ELEMENTS[element]
    constant = f"stablehlo.constant dense<{literal(element, 1)}> : tensor<50x70x{element}>"
    text = f"func.func @main() {{ %0 = {constant}\n return }}"
    with mlir.parse(text.encode()) as module:
        op = module.op.body.operations[0].regions[0].blocks[0].operations[0].operation
        array = read_constant(op, TensorType(dtype, (50, 70)))
    assert array.shape == (50, 70)
    assert array.strides == (0, 0)


def test_special_values():
    array = read("[0x7FC0, 0xFF80, -0.0, 0.1]", "bf16", BF16, (4,))
    assert array.view(np.uint16).tolist() == [0x7FC0, 0xFF80, 0x8000, 0x3DCD]
    array = read("[0x7FC00001, 0xFF800000, -0.0]", "f32", F32, (3,))
    assert array.view(np.uint32).tolist() == [0x7FC00001, 0xFF800000, 0x80000000]
    array = read("[(0x7F800000, -0.0)]", "complex<f32>", C64, (1,))
    assert array.view(np.uint32).tolist() == [0x7F800000, 0x80000000]


def test_empty_and_scalar():
    assert read("", "f32", F32, (0, 3)).shape == (0, 3)
    assert read("true", "i1", PRED, ()).shape == ()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "float32", "float64"])
def test_large_constants_of_jax(dtype):
    value = np.random.default_rng(3).integers(0, 2 if dtype == "bool" else 100, (37, 41)).astype(dtype)
    import jax

    with jax.enable_x64(True):
        program = imported(artifact(lambda: jax.numpy.asarray(value)))
    (op,) = program.entry.ops
    np.testing.assert_array_equal(op.attrs["value"], value)


def test_a_large_constant_is_not_copied():
    value = np.random.default_rng(3).normal(size=(300, 300)).astype(np.float32)
    (op,) = imported(artifact(lambda: value)).entry.ops
    array = op.attrs["value"]
    assert isinstance(array, np.ndarray)
    assert not array.flags.owndata
    assert not array.flags.writeable
    np.testing.assert_array_equal(array, value)


def test_large_bf16_constants():
    import jax.numpy as jnp

    value = np.arange(300).astype(jnp.bfloat16)
    (op,) = imported(artifact(lambda: jnp.asarray(value))).entry.ops
    np.testing.assert_array_equal(op.attrs["value"], np.asarray(value))
