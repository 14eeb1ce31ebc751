// The key-value callbacks of PJRT_Client_Create.
#ifndef TREADLE_PLUGIN_API_KEY_VALUE_STORE_H_
#define TREADLE_PLUGIN_API_KEY_VALUE_STORE_H_

#include <memory>

#include "plugin/runtime/key_value_store.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace treadle::api {

// Null when the caller has set no callbacks. To be called only for callers that say that they have
// set them, by the option num_nodes. Keeps nothing of `args` but the callbacks and their arguments,
// which the caller keeps alive for as long as the client.
std::shared_ptr<KeyValueStore> KeyValueStoreOf(const PJRT_Client_Create_Args& args);

}  // namespace treadle::api

#endif  // TREADLE_PLUGIN_API_KEY_VALUE_STORE_H_
