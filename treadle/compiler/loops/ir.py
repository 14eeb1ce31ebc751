"""The loop IR: kernels as loop nests over expressions.

Between the tensor IR and LLVM IR. Every op that is not a library call becomes a `Kernel`: loops, an expression per
stored element, and affine indices into flat buffers. Elementwise fusions, reductions, windows, gathers, scatters and
small products differ only in their indices and expressions, so there is one scheduler and one code generator for all of
them.

Everything here is immutable. Expressions form a DAG: nodes are compared by identity, `build.py` makes each distinct
node once, and consumers memoise by node (never recurse without a memo: shared nodes make the tree form exponentially
larger). Two kernels are the same kernel when their canonical texts (`text.py`) are equal; the kernel cache hashes that
text.

Meaning of a kernel, by loop:

    for outer...:                     # shared by all nests; iterations are independent (may run in parallel)
        for nest in nests:            # in order
            for loops...:             # independent iterations, unless the nest is `sequential`
                acc = inits           # only with a reduction
                for reduce.vars...:   # row-major order when `kind` is None; any order otherwise
                    acc = combiner(acc, inputs)
                for store in stores:
                    buffer[index] = value                        # or combine(buffer[index], value)
"""

from __future__ import annotations

import dataclasses

from treadle.compiler.ir.types import DType


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Var:
    """A loop variable running over [0, extent). Identity matters, not the extent."""

    extent: int


@dataclasses.dataclass(frozen=True, slots=True)
class Index:
    """`const + sum(coeff * var) + sum(coeff * value of an s64 expression)`, in elements (or a coordinate).

    `terms` never holds a zero coefficient or one variable twice; `dynamic` expressions have dtype S64. Integer overflow
    cannot occur for indices that address memory.
    """

    const: int = 0
    terms: tuple[tuple[Var, int], ...] = ()
    dynamic: tuple[tuple[Expr, int], ...] = ()

    def coeff(self, var: Var) -> int:
        """The coefficient of `var` (0 when absent); says nothing of `dynamic`."""
        for v, c in self.terms:
            if v is var:
                return c
        return 0


class Expr:
    """Base of the expression nodes. Every node has a `dtype`."""

    __slots__ = ()
    dtype: DType


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Const(Expr):
    """A literal. `bits` is the value's storage as an unsigned integer, so that NaN payloads and -0.0 are themselves."""

    dtype: DType
    bits: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Load(Expr):
    """`buffer[index]`. Where `mask` is false, memory is not touched and the value is zero.

    `buffer` is a parameter number, or -1 - i for local array i.
    """

    dtype: DType
    buffer: int
    index: Index
    mask: Expr | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class IndexValue(Expr):
    """The value of an index, converted to `dtype` as StableHLO's iota does (exact for integers, rounded for floats)."""

    dtype: DType
    index: Index


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class InRange(Expr):
    """`low <= index < high`, a pred."""

    dtype: DType
    index: Index
    low: int
    high: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Apply(Expr):
    """An elementwise StableHLO op on scalars: `name` and meaning are StableHLO's.

    `attr` holds the one attribute that some ops have: the comparison direction ("EQ", "NE", "LT", "LE", "GT", "GE", or
    with suffix "_TOTAL" for a total order of floats) of `compare`; otherwise "". `convert` and `bitcast_convert` (same
    width) convert to `dtype`. `select` takes (pred, on_true, on_false); `clamp` takes (min, operand, max).
    """

    dtype: DType
    name: str
    operands: tuple[Expr, ...]
    attr: str = ""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Param(Expr):
    """Argument `number` of a combiner: accumulators (or old values) first, then elements (or new values)."""

    dtype: DType
    number: int


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Acc(Expr):
    """The final value of accumulator `number` of the nest's reduction; only in stores."""

    dtype: DType
    number: int


