// Carries an exception out of a parallel loop, whose kernels must not throw.
#ifndef TREADLE_PLUGIN_RUNTIME_FIRST_ERROR_H_
#define TREADLE_PLUGIN_RUNTIME_FIRST_ERROR_H_

#include <atomic>
#include <exception>

namespace treadle {

// Any number of threads call Guard; one thread calls Rethrow after they are done.
class FirstError {
 public:
  template <typename Body>
  void Guard(Body&& body) noexcept {
    try {
      body();
    } catch (...) {
      if (!taken_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
    }
  }

  void Rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic<bool> taken_{false};
  std::exception_ptr error_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_FIRST_ERROR_H_
