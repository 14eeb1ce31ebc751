"""The compiler's mirror of plugin/runtime/program_abi.h.

Constants, struct layouts, CPU feature bits and the closed table of symbols. A test parses the header and fails when
the two differ, so this file is edited together with the header.
"""

from __future__ import annotations

import ctypes
import enum

ABI_VERSION = 1
MAX_BATCH = 4
MAX_SPATIAL = 3
ARTIFACT_MAGIC = b"TREADLE\n"
SECTION_ALIGNMENT = 64

# Bit number and LLVM's name of each instruction set that generated code may use.
CPU_FEATURES: dict[str, int] = {
    "sse4.2": 0,
    "popcnt": 1,
    "avx": 2,
    "avx2": 3,
    "fma": 4,
    "f16c": 5,
    "bmi": 6,
    "bmi2": 7,
    "lzcnt": 8,
    "avx512f": 9,
    "avx512cd": 10,
    "avx512bw": 11,
    "avx512dq": 12,
    "avx512vl": 13,
    "avx512vbmi": 14,
    "avx512vnni": 15,
    "avx512bf16": 16,
    "avx512fp16": 17,
}


class SectionKind(enum.IntEnum):
    """TreadleSectionKind."""

    MANIFEST = 1
    BUFFERS = 2
    DIMS = 3
    STRINGS = 4
    OBJECT = 5
    CONSTANTS = 6
    PROGRAM = 7
    DEVICES = 8


class BufferFlags(enum.IntFlag):
    """TreadleBufferFlags."""

    DONATED = 1
    UNUSED = 2
    HOST = 4


