"""The largest error over all 2^32 values of f32: `python -m tests.compiler.math.sweep [name...]`.

Takes some minutes a function; --stride N looks at every N-th value only.
"""

from __future__ import annotations

import argparse

import numpy as np

from tests.compiler.math import machine, reference
from treadle.compiler.ir import types as t

CHUNK = 2**22


def sweep(name: str, stride: int) -> tuple[float, float]:
    """The largest distance in ulps and the argument where it occurs."""
    function = machine.compiled(name, t.F32, 16)
    worst, where = 0.0, 0.0
    for start in range(0, 2**32, CHUNK * stride):
        bits = np.arange(start, min(start + CHUNK * stride, 2**32), stride, dtype=np.uint64)
        x = bits.astype(np.uint32).view(np.float32)
        distance = reference.ulps(function(x), reference.true_values(name, [x]))
        at = int(np.argmax(distance))
        if distance[at] > worst:
            worst, where = float(distance[at]), float(x[at])
    return worst, where


def main() -> None:
    unary = sorted(set(reference.FUNCTIONS) - set(machine.ARITY))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=unary)
    parser.add_argument("--stride", type=int, default=1)
    arguments = parser.parse_args()
    for name in arguments.names:
        worst, where = sweep(name, arguments.stride)
        print(f"{name:24s} {worst:.3f} ulp at {where!r}", flush=True)


if __name__ == "__main__":
    main()
