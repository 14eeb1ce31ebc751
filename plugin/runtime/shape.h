// The dimensions of a buffer.
#ifndef TREADLE_PLUGIN_RUNTIME_SHAPE_H_
#define TREADLE_PLUGIN_RUNTIME_SHAPE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace treadle {

// A list of dimensions that needs no allocation up to rank 6: every output of every execution has
// one.
class Dims {
 public:
  Dims() = default;
  explicit Dims(std::span<const int64_t> dims) : size_(dims.size()) {
    if (size_ > kInline) heap_ = std::make_unique<int64_t[]>(size_);
    std::copy(dims.begin(), dims.end(), heap_ ? heap_.get() : inline_.data());
  }

  std::span<const int64_t> span() const { return {heap_ ? heap_.get() : inline_.data(), size_}; }

 private:
  static constexpr size_t kInline = 6;
  size_t size_ = 0;
  std::array<int64_t, kInline> inline_;
  std::unique_ptr<int64_t[]> heap_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_SHAPE_H_
