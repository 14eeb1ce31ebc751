#include "plugin/runtime/convolution/patches.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "plugin/runtime/convolution/geometry.h"
#include "plugin/runtime/dot/gemm.h"
#include "plugin/runtime/dot/kernels.h"
#include "plugin/runtime/element_type.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/first_error.h"
#include "plugin/runtime/half_types.h"
#include "plugin/runtime/memory_block.h"

namespace treadle {
namespace {

// A piece of work is a matrix of patches of about this size, which stays in the second-level cache.
constexpr int64_t kPatchBytes = 512 << 10;
constexpr int64_t kMaxPoints = 192;

// What an element outside of the input, or between dilated ones, has for an offset.
constexpr int64_t kNowhere = -1;

template <typename T, typename In>
void ConvertRun(const In* from, int64_t n, T* to) {
  if constexpr (std::is_same_v<T, In>) {
    std::copy(from, from + n, to);
  } else if constexpr (std::is_same_v<In, Bf16>) {
    BestConvertKernels().bf16_to_f32(&from->bits, n, to);
  } else {
    BestConvertKernels().f16_to_f32(&from->bits, n, to);
  }
}

// The output points of one piece of work, in the order of the output's batch and spatial positions.
struct Points {
  int64_t count = 0;
  std::array<int64_t, kMaxPoints> image;                                   // offset into the input
  std::array<std::array<int64_t, TREADLE_MAX_SPATIAL>, kMaxPoints> place;  // spatial position
  std::array<int64_t, kMaxPoints> out;                                     // offset into the output
};

// Sums are taken in T, the operands are `In`, the result is `Out`. In the matrix of patches a row
// is an output point and a column is a window position and an input feature of the group; it lies
// by rows or by columns, whichever way it can be copied in runs.
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
        terms_(window_ * features_),
        by_rows_(c.lhs_strides[1] == 1 && features_ > 1) {
    for (int d = 0; d < TREADLE_MAX_SPATIAL; ++d) {
      auto& offsets = offsets_[static_cast<size_t>(d)];
      for (int64_t o = 0; o < c.out_spatial[d]; ++o) {
        for (int64_t w = 0; w < c.rhs_spatial[d]; ++w) {
          int64_t at = 0;
          const bool inside = InputPosition(c, d, o, w, &at);
          offsets.push_back(inside ? at * c.lhs_strides[2 + d] : kNowhere);
        }
      }
    }
  }

