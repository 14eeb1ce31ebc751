"""Element types and tensor types of Treadle's IR.

Names are PJRT's (`s32`, `bf16`, `pred`), so that a dump, a manifest and an error message speak of the same thing.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math

import ml_dtypes
import numpy as np


class Kind(enum.Enum):
    """The arithmetic family of an element type."""

    PRED = "pred"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"
    TOKEN = "token"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type. Instances are the module constants below; compare with `is` or `==` (identity).

    Attributes:
      name: PJRT's name in lower case.
      pjrt: the value of PJRT_Buffer_Type.
      kind: arithmetic family.
      bits: significant bits of one element.
      bytes: storage of one element in a buffer (sub-byte types take one byte, as in jaxlib's CPU backend).
      numpy: NumPy dtype of that storage.
    """

    name: str
    pjrt: int
    kind: Kind
    bits: int
    bytes: int
    numpy: np.dtype

    def __repr__(self) -> str:
        return self.name

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        return self.kind is Kind.SIGNED or self.kind is Kind.UNSIGNED

    @property
    def is_signed(self) -> bool:
        return self.kind is Kind.SIGNED

    @property
    def is_complex(self) -> bool:
        return self.kind is Kind.COMPLEX


def _dtype(name: str, pjrt: int, kind: Kind, bits: int, numpy: object) -> DType:
    dt = np.dtype(numpy)  # type: ignore[call-overload]
    return DType(name, pjrt, kind, bits, dt.itemsize, dt)


PRED = _dtype("pred", 1, Kind.PRED, 1, np.bool_)
S8 = _dtype("s8", 2, Kind.SIGNED, 8, np.int8)
S16 = _dtype("s16", 3, Kind.SIGNED, 16, np.int16)
S32 = _dtype("s32", 4, Kind.SIGNED, 32, np.int32)
S64 = _dtype("s64", 5, Kind.SIGNED, 64, np.int64)
U8 = _dtype("u8", 6, Kind.UNSIGNED, 8, np.uint8)
U16 = _dtype("u16", 7, Kind.UNSIGNED, 16, np.uint16)
U32 = _dtype("u32", 8, Kind.UNSIGNED, 32, np.uint32)
U64 = _dtype("u64", 9, Kind.UNSIGNED, 64, np.uint64)
F16 = _dtype("f16", 10, Kind.FLOAT, 16, np.float16)
F32 = _dtype("f32", 11, Kind.FLOAT, 32, np.float32)
F64 = _dtype("f64", 12, Kind.FLOAT, 64, np.float64)
BF16 = _dtype("bf16", 13, Kind.FLOAT, 16, ml_dtypes.bfloat16)
C64 = _dtype("c64", 14, Kind.COMPLEX, 64, np.complex64)
C128 = _dtype("c128", 15, Kind.COMPLEX, 128, np.complex128)
F8E5M2 = _dtype("f8e5m2", 16, Kind.FLOAT, 8, ml_dtypes.float8_e5m2)
F8E4M3FN = _dtype("f8e4m3fn", 17, Kind.FLOAT, 8, ml_dtypes.float8_e4m3fn)
F8E4M3B11FNUZ = _dtype("f8e4m3b11fnuz", 18, Kind.FLOAT, 8, ml_dtypes.float8_e4m3b11fnuz)
F8E5M2FNUZ = _dtype("f8e5m2fnuz", 19, Kind.FLOAT, 8, ml_dtypes.float8_e5m2fnuz)
F8E4M3FNUZ = _dtype("f8e4m3fnuz", 20, Kind.FLOAT, 8, ml_dtypes.float8_e4m3fnuz)
S4 = _dtype("s4", 21, Kind.SIGNED, 4, ml_dtypes.int4)
U4 = _dtype("u4", 22, Kind.UNSIGNED, 4, ml_dtypes.uint4)
TOKEN = _dtype("token", 23, Kind.TOKEN, 0, np.bool_)
S2 = _dtype("s2", 24, Kind.SIGNED, 2, ml_dtypes.int2)
U2 = _dtype("u2", 25, Kind.UNSIGNED, 2, ml_dtypes.uint2)
F8E4M3 = _dtype("f8e4m3", 26, Kind.FLOAT, 8, ml_dtypes.float8_e4m3)
F8E3M4 = _dtype("f8e3m4", 27, Kind.FLOAT, 8, ml_dtypes.float8_e3m4)
F8E8M0FNU = _dtype("f8e8m0fnu", 28, Kind.FLOAT, 8, ml_dtypes.float8_e8m0fnu)
F4E2M1FN = _dtype("f4e2m1fn", 29, Kind.FLOAT, 4, ml_dtypes.float4_e2m1fn)

ALL_DTYPES: tuple[DType, ...] = (
    PRED, S8, S16, S32, S64, U8, U16, U32, U64, F16, F32, F64, BF16, C64, C128, F8E5M2, F8E4M3FN, F8E4M3B11FNUZ,
    F8E5M2FNUZ, F8E4M3FNUZ, S4, U4, TOKEN, S2, U2, F8E4M3, F8E3M4, F8E8M0FNU, F4E2M1FN,
)  # fmt: skip

BY_NAME: dict[str, DType] = {d.name: d for d in ALL_DTYPES}
_BY_NUMPY: dict[np.dtype, DType] = {d.numpy: d for d in ALL_DTYPES if d is not TOKEN}

# Types that generated code computes with today; the frontend refuses the others by name.
COMPUTE_DTYPES: frozenset[DType] = frozenset({PRED, S8, S16, S32, S64, U8, U16, U32, U64, F16, BF16, F32, F64})


def from_numpy(dtype: np.dtype) -> DType:
    """The element type whose storage is `dtype`; raises KeyError for a dtype that no tensor has."""
    return _BY_NUMPY[dtype]


@dataclasses.dataclass(frozen=True, slots=True)
class TensorType:
    """A dense tensor: element type and static extents (row-major in memory)."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def byte_size(self) -> int:
        return self.size * self.dtype.bytes

    def strides(self) -> tuple[int, ...]:
        """Row-major strides in elements."""
        return row_major_strides(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


@functools.lru_cache(maxsize=4096)
def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a dense row-major array of `shape`."""
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
