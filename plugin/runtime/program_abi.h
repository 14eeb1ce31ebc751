/* The contract between Treadle's compiler and its runtime.
 *
 * Dependency-free C, so that a C++ runtime, a hand-written C "compiled program" (tests) and the
 * Python compiler all read the same page. The Python mirror is treadle/compiler/artifact/abi.py; a
 * test parses this header and fails when the two differ.
 *
 * Three things are fixed here:
 *   1. how the plugin asks for a compile (TreadleCompileFn),
 *   2. what comes back: one block of bytes, the artifact (TreadleArtifactHeader),
 *   3. how compiled code is entered and what it may call (TreadleEntryFn, TREADLE_RUNTIME_SYMBOLS).
 *
 * Versioning: TREADLE_ABI_VERSION changes whenever an existing field changes meaning or place; an
 * artifact of another version is refused with FAILED_PRECONDITION. All integers are little-endian,
 * all structs are naturally aligned with explicit padding.
 */
#ifndef TREADLE_PLUGIN_RUNTIME_PROGRAM_ABI_H_
#define TREADLE_PLUGIN_RUNTIME_PROGRAM_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TREADLE_ABI_VERSION 1

/* ---- CPU features ----
 * One bit per instruction set that the compiler may use, by LLVM's name for it. The runtime detects
 * the host's set and passes it with every compile; an artifact names the set it needs, and loading
 * it on a host without one of them is FAILED_PRECONDITION. */
/* clang-format off */
#define TREADLE_CPU_FEATURES(X)                                                                   \
  X(SSE42, 0, "sse4.2")                                                                           \
  X(POPCNT, 1, "popcnt")                                                                          \
  X(AVX, 2, "avx")                                                                                \
  X(AVX2, 3, "avx2")                                                                              \
  X(FMA, 4, "fma")                                                                                \
  X(F16C, 5, "f16c")                                                                              \
  X(BMI, 6, "bmi")                                                                                \
  X(BMI2, 7, "bmi2")                                                                              \
  X(LZCNT, 8, "lzcnt")                                                                            \
  X(AVX512F, 9, "avx512f")                                                                        \
  X(AVX512CD, 10, "avx512cd")                                                                     \
  X(AVX512BW, 11, "avx512bw")                                                                     \
  X(AVX512DQ, 12, "avx512dq")                                                                     \
  X(AVX512VL, 13, "avx512vl")                                                                     \
  X(AVX512VBMI, 14, "avx512vbmi")                                                                 \
  X(AVX512VNNI, 15, "avx512vnni")                                                                 \
  X(AVX512BF16, 16, "avx512bf16")                                                                 \
  X(AVX512FP16, 17, "avx512fp16")
/* clang-format on */

#define TREADLE_FEATURE_ENUM(name, bit, llvm) TREADLE_CPU_##name = bit,
enum TreadleCpuFeature { TREADLE_CPU_FEATURES(TREADLE_FEATURE_ENUM) };
#undef TREADLE_FEATURE_ENUM

/* ---- 1. Asking for a compile ----
 * The plugin calls `TreadleCompileFn` in the thread that called PJRT_Client_Compile. The compiler
 * answers by calling `emit` exactly once, with the artifact (return value 0) or with a UTF-8 error
 * message (return value: a PJRT_Error_Code). The bytes are copied by `emit`; nothing outlives the
 * call. */
typedef struct TreadleCompileRequest {
  uint32_t struct_size;
  uint32_t num_devices; /* addressable devices of the client */
  const char* program;  /* MLIR bytecode or text */
  uint64_t program_size;
  const char* format; /* "mlir" */
  uint64_t format_size;
  const char* options; /* serialized xla.CompileOptionsProto */
  uint64_t options_size;
  uint64_t cpu_features; /* of this host: bits of TREADLE_CPU_FEATURES */
  uint32_t num_threads;  /* the runtime's thread budget */
  uint32_t reserved;
} TreadleCompileRequest;

typedef void (*TreadleEmitFn)(void* sink, const char* bytes, uint64_t size);
typedef int32_t (*TreadleCompileFn)(const TreadleCompileRequest* request, void* sink,
                                    TreadleEmitFn emit);

/* ---- 2. The artifact ----
 * header | section table | sections. Offsets are from the start of the artifact; every section
 * starts at a multiple of 64. */
#define TREADLE_ARTIFACT_MAGIC "TREADLE\n"

typedef struct TreadleArtifactHeader {
  char magic[8];
  uint32_t abi_version;
  uint32_t num_sections;
  uint64_t total_size;   /* of the whole artifact, header included */
  uint64_t cpu_features; /* what the code needs */
  uint64_t checksum;     /* treadle checksum (see below) of every byte from
                            `sizeof(TreadleArtifactHeader)` to the end */
} TreadleArtifactHeader;

