"""A reader of protobuf's wire format, enough for the messages that reach the compiler."""

from __future__ import annotations

from collections.abc import Iterator

_MASK64 = (1 << 64) - 1


class WireError(ValueError):
    """Bytes that are not a protobuf message."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field number and value of each field: an int (varint, fixed) or bytes (length-delimited).

    Raises:
      WireError: at the first byte that breaks the format.
    """
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise WireError(f"field number 0 at byte {position}")
        if kind == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if kind == 2:
            size, position = _varint(data, position)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise WireError(f"wire type {kind} of field {number} at byte {position}")
        if size > len(data) - position:
            raise WireError(f"field {number} needs {size} bytes of the {len(data) - position} left")
        chunk = data[position : position + size]
        position += size
        yield number, chunk if kind == 2 else int.from_bytes(chunk, "little")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(data):
            raise WireError("the message ends inside a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK64, position
    raise WireError(f"a number of more than ten bytes before byte {position}")


def signed(value: int) -> int:
    """A varint as int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def integers(value: int | bytes) -> list[int]:
    """The numbers of one occurrence of a repeated int64 field, packed or not."""
    if isinstance(value, int):
        return [signed(value)]
    result, position = [], 0
    while position < len(value):
        number, position = _varint(value, position)
        result.append(signed(number))
    return result
