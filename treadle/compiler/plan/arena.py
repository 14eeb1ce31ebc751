"""Offsets in the scratch block for temporaries, by their lifetimes."""

from __future__ import annotations

ALIGNMENT = 64


def align(size: int) -> int:
    """`size` rounded up to the buffer alignment; at least one unit."""
    return max(ALIGNMENT, (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT)


class Arena:
    """A best-fit allocator that only does arithmetic. `peak` is what the runtime must provide."""

    def __init__(self) -> None:
        self._free: dict[int, int] = {}  # offset -> size of free ranges below the peak
        self.peak = 0

    def allocate(self, size: int) -> int:
        """The offset of a free range of `size` bytes."""
        size = align(size)
        fitting = [(length, offset) for offset, length in self._free.items() if length >= size]
        if fitting:
            length, offset = min(fitting)
            del self._free[offset]
            if length > size:
                self._free[offset + size] = length - size
            return offset
        return self._extend(size)

    def allocate_apart(self, size: int) -> int:
        """An offset that nothing has used so far: safe to overlap in time with anything planned before."""
        offset = self.peak
        self.peak += align(size)
        return offset

    def _extend(self, size: int) -> int:
        # A free range that reaches the end is grown instead of left as a hole.
        for offset, length in self._free.items():
            if offset + length == self.peak:
                del self._free[offset]
                self.peak = offset + size
                return offset
        offset = self.peak
        self.peak += size
        return offset

    def free(self, offset: int, size: int) -> None:
        """Gives back a range that `allocate` returned for `size` bytes."""
        self._release(offset, align(size))

    def _release(self, offset: int, size: int) -> None:
        for other, length in list(self._free.items()):
            if other + length == offset:
                del self._free[other]
                offset, size = other, size + length
            elif offset + size == other:
                del self._free[other]
                size += length
        self._free[offset] = size
