"""Memory that keeps a few things side by side: strides of 2 to 4 in loads, in stores, and as short innermost loops."""

import ctypes
import mmap

import numpy as np
import pytest

from tests.compiler.codegen.cases import assert_same, check, check_all, expected, random_array
from tests.compiler.codegen.harness import AVX2, HOST, SSE, Library
from treadle.compiler.codegen.kernel import emit_kernel
from treadle.compiler.ir import types as t
from treadle.compiler.loops.build import Builder, index_of, linear_index
from treadle.compiler.loops.ir import Buffer, Kernel, Nest, Store, Var
from treadle.compiler.loops.schedule import schedule

TARGETS = [pytest.param(HOST, id="host"), pytest.param(AVX2, id="avx2"), pytest.param(SSE, id="sse")]
every_target = pytest.mark.parametrize("target", TARGETS)
DTYPES = (t.F32, t.F64, t.U8, t.BF16, t.PRED, t.S16, t.S64)


def buffers_for(kernel):
    return [random_array(p.dtype, p.size, i) for i, p in enumerate(kernel.params)]


def pick(dtype, stride, extent, first, spare):
    """`out[i] = in[first + stride * i]`, with `spare` elements behind the last one read."""
    b, i = Builder(), Var(extent)
    size = first + stride * (extent - 1) + 1 + spare
    nest = Nest((i,), (Store(1, index_of(i), b.load(dtype, 0, index_of(i, stride, first))),))
    return Kernel((Buffer(dtype, size), Buffer(dtype, extent, True)), (nest,))


@every_target
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_nth_element(dtype, target):
    kernels = [
        pick(dtype, stride, extent, first, spare)
        for stride in (2, 3, 4, 5)
        for extent in (2, 16, 37, 64)
        for first, spare in ((0, 0), (0, 4), (1, 0), (2, 1), (7, 2))
    ]
    check_all([(kernel, buffers_for(kernel)) for kernel in kernels], target=target)


@every_target
def test_nothing_behind_the_last_element_is_read(target):
    """The buffer ends where a page does, and the next page may not be touched."""
    kernels = [
        schedule(pick(dtype, stride, extent, first, 0), target)
        for dtype in (t.F32, t.U8, t.F64)
        for stride in (2, 3, 4)
        for extent in (16, 40, 64)
        for first in (0, 1, 3)
    ]
    library = Library(kernels, target)
    page = mmap.PAGESIZE
    region = mmap.mmap(-1, 3 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(region))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for forbidden in (0, 2 * page):
        assert protect(start + forbidden, page, 0) == 0
    for number, kernel in enumerate(kernels):
        source, result = buffers_for(kernel)
        for end in (True, False):
            offset = 2 * page - source.nbytes if end else page
            ctypes.memmove(start + offset, source.ctypes.data, source.nbytes)
            inside = np.frombuffer((ctypes.c_char * source.nbytes).from_address(start + offset), source.dtype)
            library.run(number, [inside, result])
            assert_same([result], expected(kernel, [source, result]))


@every_target
def test_members_of_a_group_and_groups_of_stores(target):
    """Pairs are read, turned and written back side by side, in place and not; rows of pairs, too."""
    cases = []
    for dtype in (t.F32, t.S32, t.U8, t.F64, t.BF16):
        for count in (2, 3, 4):
            for rows, extent in ((1, 50), (3, 32), (5, 21)):
                b, i, j = Builder(), Var(rows), Var(extent)
                place = [linear_index([index_of(i), index_of(j)], [extent * count, count], k) for k in range(count)]
                loads = [b.load(dtype, 0, p) for p in place]
                values = [b.apply(dtype, "maximum", [loads[k], loads[(k + 1) % count]]) for k in range(count)]
                size = rows * extent * count
                for chosen in (range(count), range(count - 1), reversed(range(count))):
                    stores = tuple(Store(1, place[k], values[k]) for k in chosen)
                    kernel = Kernel((Buffer(dtype, size), Buffer(dtype, size, True)), (Nest((i, j), stores),))
                    cases.append((kernel, buffers_for(kernel)))
    check_all(cases, target=target)


@every_target
def test_short_innermost_loops(target):
    """Pixels: a factor per colour, colours side by side made of planes and planes of colours."""
    cases = []
    for dtype in (t.F32, t.U8, t.PRED, t.F64):
        name = "and" if dtype is t.PRED else "multiply"
        for colours in (2, 3, 4, 5):
            for pixels in (7, 16, 100):
                b, i, c = Builder(), Var(pixels), Var(colours)
                packed = linear_index([index_of(i), index_of(c)], [colours, 1])
                planes = linear_index([index_of(i), index_of(c)], [1, pixels])
                size = pixels * colours
                params = (Buffer(dtype, size), Buffer(dtype, colours), Buffer(dtype, size, True))
                factor = b.load(dtype, 1, index_of(c))
                for loops, source, result in (
                    ((i, c), packed, packed),
                    ((i, c), planes, packed),
                    ((c, i), packed, planes),
                ):
                    value = b.apply(dtype, name, [b.load(dtype, 0, source), factor])
                    kernel = Kernel(params, (Nest(loops, (Store(2, result, value),)),))
                    cases.append((kernel, buffers_for(kernel)))
    check_all(cases, target=target)


def test_pixels_are_loaded_and_stored_in_whole_vectors():
    b, i, c = Builder(), Var(1000), Var(3)
    packed = linear_index([index_of(i), index_of(c)], [3, 1])
    value = b.apply(t.F32, "multiply", [b.load(t.F32, 0, packed), b.load(t.F32, 1, index_of(c))])
    params = (Buffer(t.F32, 3000), Buffer(t.F32, 3), Buffer(t.F32, 3000, True))
    kernel = Kernel(params, (Nest((i, c), (Store(2, packed, value),)),))
    planned = check(kernel, buffers_for(kernel))
    (nest,) = planned.nests
    assert len(nest.stores) == 3
    assert nest.vector is not None
    assert nest.vector.extent == 1000
    text = emit_kernel(planned, "k", HOST).text
    main = text.split("\nloop")[1].split("br i1")[0]
    assert main.count("= load <") == 3
    assert main.count("  store <") == 3
