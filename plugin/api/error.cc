#include "plugin/api/error.h"

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "plugin/api/bind.h"
#include "plugin/api/guard.h"

namespace treadle::api {

namespace {

#define TREADLE_SAME_CODE(pjrt, ours) \
  static_assert(static_cast<int>(PJRT_Error_Code_##pjrt) == static_cast<int>(StatusCode::ours))
TREADLE_SAME_CODE(OK, kOk);
TREADLE_SAME_CODE(CANCELLED, kCancelled);
TREADLE_SAME_CODE(UNKNOWN, kUnknown);
TREADLE_SAME_CODE(INVALID_ARGUMENT, kInvalidArgument);
TREADLE_SAME_CODE(DEADLINE_EXCEEDED, kDeadlineExceeded);
TREADLE_SAME_CODE(NOT_FOUND, kNotFound);
TREADLE_SAME_CODE(ALREADY_EXISTS, kAlreadyExists);
TREADLE_SAME_CODE(PERMISSION_DENIED, kPermissionDenied);
TREADLE_SAME_CODE(RESOURCE_EXHAUSTED, kResourceExhausted);
TREADLE_SAME_CODE(FAILED_PRECONDITION, kFailedPrecondition);
TREADLE_SAME_CODE(ABORTED, kAborted);
TREADLE_SAME_CODE(OUT_OF_RANGE, kOutOfRange);
TREADLE_SAME_CODE(UNIMPLEMENTED, kUnimplemented);
TREADLE_SAME_CODE(INTERNAL, kInternal);
TREADLE_SAME_CODE(UNAVAILABLE, kUnavailable);
TREADLE_SAME_CODE(DATA_LOSS, kDataLoss);
TREADLE_SAME_CODE(UNAUTHENTICATED, kUnauthenticated);
#undef TREADLE_SAME_CODE

struct ErrorHandle final : PJRT_Error {
  ErrorHandle(const PJRT_Error_FunctionTable* functions, Error e) : error(std::move(e)) {
    vtable = functions;
  }
  Error error;
};

const Error& Unwrap(const PJRT_Error* error) {
  return static_cast<const ErrorHandle*>(error)->error;
}

// The one error that needs no memory. Destroying it does nothing.
struct OutOfMemory final : PJRT_Error {};

const PJRT_Error_FunctionTable kFunctions = {
    PJRT_Error_FunctionTable_STRUCT_SIZE,
    sizeof(ErrorHandle),
    nullptr,
    [](PJRT_Error* error) { delete static_cast<ErrorHandle*>(error); },
    [](const PJRT_Error* error, const char** message, size_t* size) {
      *message = Unwrap(error).text.data();
      *size = Unwrap(error).text.size();
    },
    [](const PJRT_Error* error) { return static_cast<PJRT_Error_Code>(Unwrap(error).code); },
    [](const PJRT_Error* error, PJRT_Error_PayloadVisitor visitor, void* user_arg) {
      for (const auto& [key, value] : Unwrap(error).payloads) {
        visitor(key.data(), key.size(), value.data(), value.size(), user_arg);
      }
    },
};

constexpr std::string_view kOutOfMemoryText = "out of memory";

const PJRT_Error_FunctionTable kOutOfMemoryFunctions = {
    PJRT_Error_FunctionTable_STRUCT_SIZE,
    sizeof(OutOfMemory),
    nullptr,
    [](PJRT_Error*) {},
    [](const PJRT_Error*, const char** message, size_t* size) {
      *message = kOutOfMemoryText.data();
      *size = kOutOfMemoryText.size();
    },
    [](const PJRT_Error*) { return PJRT_Error_Code_RESOURCE_EXHAUSTED; },
    [](const PJRT_Error*, PJRT_Error_PayloadVisitor, void*) {},
};

const PJRT_Error& NotNull(const PJRT_Error* error) {
  if (error == nullptr) throw InvalidArgument("the error is null");
  return *error;
}

// Through the error's own table, so that any error will do.
void GetCode(PJRT_Error_GetCode_Args& args) {
  args.code = NotNull(args.error).vtable->get_code(args.error);
}

void ForEachPayload(PJRT_Error_ForEachPayload_Args& args) {
  NotNull(args.error).vtable->for_each_payload(args.error, args.visitor, args.user_arg);
}

}  // namespace

PJRT_Error* NewError(Error error) { return new ErrorHandle(&kFunctions, std::move(error)); }

PJRT_Error* NewErrorOrNull(const Error* error) {
  return error == nullptr ? nullptr : NewError(*error);
}

Error TakeError(PJRT_Error* error) {
  const PJRT_Error_FunctionTable& functions = *error->vtable;
  const std::unique_ptr<PJRT_Error, void (*)(PJRT_Error*)> owner(error, functions.destroy);
  const char* text = "";
  size_t size = 0;
  functions.message(error, &text, &size);
  return Error(static_cast<int>(functions.get_code(error)), std::string(text, size));
}

PJRT_Error* CurrentExceptionToError(const char* slot) noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      Error named = error;
      named.text = StrCat(slot, ": ", error.text);
      return NewError(std::move(named));
    } catch (const std::bad_alloc&) {
      return NewError(ResourceExhausted(slot, ": ", kOutOfMemoryText));
    } catch (const std::exception& error) {
      return NewError(Internal(slot, ": ", error.what()));
    } catch (...) {
      return NewError(Error(StatusCode::kUnknown, StrCat(slot, ": an unknown exception")));
    }
  } catch (...) {
    // There was no memory to say more.
    static OutOfMemory error{{&kOutOfMemoryFunctions}};
    return &error;
  }
}

void ThrowTooSmall(size_t given, size_t needed) {
  throw InvalidArgument("the argument struct's struct_size is ", given, " and must be at least ",
                        needed);
}

void BindError(PJRT_Api& api) {
  // JAX destroys null errors on every successful wait.
  api.PJRT_Error_Destroy = [](PJRT_Error_Destroy_Args* args) {
    if (args->error != nullptr) args->error->vtable->destroy(args->error);
  };
  api.PJRT_Error_Message = [](PJRT_Error_Message_Args* args) {
    args->message = "";
    args->message_size = 0;
    if (args->error == nullptr) return;
    args->error->vtable->message(args->error, &args->message, &args->message_size);
  };
  TREADLE_BIND(api, PJRT_Error_GetCode, GetCode, code);
  TREADLE_BIND(api, PJRT_Error_ForEachPayload, ForEachPayload, user_arg);
}

}  // namespace treadle::api
