/* Compiled programs written by hand: what Treadle's compiler would emit, with no compiler involved.
 * Each function is an entry; the test packs the object of this file into an artifact and names the
 * entry it wants. */
#include <math.h>
#include <string.h>

#include "plugin/runtime/program_abi.h"

#define kSize 1000

static void SaxpyKernel(void* const* params, int64_t begin, int64_t end) {
  const float* scale = params[0];
  const float* x = params[1];
  const float* y = params[2];
  float* out = params[3];
  for (int64_t i = begin; i < end; ++i) out[i] = *scale * x[i] + y[i];
}

/* buffers: x, y, out, constants (the scale), scratch. */
int32_t saxpy(TreadleRun* run, void* const* buffers) {
  void* params[] = {buffers[3], buffers[0], buffers[1], buffers[2]};
  treadle_parallel_for(run, SaxpyKernel, params, kSize, 64);
  return 0;
}

/* The same by way of scratch memory: scale * x there first. */
int32_t saxpy_scratch(TreadleRun* run, void* const* buffers) {
  const float* scale = buffers[3];
  const float* x = buffers[0];
  const float* y = buffers[1];
  float* out = buffers[2];
  float* scratch = buffers[4];
  (void)run;
  for (int i = 0; i < kSize; ++i) scratch[i] = *scale * x[i];
  for (int i = 0; i < kSize; ++i) out[i] = scratch[i] + y[i];
  return 0;
}

/* x as a matrix of 25 x 40 times the transpose of y as one. */
int32_t product(TreadleRun* run, void* const* buffers) {
  TreadleDot dot;
  memset(&dot, 0, sizeof dot);
  dot.struct_size = sizeof dot;
  dot.lhs_type = dot.rhs_type = dot.out_type = 11;
  dot.m = 25;
  dot.n = 25;
  dot.k = 40;
  dot.lhs_m_stride = 40;
  dot.lhs_k_stride = 1;
  dot.rhs_k_stride = 1;
  dot.rhs_n_stride = 40;
  dot.out_m_stride = 25;
  dot.out_n_stride = 1;
  return treadle_dot(run, &dot, buffers[0], buffers[1], buffers[2]);
}

/* A product that the runtime refuses. */
int32_t refused(TreadleRun* run, void* const* buffers) {
  TreadleDot dot;
  memset(&dot, 0, sizeof dot);
  return treadle_dot(run, &dot, buffers[0], buffers[1], buffers[2]);
}

int32_t fails(TreadleRun* run, void* const* buffers) {
  static const char message[] = "the index is out of range";
  (void)buffers;
  treadle_fail(run, 11, message, sizeof message - 1);
  return 11;
}

int32_t fails_silently(TreadleRun* run, void* const* buffers) {
  (void)run;
  (void)buffers;
  return 13;
}

/* Every kind of reference that compilers make: a call through the PLT, an address through the GOT,
 * a table of addresses in data, a zero-initialised array and a local constant. */
typedef double (*Function)(double);
static Function const table[] = {exp, log, sqrt};
static int64_t calls[2];
__attribute__((noinline)) int64_t count_call(int index) { return ++calls[index]; }

int32_t references(TreadleRun* run, void* const* buffers) {
  const float* x = buffers[0];
  float* out = buffers[2];
  static const float offsets[] = {0.5f, 0.25f, 0.125f};
  int64_t (*volatile counter)(int) = count_call;
  (void)run;
  memset(out, 0, kSize * sizeof *out);
  for (int i = 0; i < 3; ++i) out[i] = (float)table[i]((double)x[i]) + offsets[i];
  out[3] = tanhf(x[3]);
  out[4] = fmodf(x[4], 1.5f);
  out[5] = (float)(counter(1) > 0);
  return 0;
}
