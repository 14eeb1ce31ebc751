"""The machine that code is generated for, as far as the code generator cares."""

from __future__ import annotations

import functools

from treadle.compiler.artifact import abi


class Target:
    """A CPU, described by the feature bits of the ABI.

    Attributes:
      cpu_features: bits of TREADLE_CPU_FEATURES; unknown bits are dropped, for the compiler cannot use what it does not
        know.
      vector_bytes: width of the vector registers to use.
      masked_memory: whether masked vector loads and stores of every element width are single instructions.
      cpu: LLVM's CPU name (a baseline: what the code may use is said by `features` alone).
      features: LLVM's feature string.
    """

    __slots__ = ("_names", "cpu", "cpu_features", "features", "masked_memory", "vector_bytes")

    def __init__(self, cpu_features: int):
        self._names = frozenset(name for name, bit in abi.CPU_FEATURES.items() if cpu_features >> bit & 1)
        self.cpu_features = sum(1 << abi.CPU_FEATURES[name] for name in self._names)
        self.masked_memory = {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= self._names
        self.vector_bytes = 64 if self.masked_memory else 32 if "avx2" in self._names else 16
        self.cpu = "x86-64"
        self.features = ",".join(("+" if name in self._names else "-") + name for name in sorted(abi.CPU_FEATURES))

    def has(self, feature: str) -> bool:
        """Whether the CPU has a feature, by LLVM's name; a name that the ABI does not list is a KeyError."""
        abi.CPU_FEATURES[feature]
        return feature in self._names

    @property
    def key(self) -> str:
        """What distinguishes this target from others in a cache key."""
        return f"{self.cpu}:{self.cpu_features:x}"

    def __repr__(self) -> str:
        return f"Target({self.cpu_features:#x})"


@functools.cache
def target_for(cpu_features: int) -> Target:
    """The one Target of these feature bits."""
    return Target(cpu_features)
