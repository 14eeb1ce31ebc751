"""Movement of elements that cancels out, merges, or is a simpler kind of movement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.compiler.ir.core import Op, Value
from treadle.compiler.ir.types import TensorType
from treadle.compiler.passes.algebra import made_by
from treadle.compiler.passes.rewriter import Replacement, Rewriter, RuleSet

rules = RuleSet()

# A concatenation that absorbs its operands' operands stays below this many.
_MAX_CONCATENATED = 32


def _attr(op: Op, name: str) -> Any:
    return op.attrs[name]


def reshape(rewriter: Rewriter, value: Value, shape: Sequence[int]) -> Value:
    """`value` with another shape."""
    if value.type.shape == tuple(shape):
        return value
    return rewriter.emit("reshape", [value], TensorType(value.type.dtype, tuple(shape)))


def transpose(rewriter: Rewriter, value: Value, permutation: Sequence[int]) -> Value:
    """`value` with its dimensions in the order of `permutation`."""
    if tuple(permutation) == tuple(range(value.type.rank)):
        return value
    return rewriter.emit("transpose", [value], None, {"permutation": tuple(permutation)})


def take(
    rewriter: Rewriter,
    value: Value,
    starts: Sequence[int],
    limits: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Value:
    """A slice of `value`."""
    if strides is None:
        strides = (1,) * len(starts)
    attrs = {"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": tuple(strides)}
    return rewriter.emit("slice", [value], None, attrs)


def broadcast(rewriter: Rewriter, value: Value, shape: Sequence[int], dimensions: Sequence[int]) -> Value:
    """`value` repeated along the dimensions of `shape` that `dimensions` does not name, or where its extent is 1."""
    result = TensorType(value.type.dtype, tuple(shape))
    return rewriter.emit("broadcast_in_dim", [value], result, {"broadcast_dimensions": tuple(dimensions)})


@rules.on("reshape")
def _reshape(op: Op, rewriter: Rewriter) -> Replacement:
    (x,) = op.operands
    target = op.results[0].type
    if x.type == target:
        return x
    inner = made_by(x, "reshape")
    if inner is not None:
        return reshape(rewriter, inner.operands[0], target.shape)
    inner = made_by(x, "broadcast_in_dim")
    if inner is not None and inner.operands[0].type.size == 1:
        scalar = reshape(rewriter, inner.operands[0], ())
        return broadcast(rewriter, scalar, target.shape, ())
    return None


def _inserted_ones(shape: Sequence[int], longer: Sequence[int]) -> list[int] | None:
    """For each dimension of `shape`, which one of `longer` it is, when only extents of 1 were put in."""
    places = []
    d = 0
    for extent in shape:
        while d < len(longer) and longer[d] != extent:
            if longer[d] != 1:
                return None
            d += 1
        if d == len(longer):
            return None
        places.append(d)
        d += 1
    return places if all(n == 1 for n in longer[d:]) else None


@rules.on("broadcast_in_dim")
def _broadcast_in_dim(op: Op, rewriter: Rewriter) -> Replacement:
    (x,) = op.operands
    target = op.results[0].type
    dims = _attr(op, "broadcast_dimensions")
    if x.type.size == target.size and tuple(sorted(dims)) == tuple(dims):
        return reshape(rewriter, x, target.shape)
    inner = made_by(x, "broadcast_in_dim")
    if inner is not None:
        return broadcast(
            rewriter, inner.operands[0], target.shape, [dims[d] for d in _attr(inner, "broadcast_dimensions")]
        )
    inner = made_by(x, "reshape")
    if inner is not None:
        source = inner.operands[0]
        places = _inserted_ones(source.type.shape, x.type.shape)
        if places is not None:
            return broadcast(rewriter, source, target.shape, [dims[p] for p in places])
    inner = made_by(x, "iota")
    if inner is not None:
        counted = _attr(inner, "iota_dimension")
        if x.type.shape[counted] == target.shape[dims[counted]]:
            return rewriter.emit("iota", (), target, {"iota_dimension": dims[counted]})
    return None


@rules.on("transpose")
def _transpose(op: Op, rewriter: Rewriter) -> Replacement:
    (x,) = op.operands
    permutation = _attr(op, "permutation")
    shape = x.type.shape
    moved = [d for d in permutation if shape[d] != 1]
    if moved == sorted(moved):  # only dimensions of extent 1 change places
        return reshape(rewriter, x, op.results[0].type.shape)
    inner = made_by(x, "transpose")
    if inner is not None:
        first = _attr(inner, "permutation")
        return transpose(rewriter, inner.operands[0], [first[d] for d in permutation])
    inner = made_by(x, "broadcast_in_dim")
    if inner is not None:
        dims = [permutation.index(d) for d in _attr(inner, "broadcast_dimensions")]
        return broadcast(rewriter, inner.operands[0], op.results[0].type.shape, dims)
    inner = made_by(x, "iota")
    if inner is not None:
        counted = permutation.index(_attr(inner, "iota_dimension"))
        return rewriter.emit("iota", (), op.results[0].type, {"iota_dimension": counted})
    return None


@rules.on("reverse")
def _reverse(op: Op, rewriter: Rewriter) -> Replacement:
    (x,) = op.operands
    dims = tuple(d for d in _attr(op, "dimensions") if x.type.shape[d] > 1)
    if not dims:
        return x
    inner = made_by(x, "reverse")
    if inner is not None:
        dims = tuple(sorted(set(dims) ^ set(_attr(inner, "dimensions"))))
        return rewriter.emit("reverse", inner.operands, None, {"dimensions": dims})
    if dims != _attr(op, "dimensions"):
        return rewriter.emit("reverse", [x], None, {"dimensions": dims})
    return None


@rules.on("slice")
def _slice(op: Op, rewriter: Rewriter) -> Replacement:
    (x,) = op.operands
    starts, limits, strides = _attr(op, "start_indices"), _attr(op, "limit_indices"), _attr(op, "strides")
    if op.results[0].type == x.type:
        return x
    if not op.results[0].type.size or x.op is None:
        return None
    if x.op.name == "slice":
        return _slice_of_slice(x.op, op, rewriter)
    if x.op.name == "broadcast_in_dim":
        return _slice_of_broadcast(x.op, op, rewriter)
    if x.op.name == "concatenate":
        dim = _attr(x.op, "dimension")
        begin = 0
        for part in x.op.operands:
            end = begin + part.type.shape[dim]
            if begin <= starts[dim] and limits[dim] <= end:
                low = [*starts[:dim], starts[dim] - begin, *starts[dim + 1 :]]
                high = [*limits[:dim], limits[dim] - begin, *limits[dim + 1 :]]
                return take(rewriter, part, low, high, strides)
            begin = end
    return None


def _slice_of_slice(inner: Op, op: Op, rewriter: Rewriter) -> Value:
    first, step = _attr(inner, "start_indices"), _attr(inner, "strides")
    starts = [a + s * b for a, s, b in zip(first, step, _attr(op, "start_indices"), strict=True)]
    strides = [s * t for s, t in zip(step, _attr(op, "strides"), strict=True)]
    shape = op.results[0].type.shape
    limits = [a + (n - 1) * s + 1 for a, n, s in zip(starts, shape, strides, strict=True)]
    return take(rewriter, inner.operands[0], starts, limits, strides)


def _slice_of_broadcast(inner: Op, op: Op, rewriter: Rewriter) -> Value:
    """Slices what is broadcast, then broadcasts to the smaller shape."""
    source, dims = inner.operands[0], _attr(inner, "broadcast_dimensions")
    starts, limits, strides = _attr(op, "start_indices"), _attr(op, "limit_indices"), _attr(op, "strides")
    bounds = [
        (0, 1, 1) if n == 1 else (starts[d], limits[d], strides[d])
        for n, d in zip(source.type.shape, dims, strict=True)
    ]
    if bounds:
        low, high, step = zip(*bounds, strict=True)
        source = take(rewriter, source, low, high, step)
    return broadcast(rewriter, source, op.results[0].type.shape, dims)


@rules.on("pad")
def _pad(op: Op, rewriter: Rewriter) -> Replacement:
    x = op.operands[0]
    low, high = _attr(op, "edge_padding_low"), _attr(op, "edge_padding_high")
    interior = _attr(op, "interior_padding")
    if any(i and n > 1 for i, n in zip(interior, x.type.shape, strict=True)) or any(n > 0 for n in (*low, *high)):
        value, number = rewriter.splat(x), rewriter.splat(op.operands[1])
        if value is not None and value == number != 0:
            return rewriter.full(value, op.results[0].type)
        if not x.type.size:
            return broadcast(rewriter, op.operands[1], op.results[0].type.shape, ())
        return None
    if not any(low) and not any(high):
        return x
    shape = x.type.shape
    if any(n + a + b <= 0 or -a > n for n, a, b in zip(shape, low, high, strict=True)):
        return None
    return take(rewriter, x, [-a for a in low], [n + b for n, b in zip(shape, high, strict=True)])


@rules.on("concatenate")
def _concatenate(op: Op, rewriter: Rewriter) -> Replacement:
    dim = _attr(op, "dimension")
    parts: list[Value] = []
    count = len(op.operands)
    for value in op.operands:
        inner = made_by(value, "concatenate")
        if not value.type.shape[dim]:
            continue
        nested = inner.operands if inner is not None and _attr(inner, "dimension") == dim else [value]
        if len(nested) > 1 and (count + len(nested) > _MAX_CONCATENATED or not rewriter.used_once(value)):
            nested = [value]
        count += len(nested) - 1
        parts.extend(nested)
    merged: list[Value] = []
    for value in parts:
        joined = _joined(merged[-1], value, dim, rewriter) if merged else None
        if joined is None:
            merged.append(value)
        else:
            merged[-1] = joined
    if not merged:
        return op.operands[0]
    if len(merged) == 1:
        return merged[0]
    if len(merged) == len(op.operands) and all(a is b for a, b in zip(merged, op.operands, strict=True)):
        return None
    return rewriter.emit("concatenate", merged, None, {"dimension": dim})


def _joined(left: Value, right: Value, dim: int, rewriter: Rewriter) -> Value | None:
    """Two slices of one array that continue each other, as one slice."""
    a, b = made_by(left, "slice"), made_by(right, "slice")
    if a is None or b is None or a.operands[0] is not b.operands[0]:
        return None
    if _attr(a, "strides") != _attr(b, "strides") or _attr(a, "strides")[dim] != 1:
        return None
    starts, limits = _attr(a, "start_indices"), _attr(a, "limit_indices")
    next_starts, next_limits = _attr(b, "start_indices"), _attr(b, "limit_indices")
    for d in range(left.type.rank):
        if d != dim and (starts[d], limits[d]) != (next_starts[d], next_limits[d]):
            return None
    if limits[dim] != next_starts[dim]:
        return None
    both = [*limits[:dim], next_limits[dim], *limits[dim + 1 :]]
    return take(rewriter, a.operands[0], starts, both, _attr(a, "strides"))
