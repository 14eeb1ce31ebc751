"""Positions in arrays that are padded, dilated, and looked at through windows."""

from __future__ import annotations

from treadle.compiler.loops.build import Builder, add_index, scale_index
from treadle.compiler.loops.ir import Expr, Index


def undilated(builder: Builder, position: Index, extent: int, step: int) -> tuple[Index, Expr | None]:
    """Which of `extent` elements, laid out `step` apart from 0 on, is at `position`, and whether one is (None: always).

    Where none is, the first result means nothing.
    """
    inside = builder.in_range(position, 0, (extent - 1) * step + 1)
    if step == 1:
        return position, inside
    quotient, remainder = builder.divmod_index(position, step)
    return quotient, builder.both(inside, builder.in_range(remainder, 0, 1))


def window_position(
    builder: Builder,
    at: Index,
    offset: Index,
    *,
    extent: int,
    stride: int,
    low: int,
    window_dilation: int = 1,
    base_dilation: int = 1,
) -> tuple[Index, Expr | None]:
    """Which element of a dimension is at `offset` in the window number `at`, and whether one is (None: always).

    Args:
      builder: of the kernel.
      at: the window.
      offset: the place in it.
      extent: elements in the dimension.
      stride: distance between windows.
      low: padding before the first element.
      window_dilation: distance between places of a window.
      base_dilation: distance between elements.
    """
    position = add_index(add_index(scale_index(at, stride), scale_index(offset, window_dilation)), Index(-low))
    return undilated(builder, position, extent, base_dilation)
