// From a plain C++ function to a slot of PJRT_Api: checks the argument struct's size and turns
// exceptions into errors.
#ifndef TREADLE_PLUGIN_API_GUARD_H_
#define TREADLE_PLUGIN_API_GUARD_H_

#include <cstddef>
#include <cstring>

#include "plugin/runtime/error.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace treadle::api {

// The exception that is being handled, as an error whose text starts with the slot's name.
PJRT_Error* CurrentExceptionToError(const char* slot) noexcept;

[[noreturn]] void ThrowTooSmall(size_t given, size_t needed);

// `needed` is the end of the last field that `Fn` reads or writes without asking Has() first:
// callers built against an older header pass smaller structs, callers built against a newer one
// larger.
template <auto Fn, typename Args>
PJRT_Error* Guarded(const char* slot, size_t needed, Args* args) noexcept {
  try {
    if (args == nullptr || args->struct_size < needed) {
      ThrowTooSmall(args == nullptr ? 0 : args->struct_size, needed);
    }
    Fn(*args);
    return nullptr;
  } catch (...) {
    return CurrentExceptionToError(slot);
  }
}

// The number in an enum field that a caller filled. It may be one that this header does not name,
// and reading that as the enum would be undefined.
template <typename Enum>
int EnumValue(const Enum& field) {
  static_assert(sizeof(Enum) == sizeof(int));
  int value = 0;
  std::memcpy(&value, &field, sizeof(value));
  return value;
}

// What every slot is until something is bound to it.
template <typename Args>
void NotImplemented(Args&) {
  throw treadle::Unimplemented("this plugin does not implement it");
}

}  // namespace treadle::api

// Binds `fn`, a `void(slot_Args&)`, to the slot; `last` is the last field that it needs.
#define TREADLE_BIND(table, slot, fn, last)                        \
  (table).slot = [](slot##_Args* args) -> PJRT_Error* {            \
    constexpr size_t needed = PJRT_STRUCT_SIZE(slot##_Args, last); \
    return ::treadle::api::Guarded<fn>(#slot, needed, args);       \
  }

// True when the caller's struct has the field.
#define TREADLE_HAS(args, type, field) ((args).struct_size >= PJRT_STRUCT_SIZE(type, field))

#endif  // TREADLE_PLUGIN_API_GUARD_H_