class CompileRequest(ctypes.Structure):
    """TreadleCompileRequest: what the plugin asks."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("num_devices", ctypes.c_uint32),
        ("program", ctypes.c_void_p),
        ("program_size", ctypes.c_uint64),
        ("format", ctypes.c_void_p),
        ("format_size", ctypes.c_uint64),
        ("options", ctypes.c_void_p),
        ("options_size", ctypes.c_uint64),
        ("cpu_features", ctypes.c_uint64),
        ("num_threads", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    )


# void (void* sink, const char* bytes, uint64_t size)
EmitFn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)
# int32_t (const TreadleCompileRequest*, void* sink, TreadleEmitFn)
CompileFn = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(CompileRequest), ctypes.c_void_p, EmitFn)


class ArtifactHeader(ctypes.LittleEndianStructure):
    """TreadleArtifactHeader: the first bytes of an artifact."""

    _fields_ = (
        ("magic", ctypes.c_char * 8),
        ("abi_version", ctypes.c_uint32),
        ("num_sections", ctypes.c_uint32),
        ("total_size", ctypes.c_uint64),
        ("cpu_features", ctypes.c_uint64),
        ("checksum", ctypes.c_uint64),
    )


class Section(ctypes.LittleEndianStructure):
    """TreadleSection: an entry of the section table."""

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("offset", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
    )


class String(ctypes.LittleEndianStructure):
    """TreadleString: a piece of the strings section."""

    _fields_ = (("offset", ctypes.c_uint32), ("size", ctypes.c_uint32))


class Manifest(ctypes.LittleEndianStructure):
    """TreadleManifest: what the program is."""

    _fields_ = (
        ("num_inputs", ctypes.c_uint32),
        ("num_outputs", ctypes.c_uint32),
        ("num_replicas", ctypes.c_uint32),
        ("num_partitions", ctypes.c_uint32),
        ("scratch_bytes", ctypes.c_uint64),
        ("flops", ctypes.c_uint64),
        ("bytes_accessed", ctypes.c_uint64),
        ("name", String),
        ("entry", String),
        ("build_id", String),
        ("fingerprint", String),
    )


class BufferDesc(ctypes.LittleEndianStructure):
    """TreadleBufferDesc: one input or output."""

    _fields_ = (
        ("element_type", ctypes.c_uint32),
        ("rank", ctypes.c_uint32),
        ("dims", ctypes.c_uint64),
        ("byte_size", ctypes.c_uint64),
        ("alias", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("sharding", String),
    )


class Dot(ctypes.LittleEndianStructure):
    """TreadleDot: one batched matrix product."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("num_batch", ctypes.c_uint32),
        ("lhs_type", ctypes.c_uint32),
        ("rhs_type", ctypes.c_uint32),
        ("out_type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("batch", ctypes.c_int64 * MAX_BATCH),
        ("m", ctypes.c_int64),
        ("n", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("lhs_batch_strides", ctypes.c_int64 * MAX_BATCH),
        ("lhs_m_stride", ctypes.c_int64),
        ("lhs_k_stride", ctypes.c_int64),
        ("rhs_batch_strides", ctypes.c_int64 * MAX_BATCH),
        ("rhs_k_stride", ctypes.c_int64),
        ("rhs_n_stride", ctypes.c_int64),
        ("out_batch_strides", ctypes.c_int64 * MAX_BATCH),
        ("out_m_stride", ctypes.c_int64),
        ("out_n_stride", ctypes.c_int64),
    )


class Convolution(ctypes.LittleEndianStructure):
    """TreadleConvolution: one convolution."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("spatial_rank", ctypes.c_uint32),
        ("lhs_type", ctypes.c_uint32),
        ("rhs_type", ctypes.c_uint32),
        ("out_type", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("batch", ctypes.c_int64),
        ("in_features", ctypes.c_int64),
        ("out_features", ctypes.c_int64),
        ("feature_groups", ctypes.c_int64),
        ("batch_groups", ctypes.c_int64),
        ("lhs_spatial", ctypes.c_int64 * MAX_SPATIAL),
        ("rhs_spatial", ctypes.c_int64 * MAX_SPATIAL),
        ("out_spatial", ctypes.c_int64 * MAX_SPATIAL),
        ("window_strides", ctypes.c_int64 * MAX_SPATIAL),
        ("padding_low", ctypes.c_int64 * MAX_SPATIAL),
        ("padding_high", ctypes.c_int64 * MAX_SPATIAL),
        ("lhs_dilation", ctypes.c_int64 * MAX_SPATIAL),
        ("rhs_dilation", ctypes.c_int64 * MAX_SPATIAL),
        ("window_reversal", ctypes.c_int64 * MAX_SPATIAL),
        ("lhs_strides", ctypes.c_int64 * (2 + MAX_SPATIAL)),
        ("rhs_strides", ctypes.c_int64 * (2 + MAX_SPATIAL)),
        ("out_strides", ctypes.c_int64 * (2 + MAX_SPATIAL)),
    )


# The header's struct names, for the test that compares.
STRUCTS: dict[str, type[ctypes.Structure]] = {
    "TreadleCompileRequest": CompileRequest,
    "TreadleArtifactHeader": ArtifactHeader,
    "TreadleSection": Section,
    "TreadleString": String,
    "TreadleManifest": Manifest,
    "TreadleBufferDesc": BufferDesc,
    "TreadleDot": Dot,
    "TreadleConvolution": Convolution,
}

_C_MATHS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "pow", "cbrt", "fmod", "erf", "erfc", "lgamma", "tgamma",
    "hypot", "sqrt", "floor", "ceil", "trunc", "rint", "round", "roundeven", "nextafter", "ldexp", "fma",
)  # fmt: skip

# Every symbol that an object may leave undefined.
RUNTIME_SYMBOLS: frozenset[str] = frozenset(
    [
        *("treadle_parallel_for", "treadle_fail", "treadle_dot", "treadle_convolution"),
        *("memcpy", "memmove", "memset", "memcmp"),
        *_C_MATHS,
        *(name + "f" for name in _C_MATHS),
        *("__truncsfbf2", "__truncdfbf2", "__extendhfsf2", "__truncsfhf2", "__truncdfhf2"),
        *("__udivti3", "__divti3", "__umodti3", "__modti3", "__multi3"),
    ]
)
