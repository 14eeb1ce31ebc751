// The description of a convolution, checked and brought into one form.
#ifndef TREADLE_PLUGIN_RUNTIME_CONVOLUTION_GEOMETRY_H_
#define TREADLE_PLUGIN_RUNTIME_CONVOLUTION_GEOMETRY_H_

#include <cstdint>

#include "plugin/runtime/program_abi.h"

namespace treadle {

// Throws INVALID_ARGUMENT for a description that contradicts itself. The result has at least one
// spatial dimension: a convolution without gets one of size 1.
TreadleConvolution CheckedConvolution(const TreadleConvolution& convolution);

// Where output position `o` and window position `w` of dimension `d` meet the input; false if in
// padding or between dilated elements.
inline bool InputPosition(const TreadleConvolution& c, int d, int64_t o, int64_t w, int64_t* at) {
  if (c.window_reversal[d]) w = c.rhs_spatial[d] - 1 - w;
  const int64_t dilated = o * c.window_strides[d] + w * c.rhs_dilation[d] - c.padding_low[d];
  if (dilated < 0) return false;
  if (c.lhs_dilation[d] != 1 && dilated % c.lhs_dilation[d] != 0) return false;
  *at = c.lhs_dilation[d] == 1 ? dilated : dilated / c.lhs_dilation[d];
  return *at < c.lhs_spatial[d];
}

// The product of the spatial sizes.
inline int64_t SpatialSize(const TreadleConvolution& c, const int64_t* sizes) {
  int64_t product = 1;
  for (uint32_t d = 0; d < c.spatial_rank; ++d) product *= sizes[d];
  return product;
}

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CONVOLUTION_GEOMETRY_H_
