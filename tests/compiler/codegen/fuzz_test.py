"""Random kernels against the interpreter: as the scheduler plans them, and under plans it would never choose."""

import dataclasses
import math
import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.compiler.codegen.cases import assert_same, expected, pieces_of, random_array
from tests.compiler.codegen.harness import AVX2, HOST, SSE, Library
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import row_major_strides
from treadle.compiler.loops.build import Builder, add_index, index_bounds, index_of, linear_index
from treadle.compiler.loops.ir import Acc, Buffer, Index, Kernel, Nest, Reduction, Store, Var
from treadle.compiler.loops.schedule import schedule
from treadle.compiler.loops.text import kernel_text

EXAMPLES = int(os.environ.get("TREADLE_FUZZ_EXAMPLES", "25"))
EXTENTS = st.sampled_from([1, 2, 3, 4, 7, 8, 16, 17, 33, 50])
DTYPES = st.sampled_from([t.S32, t.U8, t.S64, t.F32, t.BF16, t.PRED, t.S16, t.F16, t.F64, t.U32])
NUMBER_OPS = st.sampled_from(["add", "multiply", "subtract", "maximum", "minimum", "divide"])
PRED_OPS = st.sampled_from(["and", "or", "xor", "maximum"])


@dataclasses.dataclass
class Case:
    """A kernel with its buffers, and a plan to force upon it."""

    kernel: Kernel
    buffers: list[np.ndarray]
    forced: Kernel


def bounds(index: Index) -> tuple[int, int]:
    """The smallest and largest value of an index that has no dynamic part."""
    found = index_bounds(index)
    assert found is not None
    return found


class Maker:
    """Draws the pieces of one kernel."""

    def __init__(self, draw):
        self.draw = draw
        self.b = Builder()
        self.params: list[Buffer] = []
        self.buffers: list[np.ndarray] = []

    def buffer(self, dtype, size, written=False):
        self.params.append(Buffer(dtype, size, written))
        self.buffers.append(random_array(dtype, size, len(self.params)))
        return len(self.params) - 1

    def index(self, variables) -> Index:
        """An affine index, not negative."""
        if self.draw(st.booleans()):
            order = self.draw(st.permutations(variables))
            index = linear_index([index_of(v) for v in order], row_major_strides(tuple(v.extent for v in order)))
        else:
            index = Index()
            for var in variables:
                coeff = self.draw(st.sampled_from([0, 1, 1, 2, -1, -3, 5]))
                index = add_index(index, index_of(var, coeff)) if coeff else index
        return Index(index.const - bounds(index)[0], index.terms)

    def load(self, dtype, variables):
        index = self.index(variables)
        size = bounds(index)[1] + 1
        how = self.draw(st.sampled_from(["plain", "plain", "masked", "gather"]))
        if how == "plain":
            return self.b.load(dtype, self.buffer(dtype, size), index)
        if how == "masked":
            low, high = sorted([self.draw(st.integers(0, size)), self.draw(st.integers(0, size))])
            mask = self.b.in_range(index, low, max(high, low + 1))
            shifted = Index(index.const - low, index.terms)
            return self.b.load(dtype, self.buffer(dtype, max(high - low, 1)), shifted, mask)
        rows = self.draw(st.integers(1, 9))
        raw = self.b.load(t.S32, self.buffer(t.S32, size), index)
        wide = self.b.apply(t.S64, "convert", [raw])
        row = self.b.apply(t.S64, "clamp", [self.b.const(t.S64, 0), wide, self.b.const(t.S64, rows - 1)])
        within = self.index(variables)
        width = bounds(within)[1] + 1
        place = add_index(Index(0, (), ((row, width),)), within)
        return self.b.load(dtype, self.buffer(dtype, rows * width), place)

    def leaf(self, dtype, variables):
        how = self.draw(st.sampled_from(["load", "load", "const", "index"]))
        if how == "const" or (how == "index" and dtype is t.PRED):
            return self.b.const_bits(dtype, self.draw(st.sampled_from([0, 1])))
        if how == "index":
            return self.b.index_value(self.index(variables), dtype)
        return self.load(dtype, variables)

    def expr(self, dtype, variables, depth=0):
        if depth == 2 or self.draw(st.integers(0, 3)) == 0:
            return self.leaf(dtype, variables)
        how = self.draw(st.sampled_from(["op", "op", "select", "convert"]))
        if how == "select":
            other = self.draw(DTYPES)
            pair = [self.leaf(other, variables) for _ in range(2)]
            pred = self.b.apply(t.PRED, "compare", pair, self.draw(st.sampled_from(["EQ", "LT", "GE"])))
            arms = [self.expr(dtype, variables, depth + 1) for _ in range(2)]
            return self.b.apply(dtype, "select", [pred, *arms])
        if how == "convert":
            return self.b.apply(dtype, "convert", [self.leaf(self.draw(DTYPES), variables)])
        name = self.draw(PRED_OPS if dtype is t.PRED else NUMBER_OPS)
        return self.b.apply(dtype, name, [self.expr(dtype, variables, depth + 1) for _ in range(2)])


