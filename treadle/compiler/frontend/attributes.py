"""MLIR attributes as the plain values that the IR keeps: int, bool, float, str, tuples, None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treadle.compiler.frontend.mlir import ir, stablehlo

Plain = Any  # int | bool | float | str | None | tuple[Plain, ...] | dict[str, Plain] (a struct)

# StableHLO's structs: binding -> (field of the binding, name of the IR's attribute).
_STRUCTS: dict[str, tuple[tuple[str, str], ...]] = {
    "DotDimensionNumbers": (
        ("lhs_batching_dimensions", "lhs_batching_dimensions"),
        ("rhs_batching_dimensions", "rhs_batching_dimensions"),
        ("lhs_contracting_dimensions", "lhs_contracting_dimensions"),
        ("rhs_contracting_dimensions", "rhs_contracting_dimensions"),
    ),
    "GatherDimensionNumbers": (
        ("offset_dims", "offset_dims"),
        ("collapsed_slice_dims", "collapsed_slice_dims"),
        ("operand_batching_dims", "operand_batching_dims"),
        ("start_indices_batching_dims", "start_indices_batching_dims"),
        ("start_index_map", "start_index_map"),
        ("index_vector_dim", "index_vector_dim"),
    ),
    "ScatterDimensionNumbers": (
        ("update_window_dims", "update_window_dims"),
        ("inserted_window_dims", "inserted_window_dims"),
        ("input_batching_dims", "input_batching_dims"),
        ("scatter_indices_batching_dims", "scatter_indices_batching_dims"),
        ("scattered_dims_to_operand_dims", "scatter_dims_to_operand_dims"),
        ("index_vector_dim", "index_vector_dim"),
    ),
    "ConvDimensionNumbers": (
        ("input_batch_dimension", "input_batch_dimension"),
        ("input_feature_dimension", "input_feature_dimension"),
        ("input_spatial_dimensions", "input_spatial_dimensions"),
        ("kernel_input_feature_dimension", "kernel_input_feature_dimension"),
        ("kernel_output_feature_dimension", "kernel_output_feature_dimension"),
        ("kernel_spatial_dimensions", "kernel_spatial_dimensions"),
        ("output_batch_dimension", "output_batch_dimension"),
        ("output_feature_dimension", "output_feature_dimension"),
        ("output_spatial_dimensions", "output_spatial_dimensions"),
    ),
}


class AttributeReader:
    """Converts attributes, each distinct one once (MLIR interns them, so equality is cheap)."""

    def __init__(self) -> None:
        self._known: dict[ir.Attribute, Plain] = {}

    def read(self, attribute: ir.Attribute, binding: str = "") -> Plain:
        """The plain value; a struct is a dict.

        Args:
          attribute: what to read.
          binding: for StableHLO's own structs and enums, the class that reads them; jaxlib gives
            these as bare attributes.

        Raises:
          TypeError: of a kind that no op has.
        """
        try:
            return self._known[attribute]
        except KeyError:
            value = self._known[attribute] = self._read(attribute, binding)
            return value

    def _read(self, attribute: ir.Attribute, binding: str) -> Plain:
        if binding:
            bound = getattr(stablehlo, binding)(attribute)
            fields = _STRUCTS.get(binding)
            if fields is None:
                return bound.value  # an enum
            return {name: _plain(getattr(bound, field)) for field, name in fields}
        reader = _READERS.get(type(attribute))
        if reader is not None:
            return reader(attribute)
        if isinstance(attribute, ir.ArrayAttr):
            return tuple(self.read(a) for a in attribute)
        raise TypeError(f"attribute {attribute}")


def _plain(value: Plain) -> Plain:
    return tuple(value) if isinstance(value, list) else value


def _integers(attribute: Any) -> Plain:
    """A dense elements attribute of integers (`padding`, replica groups) as nested tuples."""

    def tuples(value: Any) -> Plain:
        return tuple(tuples(v) for v in value) if isinstance(value, list) else value

    return tuples(np.asarray(memoryview(attribute)).tolist())


_READERS: dict[type, Callable[[Any], Plain]] = {
    ir.IntegerAttr: lambda a: a.value,
    ir.BoolAttr: lambda a: a.value,
    ir.FloatAttr: lambda a: a.value,
    ir.StringAttr: lambda a: a.value,
    ir.FlatSymbolRefAttr: lambda a: a.value,
    ir.UnitAttr: lambda _: True,
    ir.DenseI64ArrayAttr: tuple,
    ir.DenseI32ArrayAttr: tuple,
    ir.DenseBoolArrayAttr: tuple,
    ir.DenseIntElementsAttr: _integers,
}
