#include "plugin/runtime/convolution/patches.h"

#include <algorithm>
#include <array>

#include "plugin/runtime/convolution/geometry.h"
#include "plugin/runtime/dot/gemm.h"
#include "plugin/runtime/element_type.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/first_error.h"
#include "plugin/runtime/half_types.h"
#include "plugin/runtime/memory_block.h"

namespace treadle {
namespace {

// A piece of work is a matrix of patches of about this size, which stays in the second-level cache.
constexpr int64_t kPatchBytes = 256 << 10;
constexpr int64_t kMaxPoints = 192;

// Sums are taken in T, the operands are `In`, the result is `Out`. A row of the patch matrix is one
// output point; a column is one window position and input feature of the group.
template <typename T, typename In, typename Out>
class Patches {
 public:
  Patches(const TreadleConvolution& c, const void* lhs, const void* rhs, void* out)
      : c_(c),
        lhs_(static_cast<const In*>(lhs)),
        rhs_(static_cast<const In*>(rhs)),
        out_(static_cast<Out*>(out)),
        groups_(c.feature_groups * c.batch_groups),
        features_(c.in_features / c.feature_groups),
        group_outputs_(c.out_features / groups_),
        batch_(c.batch / c.batch_groups),
        window_(SpatialSize(c, c.rhs_spatial)),
        points_(SpatialSize(c, c.out_spatial)),
        terms_(window_ * features_) {}

