// treadle_dot: checks the description, splits the work over the thread budget, and gives each piece
// to the code that is best for it.
#include "plugin/runtime/dot/dot.h"

#include <algorithm>
#include <utility>

#include "plugin/runtime/dot/piece.h"
#include "plugin/runtime/element_type.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/first_error.h"
#include "plugin/runtime/run.h"

namespace treadle {
namespace {

// The cost that is worth a thread's while, in multiplications: some 10 us of them.
constexpr int64_t kGrain = int64_t{1} << 20;

void Check(const TreadleDot& dot) {
  if (dot.struct_size < sizeof(TreadleDot) || dot.num_batch > TREADLE_MAX_BATCH || dot.flags != 0) {
    throw InvalidArgument("a malformed description (struct_size ", dot.struct_size, ", ",
                          dot.num_batch, " batch dimensions, flags ", dot.flags, ").");
  }
  bool negative = dot.m < 0 || dot.n < 0 || dot.k < 0;
  for (uint32_t i = 0; i < dot.num_batch; ++i) negative |= dot.batch[i] < 0;
  if (negative) throw InvalidArgument("a negative size.");
  if (dot.lhs_type != dot.rhs_type || !DotPieceFor(dot.lhs_type, dot.out_type)) {
    throw Unimplemented("no product of types ", ElementName(CheckedElementType(dot.lhs_type)),
                        " and ", ElementName(CheckedElementType(dot.rhs_type)), " into ",
                        ElementName(CheckedElementType(dot.out_type)), ".");
  }
}

struct Grid {
  int64_t batch = 1;              // number of products
  int64_t rows = 1, columns = 1;  // parts of each product
};

// What one product costs, in multiplications: reading an operand costs as much as a few of them per
// element, which decides for vectors.
double CostOf(const TreadleDot& dot) {
  constexpr double kRead = 4;
  const auto m = static_cast<double>(dot.m), n = static_cast<double>(dot.n),
             k = static_cast<double>(dot.k);
  return m * n * k + kRead * (m * k + k * n + m * n);
}

// Enough parts for the threads, no smaller than the grain; of two ways to cut the squarer one,
// since every part reads its rows of A and its columns of B.
Grid Split(const TreadleDot& dot, int threads) {
  Grid grid;
  for (uint32_t i = 0; i < dot.num_batch; ++i) grid.batch *= dot.batch[i];
  if (threads == 1 || grid.batch >= threads) return grid;
  const auto affordable = static_cast<int64_t>(std::min(CostOf(dot) / kGrain, 1e6));
  const int64_t least = (threads - 1) / std::max<int64_t>(grid.batch, 1) + 1;
  // Large products are cut twice as fine, so that a thread that is held up does not hold up all.
  const int64_t wanted = affordable >= 16 * least ? 2 * least : std::min(least, affordable);
  while (grid.rows * grid.columns < wanted) {
    if (dot.m / grid.rows >= dot.n / grid.columns) {
      ++grid.rows;
    } else {
      ++grid.columns;
    }
  }
  return grid;
}

// Part `part` of `size`, cut at multiples of every kernel's tile; the last part takes what is left.
// A part is thus a whole tile or more, or empty, and is computed by the same kernels as the whole:
// results do not depend on the number of threads.
std::pair<int64_t, int64_t> Part(int64_t size, int64_t parts, int64_t part) {
  constexpr int64_t kTile = 96;
  const int64_t tiles = size / kTile;
  return {tiles * part / parts * kTile,
          part + 1 == parts ? size : tiles * (part + 1) / parts * kTile};
}

}  // namespace

void Dot(ThreadPool& pool, const TreadleDot& dot, const void* lhs, const void* rhs, void* out) {
  Check(dot);
  const DotPiece piece = DotPieceFor(dot.lhs_type, dot.out_type);
  const auto in_bytes = static_cast<int64_t>(ElementBytes(CheckedElementType(dot.lhs_type)));
  const auto out_bytes = static_cast<int64_t>(ElementBytes(CheckedElementType(dot.out_type)));
  const Grid grid = Split(dot, pool.size());
  const int64_t parts = grid.rows * grid.columns;
  const auto body = [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      int64_t a = 0, b = 0, c = 0, rest = index / parts;
      for (uint32_t i = dot.num_batch; i-- > 0;) {
        const int64_t at = rest % dot.batch[i];
        rest /= dot.batch[i];
        a += at * dot.lhs_batch_strides[i];
        b += at * dot.rhs_batch_strides[i];
        c += at * dot.out_batch_strides[i];
      }
      const auto [m0, m1] = Part(dot.m, grid.rows, index % parts / grid.columns);
      const auto [n0, n1] = Part(dot.n, grid.columns, index % parts % grid.columns);
      if (m0 == m1 || n0 == n1) continue;
      a += m0 * dot.lhs_m_stride;
      b += n0 * dot.rhs_n_stride;
      c += m0 * dot.out_m_stride + n0 * dot.out_n_stride;
      piece({m1 - m0, n1 - n0, dot.k, dot.lhs_m_stride, dot.lhs_k_stride, dot.rhs_k_stride,
             dot.rhs_n_stride, dot.out_m_stride, dot.out_n_stride},
            static_cast<const char*>(lhs) + a * in_bytes,
            static_cast<const char*>(rhs) + b * in_bytes, static_cast<char*>(out) + c * out_bytes);
    }
  };
  const auto grain =
      static_cast<int64_t>(kGrain / std::max(CostOf(dot) / static_cast<double>(parts), 1.0));
  // A kernel of the pool must not throw; what can fail in a piece is memory.
  FirstError error;
  pool.ForRange(grid.batch * parts, parts > 1 ? 1 : std::max<int64_t>(grain, 1),
                [&](int64_t begin, int64_t end) { error.Guard([&] { body(begin, end); }); });
  error.Rethrow();
}

}  // namespace treadle

extern "C" int32_t treadle_dot(TreadleRun* run, const TreadleDot* dot, const void* lhs,
                               const void* rhs, void* out) {
  return treadle::Guarded(run, "matrix product",
                          [&] { treadle::Dot(run->pool, *dot, lhs, rhs, out); });
}
