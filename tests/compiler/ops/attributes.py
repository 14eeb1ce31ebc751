"""Dimension numbers with defaults, for tests that care about a few of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def gather_attributes(indices: Sequence[int], given: dict[str, Any]) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "offset_dims": (),
        "collapsed_slice_dims": (),
        "operand_batching_dims": (),
        "start_indices_batching_dims": (),
        "index_vector_dim": 1 if len(indices) == 1 else len(indices) - 1,
        "indices_are_sorted": False,
    }
    return attrs | given


def scatter_attributes(indices: Sequence[int], given: dict[str, Any]) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "update_window_dims": (),
        "inserted_window_dims": (),
        "input_batching_dims": (),
        "scatter_indices_batching_dims": (),
        "index_vector_dim": max(len(indices) - 1, 0),
        "indices_are_sorted": False,
        "unique_indices": False,
    }
    return attrs | given


def convolution_attributes(**changes: Any) -> dict[str, Any]:
    """NHWC with HWIO, no padding."""
    attrs: dict[str, Any] = {
        "input_batch_dimension": 0,
        "input_feature_dimension": 3,
        "input_spatial_dimensions": (1, 2),
        "kernel_input_feature_dimension": 2,
        "kernel_output_feature_dimension": 3,
        "kernel_spatial_dimensions": (0, 1),
        "output_batch_dimension": 0,
        "output_feature_dimension": 3,
        "output_spatial_dimensions": (1, 2),
        "window_strides": (1, 1),
        "padding": ((0, 0), (0, 0)),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1),
        "window_reversal": (False, False),
        "feature_group_count": 1,
        "batch_group_count": 1,
    }
    return attrs | changes