/* The checksum is CRC-32 (the zlib polynomial, as Python's zlib.crc32) of those bytes,
 * zero-extended. It catches damage, not malice: cached files are trusted by where they lie and who
 * owns them. */

enum TreadleSectionKind {
  TREADLE_SECTION_MANIFEST = 1, /* TreadleManifest; exactly one */
  TREADLE_SECTION_BUFFERS = 2,  /* TreadleBufferDesc[num_inputs + num_outputs]; exactly one */
  TREADLE_SECTION_DIMS = 3,     /* int64_t pool; at most one */
  TREADLE_SECTION_STRINGS = 4,  /* byte pool that TreadleString refers to; exactly one */
  TREADLE_SECTION_OBJECT = 5,   /* a relocatable ELF x86-64 object; any number; linked together, the
                                   first definition wins */
  TREADLE_SECTION_CONSTANTS = 6, /* the program's constants; at most one; its address is a
                                    buffer-table entry, 64-byte aligned */
  TREADLE_SECTION_PROGRAM = 7,   /* the StableHLO bytecode this was compiled from
                                    (Executable_OptimizedProgram); at most one */
  TREADLE_SECTION_DEVICES = 8    /* int32_t[num_replicas * num_partitions]: the device assignment,
                                    replica-major; at most one */
};

typedef struct TreadleSection {
  uint32_t kind;
  uint32_t reserved;
  uint64_t offset;
  uint64_t size;
} TreadleSection;

typedef struct TreadleString {
  uint32_t offset; /* into TREADLE_SECTION_STRINGS */
  uint32_t size;
} TreadleString;

typedef struct TreadleManifest {
  uint32_t num_inputs;
  uint32_t num_outputs;
  uint32_t num_replicas;
  uint32_t num_partitions;
  uint64_t scratch_bytes; /* temporaries; the runtime gives one 64-byte aligned block per run,
                             contents undefined */
  uint64_t flops;         /* estimates for GetCostAnalysis */
  uint64_t bytes_accessed;
  TreadleString name;        /* module name */
  TreadleString entry;       /* symbol of the TreadleEntryFn */
  TreadleString build_id;    /* of the compiler: version and source hash */
  TreadleString fingerprint; /* hex digest of program + options + features + build id */
} TreadleManifest;

enum TreadleBufferFlags {
  TREADLE_BUFFER_DONATED = 1u << 0, /* input: the program was compiled with this argument donated */
  TREADLE_BUFFER_UNUSED = 1u << 1,  /* input: the code never reads it */
  TREADLE_BUFFER_HOST = 1u << 2     /* pinned_host memory kind */
};

/* Inputs first, then outputs. Dense row-major ("major to minor") layout always.
 * An output's `alias` names the input whose memory it shares, or -1. The runtime's promise to
 * compiled code: for every aliased pair the two pointers in the buffer table are EQUAL. If the
 * caller did not give the input away, the runtime copies it into the fresh output first and passes
 * that copy as both. Pointers that are not aliased never overlap. Inputs that are not aliased are
 * read-only. */
typedef struct TreadleBufferDesc {
  uint32_t element_type; /* a PJRT_Buffer_Type value */
  uint32_t rank;
  uint64_t dims; /* index of the first dimension in TREADLE_SECTION_DIMS */
  uint64_t byte_size;
  int32_t alias;
  uint32_t flags;
  TreadleString sharding; /* serialized xla.OpSharding, or empty */
} TreadleBufferDesc;

/* ---- 3. Running compiled code ----
 * The entry gets one pointer per input, then one per output, then the constants' address, then the
 * scratch block's. Size-zero buffers have a valid, unreadable-by-contract pointer. It returns 0, or
 * a PJRT_Error_Code after calling treadle_fail. It runs on one thread, which is a pool thread or
 * the caller's; it never throws and never blocks except inside treadle_* calls. */
typedef struct TreadleRun TreadleRun; /* the runtime's state of one run; opaque to compiled code */
typedef int32_t (*TreadleEntryFn)(TreadleRun* run, void* const* buffers);

/* A kernel does iterations [begin, end) of its outermost loop. `params` is what the caller of
 * treadle_parallel_for passed. */
typedef void (*TreadleKernelFn)(void* const* params, int64_t begin, int64_t end);

/* Splits [0, n) into pieces of at least `grain` iterations over the thread budget and returns when
 * all are done. With one thread, or n <= grain, it is a plain call. Nested calls run inline. */
void treadle_parallel_for(TreadleRun* run, TreadleKernelFn kernel, void* const* params, int64_t n,
                          int64_t grain);

/* Records the error that the entry is about to return. */
void treadle_fail(TreadleRun* run, int32_t code, const char* message, uint64_t size);

#define TREADLE_MAX_BATCH 4
/* out[b..., m, n] = sum_k lhs[b..., m, k] * rhs[b..., k, n]. Strides are in elements and arbitrary
 * (>= 0). Sums of f16/bf16 are taken in f32, of integers in the out type (wrapping). out never
 * overlaps lhs or rhs; the out array is dense in some dimension order. */
