"""How attributes, types and op properties are encoded in bytecode, as far as MLIR trusts them.

MLIR's readers of the `vhlo` and `builtin` dialects, and the conversion from VHLO to StableHLO, crash
on values that the writer cannot have written: a tensor whose bytes do not fit its type, an integer
of a type that is none, an op whose attribute is of another kind, an attribute that contains itself.
The tables here say what is right. An encoding or op that they do not name is not checked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from treadle.compiler.frontend import vhlo
from treadle.compiler.frontend.bytecode import BytecodeError, Entry, Tables, varint

# Fields of an encoding, in order: A an attribute, O an attribute or nothing, a a list of
# attributes, P a list of pairs of attributes, T a type, t a list of types, v a number, n a list of
# numbers, B bytes. A row that ends in * has more that does not matter.
_ATTRIBUTES: dict[str, dict[int, str]] = {
    "vhlo": {
        1: "a",  # array
        2: "v",  # boolean
        3: "v",  # comparison direction
        4: "v",  # comparison type
        5: "v",  # custom call API version
        6: "P",  # dictionary
        7: "v",  # FFT type
        8: "T*",  # float
        9: "T*",  # integer
        10: "nvn",  # output operand alias
        11: "v",  # precision
        12: "v",  # RNG algorithm
        13: "v",  # RNG distribution
        14: "v",  # string
        15: "TB",  # tensor
        16: "v",  # transpose
        17: "T",  # type
        18: "n",  # type extensions
        19: "v",  # result accuracy mode
        20: "*",  # result accuracy
    },
    "builtin": {
        0: "a",  # array
        1: "P",  # dictionary
        2: "v",  # string
        3: "vT",  # string with type
        4: "A",  # flat symbol reference
        5: "Aa",  # symbol reference
        6: "T",  # type
        7: "",  # unit
        8: "T*",  # integer
        9: "T*",  # float
        10: "AA",  # call site
        11: "Avv",  # file, line, column
        12: "a",  # fused locations
        13: "aA",  # fused locations with metadata
        14: "AA",  # named location
        15: "",  # unknown location
        18: "TB",  # dense elements
    },
}
_TYPES: dict[str, dict[int, str]] = {
    "vhlo": {
        **dict.fromkeys((0, *range(2, 8), *range(9, 20), 22, *range(26, 30), *range(31, 41)), ""),
        1: "T",  # complex
        8: "tt",  # function
        20: "nT",  # ranked tensor
        21: "AnT",  # ranked tensor with encoding
        23: "t",  # tuple
        25: "T",  # unranked tensor
        42: "t",  # future
    },
    "builtin": {
        **dict.fromkeys((1, 3, 4, 5, 6, 7, 8, 12), ""),
        0: "v",  # integer
        2: "tt",  # function
        9: "T",  # complex
        13: "nT",  # ranked tensor
        14: "AnT",  # ranked tensor with encoding
        15: "t",  # tuple
        18: "T",  # unranked tensor
    },
}

_FUNCTION = 8
_DENSE_ELEMENTS, _RANKED_TENSORS, _BUILTIN_RANKED_TENSORS = 18, (20, 21), (13, 14)

# Bytes of an element in a tensor's data; 1 for a boolean, whose data may also be packed.
_VHLO_WIDTHS = {
    code: width
    for width, codes in {
        1: (0, 6, 7, 10, 11, 15, 16, 27, 28, 29, 31, 32, 35, 36, 37, 38, 39, 40),
        2: (2, 3, 12, 17),
        4: (4, 13, 18),
        8: (5, 9, 14, 19),
    }.items()
    for code in codes
}
_VHLO_COMPLEX = 1
_VHLO_INTEGERS = frozenset(range(9, 20))
_VHLO_FLOATS = frozenset((2, 3, 4, 5, 6, 7, 27, 28, 29, *range(34, 41)))


@dataclasses.dataclass(slots=True)
class _Decoded:
    """An attribute or type, as far as it matters."""

    dialect: str
    code: int
    attributes: list[int]
    types: list[int]
    numbers: list[int]
    blob_size: int = -1


# Whatever the tables do not describe.
_OPAQUE = _Decoded("", -1, [], [], [])


def check_encodings(tables: Tables, ops: set[tuple[int, int, int]]) -> None:
    """Checks every attribute and type, and the properties of every distinct op.

    Raises:
      BytecodeError: with what is wrong.
    """
    try:
        attributes = [_decode(tables, entry, _ATTRIBUTES) for entry in tables.attributes]
        types = [_decode(tables, entry, _TYPES) for entry in tables.types]
        _check_acyclic(attributes, types)
        for attribute in attributes:
            _check_attribute(attribute, attributes, types)
        _check_properties(tables, ops, attributes, types)
    except IndexError:
        raise BytecodeError("an attribute or type ends in the middle, or refers to one that is not there") from None


def _decode(tables: Tables, entry: Entry, rows: dict[str, dict[int, str]]) -> _Decoded:
    if not entry.custom or entry.dialect not in rows:
        return _OPAQUE
    data = tables.data
    code, at = varint(data, entry.start)
    row = rows[entry.dialect].get(code)
    if row is None:
        return _OPAQUE
    result = _Decoded(entry.dialect, code, [], [], [])
    for field in row:
        if field == "*":
            return result
        if field in "ATOv":
            number, at = varint(data, at)
            if field == "v":
                result.numbers.append(number)
            elif field == "T":
                result.types.append(number)
            elif field == "A":
                result.attributes.append(number)
            continue
        number, at = varint(data, at)
        if number > entry.end - at:
            raise BytecodeError(f"an attribute or type claims to have {number} parts in {entry.end - at} bytes")
        if field == "B":
            result.blob_size = number
            at += number
            continue
        target = result.attributes if field in "aP" else result.types if field == "t" else result.numbers
        for _ in range(2 * number if field == "P" else number):
            part, at = varint(data, at)
            target.append(part)
    if at != entry.end:
        raise BytecodeError(
            f"an attribute or type has {at - entry.start} bytes where {entry.end - entry.start} are meant"
        )
    return result


def _check_acyclic(attributes: Sequence[_Decoded], types: Sequence[_Decoded]) -> None:
    """Attributes and types may contain each other in any order, but not themselves; depth is bounded, too."""
    # Types come after the attributes; 0: not seen, 1: being visited, 2: done.
    nodes = [*attributes, *types]
    first_type = len(attributes)
    state = bytearray(len(nodes))
    for root in range(len(nodes)):
        if state[root]:
            continue
        stack = [root]
        while stack:
            node = stack[-1]
            if state[node]:
                stack.pop()
                state[node] = 2
                continue
            state[node] = 1
            decoded = nodes[node]
            for inner in (*decoded.attributes, *(first_type + t for t in decoded.types)):
                if state[inner] == 0:
                    stack.append(inner)
                elif state[inner] == 1:
                    raise BytecodeError("an attribute or type contains itself")
    _check_references(attributes, first_type, len(types))


def _check_references(attributes: Sequence[_Decoded], num_attributes: int, num_types: int) -> None:
    for attribute in attributes:
        if any(a >= num_attributes for a in attribute.attributes) or any(t >= num_types for t in attribute.types):
            raise BytecodeError("an attribute refers to one that is not there")


def _check_attribute(attribute: _Decoded, attributes: Sequence[_Decoded], types: Sequence[_Decoded]) -> None:
    if attribute.dialect == "vhlo":
        code = attribute.code
        if code == vhlo.TENSOR:
            _check_tensor(attribute, types, _RANKED_TENSORS, _vhlo_width)
        elif code == vhlo.FLOAT:
            if types[attribute.types[0]].code not in _VHLO_FLOATS:
                raise BytecodeError("a number with a point is of a type that is no floating-point type")
        elif code == vhlo.INTEGER:
            if types[attribute.types[0]].code not in _VHLO_INTEGERS:
                raise BytecodeError("an integer is of a type that is no integer type")
        elif code == vhlo.DICTIONARY and any(attributes[key].code != vhlo.STRING for key in attribute.attributes[::2]):
            raise BytecodeError("a dictionary has a key that is no string")
    elif attribute.dialect == "builtin" and attribute.code == _DENSE_ELEMENTS:
        _check_tensor(attribute, types, _BUILTIN_RANKED_TENSORS, _builtin_width)


# From a tensor type to the bytes of one of its elements, None if that is not known here.
_WidthOf = Callable[[_Decoded, Sequence[_Decoded]], "int | None"]


def _check_tensor(attribute: _Decoded, types: Sequence[_Decoded], ranked: tuple[int, ...], width_of: _WidthOf) -> None:
    tensor = types[attribute.types[0]]
    if tensor is _OPAQUE:
        return
    if tensor.code not in ranked:
        raise BytecodeError("the type of a constant is no ranked tensor")
    width = width_of(tensor, types)
    if width is None:
        return
    elements = 1
    for extent in tensor.numbers:
        # Extents are zigzag-encoded; a negative one is dynamic.
        if extent & 1:
            raise BytecodeError("a constant has a dynamic shape")
        elements *= extent >> 1
    size = attribute.blob_size
    good = {elements * width, width} | ({-(-elements // 8), 1} if width == 1 else set())
    if size not in good:
        raise BytecodeError(f"a constant of {elements} elements has {size} bytes")


def _vhlo_width(tensor: _Decoded, types: Sequence[_Decoded]) -> int | None:
    element = types[tensor.types[0]]
    if element.code == _VHLO_COMPLEX:
        part = _VHLO_WIDTHS.get(types[element.types[0]].code)
        return None if part is None else 2 * part
    if element is not _OPAQUE and element.code not in _VHLO_WIDTHS:
        raise BytecodeError("a constant has elements of a type that no constant has")
    return _VHLO_WIDTHS.get(element.code)


def _builtin_width(tensor: _Decoded, types: Sequence[_Decoded]) -> int | None:
    element = types[tensor.types[0]]
    if element.code == 0:
        return max(1, (element.numbers[0] >> 2) + 7 >> 3)
    return {1: 8, 3: 2, 4: 2, 5: 4, 6: 8}.get(element.code)


def _check_properties(
    tables: Tables, ops: set[tuple[int, int, int]], attributes: Sequence[_Decoded], types: Sequence[_Decoded]
) -> None:
    data = tables.data
    for name, _, properties in ops:
        op, registered = tables.op_names[name]
        expected = vhlo.PROPERTIES.get(op)
        if expected is None:
            continue
        if properties < 0 or not registered:
            raise BytecodeError(f"a {op} has no properties")
        at, end = tables.properties[properties]
        for attribute in expected:
            index, at = varint(data, at)
            found = attributes[index]
            if found is not _OPAQUE and (found.dialect != "vhlo" or found.code not in vhlo.KINDS[attribute]):
                raise BytecodeError(f"the {attribute} of a {op} is an attribute of the wrong kind")
            if attribute == "function_type" and types[found.types[0]].code != _FUNCTION:
                raise BytecodeError(f"the type of a {op} is no function type")
        if at != end:
            raise BytecodeError(f"a {op} has other properties than it should")
