// Intrusive reference counting: for objects that the C API hands out by address, and that threads
// pass to each other on the hot path.
#ifndef TREADLE_PLUGIN_RUNTIME_REF_H_
#define TREADLE_PLUGIN_RUNTIME_REF_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace treadle {

// A new object has one reference, which `Ref<T>::Adopt` takes over.
template <typename T>
class RefCounted {
 public:
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void AddRef() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Release() const noexcept {
    // acq_rel: whatever any holder did to the object happens before its destruction.
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete static_cast<const T*>(this);
  }
  // True when the caller holds the only reference. A holder of the only one cannot lose the race:
  // nobody else is left to copy it.
  bool IsUnique() const noexcept { return refs_.load(std::memory_order_acquire) == 1; }

 protected:
  RefCounted() = default;
  ~RefCounted() = default;

 private:
  mutable std::atomic<uint32_t> refs_{1};
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT: as for the standard's pointers
  Ref(const Ref& other) : object_(other.object_) {
    if (object_ != nullptr) object_->AddRef();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->Release();
  }

  // Takes over a reference that exists already.
  static Ref Adopt(T* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  // Adds a reference.
  static Ref Share(T* object) {
    if (object != nullptr) object->AddRef();
    return Adopt(object);
  }
  template <typename... Args>
  static Ref Make(Args&&... args) {
    return Adopt(new T(std::forward<Args>(args)...));
  }

  // Gives the reference to the caller, who has to Adopt or Release it.
  T* Detach() noexcept { return std::exchange(object_, nullptr); }

  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_REF_H_
