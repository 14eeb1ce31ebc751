#include "plugin/runtime/event.h"

#include <new>

namespace treadle {

Event::Waiter* Event::Closed() {
  // Any address that no waiter can have; never dereferenced.
  static char sentinel;
  return reinterpret_cast<Waiter*>(&sentinel);
}

Ref<Event> Event::Ready() {
  // Lives in static storage and is never destroyed: threads may still hold it while the process
  // exits.
  alignas(Event) static unsigned char storage[sizeof(Event)];
  static Event* const event = [] {
    auto* e = new (storage) Event;
    e->SetReady();
    return e;
  }();
  return Ref<Event>::Share(event);
}

Ref<Event> Event::Failed(Error error) {
  Ref<Event> event = Pending();
  event->SetError(std::move(error));
  return event;
}

Event::~Event() {
  // An event that nobody will set any more: its callbacks can only be dropped.
  Waiter* waiter = waiters_.load(std::memory_order_acquire);
  while (waiter != nullptr && waiter != Closed()) {
    Waiter* const next = waiter->next;
    delete waiter;
    waiter = next;
  }
}

void Event::Wait() const {
  for (uint32_t seen = state_.load(std::memory_order_acquire); seen != kReady;
       seen = state_.load(std::memory_order_acquire)) {
    state_.wait(seen, std::memory_order_acquire);
  }
}

bool Event::Push(Waiter* waiter) {
  Waiter* head = waiters_.load(std::memory_order_acquire);
  do {
    if (head == Closed()) return false;
    waiter->next = head;
  } while (!waiters_.compare_exchange_weak(head, waiter, std::memory_order_acq_rel,
                                           std::memory_order_acquire));
  return true;
}

bool Event::Set(std::optional<Error> error) {
  uint32_t expected = kPending;
  if (!state_.compare_exchange_strong(expected, kBeingSet, std::memory_order_acq_rel)) return false;
  // A waiting thread may drop the last outside reference as soon as it sees kReady.
  const Ref<Event> keep = Ref<Event>::Share(this);
  error_ = std::move(error);
  state_.store(kReady, std::memory_order_release);
  state_.notify_all();
  Waiter* newest = waiters_.exchange(Closed(), std::memory_order_acq_rel);
  Waiter* oldest = nullptr;
  while (newest != nullptr) {
    Waiter* const next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  while (oldest != nullptr) {
    Waiter* const next = oldest->next;
    oldest->Run(this->error());
    delete oldest;
    oldest = next;
  }
  return true;
}

}  // namespace treadle
