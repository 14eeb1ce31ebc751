"""Type rules refuse what StableHLO refuses, and say why; every op is tested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.compiler.ops.attributes import convolution_attributes, gather_attributes, scatter_attributes
from tests.compiler.ops.checking import region
from treadle.compiler import interp
from treadle.compiler.errors import IrError
from treadle.compiler.ir.core import Location, Op, Region
from treadle.compiler.ir.types import F32, PRED, S32, TOKEN, U8, TensorType
from treadle.compiler.ops import registry
from treadle.compiler.ops.build import Builder

V, M, K, P, S = (
    TensorType(F32, (3,)),
    TensorType(F32, (2, 3)),
    TensorType(S32, (3,)),
    TensorType(PRED, (3,)),
    TensorType(F32, ()),
)  # fmt: skip
N = TensorType(S32, ())
DOT = {
    "lhs_batching_dimensions": (),
    "rhs_batching_dimensions": (),
    "lhs_contracting_dimensions": (0,),
    "rhs_contracting_dimensions": (0,),
}
WINDOW = {
    "window_dimensions": (2,),
    "window_strides": (1,),
    "base_dilations": (1,),
    "window_dilations": (1,),
    "padding": ((0, 0),),
}
IMAGE, KERNEL = TensorType(F32, (2, 6, 7, 3)), TensorType(F32, (3, 2, 3, 4))
ROWS = {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "slice_sizes": (1, 3)}
UPDATE = {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}


def sums() -> Region:
    return region(F32, "add")


# name, operand types, result type or None, attributes, regions, a part of the message
BAD: list[tuple[str, list[TensorType], TensorType | None, dict[str, Any], list[Region], str]] = [
    ("add", [V], V, {}, [], "expected 2 operands, got 1"),
    ("add", [V, M], V, {}, [], "operands must have one type, got f32[3] and f32[2,3]"),
    ("subtract", [P, P], P, {}, [], "got pred"),
    ("and", [V, V], V, {}, [], "expected elements of kind pred or signed or unsigned, got f32"),
    ("sine", [K], K, {}, [], "got s32"),
    ("abs", [TensorType(U8, ())], None, {}, [], "got u8"),
    ("compare", [V, V], P, {"comparison_direction": "XX", "compare_type": "FLOAT"}, [], "must be one of EQ, NE"),
    ("compare", [V, V], P, {"comparison_direction": "EQ", "compare_type": "SIGNED"}, [], "must be FLOAT or TOTALORDER"),
    ("compare", [V, V], P, {"compare_type": "FLOAT"}, [], "attribute 'comparison_direction' is missing"),
    ("select", [P, V, M], V, {}, [], "on_true and on_false must have one type"),
    ("select", [V, V, V], V, {}, [], "expected a predicate pred[] or pred[3], got f32[3]"),
    ("clamp", [M, V, V], V, {}, [], "expected bounds f32[] or f32[3], got f32[2,3]"),
    ("convert", [TensorType(TOKEN, ())], S, {}, [], "a token has no elements"),
    ("bitcast_convert", [V], TensorType(U8, (3,)), {}, [], "expected result of type u8[3,4], got u8[3]"),
    ("bitcast_convert", [TensorType(U8, (3,))], S, {}, [], "the last dimension must hold the 32 bits"),
    ("reduce_precision", [K], K, {"exponent_bits": 5, "mantissa_bits": 5}, [], "expected floats"),
    ("reduce_precision", [V], V, {"exponent_bits": 0, "mantissa_bits": 5}, [], "at least one exponent bit"),
    ("constant", [], V, {"value": np.zeros(4, np.float32)}, [], "expected a value array of f32[3], got float32[4]"),
    ("constant", [], V, {"value": 1}, [], "got int"),
    ("iota", [], V, {"iota_dimension": 1}, [], "iota_dimension = 1 is not a dimension of f32[3]"),
    ("iota", [], P, {"iota_dimension": 0}, [], "expected numbers, got pred"),
    ("broadcast_in_dim", [V], M, {"broadcast_dimensions": (0,)}, [], "extent 3 cannot become dimension 0"),
    ("broadcast_in_dim", [V], M, {"broadcast_dimensions": (2,)}, [], "must be distinct dimensions"),
    ("broadcast_in_dim", [V], M, {"broadcast_dimensions": ()}, [], "must have 1 entries"),
    ("reshape", [V], TensorType(F32, (4,)), {}, [], "3 elements cannot become f32[4] with 4"),
    ("transpose", [M], M, {"permutation": (0, 0)}, [], "must be distinct dimensions"),
    ("reverse", [V], V, {"dimensions": (1,)}, [], "must be distinct dimensions"),
    ("concatenate", [], V, {"dimension": 0}, [], "expected at least one operand"),
    ("concatenate", [V, V], V, {"dimension": 1}, [], "dimension = 1 is not a dimension"),
    ("concatenate", [V, K], V, {"dimension": 0}, [], "may differ in dimension 0 only"),
    ("slice", [V], V, {"start_indices": (2,), "limit_indices": (4,), "strides": (1,)}, [], "[2:4:1] is no slice"),
    ("pad", [V, N], V, {}, [], "expected a padding value f32[]"),
    (
        "pad",
        [V, S],
        V,
        {"edge_padding_low": (-2,), "edge_padding_high": (-2,), "interior_padding": (0,)},
        [],
        "negative padding leaves -1 elements",
    ),
    (
        "pad",
        [V, S],
        V,
        {"edge_padding_low": (0,), "edge_padding_high": (0,), "interior_padding": (-1,)},
        [],
        "interior_padding of dimension 0 is negative",
    ),
    ("dynamic_slice", [V, N, N], V, {"slice_sizes": (1,)}, [], "expected 1 start indices, got 2"),
    ("dynamic_slice", [V, S], V, {"slice_sizes": (1,)}, [], "must be integer scalars of one type"),
    ("dynamic_slice", [V, N], V, {"slice_sizes": (4,)}, [], "do not fit into f32[3]"),
    ("dynamic_update_slice", [V], V, {}, [], "expected an operand, an update and start indices"),
    ("dynamic_update_slice", [V, M, N], V, {}, [], "expected an update of f32 with rank 1"),
    ("dynamic_update_slice", [V, TensorType(F32, (4,)), N], V, {}, [], "the update f32[4] does not fit"),
    ("gather", [M, TensorType(F32, (5, 1))], None, gather_attributes((5, 1), ROWS), [], "expected integer indices"),
    (
        "gather",
        [M, TensorType(S32, (5, 1))],
        None,
        gather_attributes((5, 1), ROWS | {"slice_sizes": (2, 3)}),
        [],
        "must be 1 in collapsed",
    ),
    (
        "gather",
        [M, TensorType(S32, (5, 2))],
        None,
        gather_attributes((5, 2), ROWS),
        [],
        "start_index_map = (0,) must have 2 entries",
    ),
    (
        "gather",
        [M, TensorType(S32, (5, 1))],
        None,
        gather_attributes((5, 1), ROWS | {"index_vector_dim": 3}),
        [],
        "index_vector_dim = 3 is not within",
    ),
    (
        "gather",
        [M, TensorType(S32, (5, 1))],
        None,
        gather_attributes((5, 1), ROWS | {"slice_sizes": (1, 4)}),
        [],
        "do not fit",
    ),
    (
        "scatter",
        [M, TensorType(S32, (5, 1)), TensorType(F32, (4, 3))],
        None,
        scatter_attributes((5, 1), UPDATE),
        [sums()],
        "updates have batch dimensions (4,), indices (5,)",
    ),
    (
        "scatter",
        [M, TensorType(S32, (5, 1)), TensorType(F32, (5, 4))],
        None,
        scatter_attributes((5, 1), UPDATE),
        [sums()],
        "the windows of f32[5,4] do not fit into f32[2,3]",
    ),
    ("scatter", [M, M], None, scatter_attributes((5, 1), UPDATE), [sums()], "expected inputs, indices and as many"),
    ("reduce", [V], S, {"dimensions": (0,)}, [sums()], "expected inputs and as many initial values"),
    ("reduce", [V, N], S, {"dimensions": (0,)}, [sums()], "expected an initial value f32[], got s32[]"),
    ("reduce", [V, S], S, {"dimensions": (0,)}, [], "expected 1 regions, got 0"),
    ("reduce", [V, S], S, {"dimensions": (0,)}, [region(S32, "add")], "the reduction region must take (f32[], f32[])"),
    ("reduce_window", [V, S], None, WINDOW | {"window_strides": (0,)}, [sums()], "must be positive"),
    ("reduce_window", [V, S], None, WINDOW | {"base_dilations": (0,)}, [sums()], "must be positive"),
    ("reduce_window", [V, S], None, WINDOW | {"padding": ((-2, -2),)}, [sums()], "negative padding leaves -1"),
    (
        "select_and_scatter",
        [V, V, S],
        V,
        WINDOW,
        [region(F32, "add"), sums()],
        "expected a source f32[2], one element for each window, got f32[3]",
    ),
    ("dot_general", [V, M], None, DOT, [], "contracting [3] and [2] must be equal"),
    ("dot_general", [V, V], None, DOT | {"lhs_batching_dimensions": (0,)}, [], "overlap"),
    ("dot_general", [V, K], None, DOT, [], "cannot be summed up as"),
    ("convolution", [IMAGE, KERNEL], None, convolution_attributes(feature_group_count=2), [], "do not divide"),
    ("convolution", [IMAGE, V], None, convolution_attributes(), [], "must be all 4 dimensions"),
    (
        "convolution",
        [IMAGE, KERNEL],
        None,
        convolution_attributes(feature_group_count=2, batch_group_count=2),
        [],
        "one of them must be 1",
    ),
    ("if", [N], V, {}, [Region(), Region()], "expected a predicate pred[]"),
    ("case", [S], V, {}, [Region()], "expected an index s32[]"),
    ("case", [N], V, {}, [], "expected at least one branch"),
    ("map", [V, M], V, {"dimensions": (0,)}, [sums()], "operands must have one shape"),
    ("map", [V, V], V, {"dimensions": ()}, [sums()], "dimensions must be all dimensions in order"),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD, ids=lambda case: f"{case[0]}: {case[-1]}")
def test_type_rules(case: Any) -> None:
    name, operands, result, attrs, regions, message = case
    args = Region(operands).args
    op = Op(name, args, [result] if result else [], attrs, regions, Location("jit(f)", "f.py", 3))
    with pytest.raises(IrError) as caught:
        registry.verify(op)
    text = str(caught.value)
    assert message in text
    assert text.startswith(name)
    assert text.endswith("(jit(f) at f.py:3)")


def test_every_op_is_exercised() -> None:
    """Each op of StableHLO is named in a test that compares it with jaxlib."""
    folder = Path(__file__).parent
    text = "".join(path.read_text() for path in folder.glob("*_test.py") if path.name != "registry_test.py")
    missing = [
        name for name in registry.all_ops() if name != "fusion" and f'"{name}"' not in text and f"b.{name}(" not in text
    ]
    assert not missing


def test_names_are_defined_once() -> None:
    with pytest.raises(ValueError, match="defined twice"):
        registry.define("add", lambda op: ())(lambda op, inputs, context: ())


def test_builder_needs_types_where_no_rule_tells() -> None:
    b = Builder(Region([V]))
    assert b.op("negate", b.region.args[0]).type == V
    with pytest.raises(IrError, match="expected result of type f32"):
        b.op("negate", b.region.args[0], types=[M])


def test_run_op_needs_no_program() -> None:
    op = Op("add", Region([V, V]).args, [V])
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(interp.run_op(op, [x, x])[0], 2 * x)


def test_fusion_is_its_region() -> None:
    """Treadle's own op, made by the fuse stage."""
    b = Builder(Region([V, V]))
    inside = Region([V, V])
    inside.results = [Builder(inside).op("subtract", *inside.args)]
    result = b.op("fusion", *b.region.args, regions=[inside], kind="elementwise")
    assert result.type == V
    x, y = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    np.testing.assert_array_equal(interp.run_op(b.region.ops[0], [x, y])[0], x - y)
