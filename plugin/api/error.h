// PJRT_Error: the form in which exceptions leave the plugin.
#ifndef TREADLE_PLUGIN_API_ERROR_H_
#define TREADLE_PLUGIN_API_ERROR_H_

#include "plugin/runtime/error.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace treadle::api {

// Owned by whoever gets it.
PJRT_Error* NewError(Error error);
// Null for null.
PJRT_Error* NewErrorOrNull(const Error* error);

// Destroys `error`, which is not null.
Error TakeError(PJRT_Error* error);

}  // namespace treadle::api

#endif  // TREADLE_PLUGIN_API_ERROR_H_
