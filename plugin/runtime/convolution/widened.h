// Convolutions of 16-bit floats on a CPU without instructions for them: through copies in f32.
#ifndef TREADLE_PLUGIN_RUNTIME_CONVOLUTION_WIDENED_H_
#define TREADLE_PLUGIN_RUNTIME_CONVOLUTION_WIDENED_H_

#include "plugin/runtime/memory_block.h"
#include "plugin/runtime/program_abi.h"

namespace treadle {

// The same convolution on f32 arrays, which are dense in the order in which the originals lie.
class WidenedConvolution {
 public:
  // `convolution` as CheckedConvolution returns it, of type bf16 or f16. Throws RESOURCE_EXHAUSTED.
  WidenedConvolution(const TreadleConvolution& convolution, const void* lhs, const void* rhs);

  const TreadleConvolution& convolution() const { return wide_; }
  const void* lhs() const { return lhs_.data(); }
  const void* rhs() const { return rhs_.data(); }
  void* out() const { return out_.data(); }

  // Rounds the result into the original's array.
  void Finish(void* out) const;

 private:
  const TreadleConvolution original_;
  TreadleConvolution wide_;
  HostBlock lhs_, rhs_, out_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CONVOLUTION_WIDENED_H_
