"""The canonical text of a kernel: equal texts, equal kernels. Dumps show it, and the kernel cache hashes it.

Variables and expressions are numbered in the order in which they are met, so neither object identity nor the order in
which a builder happened to make nodes shows.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.compiler.loops.ir import (
    Acc,
    Apply,
    Const,
    Expr,
    Index,
    IndexValue,
    InRange,
    Kernel,
    Load,
    Nest,
    Param,
    Store,
    Var,
)
from treadle.compiler.loops.walk import children


def kernel_text(kernel: Kernel) -> str:
    """The canonical text; every field that can change the generated code is in it."""
    return _Writer().kernel(kernel)


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.vars: dict[Var, int] = {}
        self.names: dict[Expr, str] = {}

    def kernel(self, kernel: Kernel) -> str:
        lines = self.lines
        params = [f"{b.dtype.name}[{b.size}]{'w' if b.written else ''}" for b in kernel.params]
        lines.append(f"kernel({', '.join(params)}){'' if kernel.parallel else ' whole'}")
        if kernel.locals:
            lines.append("locals " + ", ".join(f"{dtype.name}[{size}]" for dtype, size in kernel.locals))
        if kernel.outer:
            lines.append("outer " + self.declared(kernel.outer))
        for nest in kernel.nests:
            self.nest(nest)
        return "\n".join(lines) + "\n"

    def declared(self, variables: Sequence[Var]) -> str:
        return ", ".join(f"{self.var(var)}<{var.extent}" for var in variables)

    def var(self, var: Var) -> str:
        number = self.vars.setdefault(var, len(self.vars))
        return f"i{number}"

    def nest(self, nest: Nest) -> None:
        words = ["nest", self.declared(nest.loops)]
        r = nest.reduction
        if r is not None:
            words.append(f"reduce {r.kind} {self.declared(r.vars)}")
        if nest.sequential:
            words.append(f"sequential but ({' '.join(self.var(v) for v in nest.independent)})")
        if nest.vector is not None:
            words.append(f"vector {self.var(nest.vector)} x {nest.lanes} x {nest.unroll}")
        if nest.tile:
            words.append("tile " + ", ".join(f"{self.var(v)} x {n}" for v, n in nest.tile))
        self.lines.append(" ".join(words))
        # Names do not outlive a nest: a value means what it means where it stands.
        self.names = {}
        if r is not None:
            self.define([*r.inits, *r.inputs])
            accs = ", ".join(dtype.name for dtype in r.acc_dtypes)
            inits, inputs = (", ".join(self.name(x) for x in part) for part in (r.inits, r.inputs))
            self.lines.append(f"  from {inits} take {inputs} as {accs}")
            self.define(r.combiner)
            self.lines.append(f"  combine {', '.join(self.name(x) for x in r.combiner)}")
        for store in nest.stores:
            self.store(store)

    def store(self, store: Store) -> None:
        roots = [store.value, *[expr for expr, _ in store.index.dynamic]]
        if store.mask is not None:
            roots.append(store.mask)
        if store.combine is not None:
            roots.append(store.combine)
        self.define(roots)
        line = f"  b{store.buffer}[{self.index(store.index)}] = {self.name(store.value)}"
        if store.mask is not None:
            line += f" if {self.name(store.mask)}"
        if store.combine is not None:
            line += f" by {self.name(store.combine)}"
        self.lines.append(line)

    def define(self, roots: Sequence[Expr]) -> None:
        """Writes a line for each node under `roots` that has none yet, operands first."""
        stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
        while stack:
            node, ready = stack.pop()
            if node in self.names:
                continue
            if ready:
                text = self.node(node)
                self.names[node] = f"x{len(self.names)}"
                self.lines.append(f"  {self.names[node]} = {node.dtype.name} {text}")
                continue
            stack.append((node, True))
            stack += [(child, False) for child in reversed(children(node)) if child not in self.names]

    def name(self, node: Expr) -> str:
        return self.names[node]

    def node(self, node: Expr) -> str:
        if isinstance(node, Const):
            return f"{node.bits:#x}"
        if isinstance(node, Load):
            mask = "" if node.mask is None else f" if {self.names[node.mask]}"
            return f"b{node.buffer}[{self.index(node.index)}]{mask}"
        if isinstance(node, Apply):
            attr = f".{node.attr}" if node.attr else ""
            return f"{node.name}{attr} {' '.join(self.names[x] for x in node.operands)}"
        if isinstance(node, IndexValue):
            return f"index {self.index(node.index)}"
        if isinstance(node, InRange):
            return f"{node.low} <= {self.index(node.index)} < {node.high}"
        if isinstance(node, Param):
            return f"param {node.number}"
        assert isinstance(node, Acc)
        return f"acc {node.number}"

    def index(self, index: Index) -> str:
        parts = [f"{coeff}*{self.var(var)}" for var, coeff in index.terms]
        parts.sort()
        parts += sorted(f"{coeff}*{self.names[expr]}" for expr, coeff in index.dynamic)
        return " + ".join([str(index.const), *parts])
