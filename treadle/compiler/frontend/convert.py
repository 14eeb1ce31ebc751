"""A StableHLO module as a `Program`: one walk, everything inlined into one entry region.

Calls and composites are inlined here, not by MLIR's inliner, whose fixed cost is more than a small
program's whole import. What Treadle does not have is collected along the way and reported at the
end in one error; until then its results are placeholders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.compiler.errors import CompileError, StatusCode, UnsupportedError
from treadle.compiler.frontend import arguments, single_device
from treadle.compiler.frontend.attributes import AttributeReader
from treadle.compiler.frontend.constants import read_constant
from treadle.compiler.frontend.locations import MlirLocation
from treadle.compiler.frontend.mlir import Module, ir
from treadle.compiler.frontend.ops import ELEMENTWISE, RULES, OpRule
from treadle.compiler.frontend.options import CompileOptions
from treadle.compiler.frontend.types import TypeReader, UnsupportedTypeError
from treadle.compiler.ir.core import Location, Op, Program, Region, Value, captured_values, clone_op, replace_uses
from treadle.compiler.ir.types import F32, TensorType

# Inlining can grow a program exponentially (f calls g twice, g calls h twice, ...).
_MAX_OPS = 250_000

_PLACEHOLDER = TensorType(F32, ())

# Ops whose regions may use values from around them; the regions of all others are closed in the IR.
_CONTROL_FLOW = frozenset({"while", "if", "case"})

_RETURNS = frozenset({"func.return", "stablehlo.return", "sdy.return"})


def convert(module: Module, options: CompileOptions) -> Program:
    """The program of `module`'s `main`.

    Raises:
      CompileError: INVALID_ARGUMENT for a module that is not a program, UNIMPLEMENTED (an
        UnsupportedError that lists everything) for one that Treadle cannot compile.
    """
    return _Converter(module).program(options)


class _Converter:
    def __init__(self, module: Module):
        self._module = module
        self._types = TypeReader()
        self._attributes = AttributeReader()
        self._values: dict[ir.Value, Value] = {}
        self._functions: dict[str, ir.Operation] = {}
        self._calls: list[str] = []  # names of the functions being inlined, outermost first
        self._caller: Location | None = None  # where the innermost of them was called
        self._unsupported: list[tuple[str, Location]] = []
        self._num_ops = 0
        self._structural: dict[str, Callable[[ir.Operation, Region], None]] = {
            "stablehlo.constant": self._constant,
            "stablehlo.composite": self._composite,
            "stablehlo.custom_call": self._custom_call,
            "stablehlo.map": self._map,
            "func.call": self._call,
            "sdy.manual_computation": self._inline_region,
            "sdy.named_computation": self._inline_region,
        }

    def program(self, options: CompileOptions) -> Program:
        for view in self._module.op.body.operations:
            op = view.operation
            if op.name == "func.func":
                self._functions[ir.StringAttr(op.attributes["sym_name"]).value] = op
            elif op.name != "sdy.mesh":
                self._miss(f"the module-level op {op.name}", op)
        main = self._functions.get("main")
        if main is None:
            raise CompileError(
                StatusCode.INVALID_ARGUMENT,
                f"The module {self._module.name!r} has no function 'main'; it has "
                f"{sorted(self._functions) or 'no functions'}.",
            )
        block = self._body(main)
        entry = Region([self._argument_type(i, arg.type) for i, arg in enumerate(block.arguments)])
        self._values.update(zip(block.arguments, entry.args, strict=True))
        self._calls.append("main")
        self._block(block, entry)
        ranks = [[len(value.type.shape) for value in values] for values in (entry.args, entry.results)]
        self._unsupported.extend(arguments.unsupported_layouts(main, *ranks))
        if self._unsupported:
            raise UnsupportedError(self._unsupported)
        return Program(
            name=self._module.name,
            entry=entry,
            inputs=arguments.inputs(main, len(entry.args), len(entry.results)),
            outputs=arguments.outputs(main, len(entry.results)),
            num_replicas=options.num_replicas,
            num_partitions=options.num_partitions,
            device_assignment=options.device_assignment,
        )

    def _location(self, op: ir.Operation) -> Location:
        return MlirLocation(op.location, self._caller)

    # ---- errors

    def _miss(self, what: str, op: ir.Operation) -> None:
        self._unsupported.append((what, self._location(op)))

    def _placeholders(self, op: ir.Operation) -> None:
        """Gives an unsupported op's results values, so that the walk can go on."""
        for result in op.results:
            try:
                tensor = self._types.read(result.type)
            except UnsupportedTypeError:
                tensor = _PLACEHOLDER  # the op itself has been reported
            self._values[result] = Value(tensor)

    def _invalid(self, what: str, op: ir.Operation) -> CompileError:
        return CompileError(StatusCode.INVALID_ARGUMENT, f"The program is not valid: {what} ({self._location(op)}).")

    # ---- blocks and ops

    def _type(self, mlir_type: ir.Type, op: ir.Operation) -> TensorType:
        try:
            return self._types.read(mlir_type)
        except UnsupportedTypeError as e:
            self._miss(str(e), op)
            return _PLACEHOLDER

    def _argument_type(self, index: int, mlir_type: ir.Type) -> TensorType:
        try:
            return self._types.read(mlir_type)
        except UnsupportedTypeError as e:
            self._unsupported.append((str(e), Location(f"argument {index} of the program")))
            return _PLACEHOLDER

    def _body(self, function: ir.Operation) -> ir.Block:
        return self._only_block(function.regions[0], function)

    def _only_block(self, region: ir.Region, op: ir.Operation) -> ir.Block:
        blocks = list(region.blocks)
        if len(blocks) != 1:
            raise CompileError(
                StatusCode.UNIMPLEMENTED,
                f"{op.name} has {len(blocks)} blocks ({self._location(op)}); Treadle needs one block "
                "in every region: write control flow with stablehlo.while, case and if.",
            )
        block: ir.Block = blocks[0]
        return block

    def _region(self, region: ir.Region, op: ir.Operation) -> Region:
        block = self._only_block(region, op)
        result = Region([self._type(arg.type, op) for arg in block.arguments])
        self._values.update(zip(block.arguments, result.args, strict=True))
        self._block(block, result)
        return result

    def _block(self, block: ir.Block, region: Region) -> None:
        """Appends the block's ops to `region` and sets its results."""
        values = self._values
        structural = self._structural
        for view in block.operations:
            op = view.operation
            name = op.name
            dialect, _, short = name.partition(".")
            rule = RULES.get(short) if dialect == "stablehlo" else None
            if rule is not None:
                self._plain(op, short, rule, region)
            elif name in structural:
                structural[name](op, region)
            elif name in _RETURNS:
                region.results = [values[v] for v in op.operands]
            elif not self._single_device(op, name, region):
                self._miss(f"the op {name}", op)
                self._placeholders(op)

    def _append(
        self,
        op: ir.Operation,
        name: str,
        operands: Sequence[Value],
        attrs: dict[str, Any],
        region: Region,
        regions: Sequence[Region] = (),
    ) -> None:
        """Appends an IR op with the result types of `op`, and binds its results to it."""
        self._num_ops += 1
        if self._num_ops > _MAX_OPS:
            raise CompileError(
                StatusCode.RESOURCE_EXHAUSTED,
                f"The program has more than {_MAX_OPS} operations once its calls are inlined "
                f"({self._location(op)}). Write repetition as a loop (jax.lax.scan).",
            )
        results = list(op.results)
        new = Op(name, operands, [self._type(r.type, op) for r in results], attrs, regions, self._location(op))
        if regions and name not in _CONTROL_FLOW:
            self._close(new, op)
        region.ops.append(new)
        for result, value in zip(results, new.results, strict=True):
            self._values[result] = value

    def _close(self, new: Op, op: ir.Operation) -> None:
        """Makes a combiner's regions use nothing from around them: constants are copied into them."""
        for value in captured_values(new):
            constant = value.op
            if constant is None or constant.name != "constant":
                self._miss(f"a value from outside in a region of {op.name}", op)
                continue
            for inner in new.regions:
                copy = clone_op(constant, {})
                inner.ops.insert(0, copy)
                replace_uses(inner, {value: copy.result})

    def _plain(self, op: ir.Operation, name: str, rule: OpRule, region: Region) -> None:
        values = self._values
        operands = [values[v] for v in op.operands]
        attrs: dict[str, Any] = {}
        if rule.attributes:
            present = op.attributes
            for attribute in rule.attributes:
                key = attribute.name
                if attribute.default is not None and key not in present:
                    attrs[key] = attribute.default([v.type for v in operands])
                    continue
                try:
                    value = self._attributes.read(present[key], attribute.binding)
                except (KeyError, TypeError) as e:
                    raise self._invalid(f"{op.name} without a usable {key!r}: {e}", op) from None
                if isinstance(value, dict):
                    attrs.update(value)
                else:
                    attrs[key] = value
        regions = [self._region(r, op) for r in op.regions] if rule.regions else []
        self._append(op, name, operands, attrs, region, regions)

    # ---- ops of their own kind

    def _constant(self, op: ir.Operation, region: Region) -> None:
        (result,) = op.results
        try:
            tensor = self._types.read(result.type)
            attrs = {"value": read_constant(op, tensor)}
        except UnsupportedTypeError:
            attrs = {}  # reported by _append
        except ValueError as e:
            self._miss(str(e), op)
            attrs = {}
        self._append(op, "constant", [], attrs, region)

    def _call(self, op: ir.Operation, region: Region) -> None:
        self._inline_function(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, op, region)

    def _composite(self, op: ir.Operation, region: Region) -> None:
        # The place to keep a well-known composite (by its `name` attribute) and lower it directly.
        self._inline_function(ir.FlatSymbolRefAttr(op.attributes["decomposition"]).value, op, region)

    def _inline_function(self, name: str, op: ir.Operation, region: Region) -> None:
        function = self._functions.get(name)
        if function is None:
            raise self._invalid(f"{op.name} of the unknown function {name!r}", op)
        if name in self._calls:
            chain = " -> ".join([*self._calls, name])
            raise self._invalid(f"the functions {chain} call each other recursively", op)
        caller = self._caller
        self._caller = self._location(op)
        self._calls.append(name)
        self._inline_block(self._body(function), op, region)
        self._calls.pop()
        self._caller = caller

    def _inline_region(self, op: ir.Operation, region: Region) -> None:
        """An op that on one device does just what its region says (manual computations of sdy)."""
        self._inline_block(self._only_block(op.regions[0], op), op, region)

    def _inline_block(self, block: ir.Block, op: ir.Operation, region: Region) -> None:
        values = self._values
        arguments_, operands = list(block.arguments), list(op.operands)
        if len(arguments_) != len(operands):
            raise self._invalid(f"{op.name} passes {len(operands)} values for {len(arguments_)}", op)
        for argument, operand in zip(arguments_, operands, strict=True):
            values[argument] = values[operand]
        kept = region.results
        region.results = []
        self._block(block, region)
        returned, region.results = region.results, kept
        results = list(op.results)
        if len(results) != len(returned):
            raise self._invalid(f"{op.name} expects {len(results)} results of {len(returned)}", op)
        for result, value in zip(results, returned, strict=True):
            values[result] = value

    def _custom_call(self, op: ir.Operation, _: Region) -> None:
        target = ir.StringAttr(op.attributes["call_target_name"]).value
        # The place for FFI calls, callbacks and LAPACK: a rule by target.
        if target in single_device.IDENTITY_CUSTOM_CALLS and self._identity(op):
            return
        self._miss(f"the custom call @{target}", op)
        self._placeholders(op)

    def _identity(self, op: ir.Operation) -> bool:
        """Binds results to operands if their types agree; says whether it did."""
        operands, results = list(op.operands), list(op.results)
        if [v.type for v in operands] != [r.type for r in results]:
            return False
        for operand, result in zip(operands, results, strict=True):
            self._values[result] = self._values[operand]
        return True

    def _single_device(self, op: ir.Operation, name: str, region: Region) -> bool:
        """Ops between devices, on one device; False if `op` is not one, or is not trivial."""
        if name in single_device.IDENTITIES:
            return self._identity(op)
        if name in single_device.IDS:
            self._append(op, "constant", [], {"value": np.zeros((), np.uint32)}, region)
            return True
        return False

    def _map(self, op: ir.Operation, region: Region) -> None:
        """Applies the region's elementwise ops to whole operands."""
        block = self._only_block(op.regions[0], op)
        shape = self._type(op.results[0].type, op).shape
        outer = dict(zip(block.arguments, [self._values[v] for v in op.operands], strict=True))
        inner = Region()
        self._values.update(outer)
        self._block(block, inner)
        for new in inner.ops:
            if new.name == "constant":
                value = new.attrs.get("value")
                if isinstance(value, np.ndarray):
                    new.attrs["value"] = np.broadcast_to(value, shape)
            elif new.name not in ELEMENTWISE and new.name not in ("compare", "reduce_precision"):
                self._miss(f"{new.name} inside stablehlo.map", op)
            for value in new.results:
                value.type = TensorType(value.type.dtype, shape)
            region.ops.append(new)
        self._values[op.results[0]] = inner.results[0]
