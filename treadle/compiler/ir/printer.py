"""Programs as text: StableHLO-like, one line per op, with names that depend on the program only."""

from __future__ import annotations

import hashlib

import numpy as np

from treadle.compiler.ir.core import UNKNOWN_LOCATION, Attr, Op, Program, Region, Value

# Constants with more elements are shown by their first elements and a digest.
_ELEMENTS_SHOWN = 16
_FIRST_ELEMENTS = 4


def print_program(program: Program, locations: bool = True) -> str:
    """The whole program. Without `locations`, programs that compute the same way have the same text."""
    printer = _Printer(locations)
    args = []
    for value, info in zip(program.entry.args, program.inputs, strict=True):
        notes = ["donated"] if info.donated else []
        notes += [f"alias = {info.alias}"] if info.alias >= 0 else []
        notes += [f"memory_kind = {info.memory_kind!r}"] if info.memory_kind else []
        args.append(f"{printer.name_arg(value)}: {value.type}" + (f" {{{', '.join(notes)}}}" if notes else ""))
    results = ", ".join(str(v.type) for v in program.entry.results)
    head = f"program @{program.name}({', '.join(args)}) -> ({results})"
    if program.num_replicas != 1 or program.num_partitions != 1:
        head += f" replicas = {program.num_replicas} partitions = {program.num_partitions}"
    printer.lines.append(head + " {")
    printer.body(program.entry, "  ", "return")
    printer.lines.append("}")
    return "\n".join(printer.lines) + "\n"


def print_region(region: Region, locations: bool = False) -> str:
    """One region; values from around it are named `%outer0`, ... in order of use."""
    printer = _Printer(locations)
    args = ", ".join(f"{printer.name_arg(v)}: {v.type}" for v in region.args)
    printer.lines.append(f"({args}) {{")
    printer.body(region, "  ", "yield")
    printer.lines.append("}")
    return "\n".join(printer.lines) + "\n"


def print_op(op: Op) -> str:
    """One op, with its operands' types in place of names: for error messages."""
    operands = ", ".join(str(v.type) for v in op.operands)
    results = ", ".join(str(v.type) for v in op.results)
    return f"{op.name}({operands}){_attributes(op)} : {results}"


class _Printer:
    def __init__(self, locations: bool):
        self.locations = locations
        self.names: dict[Value, str] = {}
        self.lines: list[str] = []
        self.next_op = 0
        self.next_arg = 0
        self.next_outer = 0

    def name_arg(self, value: Value) -> str:
        self.names[value] = name = f"%arg{self.next_arg}"
        self.next_arg += 1
        return name

    def name(self, value: Value) -> str:
        name = self.names.get(value)
        if name is None:
            self.names[value] = name = f"%outer{self.next_outer}"
            self.next_outer += 1
        return name

    def body(self, region: Region, indent: str, terminator: str) -> None:
        for op in region.ops:
            self.op(op, indent)
        results = ", ".join(self.name(v) for v in region.results)
        self.lines.append(f"{indent}{terminator} {results}".rstrip())

    def op(self, op: Op, indent: str) -> None:
        number = self.next_op
        self.next_op += 1
        operands = ", ".join(self.name(v) for v in op.operands)
        left = f"%{number}" if len(op.results) == 1 else f"%{number}:{len(op.results)}"
        for value in op.results:
            self.names[value] = f"%{number}" if len(op.results) == 1 else f"%{number}#{value.index}"
        types = ", ".join(str(v.type) for v in op.results)
        types = types if len(op.results) == 1 else f"({types})"
        text = f"{indent}{left} = {op.name}" + (f" {operands}" if operands else "") + _attributes(op)
        tail = f" : {types}"
        if self.locations and op.loc is not UNKNOWN_LOCATION:
            tail += f"  // {op.loc}"
        if not op.regions:
            self.lines.append(text + tail)
            return
        for i, region in enumerate(op.regions):
            args = ", ".join(f"{self.name_arg(v)}: {v.type}" for v in region.args)
            opening = f"({args}) {{" if args else "{"
            self.lines.append(f"{text} {opening}" if i == 0 else f"{indent}}} {opening}")
            self.body(region, indent + "  ", "yield")
        self.lines.append(f"{indent}}}{tail}")


def _attributes(op: Op) -> str:
    if op.name == "constant":
        return f" {_constant(op.attrs['value'])}"
    if not op.attrs:
        return ""
    return " {" + ", ".join(f"{name} = {_attribute(value)}" for name, value in sorted(op.attrs.items())) + "}"


def _attribute(value: Attr) -> str:
    if isinstance(value, np.ndarray):
        return _constant(value)
    if isinstance(value, str):
        return value
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_attribute(v) for v in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _element(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    return str(value)


def _constant(value: object) -> str:
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.ndim == 0 or (value.size > 1 and not any(value.strides)):
        return f"dense<{_element(value[(0,) * value.ndim])}>"
    flat = value.reshape(-1)
    if value.size <= _ELEMENTS_SHOWN:
        return f"dense<[{', '.join(_element(v) for v in flat)}]>"
    digest = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=8).hexdigest()
    first = ", ".join(_element(v) for v in flat[:_FIRST_ELEMENTS])
    return f"dense<[{first}, ...] {digest}>"
