"""Appends ops to a region, with result types from the type rules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treadle.compiler.ir.core import UNKNOWN_LOCATION, Attr, Location, Op, Region, Value
from treadle.compiler.ir.types import TensorType, from_numpy
from treadle.compiler.ops import registry
from treadle.compiler.ops.registry import Array


class Builder:
    """Builds the ops of one region in order."""

    def __init__(self, region: Region, loc: Location = UNKNOWN_LOCATION):
        self.region = region
        self.loc = loc

    def op(
        self,
        name: str,
        *operands: Value,
        types: Sequence[TensorType] = (),
        regions: Sequence[Region] = (),
        **attrs: Attr,
    ) -> Value:
        """Appends an op with one result and gives that. `types` is needed only where no rule tells the result."""
        return self.ops(name, *operands, types=types, regions=regions, **attrs)[0]

    def ops(
        self,
        name: str,
        *operands: Value,
        types: Sequence[TensorType] = (),
        regions: Sequence[Region] = (),
        **attrs: Attr,
    ) -> list[Value]:
        """Appends an op and gives its results."""
        op = Op(name, operands, types, attrs, regions, self.loc)
        inferred = registry.get(op).infer(op)
        if not types:
            op.results = [Value(t, op, i) for i, t in enumerate(inferred)]
        registry.verify(op)
        return self.region.append(op).results

    def constant(self, value: Array | np.generic, shape: Sequence[int] | None = None) -> Value:
        """A constant; with `shape`, a splat of a scalar `value`."""
        array = np.asarray(value)
        if shape is not None:
            array = np.broadcast_to(array, tuple(shape))
        return self.op("constant", types=(TensorType(from_numpy(array.dtype), array.shape),), value=array)
