"""The op that the fuse stage makes: a group of ops that becomes one kernel or a few."""

from __future__ import annotations

from collections.abc import Sequence

from treadle.compiler.ir.core import Op
from treadle.compiler.ir.types import TensorType
from treadle.compiler.ops.control import check_region
from treadle.compiler.ops.registry import Array, Context, define, region_count


def _infer_fusion(op: Op) -> Sequence[TensorType]:
    region_count(op, 1)
    (region,) = op.regions
    results = [v.type for v in region.results]
    check_region(op, "fused", region, [v.type for v in op.operands], results)
    return results


@define("fusion", _infer_fusion)
def _fusion(op: Op, inputs: list[Array], context: Context) -> Sequence[Array]:
    """The ops one after the other: fusing changes where values are kept, not what they are."""
    return context.run(op.regions[0], inputs)