POSITIONED = frozenset({"argmax", "argmin"})


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """A reduction inside a nest; several accumulators share one combiner (argmax keeps value and position).

    Attributes:
      vars: reduction loops, outermost first; may be empty loops (extent 0: the result is `inits`).
      inits: starting values; one per accumulator. They may use the nest's loop variables, not the reduction's.
      inputs: the element of each accumulator.
      combiner: new accumulators in terms of Param(0..n-1) (accumulators) and Param(n..2n-1) (elements).
      kind: "add", "multiply", "maximum", "minimum", "and", "or", "xor" when there is one accumulator and the combiner
        is exactly that op on (Param 0, Param 1): it may then be reassociated (vector lanes, several accumulators,
        threads), inits being applied once. "argmax" or "argmin" when there are two, a value and its position: the
        combiner keeps the better value and, of equal ones, the position met first; NaN is better than any number.
        Positions rise along the reduction, from no less than the initial one, and nobody asks which of several zeros a
        float value is. None otherwise: in row-major order.
      acc_dtypes: the accumulators' types. A bf16/f16 sum may be kept in f32: then inputs and inits are f32 expressions
        already.
    """

    vars: tuple[Var, ...]
    inits: tuple[Expr, ...]
    inputs: tuple[Expr, ...]
    combiner: tuple[Expr, ...]
    kind: str | None
    acc_dtypes: tuple[DType, ...]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Store:
    """`buffer[index] = value`, done only where `mask` holds.

    With `combine`, the new content is that expression of Param(0..n-1) (old contents of this nest's n combining stores,
    in order) and Param(n..2n-1) (their values): a scatter. All old contents are read before any is written.
    """

    buffer: int
    index: Index
    value: Expr
    mask: Expr | None = None
    combine: Expr | None = None


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """A loop nest with an optional reduction.

    Attributes:
      loops: outermost first.
      stores: what is written in each iteration of `loops`.
      reduction: see Reduction.
      sequential: iterations must run one after the other in row-major order over the loops *not* in `independent`
        (scatter).
      independent: for a sequential nest, the loops over which iterations still never touch the same element.
      vector: the variable to run in SIMD lanes: one of `loops` or of `reduction.vars`, or None for scalar code. Set by
        the scheduler.
      unroll: the scheduler's wish for how many vectors of `vector` (or of accumulators) are in flight; 1 = no
        unrolling.
      tile: further loops of which several iterations are in flight (a register tile): (variable, how many). Set by the
        scheduler.
      lanes: elements in a vector; 1 when `vector` is None. Set by the scheduler.
    """

    loops: tuple[Var, ...]
    stores: tuple[Store, ...]
    reduction: Reduction | None = None
    sequential: bool = False
    independent: tuple[Var, ...] = ()
    vector: Var | None = None
    unroll: int = 1
    tile: tuple[tuple[Var, int], ...] = ()
    lanes: int = 1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A kernel parameter: a flat array. `size` is in elements. `written` says the kernel stores to it.

    No two parameters overlap, except that a written parameter may be the same memory as an equally typed one that is
    read only at the very index being written, in the same iteration (in-place elementwise): the planner decides that,
    code must not care.
    """

    dtype: DType
    size: int
    written: bool = False


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One function of the compiled program: `void name(void* const* params, int64_t begin, int64_t end)`.

    [begin, end) is a range of the outermost loop: `outer[0]`, or `nests[0].loops[0]` when `outer` is empty and there is
    one nest, or the single iteration [0, 1) when there is no loop. `parallel` says whether that loop may be split over
    threads (by parallel_for, at multiples of its grain); if not, the caller passes the whole range, always.

    Attributes:
      params: the buffers, in the order of the params array.
      locals: (dtype, elements) of arrays private to one iteration of `outer`; small, on the stack.
    """

    params: tuple[Buffer, ...]
    nests: tuple[Nest, ...]
    outer: tuple[Var, ...] = ()
    locals: tuple[tuple[DType, int], ...] = ()
    parallel: bool = True

    def range_extent(self) -> int:
        """How many iterations the outermost loop has: the `n` of treadle_parallel_for."""
        if self.outer:
            return self.outer[0].extent
        if len(self.nests) == 1 and self.nests[0].loops:
            return self.nests[0].loops[0].extent
        return 1
