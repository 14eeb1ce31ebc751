"""How much work a kernel is, to decide whether threads are worth waking."""

from __future__ import annotations

import math

from treadle.compiler.loops.ir import Apply, Kernel, Load, Nest
from treadle.compiler.loops.walk import nest_roots, postorder, store_roots
from treadle.compiler.ops.cost import COSTLY

# Estimated picoseconds per element, of vectorised code in the first-level caches on one core.
_SIMPLE, _HARD, _MEMORY = 40, 600, 120

# A kernel is split when it is estimated to take longer than this (ps); each piece gets at least PIECE.
SPLIT_WORK = 30_000_000
PIECE_WORK = 12_000_000


def nest_work(nest: Nest) -> int:
    """Estimated picoseconds of one execution of a nest."""
    per_element = 0
    for node in postorder(nest_roots(nest)):
        if isinstance(node, Apply):
            per_element += _HARD if node.name in COSTLY else _SIMPLE
        elif isinstance(node, Load):
            per_element += _MEMORY
    per_element += _MEMORY * len(nest.stores)
    variables = nest.loops + (nest.reduction.vars if nest.reduction else ())
    iterations = math.prod(v.extent for v in variables)
    if nest.vector is None:
        per_element *= 8
    return per_element * iterations


def kernel_work(kernel: Kernel) -> int:
    """Estimated picoseconds of a kernel."""
    return math.prod(v.extent for v in kernel.outer) * sum(map(nest_work, kernel.nests))


def kernel_flops(kernel: Kernel) -> int:
    """Floating-point operations of a kernel as it is written, each op counted once per element."""
    total = 0
    for nest in kernel.nests:
        reduction = nest.reduction
        outside = sum(isinstance(n, Apply) and n.dtype.is_float for n in postorder(store_roots(nest.stores)))
        iterations = math.prod(v.extent for v in nest.loops)
        total += outside * iterations
        if reduction is not None:
            inside = postorder([*reduction.inputs, *reduction.combiner])
            per_element = sum(isinstance(n, Apply) and n.dtype.is_float for n in inside)
            total += per_element * iterations * math.prod(v.extent for v in reduction.vars)
    return total * math.prod(v.extent for v in kernel.outer)


def grain(kernel: Kernel) -> int | None:
    """The smallest piece of the kernel's range that is worth a thread, or None when it should run in one piece."""
    extent = kernel.range_extent()
    if not kernel.parallel or extent < 2:
        return None
    work = kernel_work(kernel)
    if work < SPLIT_WORK:
        return None
    pieces = max(2, work // PIECE_WORK)
    size = max(1, extent // min(pieces, extent))
    if not kernel.outer:
        # The range may be that of the vector loop: pieces of whole vectors leave one tail, at the very end.
        size = (size + 63) // 64 * 64 if extent >= 128 else size
    return size if size < extent else None
