// Recognises in a StableHLO convolution one of the three that neural networks are made of.
#ifndef TREADLE_PLUGIN_RUNTIME_CONVOLUTION_FORM_H_
#define TREADLE_PLUGIN_RUNTIME_CONVOLUTION_FORM_H_

#include <cstdint>
#include <optional>

#include "plugin/runtime/program_abi.h"

namespace treadle {

// A plain convolution of `source` (batch x in) with `weights` to `destination` (batch x out), or
// one of its two gradients. A gradient arrives as a convolution too: JAX writes the one to the
// source as a convolution with a dilated input, and the one to the weights as a convolution whose
// batch is the source's features and whose window is the whole destination.
struct ConvolutionForm {
  enum class Kind : int64_t { kForward, kSourceGradient, kWeightGradient };
  // Which of the call's three arrays plays a part.
  enum class Role : int64_t { kLhs, kRhs, kOut };

  Kind kind;
  Role source, weights, destination;
  int64_t rank;  // spatial
  int64_t batch, groups, in, out;
  // Strides in elements: {batch, feature, spatial...}, and {out, in, spatial...} of a group;
  // weights_group is the step between groups.
  int64_t source_size[TREADLE_MAX_SPATIAL], weights_size[TREADLE_MAX_SPATIAL],
      destination_size[TREADLE_MAX_SPATIAL];
  int64_t source_strides[2 + TREADLE_MAX_SPATIAL], weights_strides[2 + TREADLE_MAX_SPATIAL],
      destination_strides[2 + TREADLE_MAX_SPATIAL];
  int64_t weights_group;
  int64_t stride[TREADLE_MAX_SPATIAL], dilation[TREADLE_MAX_SPATIAL];
  int64_t padding_low[TREADLE_MAX_SPATIAL], padding_high[TREADLE_MAX_SPATIAL];
  // First elements that are used, in elements from the arrays' starts (negative padding crops the
  // source).
  int64_t source_offset, destination_offset;
  // The weights must be mirrored along these dimensions first.
  int64_t flip[TREADLE_MAX_SPATIAL];
};

// nullopt if it is none of the three. `convolution` as CheckedConvolution returns it, with nothing
// of size 0.
std::optional<ConvolutionForm> RecogniseForm(const TreadleConvolution& convolution);

// The part of a form for images [begin, end) of the batch.
ConvolutionForm BatchPart(const ConvolutionForm& form, int64_t begin, int64_t end);

// The part of a form for destination rows [begin, end), rows being the first spatial dimension; for
// a gradient to the weights this is one summand. nullopt if these rows read no row of the source.
// Not for gradients to the source.
std::optional<ConvolutionForm> RowsPart(const ConvolutionForm& form, int64_t begin, int64_t end);

// Multiplications, padding included.
double WorkOf(const ConvolutionForm& form);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CONVOLUTION_FORM_H_