@st.composite
def cases(draw):
    maker = Maker(draw)
    b = maker.b
    dtype = draw(DTYPES)
    loops = [Var(e) for e in draw(st.lists(EXTENTS, min_size=0, max_size=3)) if e]
    while math.prod(v.extent for v in loops) > 3000:
        loops.pop()
    outer = loops[:1] if len(loops) > 1 and draw(st.booleans()) else []
    inner = loops[len(outer) :]
    red = None
    value = maker.expr(dtype, loops)
    if draw(st.booleans()):
        red_vars = [Var(e) for e in draw(st.lists(st.sampled_from([0, 1, 3, 5, 16, 40]), min_size=1, max_size=2))]
        kinds = (
            ["and", "or"]
            if dtype is t.PRED
            else ["maximum", "minimum"]
            if dtype.is_float
            else ["add", "maximum", "xor"]
        )
        kind = draw(st.sampled_from(kinds))
        combiner = b.apply(dtype, kind, [b.param(dtype, 0), b.param(dtype, 1)])
        element = maker.expr(dtype, [*loops, *red_vars])
        known = kind if draw(st.booleans()) else None
        red = Reduction(tuple(red_vars), (value,), (element,), (combiner,), known, (dtype,))
        value = b.apply(
            dtype, draw(PRED_OPS if dtype is t.PRED else st.just("maximum")), [Acc(dtype, 0), maker.leaf(dtype, loops)]
        )
    order = draw(st.permutations(loops))
    out = linear_index([index_of(v) for v in order], row_major_strides(tuple(v.extent for v in order)))
    mask = None
    if draw(st.integers(0, 3)) == 0 and loops:
        mask = b.in_range(index_of(draw(st.sampled_from(loops))), 1, 9)
    size = math.prod(v.extent for v in loops)
    stores = (Store(maker.buffer(dtype, max(size, 1), True), out, value, mask),)
    nest = Nest(tuple(inner), stores, red)
    kernel = Kernel(tuple(maker.params), (nest,), tuple(outer))
    return Case(kernel, maker.buffers, dataclasses.replace(kernel, nests=(forced_plan(draw, nest),)))


def forced_plan(draw, nest):
    """Any plan that the code generator must be able to carry out."""
    reducible = list(nest.reduction.vars) if nest.reduction is not None and nest.reduction.kind is not None else []
    reducible = [v for v in reducible if v.extent > 0]
    candidates = [v for v in nest.loops if all(s.index.coeff(v) for s in nest.stores)] + reducible
    tile = []
    vector = draw(st.sampled_from(candidates)) if candidates and draw(st.integers(0, 4)) else None
    for var in [*nest.loops, *reducible]:
        if var is not vector and draw(st.integers(0, 2)) == 0:
            tile.append((var, draw(st.sampled_from([2, 3, 8]))))
    if vector is None:
        return dataclasses.replace(nest, tile=tuple(tile[:1]))
    lanes = draw(st.sampled_from([2, 4, 8, 16]))
    unroll = draw(st.sampled_from([1, 2, 4]))
    reduction = nest.reduction
    if vector in reducible:
        reduction = dataclasses.replace(reduction, vars=(*[v for v in reduction.vars if v is not vector], vector))
    return dataclasses.replace(
        nest, vector=vector, lanes=lanes, unroll=unroll, tile=tuple(tile[:1]), reduction=reduction
    )


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=EXAMPLES <= 25)
@given(st.lists(cases(), min_size=1, max_size=6), st.sampled_from([HOST, HOST, AVX2, SSE]))
def test_random_kernels(drawn, target):
    """Integers, comparisons and roundings: every result must be right to the bit."""
    kernels = []
    for case in drawn:
        kernels += [schedule(case.kernel, target), schedule(case.kernel, target, split_work=0), case.forced]
    library = Library(kernels, target)
    for number, kernel in enumerate(kernels):
        case = drawn[number // 3]
        want = expected(case.kernel, case.buffers)
        try:
            assert_same(library.results(number, case.buffers), want)
            if kernel.parallel and kernel.range_extent() > 2:
                assert_same(library.results(number, case.buffers, pieces_of(kernel)), want)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{kernel_text(kernel)}") from None