typedef struct TreadleDot {
  uint32_t struct_size;
  uint32_t num_batch;
  uint32_t lhs_type; /* PJRT_Buffer_Type: F32, BF16, F16, F64, S8..S64, U8..U64 */
  uint32_t rhs_type; /* equal to lhs_type */
  uint32_t out_type; /* equal to lhs_type, or F32 for BF16/F16 inputs, or S32 for S8 */
  uint32_t flags;    /* 0 */
  int64_t batch[TREADLE_MAX_BATCH];
  int64_t m, n, k;
  int64_t lhs_batch_strides[TREADLE_MAX_BATCH], lhs_m_stride, lhs_k_stride;
  int64_t rhs_batch_strides[TREADLE_MAX_BATCH], rhs_k_stride, rhs_n_stride;
  int64_t out_batch_strides[TREADLE_MAX_BATCH], out_m_stride, out_n_stride;
} TreadleDot;
int32_t treadle_dot(TreadleRun* run, const TreadleDot* dot, const void* lhs, const void* rhs,
                    void* out);

#define TREADLE_MAX_SPATIAL 3
/* StableHLO's convolution, any layout by strides (elements). Types: F32, BF16, F16, F64; out_type
 * as for TreadleDot. stride arrays: lhs {batch, feature, spatial...}, rhs {output feature, input
 * feature, spatial...}, out {batch, feature, spatial...}. Sizes: rhs input features = in_features /
 * feature_groups. padding may be negative. */
typedef struct TreadleConvolution {
  uint32_t struct_size;
  uint32_t spatial_rank; /* 0 .. 3 */
  uint32_t lhs_type;
  uint32_t rhs_type;
  uint32_t out_type;
  uint32_t flags; /* 0 */
  int64_t batch, in_features, out_features, feature_groups, batch_groups;
  int64_t lhs_spatial[TREADLE_MAX_SPATIAL], rhs_spatial[TREADLE_MAX_SPATIAL],
      out_spatial[TREADLE_MAX_SPATIAL];
  int64_t window_strides[TREADLE_MAX_SPATIAL], padding_low[TREADLE_MAX_SPATIAL],
      padding_high[TREADLE_MAX_SPATIAL];
  int64_t lhs_dilation[TREADLE_MAX_SPATIAL], rhs_dilation[TREADLE_MAX_SPATIAL],
      window_reversal[TREADLE_MAX_SPATIAL];
  int64_t lhs_strides[2 + TREADLE_MAX_SPATIAL], rhs_strides[2 + TREADLE_MAX_SPATIAL],
      out_strides[2 + TREADLE_MAX_SPATIAL];
} TreadleConvolution;
int32_t treadle_convolution(TreadleRun* run, const TreadleConvolution* conv, const void* lhs,
                            const void* rhs, void* out);

/* The closed table: every symbol an object may leave undefined. The compiler checks it when it
 * emits, the loader when it loads; nothing is ever looked up in the process. The maths and memory
 * names are C's own; the __* names are what LLVM invents for 16-bit floats and 128-bit integers
 * (compiler-rt's conventions). */
/* clang-format off */
#define TREADLE_RUNTIME_SYMBOLS(X)                                                                                                \
  X(treadle_parallel_for) X(treadle_fail) X(treadle_dot) X(treadle_convolution)                                                   \
  X(memcpy) X(memmove) X(memset) X(memcmp)                                                                                        \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(atan2) X(sinh)          \
  X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(pow) X(cbrt) X(fmod) X(erf) X(erfc) X(lgamma) X(tgamma) X(hypot) X(sqrt)           \
  X(floor) X(ceil) X(trunc) X(rint) X(round) X(roundeven) X(nextafter) X(ldexp) X(fma)                                            \
  X(expf) X(exp2f) X(expm1f) X(logf) X(log2f) X(log10f) X(log1pf) X(sinf) X(cosf) X(tanf) X(asinf) X(acosf) X(atanf) X(atan2f)    \
  X(sinhf) X(coshf) X(tanhf) X(asinhf) X(acoshf) X(atanhf) X(powf) X(cbrtf) X(fmodf) X(erff) X(erfcf) X(lgammaf) X(tgammaf)       \
  X(hypotf) X(sqrtf) X(floorf) X(ceilf) X(truncf) X(rintf) X(roundf) X(roundevenf) X(nextafterf) X(ldexpf) X(fmaf)                \
  X(__truncsfbf2) X(__truncdfbf2) X(__extendhfsf2) X(__truncsfhf2) X(__truncdfhf2)                                                \
  X(__udivti3) X(__divti3) X(__umodti3) X(__modti3) X(__multi3)
/* clang-format on */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TREADLE_PLUGIN_RUNTIME_PROGRAM_ABI_H_ */
