// PJRT_Event.
#include "plugin/runtime/event.h"

#include "plugin/api/bind.h"
#include "plugin/api/error.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"

namespace treadle::api {

namespace {

void Create(PJRT_Event_Create_Args& args) { args.event = WrapEvent(Event::Pending()); }

void Destroy(PJRT_Event_Destroy_Args& args) {
  if (args.event != nullptr) Unwrap(args.event).Release();
}

void Set(PJRT_Event_Set_Args& args) {
  Event& event = Unwrap(args.event);
  const bool was_pending =
      IsOk(args.error_code)
          ? event.SetReady()
          : event.SetError(ErrorOf(args.error_code, args.error_message, args.error_message_size));
  if (!was_pending) throw FailedPrecondition("the event is set already");
}

void IsReady(PJRT_Event_IsReady_Args& args) { args.is_ready = Unwrap(args.event).IsReady(); }

void OnReady(PJRT_Event_OnReady_Args& args) {
  Unwrap(args.event)
      .OnReady([callback = args.callback, user_arg = args.user_arg](const Error* error) {
        callback(NewErrorOrNull(error), user_arg);
      });
}

// The event's own error is the slot's result, unchanged: it happened elsewhere, so the slot's name
// would mislead.
PJRT_Error* ErrorSlot(PJRT_Event_Error_Args* args) noexcept {
  PJRT_Error* const failure = Guarded<[](PJRT_Event_Error_Args& a) {
    if (!Unwrap(a.event).IsReady()) throw FailedPrecondition("the event is not ready");
  }>("PJRT_Event_Error", PJRT_STRUCT_SIZE(PJRT_Event_Error_Args, event), args);
  if (failure != nullptr) return failure;
  return NewErrorOrNull(Unwrap(args->event).error());
}

PJRT_Error* AwaitSlot(PJRT_Event_Await_Args* args) noexcept {
  PJRT_Error* const failure = Guarded<[](PJRT_Event_Await_Args& a) { Unwrap(a.event).Wait(); }>(
      "PJRT_Event_Await", PJRT_STRUCT_SIZE(PJRT_Event_Await_Args, event), args);
  if (failure != nullptr) return failure;
  return NewErrorOrNull(Unwrap(args->event).error());
}

}  // namespace

void BindEvent(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_Event_Create, Create, event);
  TREADLE_BIND(api, PJRT_Event_Destroy, Destroy, event);
  TREADLE_BIND(api, PJRT_Event_Set, Set, error_message_size);
  TREADLE_BIND(api, PJRT_Event_IsReady, IsReady, is_ready);
  TREADLE_BIND(api, PJRT_Event_OnReady, OnReady, user_arg);
  api.PJRT_Event_Error = ErrorSlot;
  api.PJRT_Event_Await = AwaitSlot;
}

}  // namespace treadle::api
