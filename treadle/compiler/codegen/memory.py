"""Vector and scalar memory access: contiguous, reversed, strided, gathered; with and without masks.

A masked-off element is never touched. A scalar access, and one whose mask is the same for all lanes, does that without
a branch: its pointer is exchanged for one to 64 bytes that exist (zeros to read, a dump to write).
"""

from __future__ import annotations

from treadle.compiler.codegen.text import FunctionBuilder, memory_type, splat_literal, suffix, vector
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType

ZEROS = "@treadle_zeros"
_ZEROS_DEFINITION = f"{ZEROS} = private unnamed_addr constant [64 x i8] zeroinitializer, align 64"
DUMP = "%dump"


def offset(fb: FunctionBuilder, dtype: DType, pointer: str, elements: int) -> str:
    """`pointer + elements`."""
    return fb.op(f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {elements}") if elements else pointer


def readable(fb: FunctionBuilder, pointer: str, flag: str) -> str:
    """`pointer` where the scalar `flag` holds, otherwise 64 bytes of zeros."""
    fb.declares[ZEROS] = _ZEROS_DEFINITION
    return fb.op(f"select i1 {flag}, ptr {pointer}, ptr {ZEROS}")


def writable(fb: FunctionBuilder, pointer: str, flag: str) -> str:
    """`pointer` where the scalar `flag` holds, otherwise 64 bytes that nobody reads."""
    return fb.op(f"select i1 {flag}, ptr {pointer}, ptr {DUMP}")


def from_memory(fb: FunctionBuilder, dtype: DType, value: str, lanes: int) -> str:
    """A loaded value as a register: pred bytes become bits."""
    if dtype is not t.PRED:
        return value
    return fb.op(f"icmp ne {vector('i8', lanes)} {value}, {splat_literal('i8', '0', lanes)}")


def to_memory(fb: FunctionBuilder, dtype: DType, value: str, lanes: int) -> str:
    """A register as what is stored: pred bits become bytes."""
    return fb.op(f"zext {vector('i1', lanes)} {value} to {vector('i8', lanes)}") if dtype is t.PRED else value


def load(fb: FunctionBuilder, dtype: DType, pointer: str, lanes: int, mask: str | None = None) -> str:
    """`lanes` consecutive elements; where the vector `mask` is false: zero."""
    element = memory_type(dtype)
    ty = vector(element, lanes)
    if mask is None:
        return from_memory(fb, dtype, fb.op(f"load {ty}, ptr {pointer}, align {dtype.bytes}"), lanes)
    flags = vector("i1", lanes)
    symbol = f"llvm.masked.load.{suffix(element, lanes)}.p0"
    fb.declare(ty, symbol, ["ptr", "i32 immarg", flags, ty])
    value = fb.op(f"call {ty} @{symbol}(ptr {pointer}, i32 {dtype.bytes}, {flags} {mask}, {ty} zeroinitializer)")
    return from_memory(fb, dtype, value, lanes)


def store(fb: FunctionBuilder, dtype: DType, value: str, pointer: str, lanes: int, mask: str | None = None) -> None:
    """Writes `lanes` consecutive elements, those where the vector `mask` is true."""
    element = memory_type(dtype)
    ty = vector(element, lanes)
    stored = to_memory(fb, dtype, value, lanes)
    if mask is None:
        fb.do(f"store {ty} {stored}, ptr {pointer}, align {dtype.bytes}")
        return
    flags = vector("i1", lanes)
    symbol = f"llvm.masked.store.{suffix(element, lanes)}.p0"
    fb.declare("void", symbol, [ty, "ptr", "i32 immarg", flags])
    fb.do(f"call void @{symbol}({ty} {stored}, ptr {pointer}, i32 {dtype.bytes}, {flags} {mask})")


def reverse(fb: FunctionBuilder, element: str, value: str, lanes: int) -> str:
    """The lanes in reverse order."""
    return fb.shuffle(element, lanes, value, "poison", tuple(reversed(range(lanes))))


def lane_pointers(fb: FunctionBuilder, dtype: DType, pointer: str, lanes: int, stride: int) -> list[str]:
    """The addresses of elements `stride` apart."""
    return [offset(fb, dtype, pointer, lane * stride) for lane in range(lanes)]


def indexed_pointers(fb: FunctionBuilder, dtype: DType, pointer: str, index: str, lanes: int) -> list[str]:
    """The addresses `pointer + index[lane]`; `index` is a vector of i64."""
    ty = vector("i64", lanes)
    element = memory_type(dtype)
    found = []
    for lane in range(lanes):
        one = fb.op(f"extractelement {ty} {index}, i64 {lane}")
        found.append(fb.op(f"getelementptr {element}, ptr {pointer}, i64 {one}"))
    return found


def load_lanes(fb: FunctionBuilder, dtype: DType, pointers: list[str], mask: str | None = None) -> str:
    """A vector of the elements at `pointers`; where the vector `mask` is false: zero."""
    lanes = len(pointers)
    element = memory_type(dtype)
    ty, flags = vector(element, lanes), vector("i1", lanes)
    result = "poison"
    for lane, pointer in enumerate(pointers):
        place = pointer
        if mask is not None:
            place = readable(fb, pointer, fb.op(f"extractelement {flags} {mask}, i64 {lane}"))
        one = fb.op(f"load {element}, ptr {place}, align {dtype.bytes}")
        result = fb.op(f"insertelement {ty} {result}, {element} {one}, i64 {lane}")
    return from_memory(fb, dtype, result, lanes)


def store_lanes(fb: FunctionBuilder, dtype: DType, value: str, pointers: list[str], mask: str | None = None) -> None:
    """Writes each lane to its pointer, in the order of the lanes."""
    lanes = len(pointers)
    element = memory_type(dtype)
    ty, flags = vector(element, lanes), vector("i1", lanes)
    stored = to_memory(fb, dtype, value, lanes)
    for lane, pointer in enumerate(pointers):
        place = pointer
        if mask is not None:
            place = writable(fb, pointer, fb.op(f"extractelement {flags} {mask}, i64 {lane}"))
        one = fb.op(f"extractelement {ty} {stored}, i64 {lane}")
        fb.do(f"store {element} {one}, ptr {place}, align {dtype.bytes}")


def gather(
    fb: FunctionBuilder, dtype: DType, pointer: str, index: str, width: str, lanes: int, mask: str | None
) -> str:
    """`pointer[index[lane]]` in one instruction, for 4- and 8-byte elements; `width` is the type of an index."""
    element = memory_type(dtype)
    ty, flags, pointers = vector(element, lanes), vector("i1", lanes), vector("ptr", lanes)
    places = fb.op(f"getelementptr {element}, ptr {pointer}, {vector(width, lanes)} {index}")
    symbol = f"llvm.masked.gather.{suffix(element, lanes)}.{suffix('ptr', lanes)}"
    fb.declare(ty, symbol, [pointers, "i32 immarg", flags, ty])
    chosen = mask or splat_literal("i1", "true", lanes)
    through = "poison" if mask is None else "zeroinitializer"
    return fb.op(f"call {ty} @{symbol}({pointers} {places}, i32 {dtype.bytes}, {flags} {chosen}, {ty} {through})")


def transpose(fb: FunctionBuilder, element: str, bits: int, rows: list[str], lanes: int) -> list[str]:
    """The columns of the square matrix whose rows are `rows`, by shuffles that are one fast instruction each.

    Think of an element's place as bits: of its row, and of its lane, which is a 128-bit block and a place inside the
    block. Interleaving the blocks of two rows that differ in row bit p moves that bit to the end of the place and the
    place's leading bit to where p was; taking the even and the odd blocks of two rows does the like with the bits of
    the block. Once every bit has moved, rows and lanes have changed places.
    """
    inside = min(lanes, max(128 // bits, 1))
    current, step = list(rows), inside // 2
    low = _interleaved(lanes, inside, 0)
    high = _interleaved(lanes, inside, inside // 2)
    while step:
        current = _exchanged(fb, element, current, lanes, step, low, high)
        step //= 2
    if inside < lanes:
        current = [_fence(fb, element, bits, row, lanes) for row in current]
    even, odd = _alternate(lanes, inside, 0), _alternate(lanes, inside, 1)
    step = inside
    while step < lanes:
        current = _exchanged(fb, element, current, lanes, step, even, odd)
        step *= 2
    return current


def _fence(fb: FunctionBuilder, element: str, bits: int, value: str, lanes: int) -> str:
    """The same value; LLVM does not look for what precedes it.

    It would try to merge each shuffle with all those before it, finds nothing, and takes twice the time to compile.
    """
    ty, count = vector(element, lanes), bits * lanes // 32
    floats = vector("float", count)
    plain = value if ty == floats else fb.op(f"bitcast {ty} {value} to {floats}")
    fenced = fb.intrinsic("arithmetic.fence", "float", count, [plain])
    return fenced if ty == floats else fb.op(f"bitcast {floats} {fenced} to {ty}")


def _exchanged(
    fb: FunctionBuilder,
    element: str,
    rows: list[str],
    lanes: int,
    step: int,
    first: tuple[int, ...],
    second: tuple[int, ...],
) -> list[str]:
    """Replaces each two rows `step` apart by two shuffles of both."""
    result = list(rows)
    for i in range(lanes):
        if not i & step:
            result[i] = fb.shuffle(element, lanes, rows[i], rows[i + step], first)
            result[i + step] = fb.shuffle(element, lanes, rows[i], rows[i + step], second)
    return result


def _interleaved(lanes: int, inside: int, first: int) -> tuple[int, ...]:
    """Half of each block of two vectors, from `first` on, element by element in turn."""
    places = [block + first + i for block in range(0, lanes, inside) for i in range(inside // 2)]
    return tuple(place + source for place in places for source in (0, lanes))


def _alternate(lanes: int, inside: int, first: int) -> tuple[int, ...]:
    """Every other block of one vector, then of the other."""
    return tuple(i for i in range(2 * lanes) if i // inside % 2 == first)
