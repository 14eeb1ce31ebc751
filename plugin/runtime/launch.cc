#include "plugin/runtime/launch.h"

#include <array>
#include <chrono>
#include <cstring>
#include <new>

#include "plugin/runtime/error.h"

namespace treadle {

namespace {

// A buffer table on the stack for all but the widest programs.
class PointerTable {
 public:
  explicit PointerTable(size_t size) {
    if (size > inline_.size()) heap_ = std::make_unique<void*[]>(size);
  }
  void** data() { return heap_ ? heap_.get() : inline_.data(); }

 private:
  std::array<void*, 32> inline_;
  std::unique_ptr<void*[]> heap_;
};

}  // namespace

Launch::Launch(std::shared_ptr<const Executable> executable, std::shared_ptr<ThreadPool> pool)
    : executable_(std::move(executable)), pool_(std::move(pool)) {
  inputs_.reserve(executable_->inputs().size());
  outputs_.reserve(executable_->outputs().size());
}

void Launch::AddInput(BufferContents contents, bool donated) {
  inputs_.push_back({std::move(contents), donated});
}

Event* Launch::FirstPending() const {
  for (const Input& input : inputs_) {
    if (!input.contents.ready->IsReady()) return input.contents.ready.get();
  }
  return nullptr;
}

const Error* Launch::InputError() const {
  for (const Input& input : inputs_) {
    if (const Error* const error = input.contents.ready->error()) return error;
  }
  return nullptr;
}

void Launch::Run() {
  const size_t num_inputs = inputs_.size();
  PointerTable table(num_inputs + outputs_.size());
  void** const in = table.data();
  void** const out = in + num_inputs;
  for (size_t i = 0; i < num_inputs; ++i) in[i] = inputs_[i].contents.storage->data();
  for (size_t o = 0; o < outputs_.size(); ++o) {
    Storage& output = *outputs_[o];
    const int alias = executable_->outputs()[o].alias;
    if (alias < 0) {
      output.Materialize();
    } else {
      const Input& input = inputs_[static_cast<size_t>(alias)];
      Storage& source = *input.contents.storage;
      if (!input.donated || !output.TakeOver(source)) {
        output.Materialize();
        std::memcpy(output.data(), source.data(), output.size());
      }
      in[alias] = output.data();
    }
    out[o] = output.data();
  }
  const auto start = std::chrono::steady_clock::now();
  executable_->program().Run(*pool_, in, out);
  executable_->RecordRun((std::chrono::steady_clock::now() - start).count());
  inputs_.clear();
}

void LaunchTask::Run() noexcept {
  try {
    if (const Error* const error = launch_->InputError()) {
      error_ = *error;
    } else {
      launch_->Run();
    }
  } catch (const Error& error) {
    error_ = error;
  } catch (const std::bad_alloc&) {
    error_ = ResourceExhausted("out of memory while running ", "a program");
  } catch (const std::exception& error) {
    error_ = Internal(error.what());
  }
  // Inputs go before anyone is told, so that the next program finds what it was given unshared.
  launch_.reset();
}

void LaunchTask::Complete() noexcept {
  if (error_) {
    done_->SetError(*std::move(error_));
  } else {
    done_->SetReady();
  }
}

void LaunchTask::Cancel() noexcept {
  error_ = Error(StatusCode::kCancelled, "the client was destroyed before the program ran");
  launch_.reset();
}

}  // namespace treadle
