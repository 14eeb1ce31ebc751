// The extension that tells JAX how a program's arguments and results are spread over its devices.
#ifndef TREADLE_PLUGIN_API_SHARDINGS_H_
#define TREADLE_PLUGIN_API_SHARDINGS_H_

#include "xla/pjrt/c/pjrt_c_api.h"

namespace treadle::api {

// Lives as long as the process.
PJRT_Extension_Base* ShardingsExtension(PJRT_Extension_Base* next);

}  // namespace treadle::api

#endif  // TREADLE_PLUGIN_API_SHARDINGS_H_
