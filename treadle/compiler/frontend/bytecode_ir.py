"""The operations of MLIR bytecode, checked before MLIR reads them.

One walk over the IR section. It knows nothing of what the ops mean: only that counts fit in the bytes
that are left, and that names, types, attributes and properties are in the tables.
"""

from __future__ import annotations

from treadle.compiler.frontend.bytecode import BytecodeError, Section, Tables, count, section, varint

_MAX_NESTED_REGIONS = 200

# What an op's mask says that it has.
_HAS_ATTRIBUTES, _HAS_RESULTS, _HAS_OPERANDS, _HAS_SUCCESSORS = 1, 2, 4, 8
_HAS_REGIONS, _HAS_USE_LIST_ORDERS, _HAS_PROPERTIES = 16, 32, 64


class _Regions:
    """Regions that are still to be read, and the block that is being read."""

    __slots__ = ("at_is_shared", "blocks", "end", "isolated", "ops", "regions")

    def __init__(self, regions: int, isolated: bool, end: int, at_is_shared: bool):
        self.regions = regions  # not yet begun
        self.blocks = 0  # of the region being read, not yet begun
        self.ops = 0  # of the block being read
        self.isolated = isolated
        self.end = end  # of the section that they are in
        self.at_is_shared = at_is_shared  # what follows them is in the same section


def check_ir(tables: Tables, start: int, end: int) -> set[tuple[int, int, int]]:
    """Walks the IR section; returns every distinct (op name, attribute dictionary, property list), -1 for none.

    Raises:
      BytecodeError: with what is wrong.
    """
    try:
        return _check_ir(tables, start, end)
    except IndexError:
        raise BytecodeError("its IR section ends in the middle of an operation") from None


def _check_ir(tables: Tables, start: int, end: int) -> set[tuple[int, int, int]]:
    data = tables.data
    num_names, num_attributes, num_types = len(tables.op_names), len(tables.attributes), len(tables.types)
    num_properties = len(tables.properties)
    seen: set[tuple[int, int, int]] = set()
    ops, at = varint(data, start)
    if ops & 1:
        raise BytecodeError("the module's block has arguments")
    top = _Regions(0, True, end, True)
    top.ops = ops >> 1
    stack = [top]
    while stack:
        state = stack[-1]
        end = state.end
        if state.ops == 0:
            if state.blocks == 0:
                if state.regions == 0:
                    stack.pop()
                    if not state.at_is_shared:
                        at = end  # of the isolated section; what is after it is read next
                    continue
                state.regions -= 1
                state.blocks, at = count(data, at, end, "blocks")
                if state.blocks == 0:
                    continue
                _, at = count(data, at, end, "values")
            state.blocks -= 1
            state.ops, at = _block_header(data, at, end, num_types, num_attributes)
            continue
        state.ops -= 1
        # Most numbers are one byte; the two that every op has are worth a short way.
        first = data[at]
        if first & 1:
            name, at = first >> 1, at + 1
        else:
            name, at = varint(data, at)
        mask = data[at]
        first = data[at + 1]
        if first & 1:
            location, at = first >> 1, at + 2
        else:
            location, at = varint(data, at + 1)
        if name >= num_names or location >= num_attributes:
            raise BytecodeError("an operation has a name or location that is not in the file")
        dictionary = properties = -1
        if mask & _HAS_ATTRIBUTES:
            dictionary, at = varint(data, at)
            if dictionary >= num_attributes:
                raise BytecodeError("an operation has attributes that are not in the file")
        if mask & _HAS_PROPERTIES:
            properties, at = varint(data, at)
            if properties >= (num_properties if tables.op_names[name][1] else num_attributes):
                raise BytecodeError("an operation has properties that are not in the file")
        seen.add((name, dictionary, properties))
        results = 0
        if mask & _HAS_RESULTS:
            results, at = count(data, at, end, "results")
            for _ in range(results):
                index, at = varint(data, at)
                if index >= num_types:
                    raise BytecodeError("a result has a type that is not in the file")
        if mask & _HAS_OPERANDS:
            number, at = count(data, at, end, "operands")
            for _ in range(number):
                at = _after_varint(data, at)
        if mask & _HAS_SUCCESSORS:
            number, at = count(data, at, end, "successors")
            for _ in range(number):
                _, at = varint(data, at)
        if mask & _HAS_USE_LIST_ORDERS:
            at = _use_list_orders(data, at, end, results)
        if mask & _HAS_REGIONS:
            number, at = varint(data, at)
            isolated, number = bool(number & 1), number >> 1
            if number > end - at:
                raise BytecodeError(f"an operation has {number} regions in {max(0, end - at)} bytes")
            inner_end = end
            if isolated and number:
                kind, at, inner_end = section(data, at, end)
                if kind != Section.IR:
                    raise BytecodeError("a region is in a section of another kind")
            if number:
                stack.append(_Regions(number, isolated, inner_end, not isolated))
                if len(stack) > _MAX_NESTED_REGIONS:
                    raise BytecodeError(f"it nests regions more than {_MAX_NESTED_REGIONS} deep")
        if at > end:
            raise BytecodeError("an operation reaches out of its section")
    return seen


def _block_header(data: bytes, at: int, end: int, num_types: int, num_attributes: int) -> tuple[int, int]:
    """The number of ops of a block, after its arguments."""
    ops, at = varint(data, at)
    if ops >> 1 > end - at:
        raise BytecodeError(f"a block has {ops >> 1} operations in {max(0, end - at)} bytes")
    if ops & 1:
        number, at = count(data, at, end, "block arguments")
        for _ in range(number):
            index, at = varint(data, at)
            if index >> 1 >= num_types:
                raise BytecodeError("a block argument has a type that is not in the file")
            if index & 1:
                location, at = varint(data, at)
                if location >= num_attributes:
                    raise BytecodeError("a block argument has a location that is not in the file")
        has_orders = data[at]
        at += 1
        if has_orders:
            at = _use_list_orders(data, at, end, number)
    return ops >> 1, at


def _use_list_orders(data: bytes, at: int, end: int, values: int) -> int:
    """Skips the orders of the uses of `values` values; returns where they end."""
    number = 1
    if values > 1:
        number, at = count(data, at, end, "use lists")
    for _ in range(number):
        if values > 1:
            index, at = varint(data, at)
            if index >= values:
                raise BytecodeError("a use list is of a value that is not there")
        size, at = varint(data, at)
        if size >> 1 > end - at:
            raise BytecodeError(f"a use list has {size >> 1} entries in {max(0, end - at)} bytes")
        for _ in range(size >> 1):
            _, at = varint(data, at)
    return at


def _after_varint(data: bytes, at: int) -> int:
    """Where the byte after the number at `at` is."""
    first = data[at]
    return at + 1 if first & 1 else at + (first & -first).bit_length() if first else at + 9
