// The order of a device: what is submitted runs one after the other, in a thread of the device's
// own.
#ifndef TREADLE_PLUGIN_RUNTIME_DEVICE_QUEUE_H_
#define TREADLE_PLUGIN_RUNTIME_DEVICE_QUEUE_H_

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "plugin/runtime/event.h"
#include "plugin/runtime/ref.h"

namespace treadle {

// The thread starts with the first task, so a client that only ever runs small programs has none.
// It does not block on inputs: a task whose inputs are pending parks the queue, and the input's
// event wakes it. Tasks own all they need, so closing the queue never waits; the thread finishes
// its task and goes.
class DeviceQueue final : public RefCounted<DeviceQueue> {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    // The first event that has to be ready before Run, or null.
    virtual Event* FirstPending() = 0;
    virtual void Run() noexcept = 0;
    // Tells the world, after Run, when the queue no longer counts the task: whoever wakes up may
    // find the queue idle.
    virtual void Complete() noexcept = 0;
    // In place of Run, when the queue closes first. Complete follows.
    virtual void Cancel() noexcept = 0;
  };

  void Submit(std::unique_ptr<Task> task);
  // True when nothing is waiting or running, so that the caller may run its work itself.
  bool Idle() const { return outstanding_.load(std::memory_order_acquire) == 0; }
  // True in the queue's own thread: a program that runs there may start another one, and would wait
  // for itself in line.
  bool InOwnThread() const;
  // Cancels what has not started. Later submissions are cancelled too.
  void Close();

 private:
  friend class Ref<DeviceQueue>;
  friend class RefCounted<DeviceQueue>;
  DeviceQueue() = default;
  ~DeviceQueue() = default;

  void Loop();
  void Finish(Task& task);

  std::atomic<int64_t> outstanding_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  std::deque<std::unique_ptr<Task>> tasks_;
  bool started_ = false, parked_ = false, closed_ = false;
  std::atomic<pid_t> owner_{0};  // of the thread, once it is started
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_DEVICE_QUEUE_H_
