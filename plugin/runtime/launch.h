// One run of a program on one device.
#ifndef TREADLE_PLUGIN_RUNTIME_LAUNCH_H_
#define TREADLE_PLUGIN_RUNTIME_LAUNCH_H_

#include <memory>
#include <optional>
#include <vector>

#include "plugin/runtime/device_queue.h"
#include "plugin/runtime/event.h"
#include "plugin/runtime/executable.h"
#include "plugin/runtime/storage.h"
#include "plugin/runtime/thread_pool.h"

namespace treadle {

// Holds everything that the run needs, so that it may happen later, in another thread, after all
// handles are gone.
class Launch {
 public:
  Launch(std::shared_ptr<const Executable> executable, std::shared_ptr<ThreadPool> pool);
  Launch(Launch&&) = default;

  void AddInput(BufferContents contents, bool donated);
  void AddOutput(Ref<Storage> storage) { outputs_.push_back(std::move(storage)); }

  // The first input that is still pending, or null.
  Event* FirstPending() const;
  // The error of an input that has one. No input may be pending.
  const Error* InputError() const;

  // Makes the outputs' memory and runs the program. An aliased output takes over its argument's
  // memory if that was given away and nobody else reads it; otherwise it starts as a copy. Drops
  // the inputs. Throws treadle::Error.
  void Run();

 private:
  struct Input {
    BufferContents contents;
    bool donated;
  };

  std::shared_ptr<const Executable> executable_;
  std::shared_ptr<ThreadPool> pool_;
  std::vector<Input> inputs_;
  std::vector<Ref<Storage>> outputs_;
};

// A launch in a device's queue.
class LaunchTask final : public DeviceQueue::Task {
 public:
  LaunchTask(Launch launch, Ref<Event> done) : launch_(std::move(launch)), done_(std::move(done)) {}
  Event* FirstPending() override { return launch_->FirstPending(); }
  void Run() noexcept override;
  void Complete() noexcept override;
  void Cancel() noexcept override;

 private:
  std::optional<Launch> launch_;  // gone once it has run
  Ref<Event> done_;
  std::optional<Error> error_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_LAUNCH_H_
