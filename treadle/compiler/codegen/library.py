"""Descriptors of the runtime's library calls."""

from __future__ import annotations

import ctypes
import math

from treadle.compiler.artifact import abi
from treadle.compiler.fusion.library import Axes, dot_shape
from treadle.compiler.ir.core import Op
from treadle.compiler.lowering.attributes import flags, integer, ints, pairs


def _single(axes: Axes, array: int) -> tuple[int, int]:
    """(extent, stride) of a role with at most one dimension left."""
    return (axes.extents[0], axes.strides[array][0]) if axes.extents else (1, 1)


def dot_descriptor(op: Op) -> abi.Dot:
    """The TreadleDot of a dot_general in library form."""
    shape = dot_shape(op)
    d = abi.Dot()
    d.struct_size = ctypes.sizeof(abi.Dot)
    d.lhs_type, d.rhs_type = (v.type.dtype.pjrt for v in op.operands)
    d.out_type = op.result.type.dtype.pjrt
    d.num_batch = len(shape.batch.extents)
    for i, extent in enumerate(shape.batch.extents):
        d.batch[i] = extent
        d.lhs_batch_strides[i], d.rhs_batch_strides[i], d.out_batch_strides[i] = (s[i] for s in shape.batch.strides)
    d.m, d.lhs_m_stride = _single(shape.m, 0)
    _, d.out_m_stride = _single(shape.m, 1)
    d.n, d.rhs_n_stride = _single(shape.n, 0)
    _, d.out_n_stride = _single(shape.n, 1)
    d.k, d.lhs_k_stride = _single(shape.k, 0)
    _, d.rhs_k_stride = _single(shape.k, 1)
    return d


def dot_flops(op: Op) -> int:
    """Multiplications and additions of a dot_general."""
    contracted = math.prod(op.operands[0].type.shape[d] for d in ints(op, "lhs_contracting_dimensions"))
    return 2 * op.result.type.size * contracted


def convolution_descriptor(op: Op) -> abi.Convolution:
    """The TreadleConvolution of a convolution."""
    lhs, rhs, out = op.operands[0].type, op.operands[1].type, op.result.type

    c = abi.Convolution()
    c.struct_size = ctypes.sizeof(abi.Convolution)
    lhs_spatial, rhs_spatial = ints(op, "input_spatial_dimensions"), ints(op, "kernel_spatial_dimensions")
    out_spatial = ints(op, "output_spatial_dimensions")
    c.spatial_rank = len(lhs_spatial)
    c.lhs_type, c.rhs_type, c.out_type = lhs.dtype.pjrt, rhs.dtype.pjrt, out.dtype.pjrt
    c.batch, c.in_features = (
        lhs.shape[integer(op, "input_batch_dimension")],
        lhs.shape[integer(op, "input_feature_dimension")],
    )
    c.out_features = out.shape[integer(op, "output_feature_dimension")]
    c.feature_groups, c.batch_groups = integer(op, "feature_group_count"), integer(op, "batch_group_count")
    padding = pairs(op, "padding")
    for i in range(c.spatial_rank):
        c.lhs_spatial[i], c.rhs_spatial[i] = lhs.shape[lhs_spatial[i]], rhs.shape[rhs_spatial[i]]
        c.out_spatial[i] = out.shape[out_spatial[i]]
        c.window_strides[i] = ints(op, "window_strides")[i]
        c.padding_low[i], c.padding_high[i] = padding[i]
        c.lhs_dilation[i], c.rhs_dilation[i] = ints(op, "lhs_dilation")[i], ints(op, "rhs_dilation")[i]
        c.window_reversal[i] = int(flags(op, "window_reversal")[i])
    arrays = (
        (
            c.lhs_strides,
            lhs,
            (integer(op, "input_batch_dimension"), integer(op, "input_feature_dimension"), *lhs_spatial),
        ),
        (
            c.rhs_strides,
            rhs,
            (
                integer(op, "kernel_output_feature_dimension"),
                integer(op, "kernel_input_feature_dimension"),
                *rhs_spatial,
            ),
        ),
        (
            c.out_strides,
            out,
            (integer(op, "output_batch_dimension"), integer(op, "output_feature_dimension"), *out_spatial),
        ),
    )
    for target, type_, dims in arrays:
        strides = type_.strides()
        for i, d in enumerate(dims):
            target[i] = strides[d]
    return c


def convolution_flops(op: Op) -> int:
    """Multiplications and additions of a convolution, padding included."""
    kernel = op.operands[1].type
    per_output = kernel.size // kernel.shape[integer(op, "kernel_output_feature_dimension")]
    return 2 * op.result.type.size * per_output
