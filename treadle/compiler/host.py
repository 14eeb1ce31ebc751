"""The features of this machine's CPU, for compiles that no plugin asked for.

The plugin detects them itself and sends them with every request.
"""

from __future__ import annotations

from pathlib import Path

from treadle.compiler.artifact import abi

# LLVM's name -> Linux's, where they differ.
_LINUX_NAMES = {
    "sse4.2": "sse4_2",
    "lzcnt": "abm",
    "bmi": "bmi1",
    "avx512vnni": "avx512_vnni",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
}


def host_cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> int:
    """Bits of the ABI's table; 0 (a baseline CPU) where it cannot be told."""
    try:
        text = cpuinfo.read_text()
    except OSError:
        return 0
    flags: set[str] = set()
    for line in text.splitlines():
        if line.startswith("flags"):
            flags = set(line.partition(":")[2].split())
            break
    return sum(1 << bit for name, bit in abi.CPU_FEATURES.items() if _LINUX_NAMES.get(name, name) in flags)
