"""Ops about devices, as they are when there is one device.

With several, the partition stage replaces them before `convert`; these sets do not apply then.
"""

from __future__ import annotations

# Results are the operands: data already where it belongs, reductions over one participant.
IDENTITIES = frozenset(
    {
        "sdy.sharding_constraint",
        "sdy.reshard",
        "sdy.propagation_barrier",
        "sdy.data_flow_edge",
        "stablehlo.all_gather",
        "stablehlo.all_reduce",
        "stablehlo.all_to_all",
        "stablehlo.collective_broadcast",
        "stablehlo.cross-replica-sum",
        "stablehlo.reduce_scatter",
    }
)

# The number of this replica or partition: 0.
IDS = frozenset({"stablehlo.partition_id", "stablehlo.replica_id"})

# Custom calls that say where data lives or how it is split.
IDENTITY_CUSTOM_CALLS = frozenset(
    {
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.GlobalToLocalShape",
        "xla.sdy.LocalToGlobalShape",
        "xla.sdy.PropagationBarrier",
        "xla.sdy.ShardingGroup",
    }
)
