"""Kernels built by hand, as lowering would build them, and a comparison with the interpreter."""

import math

import numpy as np

from tests.compiler.codegen.harness import HOST, Library
from treadle.compiler.ir import types as t
from treadle.compiler.ir.types import DType, row_major_strides
from treadle.compiler.loops import interp
from treadle.compiler.loops.build import Builder, index_of, linear_index
from treadle.compiler.loops.ir import Acc, Buffer, Expr, Kernel, Nest, Reduction, Store, Var
from treadle.compiler.loops.schedule import schedule
from treadle.compiler.loops.text import kernel_text


def random_array(dtype: DType, size: int, seed: int = 0) -> np.ndarray:
    """Values of all magnitudes that matter; for integers the whole range and many small ones."""
    rng = np.random.default_rng(seed)
    if dtype is t.PRED:
        return rng.integers(0, 2, size).astype(bool)
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        small = rng.integers(max(info.min, -5), 6, size)
        large = rng.integers(info.min, info.max, size, dtype=dtype.numpy, endpoint=True)
        return np.where(rng.random(size) < 0.4, small, large).astype(dtype.numpy)
    values = rng.standard_normal(size) * np.exp2(rng.integers(-6, 7, size))
    return values.astype(dtype.numpy)


def special_floats(dtype: DType) -> np.ndarray:
    """Zeros, infinities, NaNs, subnormals and numbers on rounding boundaries."""
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-40, -1e-40, 3.4e38, 65504.0]
    return np.array([*values, 65520.0, 1e-8, 127.5, -128.5, 2147483648.0, -2147483649.0, 1e30, 255.5]).astype(
        dtype.numpy
    )


def elementwise_kernel(name, dtype, operands, size, attr="") -> Kernel:
    """`out[i] = name(in0[i], ...)`."""
    b, i = Builder(), Var(size)
    loads = [b.load(d, n, index_of(i)) for n, d in enumerate(operands)]
    value = b.apply(dtype, name, loads, attr)
    params = (*[Buffer(d, size) for d in operands], Buffer(dtype, size, True))
    return Kernel(params, (Nest((i,), (Store(len(operands), index_of(i), value),)),))


def reduction(b: Builder, kind: str, variables, value: Expr, init: object, ordered: bool = False) -> Reduction:
    """One accumulator, combined by the op `kind`."""
    dtype = value.dtype
    combiner = b.apply(dtype, kind, [b.param(dtype, 0), b.param(dtype, 1)])
    return Reduction(
        tuple(variables), (b.const(dtype, init),), (value,), (combiner,), None if ordered else kind, (dtype,)
    )


def reduce_kernel(kind, dtype, shape, axes, init=0, ordered=False) -> Kernel:
    """A reduction of a row-major array over `axes`."""
    b = Builder()
    variables = [Var(extent) for extent in shape]
    at = linear_index([index_of(v) for v in variables], row_major_strides(tuple(shape)))
    loops = [v for axis, v in enumerate(variables) if axis not in axes]
    r = reduction(b, kind, [variables[axis] for axis in axes], b.load(dtype, 0, at), init, ordered)
    out = linear_index([index_of(v) for v in loops], row_major_strides(tuple(v.extent for v in loops)))
    params = (Buffer(dtype, math.prod(shape)), Buffer(dtype, math.prod(v.extent for v in loops), True))
    return Kernel(params, (Nest(tuple(loops), (Store(1, out, Acc(dtype, 0)),), r),))


def expected(kernel: Kernel, buffers) -> list[np.ndarray]:
    """The written buffers, by the interpreter."""
    work = [np.array(buffer, copy=True) for buffer in buffers]
    interp.run_kernel(kernel, work)
    return [work[i] for i, param in enumerate(kernel.params) if param.written]


def assert_same(got, want, exact=True, rtol=0.0):
    """Bitwise equality but for NaN payloads, or closeness."""
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        if exact:
            np.testing.assert_array_equal(x, y)
            numbers = ~np.isnan(x)
            np.testing.assert_array_equal(np.signbit(x[numbers]), np.signbit(y[numbers]))
        else:
            np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol)


def pieces_of(kernel: Kernel) -> list[tuple[int, int]]:
    """The range of a kernel cut as threads might, with an empty piece and a piece of one iteration."""
    extent = kernel.range_extent()
    return [(0, extent // 3), (extent // 3, extent // 3), (extent // 3, extent - 1), (extent - 1, extent)]


def check_all(cases, exact=True, rtol=0.0, target=HOST):
    """Schedules, compiles and runs kernels (whole, and cut in pieces where that is allowed); compares with the
    interpreter.

    `cases` are (kernel, buffers). Returns the scheduled kernels.
    """
    planned = [schedule(kernel, target) for kernel, _ in cases]
    split = [schedule(kernel, target, split_work=0) for kernel, _ in cases]
    library = Library(planned + split, target)
    for number, ((kernel, buffers), whole, cut) in enumerate(zip(cases, planned, split, strict=True)):
        want = expected(kernel, buffers)
        try:
            assert_same(library.results(number, buffers), want, exact, rtol)
            assert_same(library.results(len(cases) + number, buffers), want, exact, rtol)
            if cut.parallel and cut.range_extent() > 2:
                assert_same(library.results(len(cases) + number, buffers, pieces_of(cut)), want, exact, rtol)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{kernel_text(whole)}{kernel_text(cut)}") from None
    return planned


def check(kernel: Kernel, buffers, exact=True, rtol=0.0, target=HOST):
    """`check_all` for one kernel; returns it as scheduled."""
    return check_all([(kernel, buffers)], exact, rtol, target)[0]
