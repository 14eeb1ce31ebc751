"""What JAX says of the program's arguments and results, in attributes of `main`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from treadle.compiler.errors import CompileError, StatusCode
from treadle.compiler.frontend.mlir import ir
from treadle.compiler.ir.core import Input, Location, Output


def inputs(main: ir.Operation, count: int, num_outputs: int) -> list[Input]:
    """One Input per argument of `main`.

    An argument with `tf.aliasing_output` is donated and its memory goes to that output; one with
    `jax.buffer_donor` is donated and the compiler may choose an output.

    Raises:
      CompileError: INVALID_ARGUMENT if two arguments alias one output, or one that is not there.
    """
    result = []
    owner: dict[int, int] = {}
    for index, attributes in enumerate(_dictionaries(main, "arg_attrs", count)):
        item = Input()
        if attributes is not None:
            item.memory_kind = _value(attributes, "mhlo.memory_kind", ir.StringAttr, "")
            if "tf.aliasing_output" in attributes:
                item.alias = _value(attributes, "tf.aliasing_output", ir.IntegerAttr, -1)
                item.donated = True
                _check_alias(item.alias, index, num_outputs, owner)
            if "jax.buffer_donor" in attributes:
                item.donated = True
        result.append(item)
    return result


def _check_alias(output: int, index: int, num_outputs: int, owner: dict[int, int]) -> None:
    if not 0 <= output < num_outputs:
        problem = f"which is not one of its {num_outputs} outputs"
    elif output in owner:
        problem = f"and so does argument {owner[output]}"
    else:
        owner[output] = index
        return
    raise CompileError(
        StatusCode.INVALID_ARGUMENT,
        f"Argument {index} of the program asks to share memory with output {output}, {problem}.",
    )


def outputs(main: ir.Operation, count: int) -> list[Output]:
    """One Output per result of `main`."""
    result = []
    for attributes in _dictionaries(main, "res_attrs", count):
        item = Output()
        if attributes is not None:
            item.memory_kind = _value(attributes, "mhlo.memory_kind", ir.StringAttr, "")
        result.append(item)
    return result


def unsupported_layouts(
    main: ir.Operation, argument_ranks: Sequence[int], result_ranks: Sequence[int]
) -> Iterator[tuple[str, Location]]:
    """The arguments and results that `mhlo.layout_mode` asks to be anything but dense and row-major.

    That attribute is "default", "auto" (as the compiler likes it) or a layout as XLA writes it, such as
    "{1,0}": dimensions from the one that varies fastest.
    """
    for attribute, role, ranks in (("arg_attrs", "argument", argument_ranks), ("res_attrs", "result", result_ranks)):
        for index, attributes in enumerate(_dictionaries(main, attribute, len(ranks))):
            if attributes is None:
                continue
            mode = _value(attributes, "mhlo.layout_mode", ir.StringAttr, "default")
            row_major = "{" + ",".join(map(str, reversed(range(ranks[index])))) + "}"
            if mode not in ("default", "auto", row_major):
                yield (
                    f"the layout {mode} (here arrays are dense and row-major: {row_major})",
                    Location(f"{role} {index} of the program"),
                )


def _dictionaries(main: ir.Operation, name: str, count: int) -> list[ir.DictAttr | None]:
    if name not in main.attributes:
        return [None] * count
    listed = [a if isinstance(a, ir.DictAttr) and len(a) else None for a in ir.ArrayAttr(main.attributes[name])]
    return listed[:count] + [None] * (count - len(listed))


def _value(attributes: ir.DictAttr, name: str, kind: Any, default: Any) -> Any:
    """The value of an attribute that must be of a kind, if it is there."""
    if name not in attributes:
        return default
    try:
        return kind(attributes[name]).value
    except (TypeError, ValueError):
        raise CompileError(
            StatusCode.INVALID_ARGUMENT,
            f"The attribute {name} of an argument or result of the program is no {kind.__name__}.",
        ) from None
