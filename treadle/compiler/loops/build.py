"""Making loop-IR nodes: interning, constant folding of the obvious, and index arithmetic.

One `Builder` per kernel. Nodes made by one builder are unique: equal fields give the same object.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType, row_major_strides
from treadle.compiler.loops.ir import Apply, Const, Expr, Index, IndexValue, InRange, Load, Param, Var


def const_bits(dtype: DType, value: object) -> int:
    """The storage bits of `value` (a Python or NumPy scalar) as `dtype`, as an unsigned integer."""
    return int.from_bytes(np.asarray(value, dtype.numpy).tobytes(), "little")


def const_value(const: Const) -> object:
    """The NumPy scalar that `const` stands for."""
    return np.frombuffer(const.bits.to_bytes(const.dtype.bytes, "little"), const.dtype.numpy)[0]


def add_index(a: Index, b: Index) -> Index:
    """a + b."""
    if not b.terms and not b.dynamic:
        return a if b.const == 0 else Index(a.const + b.const, a.terms, a.dynamic)
    if not a.terms and not a.dynamic and a.const == 0:
        return b
    terms = dict(a.terms)
    for var, coeff in b.terms:
        terms[var] = terms.get(var, 0) + coeff
    dynamic = dict(a.dynamic)
    for expr, coeff in b.dynamic:
        dynamic[expr] = dynamic.get(expr, 0) + coeff
    return Index(
        a.const + b.const,
        tuple((v, c) for v, c in terms.items() if c),
        tuple((e, c) for e, c in dynamic.items() if c),
    )


def scale_index(a: Index, factor: int) -> Index:
    """a * factor."""
    if factor == 1:
        return a
    if factor == 0:
        return Index()
    return Index(
        a.const * factor, tuple((v, c * factor) for v, c in a.terms), tuple((e, c * factor) for e, c in a.dynamic)
    )


def index_of(var: Var, coeff: int = 1, const: int = 0) -> Index:
    """coeff * var + const; a variable that only takes the value 0 contributes nothing."""
    if var.extent == 1:
        return Index(const)
    return Index(const, ((var, coeff),))


def linear_index(coordinates: Sequence[Index], strides: Sequence[int], offset: int = 0) -> Index:
    """sum(coordinate * stride) + offset."""
    total = Index(offset)
    for coordinate, stride in zip(coordinates, strides, strict=True):
        total = add_index(total, scale_index(coordinate, stride))
    return total


def index_bounds(index: Index) -> tuple[int, int] | None:
    """Smallest and largest value over all iterations, or None when `index` has dynamic parts."""
    if index.dynamic:
        return None
    low = high = index.const
    for var, coeff in index.terms:
        reach = coeff * (var.extent - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


class Builder:
    """Interns expression nodes for one kernel."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[object, ...], Expr] = {}

    def _intern(self, key: tuple[object, ...], node: Expr) -> Expr:
        return self._nodes.setdefault(key, node)

    def const(self, dtype: DType, value: object) -> Expr:
        return self.const_bits(dtype, const_bits(dtype, value))

    def const_bits(self, dtype: DType, bits: int) -> Expr:
        return self._intern((Const, dtype, bits), Const(dtype, bits))

    def load(self, dtype: DType, buffer: int, index: Index, mask: Expr | None = None) -> Expr:
        return self._intern((Load, dtype, buffer, index, mask), Load(dtype, buffer, index, mask))

    def param(self, dtype: DType, number: int) -> Expr:
        return self._intern((Param, dtype, number), Param(dtype, number))

    def apply(self, dtype: DType, name: str, operands: Iterable[Expr], attr: str = "") -> Expr:
        ops = tuple(operands)
        if name == "convert" and ops[0].dtype is dtype:
            return ops[0]
        if name == "select" and isinstance(ops[0], Const):
            return ops[1] if ops[0].bits else ops[2]
        return self._intern((Apply, dtype, name, ops, attr), Apply(dtype, name, ops, attr))

    def both(self, a: Expr | None, b: Expr | None) -> Expr | None:
        """The conjunction of two masks, where None means "always"."""
        if a is None or b is None or a is b:
            return b if a is None else a
        return self.apply(t.PRED, "and", (a, b))

    def index_value(self, index: Index, dtype: DType) -> Expr:
        """The value of `index` as `dtype`."""
        if not index.terms and not index.dynamic:
            return self.const(dtype, _wrap(index.const, dtype))
        if dtype is t.S64 and not index.terms and index.const == 0 and len(index.dynamic) == 1:
            ((expr, coeff),) = index.dynamic
            if coeff == 1:
                return expr
        return self._intern((IndexValue, dtype, index), IndexValue(dtype, index))

    def in_range(self, index: Index, low: int, high: int) -> Expr | None:
        """`low <= index < high`; None when that always holds."""
        bounds = index_bounds(index)
        if bounds is not None:
            if bounds[0] >= low and bounds[1] < high:
                return None
            if bounds[1] < low or bounds[0] >= high:
                return self.const(t.PRED, False)
        return self._intern((InRange, index, low, high), InRange(t.PRED, index, low, high))

    def dynamic_index(self, expr: Expr) -> Index:
        """An index with the value of an S64 expression."""
        if isinstance(expr, Const):
            return Index(int(const_value(expr)))  # type: ignore[call-overload]
        if isinstance(expr, IndexValue) and expr.dtype is t.S64:
            return expr.index
        return Index(0, (), ((expr, 1),))

    def divmod_index(self, index: Index, divisor: int) -> tuple[Index, Index]:
        """Quotient and remainder of an index by a positive constant, affine where that can be shown.

        Where the index is negative, they mean nothing.
        """
        if divisor == 1:
            return index, Index()
        bounds = index_bounds(index)
        if bounds is not None:
            if bounds[0] >= 0 and bounds[1] < divisor:
                return Index(), index
            # Terms divisible by the divisor go to the quotient; if what is left stays within [0, divisor), it is the
            # remainder.
            inside = Index(index.const % divisor, tuple((v, c) for v, c in index.terms if c % divisor))
            inner = index_bounds(inside)
            assert inner is not None
            if inner[0] >= 0 and inner[1] < divisor:
                quotient = Index(
                    index.const // divisor, tuple((v, c // divisor) for v, c in index.terms if c % divisor == 0)
                )
                return quotient, inside
        value = self.index_value(index, t.S64)
        by = self.const(t.S64, divisor)
        quotient = self.dynamic_index(self.apply(t.S64, "divide", (value, by)))
        remainder = self.dynamic_index(self.apply(t.S64, "remainder", (value, by)))
        return quotient, remainder