  void Run(ThreadPool& pool) {
    const int64_t rows = batch_ * points_;
    if (rows == 0 || c_.out_features == 0) return;
    weights_block_ = HostBlock(static_cast<size_t>(terms_ * c_.out_features) * sizeof(T));
    weights_ = static_cast<T*>(weights_block_.data());
    const int64_t weights_work = std::max<int64_t>(1, features_ * group_outputs_);
    pool.ForRange(groups_ * window_, std::max<int64_t>(1, (1 << 16) / weights_work),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) CopyWeights(i / window_, i % window_);
                  });
    const int64_t height = std::clamp<int64_t>(
        kPatchBytes / static_cast<int64_t>(sizeof(T)) / std::max<int64_t>(1, terms_), 8,
        std::min(kMaxPoints, std::max<int64_t>(rows, 8)));
    const int64_t blocks = (rows - 1) / height + 1;
    const int64_t block_work = height * (terms_ + 1) * (group_outputs_ + 8);
    FirstError error;
    pool.ForRange(blocks * groups_, std::max<int64_t>(1, (1 << 19) / block_work),
                  [&](int64_t begin, int64_t end) {
                    error.Guard([&] {
                      const HostBlock scratch(
                          static_cast<size_t>(height * (terms_ + group_outputs_)) * sizeof(T));
                      Points points;
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t first = i / groups_ * height;
                        // Groups of the same points follow each other.
                        if (i == begin || i % groups_ == 0)
                          FindPoints(first, std::min(height, rows - first), points);
                        Block(i % groups_, points, static_cast<T*>(scratch.data()));
                      }
                    });
                  });
    error.Rethrow();
  }

 private:
  // Weights of a group as a dense matrix: terms by outputs.
  void CopyWeights(int64_t group, int64_t window_index) {
    const In* from = rhs_ + group * group_outputs_ * c_.rhs_strides[0];
    int64_t rest = window_index;
    for (int d = TREADLE_MAX_SPATIAL; d-- > 0;) {
      from += rest % c_.rhs_spatial[d] * c_.rhs_strides[2 + d];
      rest /= c_.rhs_spatial[d];
    }
    T* to = weights_ + (group * terms_ + window_index * features_) * group_outputs_;
    for (int64_t f = 0; f < features_; ++f) {
      for (int64_t o = 0; o < group_outputs_; ++o) {
        to[f * group_outputs_ + o] =
            static_cast<T>(from[f * c_.rhs_strides[1] + o * c_.rhs_strides[0]]);
      }
    }
  }

  void FindPoints(int64_t first, int64_t count, Points& points) const {
    points.count = count;
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      int64_t rest = (first + i) % points_;
      const int64_t image = (first + i) / points_;
      points.image[at] = image * c_.lhs_strides[0];
      points.out[at] = image * c_.out_strides[0];
      for (int d = TREADLE_MAX_SPATIAL; d-- > 0;) {
        const int64_t place = rest % c_.out_spatial[d];
        rest /= c_.out_spatial[d];
        points.place[at][static_cast<size_t>(d)] = place;
        points.out[at] += place * c_.out_strides[2 + d];
      }
    }
  }

  // The offset of what point `i` sees at window position (x, y, z).
  int64_t Seen(const Points& points, size_t i, int64_t x, int64_t y, int64_t z) const {
    const auto& place = points.place[i];
    const int64_t a = offsets_[0][static_cast<size_t>(place[0] * c_.rhs_spatial[0] + x)];
    const int64_t b = offsets_[1][static_cast<size_t>(place[1] * c_.rhs_spatial[1] + y)];
    const int64_t c = offsets_[2][static_cast<size_t>(place[2] * c_.rhs_spatial[2] + z)];
    return (a | b | c) < 0 ? kNowhere : points.image[i] + a + b + c;
  }

  void Block(int64_t group, const Points& points, T* scratch) const {
    const int64_t rows = points.count;
    T* const patches = scratch;
    T* const sums = scratch + rows * terms_;
    const In* from = lhs_ + (c_.batch_groups > 1 ? group * batch_ * c_.lhs_strides[0]
                                                 : group * features_ * c_.lhs_strides[1]);
    int64_t term = 0;
    for (int64_t x = 0; x < c_.rhs_spatial[0]; ++x) {
      for (int64_t y = 0; y < c_.rhs_spatial[1]; ++y) {
        for (int64_t z = 0; z < c_.rhs_spatial[2]; ++z, term += features_) {
          std::array<int64_t, kMaxPoints> seen;
          for (size_t i = 0; i < static_cast<size_t>(rows); ++i) seen[i] = Seen(points, i, x, y, z);
          if (by_rows_) {
            CopyRows(from, seen.data(), rows, patches + term);
          } else {
            CopyColumns(from, seen.data(), rows, patches + term * rows);
          }
        }
      }
    }
    const Strided<const T> a =
        by_rows_ ? Strided<const T>{patches, terms_, 1} : Strided<const T>{patches, 1, rows};
    Gemm<T>(rows, group_outputs_, terms_, a,
            {weights_ + group * terms_ * group_outputs_, group_outputs_, 1},
            {sums, group_outputs_, 1});
    Out* const to = out_ + group * group_outputs_ * c_.out_strides[1];
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t o = 0; o < group_outputs_; ++o) {
        to[points.out[static_cast<size_t>(i)] + o * c_.out_strides[1]] =
            static_cast<Out>(sums[i * group_outputs_ + o]);
      }
    }
  }

  // All features of every point, which lie side by side.
  void CopyRows(const In* from, const int64_t* seen, int64_t rows, T* to) const {
    for (int64_t i = 0; i < rows; ++i, to += terms_) {
      if (seen[i] == kNowhere) {
        std::fill(to, to + features_, T{0});
      } else {
        ConvertRun(from + seen[i], features_, to);
      }
    }
  }

  // One feature of all points after the other; neighbouring points often lie side by side.
  void CopyColumns(const In* from, const int64_t* seen, int64_t rows, T* to) const {
    struct Run {
      int64_t begin, end;
    };
    std::array<Run, kMaxPoints> runs;
    size_t count = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const bool continues =
          i > 0 && (seen[i] == kNowhere ? seen[i - 1] == kNowhere
                                        : seen[i - 1] != kNowhere && seen[i] == seen[i - 1] + 1);
      if (continues) {
        runs[count - 1].end = i + 1;
      } else {
        runs[count++] = {i, i + 1};
      }
    }
    for (int64_t f = 0; f < features_; ++f, from += c_.lhs_strides[1], to += rows) {
      for (size_t r = 0; r < count; ++r) {
        const auto [begin, end] = runs[r];
        if (seen[begin] == kNowhere) {
          std::fill(to + begin, to + end, T{0});
        } else if (end - begin == 1) {
          to[begin] = static_cast<T>(from[seen[begin]]);
        } else {
          ConvertRun(from + seen[begin], end - begin, to + begin);
        }
      }
    }
  }

  const TreadleConvolution& c_;
  const In* const lhs_;
  const In* const rhs_;
  Out* const out_;
  const int64_t groups_, features_, group_outputs_, batch_, window_, points_, terms_;
  const bool by_rows_;
  // Per dimension: of output position o and window position w, at o * window size + w.
  std::array<std::vector<int64_t>, TREADLE_MAX_SPATIAL> offsets_;
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
