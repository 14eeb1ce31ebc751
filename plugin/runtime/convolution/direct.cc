#include "plugin/runtime/convolution/direct.h"

#include <algorithm>
#include <array>

#include "plugin/runtime/element_type.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/half_types.h"

namespace treadle {
namespace {

// Multiplications per piece of parallel work.
constexpr int64_t kGrain = 1 << 16;

// Output element `o` and window element `w` of one dimension meet input element *at, if the
// function returns true.
bool InputIndex(const TreadleConvolution& c, int d, int64_t o, int64_t w, int64_t* at) {
  if (c.window_reversal[d]) w = c.rhs_spatial[d] - 1 - w;
  const int64_t dilated = o * c.window_strides[d] + w * c.rhs_dilation[d] - c.padding_low[d];
  if (dilated < 0 || dilated % c.lhs_dilation[d] != 0) return false;
  *at = dilated / c.lhs_dilation[d];
  return *at < c.lhs_spatial[d];
}

// Three spatial dimensions always: the missing ones have size 1.
template <typename Sum, typename In, typename Out>
class Direct {
 public:
  Direct(const TreadleConvolution& c, const void* lhs, const void* rhs, void* out)
      : c_(c),
        lhs_(static_cast<const In*>(lhs)),
        rhs_(static_cast<const In*>(rhs)),
        out_(static_cast<Out*>(out)) {}

  void Run(ThreadPool& pool) const {
    int64_t points = 1, window = 1;
    for (uint32_t d = 0; d < c_.spatial_rank; ++d) {
      points *= c_.out_spatial[d];
      window *= c_.rhs_spatial[d];
    }
    const int64_t batch = c_.batch / c_.batch_groups;
    const int64_t per_point = std::max<int64_t>(1, window * (c_.in_features / c_.feature_groups));
    pool.ForRange(batch * c_.out_features * points, std::max<int64_t>(1, kGrain / per_point),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      Point(i / points / c_.out_features, i / points % c_.out_features, i % points);
                    }
                  });
  }

 private:
  void Point(int64_t n, int64_t feature, int64_t point) const {
    const int64_t group_inputs = c_.in_features / c_.feature_groups;
    const int64_t feature_group = feature / (c_.out_features / c_.feature_groups);
    const int64_t batch_group = feature / (c_.out_features / c_.batch_groups);
    const In* lhs = lhs_ + (batch_group * (c_.batch / c_.batch_groups) + n) * c_.lhs_strides[0] +
                    feature_group * group_inputs * c_.lhs_strides[1];
    const In* rhs = rhs_ + feature * c_.rhs_strides[0];
    Out* out = out_ + n * c_.out_strides[0] + feature * c_.out_strides[1];
    std::array<int64_t, TREADLE_MAX_SPATIAL> at{};
    for (auto d = static_cast<int>(c_.spatial_rank); d-- > 0;) {
      at[d] = point % c_.out_spatial[d];
      point /= c_.out_spatial[d];
      out += at[d] * c_.out_strides[2 + d];
    }
    *out = static_cast<Out>(Window(0, at, lhs, rhs));
  }

  // The sum over window dimensions `d` and following, and over the features.
  Sum Window(int d, const std::array<int64_t, TREADLE_MAX_SPATIAL>& at, const In* lhs,
             const In* rhs) const {
    Sum sum = 0;
    if (d == static_cast<int>(c_.spatial_rank)) {
      for (int64_t f = 0; f < c_.in_features / c_.feature_groups; ++f) {
        sum += static_cast<Sum>(lhs[f * c_.lhs_strides[1]]) *
               static_cast<Sum>(rhs[f * c_.rhs_strides[1]]);
      }
      return sum;
    }
    for (int64_t w = 0; w < c_.rhs_spatial[d]; ++w) {
      int64_t input;
      if (!InputIndex(c_, d, at[d], w, &input)) continue;
      sum +=
          Window(d + 1, at, lhs + input * c_.lhs_strides[2 + d], rhs + w * c_.rhs_strides[2 + d]);
    }
    return sum;
  }

  const TreadleConvolution& c_;
  const In* const lhs_;
  const In* const rhs_;
  Out* const out_;
};

}  // namespace

void DirectConvolution(ThreadPool& pool, const TreadleConvolution& c, const void* lhs,
                       const void* rhs, void* out) {
  const auto in = static_cast<ElementType>(c.lhs_type), to = static_cast<ElementType>(c.out_type);
  if (in == ElementType::f32 && to == in)
    return Direct<float, float, float>(c, lhs, rhs, out).Run(pool);
  if (in == ElementType::f64 && to == in)
    return Direct<double, double, double>(c, lhs, rhs, out).Run(pool);
  if (in == ElementType::bf16 && to == in)
    return Direct<float, Bf16, Bf16>(c, lhs, rhs, out).Run(pool);
  if (in == ElementType::f16 && to == in)
    return Direct<float, F16, F16>(c, lhs, rhs, out).Run(pool);
  if (in == ElementType::bf16 && to == ElementType::f32)
    return Direct<float, Bf16, float>(c, lhs, rhs, out).Run(pool);
  if (in == ElementType::f16 && to == ElementType::f32)
    return Direct<float, F16, float>(c, lhs, rhs, out).Run(pool);
  throw Unimplemented("no convolution of type ", ElementName(CheckedElementType(c.lhs_type)),
                      " into ", ElementName(CheckedElementType(c.out_type)), ".");
}

}  // namespace treadle
