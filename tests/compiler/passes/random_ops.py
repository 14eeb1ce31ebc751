"""Random ops for property tests: every shape of IR that a rule looks for, on numbers that catch wrong rules.

Numbers are small and whole, so that sums are exact in any order, with infinities, NaN and both zeros among them.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.compiler.ir.core import Region, Value
from treadle.compiler.ir.types import F16, F32, PRED, S8, S32, U8, U32, DType, TensorType
from treadle.compiler.ops.build import Builder

SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (3,), (2, 3), (3, 1), (1, 2, 3), (4, 3))
DTYPES = (F32, F32, F32, F16, S32, S32, S8, U8, U32, PRED)
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.0, float("inf"), float("-inf"), float("nan"))
_DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


def numbers(rng: random.Random, t: TensorType, special: bool = True) -> np.ndarray:
    """An array of `t`."""
    if t.dtype is PRED:
        flat: list[Any] = [rng.random() < 0.5 for _ in range(t.size)]
    elif t.dtype.is_float:
        flat = [
            rng.choice(_SPECIAL) if special and rng.random() < 0.3 else float(rng.randint(-4, 4)) for _ in range(t.size)
        ]
    else:
        info = np.iinfo(t.dtype.numpy)
        edges = [int(info.min), int(info.max)]
        low = 0 if not t.dtype.is_signed else -4
        flat = [rng.choice(edges) if special and rng.random() < 0.1 else rng.randint(low, 5) for _ in range(t.size)]
    return np.array(flat, t.dtype.numpy).reshape(t.shape)


def combiner(dtype: DType, name: str) -> Region:
    region = Region([TensorType(dtype, ())] * 2)
    region.results = [Builder(region).op(name, *region.args)]
    return region


@dataclasses.dataclass
class OpMaker:
    """Makes ops without regions of control flow from a pool of values. Each method gives the values it has made."""

    rng: random.Random
    builder: Builder
    pool: list[Value]
    depth: int = 0
    line: int = 0
    neutral: bool = False

    def pick(self, accept: Callable[[Value], bool] = lambda _: True) -> Value | None:
        found = [v for v in self.pool if accept(v)]
        return self.rng.choice(found[:4] if self.rng.random() < 0.4 else found[-12:]) if found else None

    def like(self, value: Value) -> Value:
        """Another value of the same type: an old one, or a constant."""
        if self.rng.random() < 0.4:
            return self.constant(value.type)
        return self.pick(lambda v: v.type == value.type) or value

    def constant(self, t: TensorType) -> Value:
        if self.rng.random() < 0.7:
            return self.builder.constant(numbers(self.rng, TensorType(t.dtype, ())), t.shape)
        return self.builder.constant(numbers(self.rng, t))

    def number_constant(self, number: float, t: TensorType) -> Value:
        return self.builder.constant(np.asarray(number, t.dtype.numpy), t.shape)

    def arithmetic(self) -> list[Value]:
        x = self.pick()
        assert x is not None
        y = x if self.rng.random() < 0.1 else self.like(x)
        if self.rng.random() < 0.5:
            number = self.rng.choice(
                [
                    0.0,
                    -0.0,
                    1.0,
                    math.inf if x.type.dtype.is_float else 2.0,
                    -1.0 if x.type.dtype.is_signed or x.type.dtype.is_float else 2.0,
                    4.0,
                ]
            )
            y = self.number_constant(number, x.type)
        if x.type.dtype is PRED:
            names = ["and", "or", "xor", "maximum", "minimum", "add", "multiply"]
        elif x.type.dtype.is_integer:
            names = ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor"]
            names += ["shift_left", "shift_right_logical", "shift_right_arithmetic"]
        else:
            names = ["add", "subtract", "multiply", "maximum", "minimum", "divide"]
        name = self.rng.choice(names)
        operands = [x, y] if self.rng.random() < 0.5 else [y, x]
        result = self.builder.op(name, *operands)
        if x.type.dtype.is_float and name in ("multiply", "divide", "add", "subtract"):
            whole = self.builder.op("floor", result)
            bounded = self.builder.op("remainder", whole, self.number_constant(64, x.type))
            return [result, bounded] if name in ("add", "subtract") else [bounded]
        return [result]

    def power(self) -> list[Value]:
        x = self.pick(lambda v: v.type.dtype in (F32, S32, U32))
        if x is None:
            return []
        exponents = [0, 1, 2, 3] + ([-1] if x.type.dtype is F32 else [])
        result = self.builder.op("power", x, self.number_constant(self.rng.choice(exponents), x.type))
        return (
            [self.builder.op("remainder", result, self.number_constant(64, x.type))]
            if x.type.dtype is F32
            else [result]
        )

    def unary(self) -> list[Value]:
        x = self.pick()
        assert x is not None
        if x.type.dtype is PRED:
            names = ["not"]
        elif x.type.dtype.is_float:
            names = ["negate", "abs", "floor", "ceil", "sign", "round_nearest_even", "is_finite"]
        elif x.type.dtype.is_signed:
            names = ["negate", "abs", "sign", "not", "popcnt"]
        else:
            names = ["negate", "not", "popcnt"]
        name = self.rng.choice(names)
        once = self.builder.op(name, x)
        return [once, self.builder.op(name, once)] if name in ("negate", "not", "abs") else [once]

    def convert(self) -> list[Value]:
        x = self.pick()
        assert x is not None
        dtype = self.rng.choice(DTYPES)
        once = self.builder.op("convert", x, types=[TensorType(dtype, x.type.shape)])
        return [once, self.builder.op("convert", once, types=[TensorType(self.rng.choice(DTYPES), x.type.shape)])]

    def compare(self) -> list[Value]:
        x = self.pick()
        assert x is not None
        y = x if self.rng.random() < 0.2 else self.like(x)
        kind = "FLOAT" if x.type.dtype.is_float else "SIGNED" if x.type.dtype.is_signed else "UNSIGNED"
        if x.type.dtype.is_float and self.rng.random() < 0.2:
            kind = "TOTALORDER"
        return [self.builder.op("compare", x, y, comparison_direction=self.rng.choice(_DIRECTIONS), compare_type=kind)]

    def select(self) -> list[Value]:
        pred = self.pick(lambda v: v.type.dtype is PRED)
        if pred is None:
            return []
        x = self.pick(lambda v: v.type.shape == pred.type.shape or not pred.type.shape)
        if x is None:
            return []
        once = self.builder.op("select", pred, x, self.like(x))
        return [once, self.builder.op("select", pred, once, self.like(x))]

    def movement(self) -> list[Value]:
        x = self.pick()
        assert x is not None
        b, rng, rank, shape = self.builder, self.rng, x.type.rank, x.type.shape
        kind = rng.choice(["broadcast", "reshape", "transpose", "reverse", "pad", "concatenate", "iota", "barrier"])
        if kind == "broadcast":
            if rank > 3:
                return []
            target = list(shape)
            for _ in range(rng.randint(0, 1)):
                target.insert(rng.randint(0, len(target)), rng.choice([1, 2]))
            places = _subsequence(shape, target)
            grown = [3 if n == 1 and rng.random() < 0.5 else n for n in target]
            return [
                b.op("broadcast_in_dim", x, types=[TensorType(x.type.dtype, tuple(grown))], broadcast_dimensions=places)
            ]
        if kind == "reshape":
            options = [(x.type.size,), (1, *shape), (*shape, 1), (*reversed(shape),)]
            return [b.op("reshape", x, types=[TensorType(x.type.dtype, rng.choice(options))])]
        if kind == "transpose":
            return [b.op("transpose", x, permutation=tuple(rng.sample(range(rank), rank)))]
        if kind == "reverse":
            return [b.op("reverse", x, dimensions=tuple(sorted(rng.sample(range(rank), rng.randint(0, rank)))))]
        if kind == "pad":
            edges: dict[str, Any] = {
                f"edge_padding_{k}": tuple(rng.choice([0, 0, 1, -1]) for _ in shape) for k in ("low", "high")
            }
            if any(n + a + c < 0 for n, a, c in zip(shape, *edges.values(), strict=True)):
                return []
            interior = tuple(rng.choice([0, 0, 1]) for _ in shape)
            value = self.constant(TensorType(x.type.dtype, ()))
            return [v for v in [b.op("pad", x, value, interior_padding=interior, **edges)] if v.type.size]
        if kind == "concatenate" and rank:
            y = self.like(x)
            dim = rng.randrange(rank)
            once = b.op("concatenate", x, y, dimension=dim)
            return [once, b.op("concatenate", once, x, dimension=dim)] if once.type.size < 64 else [once]
        if kind == "iota" and rank and x.type.dtype is not PRED:
            return [b.op("iota", types=[x.type], iota_dimension=rng.randrange(rank))]
        return b.ops("optimization_barrier", x, self.like(x))

    def slicing(self) -> list[Value]:
        x = self.pick(lambda v: v.type.rank > 0)
        if x is None:
            return []
        starts = [self.rng.randrange(n) if self.rng.random() < 0.6 else 0 for n in x.type.shape]
        limits = [self.rng.randint(s + 1, n) for s, n in zip(starts, x.type.shape, strict=True)]
        strides = [self.rng.choice([1, 1, 2]) for _ in starts]
        attrs: dict[str, Any] = {"limit_indices": tuple(limits), "strides": tuple(strides)}
        first = self.builder.op("slice", x, start_indices=tuple(starts), **attrs)
        d = self.rng.randrange(x.type.rank)
        if limits[d] < x.type.shape[d] and strides[d] == 1:
            next_starts, next_limits = list(starts), list(limits)
            next_starts[d], next_limits[d] = limits[d], x.type.shape[d]
            attrs = {"limit_indices": tuple(next_limits), "strides": tuple(strides)}
            rest = self.builder.op("slice", x, start_indices=tuple(next_starts), **attrs)
            return [first, self.builder.op("concatenate", first, rest, dimension=d)]
        return [first]

    def reduce(self) -> list[Value]:
        x = self.pick(lambda v: v.type.rank > 0)
        if x is None:
            return []
        dtype = x.type.dtype
        names = (
            ["and", "or"] if dtype is PRED else ["add", "maximum", "minimum"] + (["and"] if dtype.is_integer else [])
        )
        dims = tuple(sorted(self.rng.sample(range(x.type.rank), self.rng.randint(1, x.type.rank))))
        init = self.constant(TensorType(dtype, ()))
        name = self.rng.choice(names)
        if self.neutral:
            init = self.number_constant(_neutral(dtype, name), init.type)
        region = combiner(dtype, name)
        return [self.builder.op("reduce", x, init, dimensions=dims, regions=[region])]

    def dot(self) -> list[Value]:
        x = self.pick(lambda v: v.type.rank >= 2 and v.type.dtype in (F32, S32))
        if x is None:
            return []
        y = self.like(x)
        b, rank = self.builder, x.type.rank
        if self.rng.random() < 0.5:
            permutation = tuple(self.rng.sample(range(rank), rank))
            left = b.op("transpose", x, permutation=permutation)
            right = b.op("transpose", y, permutation=permutation)
        else:
            left, right = x, y
        batch = tuple(range(self.rng.randint(0, rank - 2)))
        summed = (rank - 1,)
        dot = b.op(
            "dot_general",
            left,
            right,
            lhs_batching_dimensions=batch,
            rhs_batching_dimensions=batch,
            lhs_contracting_dimensions=summed,
            rhs_contracting_dimensions=summed,
        )
        if dot.type.size > 256:
            return []
        if dot.type.dtype is F32:
            dot = b.op("remainder", dot, self.number_constant(64, dot.type))
        n, free = len(batch), (dot.type.rank - len(batch)) // 2
        exchanged = (*range(n), *range(n + free, n + 2 * free), *range(n, n + free))
        return [dot, b.op("transpose", dot, permutation=exchanged)]

    def index(self) -> Value:
        found = self.pick(lambda v: v.type == TensorType(S32, ()))
        if found is None or self.rng.random() < 0.5:
            return self.builder.constant(np.int32(self.rng.randint(-2, 5)))
        return found

    def dynamic(self) -> list[Value]:
        x = self.pick(lambda v: v.type.rank > 0)
        if x is None:
            return []
        starts = [self.index() for _ in x.type.shape]
        sizes = tuple(self.rng.randint(1, n) for n in x.type.shape)
        part = self.builder.op("dynamic_slice", x, *starts, slice_sizes=sizes)
        return [part, self.builder.op("dynamic_update_slice", x, part, *(self.index() for _ in x.type.shape))]

    def gather(self) -> list[Value]:
        x = self.pick(lambda v: v.type.rank > 0)
        if x is None:
            return []
        rng, shape = self.rng, x.type.shape
        dim = rng.randrange(x.type.rank)
        count = rng.randint(1, 4)
        if rng.random() < 0.5:
            start, step = rng.randint(0, 2), rng.choice([1, 1, 2])
            indices = self.builder.constant((start + step * np.arange(count, dtype=np.int32))[:, None])
        elif rng.random() < 0.5:
            indices = self.builder.op("iota", types=[TensorType(S32, (count, 1))], iota_dimension=0)
        else:
            indices = self.builder.constant(np.array([[rng.randint(-2, 5)] for _ in range(count)], np.int32))
        offset = list(range(x.type.rank))
        batch = rng.randrange(x.type.rank)
        offset.remove(batch)
        return [
            self.builder.op(
                "gather",
                x,
                indices,
                offset_dims=tuple(offset),
                collapsed_slice_dims=(dim,),
                operand_batching_dims=(),
                start_indices_batching_dims=(),
                start_index_map=(dim,),
                index_vector_dim=1,
                slice_sizes=tuple(1 if d == dim else n for d, n in enumerate(shape)),
                indices_are_sorted=False,
            )
        ]

    def scatter(self) -> list[Value]:
        x = self.pick(lambda v: v.type.rank > 0)
        if x is None:
            return []
        rank, shape = x.type.rank, x.type.shape
        indices = self.builder.constant(np.array([[self.rng.randint(-1, 4)]], np.int32))
        update = self.constant(TensorType(x.type.dtype, (1, *shape[1:])))
        region = Region([TensorType(x.type.dtype, ())] * 2)
        region.results = [region.args[1]]
        return [
            self.builder.op(
                "scatter",
                x,
                indices,
                update,
                regions=[region],
                update_window_dims=tuple(range(1, rank)),
                inserted_window_dims=(0,),
                input_batching_dims=(),
                scatter_indices_batching_dims=(),
                scatter_dims_to_operand_dims=(0,),
                index_vector_dim=1,
                indices_are_sorted=False,
                unique_indices=False,
            )
        ]


def _neutral(dtype: DType, name: str) -> float:
    """What changes nothing when combined with."""
    if name in ("add", "or"):
        return 0
    if dtype is PRED:
        return name != "maximum"
    if name == "and":
        return -1 if dtype.is_signed else 2**dtype.bits - 1
    if dtype.is_float:
        return -math.inf if name == "maximum" else math.inf
    info = np.iinfo(dtype.numpy)
    return int(info.min if name == "maximum" else info.max)


def _subsequence(shape: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    """Dimensions of `target` that stand for those of `shape`, in order."""
    places, d = [], 0
    for n in shape:
        while target[d] != n:
            d += 1
        places.append(d)
        d += 1
    return tuple(places)
