#include "plugin/runtime/convolution/geometry.h"

#include "plugin/runtime/error.h"

namespace treadle {
namespace {

void CheckDimension(const TreadleConvolution& c, uint32_t d) {
  if (c.lhs_spatial[d] < 0 || c.rhs_spatial[d] < 0 || c.out_spatial[d] < 0) {
    throw InvalidArgument("spatial dimension ", d, " has a negative size.");
  }
  if (c.window_strides[d] < 1 || c.lhs_dilation[d] < 1 || c.rhs_dilation[d] < 1) {
    throw InvalidArgument("spatial dimension ", d, " has a stride or dilation below 1.");
  }
  const auto dilated = [](int64_t size, int64_t dilation) {
    return size == 0 ? 0 : (size - 1) * dilation + 1;
  };
  const int64_t padded =
      c.padding_low[d] + dilated(c.lhs_spatial[d], c.lhs_dilation[d]) + c.padding_high[d];
  const int64_t window = dilated(c.rhs_spatial[d], c.rhs_dilation[d]);
  const int64_t expected = padded < window ? 0 : (padded - window) / c.window_strides[d] + 1;
  // A window of size 0 meets nothing wherever it lies.
  if (c.rhs_spatial[d] != 0 && c.out_spatial[d] != expected) {
    throw InvalidArgument("spatial dimension ", d, " of the result has size ", c.out_spatial[d],
                          "; the operands give ", expected, ".");
  }
}

}  // namespace

TreadleConvolution CheckedConvolution(const TreadleConvolution& convolution) {
  if (convolution.struct_size < sizeof(TreadleConvolution) ||
      convolution.spatial_rank > TREADLE_MAX_SPATIAL || convolution.flags != 0) {
    throw InvalidArgument("a malformed description (struct_size ", convolution.struct_size, ", ",
                          convolution.spatial_rank, " spatial dimensions, flags ",
                          convolution.flags, ").");
  }
  TreadleConvolution c = convolution;
  if (c.batch < 0 || c.in_features < 0 || c.out_features < 0) {
    throw InvalidArgument("a negative batch or feature size.");
  }
  if (c.feature_groups < 1 || c.batch_groups < 1 || (c.feature_groups > 1 && c.batch_groups > 1) ||
      c.in_features % c.feature_groups != 0 || c.out_features % c.feature_groups != 0 ||
      c.out_features % c.batch_groups != 0 || c.batch % c.batch_groups != 0) {
    throw InvalidArgument("groups (", c.feature_groups, " of features, ", c.batch_groups,
                          " of batch) that do not divide batch ", c.batch, " and features ",
                          c.in_features, " to ", c.out_features, ".");
  }
  for (uint32_t d = 0; d < c.spatial_rank; ++d) CheckDimension(c, d);
  for (uint32_t d = c.spatial_rank; d < TREADLE_MAX_SPATIAL; ++d) {
    c.lhs_spatial[d] = c.rhs_spatial[d] = c.out_spatial[d] = 1;
    c.window_strides[d] = c.lhs_dilation[d] = c.rhs_dilation[d] = 1;
    c.padding_low[d] = c.padding_high[d] = c.window_reversal[d] = 0;
    c.lhs_strides[2 + d] = c.rhs_strides[2 + d] = c.out_strides[2 + d] = 1;
  }
  if (c.spatial_rank == 0) c.spatial_rank = 1;
  return c;
}

}  // namespace treadle