  void Run(ThreadPool& pool) {
    const int64_t rows = batch_ * points_;
    if (rows == 0 || c_.out_features == 0) return;
    weights_block_ = HostBlock(static_cast<size_t>(terms_ * c_.out_features) * sizeof(T));
    weights_ = static_cast<T*>(weights_block_.data());
    FirstError error;
    pool.ForRange(
        groups_ * window_,
        std::max<int64_t>(1, (1 << 16) / std::max<int64_t>(1, features_ * group_outputs_)),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) CopyWeights(i / window_, i % window_);
        });
    const int64_t height = std::clamp<int64_t>(
        kPatchBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(1, terms_), 8,
        kMaxPoints);
    const int64_t blocks = (rows - 1) / height + 1;
    const int64_t block_work = height * std::max<int64_t>(1, terms_) * group_outputs_;
    pool.ForRange(groups_ * blocks, std::max<int64_t>(1, (1 << 19) / block_work),
                  [&](int64_t begin, int64_t end) {
                    error.Guard([&] {
                      const HostBlock scratch(
                          static_cast<size_t>(height * (terms_ + group_outputs_)) * sizeof(T));
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t first = i % blocks * height;
                        Block(i / blocks, first, std::min(height, rows - first),
                              static_cast<T*>(scratch.data()));
                      }
                    });
                  });
    error.Rethrow();
  }

 private:
  using Position = std::array<int64_t, TREADLE_MAX_SPATIAL>;

  static Position Unravel(const TreadleConvolution& c, int64_t index, const int64_t* sizes) {
    Position position{};
    for (auto d = static_cast<int>(c.spatial_rank); d-- > 0;) {
      position[static_cast<size_t>(d)] = index % sizes[d];
      index /= sizes[d];
    }
    return position;
  }

  // Weights of a group as a dense matrix: terms by outputs.
  void CopyWeights(int64_t group, int64_t window_index) {
    const Position at = Unravel(c_, window_index, c_.rhs_spatial);
    const In* from = rhs_ + group * group_outputs_ * c_.rhs_strides[0];
    for (uint32_t d = 0; d < c_.spatial_rank; ++d) from += at[d] * c_.rhs_strides[2 + d];
    T* to = weights_ + (group * terms_ + window_index * features_) * group_outputs_;
    for (int64_t f = 0; f < features_; ++f) {
      for (int64_t o = 0; o < group_outputs_; ++o) {
        to[f * group_outputs_ + o] =
            static_cast<T>(from[f * c_.rhs_strides[1] + o * c_.rhs_strides[0]]);
      }
    }
  }

  void Block(int64_t group, int64_t first, int64_t rows, T* scratch) const {
    T* const patches = scratch;
    T* const sums = scratch + rows * terms_;
    for (int64_t i = 0; i < rows; ++i) CopyPatch(group, first + i, patches + i * terms_);
    Gemm<T>(rows, group_outputs_, terms_, {patches, terms_, 1},
            {weights_ + group * terms_ * group_outputs_, group_outputs_, 1},
            {sums, group_outputs_, 1});
    for (int64_t i = 0; i < rows; ++i) {
      const Position at = Unravel(c_, (first + i) % points_, c_.out_spatial);
      Out* to = out_ + (first + i) / points_ * c_.out_strides[0] +
                group * group_outputs_ * c_.out_strides[1];
      for (uint32_t d = 0; d < c_.spatial_rank; ++d) to += at[d] * c_.out_strides[2 + d];
      for (int64_t o = 0; o < group_outputs_; ++o) {
        to[o * c_.out_strides[1]] = static_cast<Out>(sums[i * group_outputs_ + o]);
      }
    }
  }

  void CopyPatch(int64_t group, int64_t row, T* to) const {
    const Position at = Unravel(c_, row % points_, c_.out_spatial);
    const In* from = lhs_ + row / points_ * c_.lhs_strides[0];
    if (c_.batch_groups > 1) {
      from += group * batch_ * c_.lhs_strides[0];
    } else {
      from += group * features_ * c_.lhs_strides[1];
    }
    // Three loops whatever the rank: the missing dimensions have size 1.
    for (int64_t x = 0; x < c_.rhs_spatial[0]; ++x) {
      int64_t i = 0;
      const bool inside_x = InputPosition(c_, 0, at[0], x, &i);
      for (int64_t y = 0; y < c_.rhs_spatial[1]; ++y) {
        int64_t j = 0;
        const bool inside_y = inside_x && InputPosition(c_, 1, at[1], y, &j);
        for (int64_t z = 0; z < c_.rhs_spatial[2]; ++z, to += features_) {
          int64_t k = 0;
          if (!inside_y || !InputPosition(c_, 2, at[2], z, &k)) {
            std::fill(to, to + features_, T{0});
            continue;
          }
          const In* run =
              from + i * c_.lhs_strides[2] + j * c_.lhs_strides[3] + k * c_.lhs_strides[4];
          for (int64_t f = 0; f < features_; ++f)
            to[f] = static_cast<T>(run[f * c_.lhs_strides[1]]);
        }
      }
    }
  }

  const TreadleConvolution& c_;
  const In* const lhs_;
  const In* const rhs_;
  Out* const out_;
  const int64_t groups_, features_, group_outputs_, batch_, window_, points_, terms_;
  HostBlock weights_block_;
  T* weights_ = nullptr;
};

}  // namespace

void PatchesConvolution(ThreadPool& pool, const TreadleConvolution& c, const void* lhs,
                        const void* rhs, void* out) {
  const auto in = static_cast<ElementType>(c.lhs_type), to = static_cast<ElementType>(c.out_type);
  const auto run = [&]<typename T, typename In, typename Out>() {
    Patches<T, In, Out>(c, lhs, rhs, out).Run(pool);
  };
  if (c.lhs_type == c.rhs_type) {
    if (in == ElementType::f32 && to == in) return run.template operator()<float, float, float>();
    if (in == ElementType::f64 && to == in)
      return run.template operator()<double, double, double>();
    if (in == ElementType::bf16 && to == in) return run.template operator()<float, Bf16, Bf16>();
    if (in == ElementType::f16 && to == in) return run.template operator()<float, F16, F16>();
    if (in == ElementType::bf16 && to == ElementType::f32)
      return run.template operator()<float, Bf16, float>();
    if (in == ElementType::f16 && to == ElementType::f32)
      return run.template operator()<float, F16, float>();
  }
  throw Unimplemented("no convolution of types ", ElementName(CheckedElementType(c.lhs_type)),
                      " and ", ElementName(CheckedElementType(c.rhs_type)), " into ",
                      ElementName(CheckedElementType(c.out_type)), ".");
}

}  // namespace treadle
