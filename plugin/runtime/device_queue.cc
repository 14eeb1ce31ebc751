#include "plugin/runtime/device_queue.h"

#include <pthread.h>
#include <unistd.h>

#include <system_error>
#include <thread>

namespace treadle {

namespace {

thread_local const DeviceQueue* current_queue = nullptr;

}  // namespace

bool DeviceQueue::InOwnThread() const { return current_queue == this; }

void DeviceQueue::Finish(Task& task) {
  outstanding_.fetch_sub(1, std::memory_order_acq_rel);
  task.Complete();
}

void DeviceQueue::Submit(std::unique_ptr<Task> task) {
  outstanding_.fetch_add(1, std::memory_order_acq_rel);
  {
    std::unique_lock lock(mutex_);
    if (!closed_) {
      if (!started_) {
        try {
          std::thread([self = Ref<DeviceQueue>::Share(this)] { self->Loop(); }).detach();
        } catch (const std::system_error& error) {
          outstanding_.fetch_sub(1, std::memory_order_acq_rel);
          throw ResourceExhausted("the device's thread cannot be started: ", error.what());
        }
        started_ = true;
        owner_ = getpid();
      }
      tasks_.push_back(std::move(task));
      lock.unlock();
      wake_.notify_one();
      return;
    }
  }
  task->Cancel();
  Finish(*task);
}

void DeviceQueue::Loop() {
  pthread_setname_np(pthread_self(), "treadle-device");
  current_queue = this;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return closed_ || (!tasks_.empty() && !parked_); });
    if (closed_) return;
    if (Event* const pending = tasks_.front()->FirstPending()) {
      parked_ = true;
      lock.unlock();
      pending->OnReady([self = Ref<DeviceQueue>::Share(this)](const Error*) {
        {
          const std::lock_guard guard(self->mutex_);
          self->parked_ = false;
        }
        self->wake_.notify_one();
      });
      lock.lock();
      continue;
    }
    std::unique_ptr<Task> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task->Run();
    Finish(*task);
    task.reset();
    lock.lock();
  }
}

void DeviceQueue::Close() {
  std::deque<std::unique_ptr<Task>> cancelled;
  // In a forked child the thread does not exist, and the lock may be held for ever.
  if (owner_ != 0 && owner_ != getpid()) return;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    cancelled.swap(tasks_);
  }
  wake_.notify_one();
  for (const std::unique_ptr<Task>& task : cancelled) {
    task->Cancel();
    Finish(*task);
  }
}

}  // namespace treadle
