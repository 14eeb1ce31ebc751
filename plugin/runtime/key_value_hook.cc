#include "plugin/runtime/key_value_hook.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>

#include "plugin/runtime/error.h"
#include "plugin/runtime/key_value_abi.h"

namespace treadle {

// The way to the store, until it is closed.
class KeyValueHook::Door {
 public:
  explicit Door(std::shared_ptr<KeyValueStore> store) : store_(std::move(store)) {}

  void Close() {
    // First, for the lock prefers those who share it: steady callers could keep this one out.
    closed_.store(true, std::memory_order_release);
    const std::unique_lock lock(mutex_);
    store_ = nullptr;
  }

  // The function behind each of the table's: `use(store)` gives what goes to `emit`, if anything.
  template <typename Use>
  int32_t Through(void* sink, TreadleKeyValueEmit emit, Use&& use) noexcept {
    // `emit` is called with no lock held: it may want one, such as Python's, that Close's caller
    // has.
    try {
      if (const std::optional<std::string> value = Locked(use)) {
        emit(sink, value->data(), value->size());
      }
      return 0;
    } catch (const Error& error) {
      emit(sink, error.text.data(), error.text.size());
      return error.code;
    } catch (const std::exception& error) {
      const std::string_view text = error.what();
      emit(sink, text.data(), text.size());
      return static_cast<int32_t>(StatusCode::kInternal);
    }
  }

 private:
  template <typename Use>
  std::optional<std::string> Locked(Use& use) {
    if (!closed_.load(std::memory_order_acquire)) {
      // Shared: a caller that waits for a key keeps nobody else out.
      const std::shared_lock lock(mutex_);
      if (store_ != nullptr) return use(*store_);
    }
    throw FailedPrecondition(
        "the key-value store is gone: the client that it belongs to has been destroyed");
  }

  std::atomic<bool> closed_{false};
  std::shared_mutex mutex_;
  std::shared_ptr<KeyValueStore> store_;  // guarded by mutex_
};

KeyValueHook::KeyValueHook(int64_t hook, int node_id, int num_nodes,
                           std::shared_ptr<KeyValueStore> store) {
  if (hook == 0) return;
  door_ = std::make_shared<Door>(std::move(store));
  // The receiver's share, for `release` to give back.
  using Share = std::shared_ptr<Door>;
  TreadleKeyValueFunctions functions{};
  functions.struct_size = sizeof(functions);
  functions.node_id = node_id;
  functions.num_nodes = num_nodes;
  functions.store = new Share(door_);
  functions.put = [](void* door, const char* key, uint64_t key_size, const char* value,
                     uint64_t value_size, void* sink, TreadleKeyValueEmit emit) {
    return (*static_cast<Share*>(door))->Through(sink, emit, [&](KeyValueStore& to) {
      to.Put({key, key_size}, {value, value_size});
      return std::optional<std::string>();
    });
  };
  functions.get = [](void* door, const char* key, uint64_t key_size, int64_t timeout_ms, void* sink,
                     TreadleKeyValueEmit emit) {
    return (*static_cast<Share*>(door))->Through(sink, emit, [&](KeyValueStore& from) {
      const int64_t clamped = std::clamp<int64_t>(timeout_ms, 0, std::numeric_limits<int>::max());
      return std::optional(from.Get({key, key_size}, std::chrono::milliseconds(clamped)));
    });
  };
  functions.try_get = [](void* door, const char* key, uint64_t key_size, void* sink,
                         TreadleKeyValueEmit emit) {
    return (*static_cast<Share*>(door))->Through(sink, emit, [&](KeyValueStore& from) {
      std::optional<std::string> value = from.TryGet({key, key_size});
      if (!value) {
        throw Error(StatusCode::kNotFound,
                    StrCat("the key '", std::string_view(key, key_size), "' is not there"));
      }
      return value;
    });
  };
  functions.release = [](void* door) { delete static_cast<Share*>(door); };
  reinterpret_cast<TreadleKeyValueHook>(hook)(&functions);
}

KeyValueHook::~KeyValueHook() {
  if (door_) door_->Close();
}

}  // namespace treadle
