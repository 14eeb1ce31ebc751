#include "plugin/runtime/convolution/convolution.h"

#include "plugin/runtime/convolution/direct.h"
#include "plugin/runtime/run.h"

namespace treadle {

void Convolve(ThreadPool& pool, const TreadleConvolution& convolution, const void* lhs,
              const void* rhs, void* out) {
  DirectConvolution(pool, convolution, lhs, rhs, out);
}

}  // namespace treadle

extern "C" int32_t treadle_convolution(TreadleRun* run, const TreadleConvolution* convolution,
                                       const void* lhs, const void* rhs, void* out) {
  return treadle::Guarded(run, "convolution",
                          [&] { treadle::Convolve(run->pool, *convolution, lhs, rhs, out); });
}