def _wrap(value: int, dtype: DType) -> object:
    """An integer reduced to what `dtype` can hold (two's complement), or as a float."""
    if not dtype.is_integer:
        return value
    bits = dtype.bits
    value &= (1 << bits) - 1
    if dtype.is_signed and value >> (bits - 1):
        value -= 1 << bits
    return value


def divide_coordinates(
    builder: Builder, at: Sequence[Index], from_shape: Sequence[int], to_shape: Sequence[int]
) -> tuple[Index, ...]:
    """Coordinates, in an array of `to_shape`, of the element at `at` in one of `from_shape`, which has the same size.

    Works group by group (the shortest runs of dimensions with equal products), so that a split or merge of dimensions
    stays affine.
    """
    result: list[Index] = []
    i, j = 0, 0
    while j < len(to_shape) or i < len(from_shape):
        first_i, first_j = i, j
        size_i = from_shape[i] if i < len(from_shape) else 1
        size_j = to_shape[j] if j < len(to_shape) else 1
        i, j = min(i + 1, len(from_shape)), min(j + 1, len(to_shape))
        while size_i != size_j:
            if size_i < size_j:
                size_i *= from_shape[i]
                i += 1
            else:
                size_j *= to_shape[j]
                j += 1
        result.extend(_regroup(builder, at[first_i:i], from_shape[first_i:i], to_shape[first_j:j]))
    return tuple(result)


def _regroup(builder: Builder, at: Sequence[Index], from_shape: Sequence[int], to_shape: Sequence[int]) -> list[Index]:
    if tuple(from_shape) == tuple(to_shape):
        return list(at)
    linear = linear_index(at, row_major_strides(tuple(from_shape)))
    coordinates: list[Index] = []
    for extent in reversed(to_shape[1:]):
        linear, remainder = builder.divmod_index(linear, extent)
        coordinates.append(remainder)
    return [linear, *reversed(coordinates)] if to_shape else []
