#include "plugin/runtime/convolution/form.h"

#include <algorithm>

#include "plugin/runtime/convolution/geometry.h"

namespace treadle {
namespace {

using Form = ConvolutionForm;

// All three share that one array is read at  destination position * stride + window position *
// dilation - padding_low.

Form Start(const TreadleConvolution& c, Form::Kind kind) {
  Form form{};
  form.kind = kind;
  form.rank = c.spatial_rank;
  return form;
}

void CopyStrides(const int64_t* from, int64_t rank, bool swap_first_two, int64_t* to) {
  to[0] = from[swap_first_two ? 1 : 0];
  to[1] = from[swap_first_two ? 0 : 1];
  for (int64_t d = 0; d < rank; ++d) to[2 + d] = from[2 + d];
}

// Chooses the high padding that makes the sizes agree, and cuts from the source what is never read.
// False if the source would have to be cut although it is the result, or nothing of it would be
// left.
bool FitSource(Form& form, bool source_is_result) {
  for (int64_t d = 0; d < form.rank; ++d) {
    if (form.padding_low[d] < 0) {
      if (source_is_result) return false;
      form.source_offset += -form.padding_low[d] * form.source_strides[2 + d];
      form.source_size[d] += form.padding_low[d];
      form.padding_low[d] = 0;
    }
    const int64_t reach = (form.destination_size[d] - 1) * form.stride[d] +
                          (form.weights_size[d] - 1) * form.dilation[d] + 1;
    form.padding_high[d] = reach - form.padding_low[d] - form.source_size[d];
    if (form.padding_high[d] < 0 && !source_is_result) {
      form.source_size[d] += form.padding_high[d];
      form.padding_high[d] = 0;
    }
    // A result that is longer than what the sums reach ends in zeros; oneDNN allows that up to the
    // next step of the window.
    if (form.source_size[d] < 1 || form.padding_high[d] <= -form.stride[d]) return false;
  }
  return true;
}

std::optional<Form> Forward(const TreadleConvolution& c) {
  Form form = Start(c, Form::Kind::kForward);
  form.source = Form::Role::kLhs;
  form.weights = Form::Role::kRhs;
  form.destination = Form::Role::kOut;
  form.batch = c.batch;
  form.groups = c.feature_groups;
  form.in = c.in_features;
  form.out = c.out_features;
  CopyStrides(c.lhs_strides, form.rank, false, form.source_strides);
  CopyStrides(c.rhs_strides, form.rank, false, form.weights_strides);
  CopyStrides(c.out_strides, form.rank, false, form.destination_strides);
  form.weights_group = c.rhs_strides[0] * (c.out_features / c.feature_groups);
  for (int64_t d = 0; d < form.rank; ++d) {
    form.source_size[d] = c.lhs_spatial[d];
    form.weights_size[d] = c.rhs_spatial[d];
    form.destination_size[d] = c.out_spatial[d];
    form.stride[d] = c.window_strides[d];
    form.dilation[d] = c.rhs_dilation[d];
    form.padding_low[d] = c.padding_low[d];
    form.flip[d] = c.window_reversal[d] && c.rhs_spatial[d] > 1;
  }
  if (!FitSource(form, false)) return std::nullopt;
  return form;
}

// out[q] += lhs[p] rhs[w'] where p * lhs_dilation = q + w' * rhs_dilation - padding_low. With the
// mirrored window w = K - 1 - w' that is the gradient of a convolution of stride lhs_dilation: q =
// p * stride + w * dilation - ((K - 1) * dilation - padding_low).
std::optional<Form> SourceGradient(const TreadleConvolution& c) {
  Form form = Start(c, Form::Kind::kSourceGradient);
  form.source = Form::Role::kOut;
  form.weights = Form::Role::kRhs;
  form.destination = Form::Role::kLhs;
  form.batch = c.batch;
  form.groups = c.feature_groups;
  form.in = c.out_features;
  form.out = c.in_features;
  CopyStrides(c.out_strides, form.rank, false, form.source_strides);
  CopyStrides(c.rhs_strides, form.rank, true, form.weights_strides);
  CopyStrides(c.lhs_strides, form.rank, false, form.destination_strides);
  form.weights_group = c.rhs_strides[0] * (c.out_features / c.feature_groups);
  for (int64_t d = 0; d < form.rank; ++d) {
    form.source_size[d] = c.out_spatial[d];
    form.weights_size[d] = c.rhs_spatial[d];
    form.destination_size[d] = c.lhs_spatial[d];
    form.stride[d] = c.lhs_dilation[d];
    form.dilation[d] = c.rhs_dilation[d];
    form.padding_low[d] = (c.rhs_spatial[d] - 1) * c.rhs_dilation[d] - c.padding_low[d];
    form.flip[d] = !c.window_reversal[d] && c.rhs_spatial[d] > 1;
  }
  if (!FitSource(form, true)) return std::nullopt;
  return form;
}

// out[i][o][w] += lhs[i][n][w * window_stride + p * rhs_dilation - padding_low] rhs[o][n][p]:
// positions of the window and of the output have changed places, and so have batch and features.
// Groups of the batch are groups of the source's features.
std::optional<Form> WeightGradient(const TreadleConvolution& c) {
  Form form = Start(c, Form::Kind::kWeightGradient);
  form.source = Form::Role::kLhs;
  form.weights = Form::Role::kOut;
  form.destination = Form::Role::kRhs;
  form.batch = c.in_features;
  form.groups = c.batch_groups;
  form.in = c.batch;
  form.out = c.out_features;
  CopyStrides(c.lhs_strides, form.rank, true, form.source_strides);
  CopyStrides(c.out_strides, form.rank, true, form.weights_strides);
  CopyStrides(c.rhs_strides, form.rank, true, form.destination_strides);
  form.weights_group = c.out_strides[1] * (c.out_features / c.batch_groups);
  for (int64_t d = 0; d < form.rank; ++d) {
    form.source_size[d] = c.lhs_spatial[d];
    form.weights_size[d] = c.out_spatial[d];
    form.destination_size[d] = c.rhs_spatial[d];
    form.stride[d] = c.rhs_dilation[d];
    form.dilation[d] = c.window_strides[d];
    form.padding_low[d] = c.padding_low[d];
    if (c.window_reversal[d] && c.rhs_spatial[d] > 1) return std::nullopt;
  }
  if (!FitSource(form, false)) return std::nullopt;
  return form;
}

}  // namespace

std::optional<ConvolutionForm> RecogniseForm(const TreadleConvolution& c) {
  const auto all_one = [&](const int64_t* sizes) {
    return std::all_of(sizes, sizes + c.spatial_rank, [](int64_t size) { return size == 1; });
  };
  if (!all_one(c.lhs_dilation)) {
    return all_one(c.window_strides) && c.batch_groups == 1 ? SourceGradient(c) : std::nullopt;
  }
  // A window with more positions than the result: no network convolves like that, but every weight
  // gradient does.
  const bool large_window = SpatialSize(c, c.rhs_spatial) > SpatialSize(c, c.out_spatial);
  if (c.feature_groups == 1 && (large_window || c.batch_groups > 1)) return WeightGradient(c);
  return c.batch_groups == 1 ? Forward(c) : std::nullopt;
}

ConvolutionForm BatchPart(const ConvolutionForm& form, int64_t begin, int64_t end) {
  ConvolutionForm part = form;
  part.batch = end - begin;
  part.source_offset += begin * form.source_strides[0];
  part.destination_offset += begin * form.destination_strides[0];
  return part;
}

std::optional<ConvolutionForm> RowsPart(const ConvolutionForm& form, int64_t begin, int64_t end) {
  ConvolutionForm part = form;
  part.destination_offset += begin * form.destination_strides[2];
  part.destination_size[0] = end - begin;
  part.padding_low[0] -= begin * form.stride[0];
  if (!FitSource(part, false)) return std::nullopt;
  return part;
}

double WorkOf(const ConvolutionForm& form) {
  double work = static_cast<double>(form.batch) * static_cast<double>(form.out) *
                static_cast<double>(form.in / form.groups);
  for (int64_t d = 0; d < form.rank; ++d) {
    work *=
        static_cast<double>(form.destination_size[d]) * static_cast<double>(form.weights_size[d]);
  }
  return work;
}

}  // namespace treadle
