"""One forward walk that simplifies: the engine of all rewriting passes.

Ops are visited in order and moved to a new list. A visited op first has its operands replaced by what earlier rewrites
put in their place; then the rules for its name are tried; then, if an equal op is already there, its results are reused
(value numbering). What a rule makes goes through the same steps, so nothing is visited twice and the walk is linear.

A rule looks at the op and at what defines its operands, all of it already in final form, and returns None or the values
that take the place of the results. Rules must keep NaN, infinities and signs of zero, and may not look at uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from treadle.compiler.ir.core import UNKNOWN_LOCATION, Attr, Location, Op, Program, Region, Value
from treadle.compiler.ir.types import TensorType
from treadle.compiler.ops import registry
from treadle.compiler.ops.registry import Array
from treadle.compiler.passes import numbering

Replacement = Value | Sequence[Value] | None
Rule = Callable[[Op, "Rewriter"], Replacement]
Rules = dict[str, tuple[Rule, ...]]


class RuleSet:
    """Rules by op name; a module of rules has one and fills it with `@rules.on(...)`."""

    def __init__(self) -> None:
        self.table: Rules = {}

    def on(self, *names: str) -> Callable[[Rule], Rule]:
        """Registers the decorated rule for the ops of these names. Rules of one op are tried in order of definition."""

        def decorate(rule: Rule) -> Rule:
            for name in names:
                self.table[name] = (*self.table.get(name, ()), rule)
            return rule

        return decorate


def merged(*sets: RuleSet) -> Rules:
    """The rules of all sets, in this order."""
    table: Rules = {}
    for rules in sets:
        for name, some in rules.table.items():
            table[name] = (*table.get(name, ()), *some)
    return table


class Rewriter:
    """The state of one walk. Rules use `constant`, `splat`, `emit` and the methods after it."""

    def __init__(self, rules: Mapping[str, tuple[Rule, ...]]):
        self.rules = rules
        self.loc: Location = UNKNOWN_LOCATION
        self._replaced: dict[Value, Value] = {}
        self._out: list[Op] = []
        self._numbers = numbering.Numbers()
        self._constants: dict[Value, Array] = {}
        self._splats: dict[Value, bool | int | float] = {}
        self._uses: dict[Value, int] = {}
        self.ranges: dict[Value, tuple[int, int]] = {}

    def run(self, program: Program) -> Program:
        """Rewrites the program in place and returns it."""
        _count_uses(program.entry, self._uses)
        self.region(program.entry)
        return program

    # What rules may ask.

    def constant(self, value: Value) -> Array | None:
        """The array that `value` always has, if known."""
        return self._constants.get(value)

    def splat(self, value: Value) -> bool | int | float | None:
        """The number that all elements of `value` are, if known. -0.0 == 0.0: look at the sign where it matters."""
        return self._splats.get(value)

    def peek(self, value: Value) -> bool | int | float | None:
        """Like `splat`, also for a value whose constant the walk has yet to come to."""
        value = self._replaced.get(value, value)
        number = self._splats.get(value)
        if number is None and value.op is not None and value.op.name == "constant":
            array = np.asarray(value.op.attrs["value"])
            return as_number(array) if array.ndim == 0 else None
        return number

    def assume(self, value: Value, low: int, high: int) -> None:
        """Records that the integers of `value` lie within low .. high."""
        self.ranges[value] = (low, high)

    def used_once(self, value: Value) -> bool:
        """Whether `value`, or what it replaces, had a single use when the walk began. A hint: rules make uses too."""
        return self._uses.get(value) == 1

    # What rules may make. All of it goes before the op being rewritten.

    def emit(
        self,
        name: str,
        operands: Sequence[Value],
        result: TensorType | None = None,
        attrs: Mapping[str, Attr] | None = None,
    ) -> Value:
        """An op without regions and with one result; `result` where the op's rule cannot infer it."""
        op = Op(name, operands, () if result is None else (result,), attrs, (), self.loc)
        if result is None:
            op.results = [Value(t, op, i) for i, t in enumerate(registry.get(op).infer(op))]
        return self._finish(op)[0]

    def emit_op(self, op: Op) -> Sequence[Value]:
        """An op that the rule has made itself, with regions if it likes."""
        return self._finish(op)

    def move(self, op: Op) -> Sequence[Value]:
        """An op from inside the op being rewritten, already in final form, goes before it."""
        known = self._numbers.find(op)
        if known is not None:
            return known.results
        self._out.append(op)
        return op.results

    def constant_value(self, value: Array, result: TensorType) -> Value:
        """A constant; a splat if `value` is a scalar and `result` is not."""
        array = np.asarray(value, result.dtype.numpy)
        if array.shape != result.shape:
            array = np.broadcast_to(array, result.shape)
        return self.emit("constant", (), result, {"value": array})

    def full(self, number: bool | int | float, result: TensorType) -> Value:
        """A constant with all elements equal."""
        return self.constant_value(np.asarray(number, result.dtype.numpy), result)

    def inline(self, region: Region, args: Sequence[Value]) -> list[Value]:
        """The ops of `region`, which the caller throws away, in place of the op; gives the region's results."""
        for arg, value in zip(region.args, args, strict=True):
            self._replaced[arg] = value
        for op in region.ops:
            self.visit(op)
        return [self._replaced.get(v, v) for v in region.results]

    def substitute(self, value: Value, by: Value) -> None:
        """From here on, `by` takes the place of `value`, which must not have been used yet."""
        self._replaced[value] = by

    # The walk.

    def region(self, region: Region) -> None:
        """Rewrites one region and all inside it."""
        outer, self._out = self._out, []
        for op in region.ops:
            self.visit(op)
        region.ops, self._out = self._out, outer
        replaced = self._replaced
        region.results = [replaced.get(v, v) for v in region.results]

    def visit(self, op: Op) -> None:
        """Rewrites one op and appends what remains of it."""
        replaced = self._replaced
        operands = op.operands
        for i, value in enumerate(operands):
            new = replaced.get(value)
            if new is not None:
                operands[i] = new
        self.loc = op.loc
        results = self._finish(op)
        if results is not op.results:
            uses = self._uses
            for old, value in zip(op.results, results, strict=True):
                replaced[old] = value
                uses[value] = uses.get(value, 0) + uses.get(old, 0)

    def _finish(self, op: Op) -> Sequence[Value]:
        """Rules, then value numbering; appends the op if it is still needed. Gives the values of its results."""
        for rule in self.rules.get(op.name, ()):
            new = rule(op, self)
            if new is not None:
                return (new,) if isinstance(new, Value) else new
        if op.regions:
            self._regions(op)
            for rule in self.rules.get(op.name + " after its regions", ()):
                self.loc = op.loc
                new = rule(op, self)
                if new is not None:
                    return (new,) if isinstance(new, Value) else new
        known = self._numbers.find(op)
        if known is not None:
            return known.results
        if op.name == "constant":
            self._learn(op)
        self._out.append(op)
        return op.results

    def _regions(self, op: Op) -> None:
        if registry.get(op).control_flow:
            for region in op.regions:
                if op.name == "while" and region is op.regions[1]:
                    for rule in self.rules.get("while before its body", ()):
                        rule(op, self)
                mark = self._numbers.enter()
                self.region(region)
                self._numbers.leave(mark)
            return
        outer = self._numbers
        for region in op.regions:
            if len(region.ops) > 1:
                self._numbers = numbering.Numbers()  # one region's values mean nothing in the next
                self.region(region)
        self._numbers = outer

    def _learn(self, op: Op) -> None:
        value = op.attrs["value"]
        assert isinstance(value, np.ndarray)
        result = op.result
        self._constants[result] = value
        if value.ndim == 0 or (value.size and not any(value.strides)):
            self._splats[result] = as_number(value[(0,) * value.ndim])


def as_number(element: object) -> bool | int | float:
    """A NumPy scalar as a Python number of its kind."""
    array = np.asarray(element)
    if array.dtype.kind == "b":
        return bool(array)
    return int(array) if array.dtype.kind in "iu" else float(array)


def is_negative_zero(number: bool | int | float | None) -> bool:
    """True for -0.0 only."""
    return isinstance(number, float) and number == 0.0 and math.copysign(1.0, number) < 0


def is_positive_zero(number: bool | int | float | None) -> bool:
    """True for 0.0 only; False for the integer 0."""
    return isinstance(number, float) and number == 0.0 and math.copysign(1.0, number) > 0


def _count_uses(region: Region, uses: dict[Value, int]) -> None:
    get = uses.get
    for op in region.ops:
        for value in op.operands:
            uses[value] = get(value, 0) + 1
        for inner in op.regions:
            _count_uses(inner, uses)
    for value in region.results:
        uses[value] = get(value, 0) + 1
