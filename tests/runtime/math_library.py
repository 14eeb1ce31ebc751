"""Calls the runtime's matrix product and convolution through ctypes, on NumPy arrays of any strides."""

from __future__ import annotations

import ctypes
import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

MAX_BATCH = 4
MAX_SPATIAL = 3

# PJRT_Buffer_Type's numbers.
_TYPES: dict[str, int] = {
    "int8": 2,
    "int16": 3,
    "int32": 4,
    "int64": 5,
    "uint8": 6,
    "uint16": 7,
    "uint32": 8,
    "uint64": 9,
    "float16": 10,
    "float32": 11,
    "float64": 12,
    "bfloat16": 13,
}

bfloat16 = np.dtype(ml_dtypes.bfloat16)

_i64 = ctypes.c_int64
_HEADER = [
    ("lhs_type", ctypes.c_uint32),
    ("rhs_type", ctypes.c_uint32),
    ("out_type", ctypes.c_uint32),
    ("flags", ctypes.c_uint32),
]


class Dot(ctypes.Structure):
    """TreadleDot of program_abi.h."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("num_batch", ctypes.c_uint32),
        *_HEADER,
        ("batch", _i64 * MAX_BATCH),
        *[(name, _i64) for name in "mnk"],
        ("lhs_batch_strides", _i64 * MAX_BATCH),
        ("lhs_m_stride", _i64),
        ("lhs_k_stride", _i64),
        ("rhs_batch_strides", _i64 * MAX_BATCH),
        ("rhs_k_stride", _i64),
        ("rhs_n_stride", _i64),
        ("out_batch_strides", _i64 * MAX_BATCH),
        ("out_m_stride", _i64),
        ("out_n_stride", _i64),
    ]


class Convolution(ctypes.Structure):
    """TreadleConvolution of program_abi.h."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("spatial_rank", ctypes.c_uint32),
        *_HEADER,
        *[(name, _i64) for name in ("batch", "in_features", "out_features", "feature_groups", "batch_groups")],
        *[
            (name, _i64 * MAX_SPATIAL)
            for name in (
                "lhs_spatial",
                "rhs_spatial",
                "out_spatial",
                "window_strides",
                "padding_low",
                "padding_high",
                "lhs_dilation",
                "rhs_dilation",
                "window_reversal",
            )
        ],
        *[(name, _i64 * (2 + MAX_SPATIAL)) for name in ("lhs_strides", "rhs_strides", "out_strides")],
    ]


class MathError(Exception):
    """What the runtime reports: a PJRT_Error_Code and a text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ["TREADLE_TEST_MATH_LIBRARY"])


def _call(function: str, threads: int, description: ctypes.Structure, arrays: Sequence[Array]) -> None:
    text = ctypes.create_string_buffer(2000)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    run: Callable[..., int] = getattr(_library(), function)
    code = run(threads, ctypes.byref(description), *pointers, text, ctypes.c_size_t(len(text)))
    if code != 0:
        raise MathError(code, text.value.decode())


def _strides(array: Array) -> list[int]:
    return [stride // array.itemsize for stride in array.strides]


def _set_types(description: Any, lhs: Array, rhs: Array, out: Array) -> None:
    description.struct_size = ctypes.sizeof(description)
    description.lhs_type = _TYPES[lhs.dtype.name]
    description.rhs_type = _TYPES[rhs.dtype.name]
    description.out_type = _TYPES[out.dtype.name]


def dot(lhs: Array, rhs: Array, out: Array, threads: int = 2) -> Array:
    """out[..., m, n] = lhs[..., m, k] @ rhs[..., k, n], in place and returned."""
    *batch, m, k = lhs.shape
    description: Any = Dot()
    _set_types(description, lhs, rhs, out)
    description.num_batch = len(batch)
    description.m, description.n, description.k = m, rhs.shape[-1], k
    for name, array, last in (("lhs", lhs, "mk"), ("rhs", rhs, "kn"), ("out", out, "mn")):
        strides = _strides(array)
        for i in range(len(batch)):
            description.batch[i] = batch[i]
            getattr(description, f"{name}_batch_strides")[i] = strides[i]
        for letter, stride in zip(last, strides[-2:], strict=True):
            setattr(description, f"{name}_{letter}_stride", stride)
    _call("TestDot", threads, description, (lhs, rhs, out))
    return out


@dataclasses.dataclass(frozen=True)
class Geometry:
    """A StableHLO convolution's attributes; one entry per spatial dimension."""

    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    reversal: tuple[bool, ...]
    feature_groups: int = 1
    batch_groups: int = 1

    def out_spatial(self, lhs: Sequence[int], rhs: Sequence[int]) -> list[int]:
        """The spatial sizes of the result."""
        sizes = []
        for d, (n, k) in enumerate(zip(lhs, rhs, strict=True)):
            dilated = 0 if n == 0 else (n - 1) * self.lhs_dilation[d] + 1
            window = 0 if k == 0 else (k - 1) * self.rhs_dilation[d] + 1
            room = sum(self.padding[d]) + dilated - window
            sizes.append(0 if room < 0 else room // self.strides[d] + 1)
        return sizes


def convolution(lhs: Array, rhs: Array, out: Array, geometry: Geometry, threads: int = 2) -> Array:
    """Logical layouts are N C spatial, O I spatial, N C spatial; the memory's are the arrays' own."""
    rank = lhs.ndim - 2
    description: Any = Convolution()
    _set_types(description, lhs, rhs, out)
    description.spatial_rank = rank
    description.batch, description.in_features = lhs.shape[:2]
    description.out_features = rhs.shape[0]
    description.feature_groups = geometry.feature_groups
    description.batch_groups = geometry.batch_groups
    for name, array in (("lhs", lhs), ("rhs", rhs), ("out", out)):
        for i, stride in enumerate(_strides(array)):
            getattr(description, f"{name}_strides")[i] = stride
        for d in range(rank):
            getattr(description, f"{name}_spatial")[d] = array.shape[2 + d]
    for d in range(rank):
        description.window_strides[d] = geometry.strides[d]
        description.padding_low[d], description.padding_high[d] = geometry.padding[d]
        description.lhs_dilation[d] = geometry.lhs_dilation[d]
        description.rhs_dilation[d] = geometry.rhs_dilation[d]
        description.window_reversal[d] = geometry.reversal[d]
    _call("TestConvolution", threads, description, (lhs, rhs, out))
    return out


def permuted(rng: np.random.Generator, shape: Sequence[int], dtype: npt.DTypeLike, order: Sequence[int]) -> Array:
    """An array of this shape whose dimensions lie in memory in this order, of small whole numbers."""
    memory = rng.integers(-4, 5, [shape[i] for i in order])
    back = np.argsort(order)
    return memory.astype(dtype).transpose(back)


def empty_permuted(shape: Sequence[int], dtype: npt.DTypeLike, order: Sequence[int]) -> Array:
    """An uninitialised array of this shape whose dimensions lie in memory in this order."""
    return np.empty([shape[i] for i in order], dtype).transpose(np.argsort(order))
