#include "plugin/api/key_value_store.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "plugin/api/error.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"

namespace treadle::api {

namespace {

using std::chrono::milliseconds;

// How long a caller without kv_try_get is asked for a key that may not be there.
constexpr milliseconds kTryGetTimeout{50};

// What callbacks make their errors with.
PJRT_Error* MakeError(PJRT_Error_Code code, const char* message, size_t message_size) {
  try {
    return NewError(ErrorOf(code, message, message_size));
  } catch (...) {
    return CurrentExceptionToError("a key-value callback");
  }
}
PJRT_CallbackError make_error = MakeError;  // the API wants a pointer to the pointer

void Check(PJRT_Error* error) {
  if (error != nullptr) throw TakeError(error);
}

// Copies a callback's value and gives it back.
template <typename Args>
std::string TakeValue(const Args& args) {
  struct Deleter {
    void (*function)(char*);
    void operator()(char* value) const {
      if (function != nullptr) function(value);
    }
  };
  const std::unique_ptr<char, Deleter> value(args.value, Deleter{args.value_deleter_callback});
  return std::string(View(args.value, args.value_size));
}

class CallbackStore final : public KeyValueStore {
 public:
  explicit CallbackStore(const PJRT_Client_Create_Args& args)
      : get_(args.kv_get_callback),
        get_arg_(args.kv_get_user_arg),
        put_(args.kv_put_callback),
        put_arg_(args.kv_put_user_arg) {
    if (!TREADLE_HAS(args, PJRT_Client_Create_Args, kv_try_get_user_arg)) return;
    try_get_ = args.kv_try_get_callback;
    try_get_arg_ = args.kv_try_get_user_arg;
  }

  void Put(std::string_view key, std::string_view value) override {
    PJRT_KeyValuePutCallback_Args args{};
    args.struct_size = PJRT_KeyValuePutCallback_Args_STRUCT_SIZE;
    args.key = key.data();
    args.key_size = key.size();
    args.value = value.data();
    args.value_size = value.size();
    args.callback_error = &make_error;
    args.user_arg = put_arg_;
    Check(put_(&args));
  }

  std::string Get(std::string_view key, milliseconds timeout) override {
    PJRT_KeyValueGetCallback_Args args{};
    args.struct_size = PJRT_KeyValueGetCallback_Args_STRUCT_SIZE;
    args.key = key.data();
    args.key_size = key.size();
    args.timeout_in_ms = static_cast<int>(
        std::clamp<milliseconds::rep>(timeout.count(), 1, std::numeric_limits<int>::max()));
    args.callback_error = &make_error;
    args.user_arg = get_arg_;
    Check(get_(&args));
    return TakeValue(args);
  }

  std::optional<std::string> TryGet(std::string_view key) override {
    try {
      if (try_get_ == nullptr) return Get(key, kTryGetTimeout);
      PJRT_KeyValueTryGetCallback_Args args{};
      args.struct_size = PJRT_KeyValueTryGetCallback_Args_STRUCT_SIZE;
      args.key = key.data();
      args.key_size = key.size();
      args.callback_error = &make_error;
      args.user_arg = try_get_arg_;
      Check(try_get_(&args));
      return TakeValue(args);
    } catch (const Error& error) {
      const StatusCode absent =
          try_get_ == nullptr ? StatusCode::kDeadlineExceeded : StatusCode::kNotFound;
      if (error.code == static_cast<int>(absent)) return std::nullopt;
      throw;
    }
  }

 private:
  const PJRT_KeyValueGetCallback get_;
  void* const get_arg_;
  const PJRT_KeyValuePutCallback put_;
  void* const put_arg_;
  PJRT_KeyValueTryGetCallback try_get_ = nullptr;  // null: the caller is older than it
  void* try_get_arg_ = nullptr;
};

}  // namespace

std::shared_ptr<KeyValueStore> KeyValueStoreOf(const PJRT_Client_Create_Args& args) {
  if (args.kv_get_callback == nullptr || args.kv_put_callback == nullptr) return nullptr;
  return std::make_shared<CallbackStore>(args);
}

}  // namespace treadle::api
