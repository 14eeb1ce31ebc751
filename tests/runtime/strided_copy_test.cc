// Strided copies, against one index at a time.
#include "plugin/runtime/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "tests/cc/check.h"

namespace treadle {
namespace {

TEST(Layouts) {
  const std::vector<int64_t> dims = {2, 3, 4};
  CHECK((DenseStrides(dims, 4) == std::vector<int64_t>{48, 16, 4}));
  CHECK(
      (StridesOfLayout(dims, 4, std::vector<int64_t>{0, 2, 1}) == std::vector<int64_t>{4, 32, 8}));
  CHECK(IsDense(dims, 4, std::vector<int64_t>{48, 16, 4}));
  CHECK(!IsDense(dims, 4, std::vector<int64_t>{4, 32, 8}));
  CHECK(IsDense(std::vector<int64_t>{1, 3}, 4, std::vector<int64_t>{777, 4}));
  CHECK(IsDense(std::vector<int64_t>{0, 3}, 4, std::vector<int64_t>{1, 1}));
  CHECK_ERROR(StridesOfLayout(dims, 4, std::vector<int64_t>{0, 1}), kInvalidArgument,
              "2 dimensions for an array of 3");
  CHECK_ERROR(StridesOfLayout(dims, 4, std::vector<int64_t>{0, 1, 1}), kInvalidArgument,
              "not a permutation");
  CHECK_ERROR(StridesOfLayout(dims, 4, std::vector<int64_t>{0, 1, 3}), kInvalidArgument,
              "not a permutation");
}

// Random shapes, orders, steps and directions; every element is looked up by its index.
TEST(RandomArrays) {
  std::mt19937 random(7);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int round = 0; round < 400; ++round) {
    const size_t bytes = size_t{1} << below(5);
    const auto rank = static_cast<size_t>(below(5));
    std::vector<int64_t> dims(rank), order(rank), src(rank);
    for (int64_t& dim : dims) dim = round % 10 == 0 ? 1 + below(80) : 1 + below(6);
    if (rank > 2) dims[2] = 1 + below(4);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    // A source with gaps, walked in any order and direction.
    int64_t stride = static_cast<int64_t>(bytes), start = 0;
    for (const int64_t d : order) {
      const auto i = static_cast<size_t>(d);
      stride *= 1 + below(2);
      src[i] = below(2) == 0 ? stride : -stride;
      if (src[i] < 0) start += stride * (dims[i] - 1);
      stride *= dims[i];
    }
    std::vector<unsigned char> from(static_cast<size_t>(stride) + bytes);
    for (auto& byte : from) byte = static_cast<unsigned char>(random());
    const std::vector<int64_t> dst = DenseStrides(dims, bytes);
    size_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
    std::vector<unsigned char> to(count * bytes);
    StridedCopy(dims, bytes, from.data() + start, src, to.data(), dst);
    std::vector<int64_t> index(rank);
    int wrong = 0;
    for (size_t i = 0; i < count; ++i) {
      int64_t at = start;
      for (size_t d = 0; d < rank; ++d) at += index[d] * src[d];
      wrong += std::memcmp(&to[i * bytes], &from[static_cast<size_t>(at)], bytes) != 0;
      for (size_t d = rank; d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
    }
    CHECK_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace treadle

TEST_MAIN()
