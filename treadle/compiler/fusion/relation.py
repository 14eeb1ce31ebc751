"""How an op reads a value through virtual ops: at its own position, along a row, or somewhere else."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence

from treadle.compiler.ir.core import Op, Value
from treadle.compiler.lowering.attributes import ints


class Access(enum.Enum):
    """Which element of a value an op reads, seen from the element that it computes."""

    SAME = "the element with the same linear index"
    ROW = "the element whose linear index is that of the leading coordinates"
    OTHER = "anything else"


@dataclasses.dataclass(frozen=True, slots=True)
class Read:
    """A value that an operand comes down to.

    Attributes:
      value: the value that is not virtual itself.
      access: how it is read.
      rank: for ROW, how many leading dimensions of the reader's shape it covers.
      grows: whether one element may be read for several positions (a broadcast or a repeated window).
    """

    value: Value
    access: Access
    rank: int = 0
    grows: bool = False


def resolve(value: Value, is_virtual: Callable[[Value], bool]) -> Read | None:
    """Follows virtual ops from `value` to what they read; None when that is nothing (iota, a splat)."""
    shape = value.type.shape
    access, rank, grows = Access.SAME, 0, False
    while is_virtual(value):
        op = value.op
        assert op is not None
        if not op.operands:
            return None
        name = op.name
        if name == "reshape" or access is Access.OTHER:
            pass
        elif name == "broadcast_in_dim" and access is Access.SAME and op.result.type.shape == shape:
            covered = _leading(op.operands[0].type.shape, ints(op, "broadcast_dimensions"), shape)
            access = Access.OTHER if covered is None else Access.ROW
            rank = covered or 0
            if covered is not None and all(e == 1 for e in shape[covered:]):
                access = Access.SAME
        elif name == "broadcast_in_dim" and _only_adds_ones(op):
            pass
        else:
            access = Access.OTHER
        grows = grows or (name == "broadcast_in_dim" and op.operands[0].type.size < op.result.type.size)
        value = op.operands[0]
    return Read(value, access, rank, grows)


def _only_adds_ones(op: Op) -> bool:
    """Whether a broadcast_in_dim adds nothing but dimensions of extent 1 and keeps the others in order."""
    operand = op.operands[0].type
    kept = [d for extent, d in zip(operand.shape, ints(op, "broadcast_dimensions"), strict=True) if extent != 1]
    return operand.size == op.result.type.size and kept == sorted(kept)


def _leading(operand: Sequence[int], dims: Sequence[int], shape: Sequence[int]) -> int | None:
    """k when the operand's dimensions, extents of 1 aside, are exactly the first k of `shape`, in order; else None."""
    placed = [(d, extent) for d, extent in zip(dims, operand, strict=True) if extent != 1]
    want = 0
    for d, extent in placed:
        while want < d and shape[want] == 1:
            want += 1
        if d != want or shape[d] != extent:
            return None
        want = d + 1
    return want
