// Something that will have happened, with or without an error.
#ifndef TREADLE_PLUGIN_RUNTIME_EVENT_H_
#define TREADLE_PLUGIN_RUNTIME_EVENT_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "plugin/runtime/error.h"
#include "plugin/runtime/ref.h"

namespace treadle {

// One-shot and shared: every holder may wait, ask or register callbacks, in any thread, while
// another thread sets it. Callbacks run with no lock held, in the thread that sets the event (or in
// the registering one, when the event is set already), in the order of registration; a callback may
// drop the last reference to the event.
class Event final : public RefCounted<Event> {
 public:
  static Ref<Event> Pending() { return Ref<Event>::Make(); }
  // The same object every time: a ready event costs no allocation.
  static Ref<Event> Ready();
  static Ref<Event> Failed(Error error);

  bool IsReady() const { return state_.load(std::memory_order_acquire) == kReady; }
  // Null when all went well. The event must be ready.
  const Error* error() const { return error_ ? &*error_ : nullptr; }
  // Blocks until the event is ready.
  void Wait() const;

  // `callback(const Error*)` is called once, with null when all went well; the pointer is valid
  // during the call only.
  template <typename Callback>
  void OnReady(Callback&& callback);

  // The first Set wins and returns true; later ones change nothing. Only whoever made the event
  // sets it.
  bool SetReady() { return Set(std::nullopt); }
  bool SetError(Error error) { return Set(std::move(error)); }

 private:
  friend class Ref<Event>;
  friend class RefCounted<Event>;

  struct Waiter {
    virtual ~Waiter() = default;
    virtual void Run(const Error* error) = 0;
    Waiter* next = nullptr;
  };

  Event() = default;
  ~Event();

  bool Set(std::optional<Error> error);
  // False when the event is ready: the waiter is still the caller's.
  bool Push(Waiter* waiter);

  enum State : uint32_t { kPending = 0, kBeingSet = 1, kReady = 2 };

  std::atomic<uint32_t> state_{kPending};
  std::atomic<Waiter*> waiters_{nullptr};  // newest first; Closed() once the event is set
  std::optional<Error> error_;             // written before state_ becomes kReady

  static Waiter* Closed();
};

template <typename Callback>
void Event::OnReady(Callback&& callback) {
  struct Holder final : Waiter {
    explicit Holder(Callback&& c) : body(std::forward<Callback>(c)) {}
    void Run(const Error* error) override { body(error); }
    std::decay_t<Callback> body;
  };
  if (!IsReady()) {
    auto* holder = new Holder(std::forward<Callback>(callback));
    if (Push(holder)) return;
    const Ref<Event> keep = Ref<Event>::Share(this);
    holder->Run(error());
    delete holder;
    return;
  }
  const Ref<Event> keep = Ref<Event>::Share(this);
  callback(error());
}

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_EVENT_H_
