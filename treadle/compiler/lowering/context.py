"""Turning tensor values into expressions at given coordinates."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.ir.core import Region, Value
from treadle.compiler.loops.build import Builder, divide_coordinates, index_of, linear_index
from treadle.compiler.loops.ir import Apply, Expr, Index, Param, Var
from treadle.compiler.lowering import registry
from treadle.compiler.lowering.registry import Coordinates


class Context:
    """Lowers the values of one kernel.

    A value is *bound* to a buffer (parameter or local array; row-major in its own shape), and then an element is a
    load; or *given* as an expression that is right wherever it is asked for (an accumulator); or computed by its op's
    element rule from its operands' elements.
    """

    def __init__(self, builder: Builder):
        self.builder = builder
        self.bound: dict[Value, int] = {}
        self.given: dict[Value, Expr] = {}
        # Values bound to a local array hold one iteration of the outer loops: so many leading dimensions are dropped
        # when indexing.
        self.local_drop: dict[Value, int] = {}
        self._memo: dict[tuple[Value, Coordinates, Expr | None], Expr] = {}

    def forget(self) -> None:
        """Drops remembered elements.

        Called when a value becomes bound, so that later code loads it instead of computing it again.
        """
        self._memo.clear()

    def element(self, value: Value, at: Coordinates, mask: Expr | None = None) -> Expr:
        """The element of `value` at coordinates `at`; memory is touched only where `mask` holds."""
        key = (value, at, mask)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._element(value, at, mask)
        return found

    def _element(self, value: Value, at: Coordinates, mask: Expr | None) -> Expr:
        if value in self.given:
            return self.given[value]
        buffer = self.bound.get(value)
        if buffer is not None:
            return self.builder.load(value.type.dtype, buffer, self.position(value, at), mask)
        op = value.op
        rule = registry.find(op.name) if op is not None else None
        if op is None or rule is None:
            what = "argument" if op is None else op.name
            raise CompileError(StatusCode.INTERNAL, f"lowering: {what} of type {value.type} reached a kernel unbound")
        return rule(self, op, value.index, at, mask)

    def position(self, value: Value, at: Coordinates) -> Index:
        """The linear index of coordinates `at` in the buffer that holds `value`."""
        drop = self.local_drop.get(value, 0)
        return linear_index(at[drop:], value.type.strides()[drop:])

    def reshaped(self, at: Coordinates, from_shape: Sequence[int], to_shape: Sequence[int]) -> Coordinates:
        """Coordinates in `to_shape` of the element at `at` in `from_shape` (which has the same number of elements)."""
        return divide_coordinates(self.builder, at, from_shape, to_shape)

    def region(self, region: Region, arguments: Sequence[Expr]) -> list[Expr]:
        """The results of a scalar region (a combiner) applied to expressions."""
        saved, self._memo = self._memo, {}
        try:
            for arg, expr in zip(region.args, arguments, strict=True):
                self._memo[(arg, (), None)] = expr
            return [self.element(v, ()) for v in region.results]
        finally:
            self._memo = saved

    def combiner(self, region: Region) -> tuple[Expr, ...]:
        """A combiner region as expressions of Param(i)."""
        params = [self.builder.param(arg.type.dtype, i) for i, arg in enumerate(region.args)]
        return tuple(self.region(region, params))


_KINDS = frozenset(("add", "multiply", "maximum", "minimum", "and", "or", "xor"))


def combiner_kind(combiner: Sequence[Expr]) -> str | None:
    """The reassociable operation that a combiner is, or None: see loops.ir.Reduction.kind."""
    if len(combiner) != 1:
        return None
    node = combiner[0]
    if not isinstance(node, Apply) or node.name not in _KINDS:
        return None
    numbers = {o.number for o in node.operands if isinstance(o, Param)}
    return node.name if numbers == {0, 1} else None


def loop_vars(shape: Sequence[int]) -> tuple[tuple[Var, ...], Coordinates]:
    """Fresh loop variables over `shape` and the coordinates they give."""
    variables = tuple(Var(extent) for extent in shape)
    return variables, tuple(index_of(v) for v in variables)
