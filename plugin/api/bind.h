// One function per PJRT object: each binds the slots of that object in the table.
#ifndef TREADLE_PLUGIN_API_BIND_H_
#define TREADLE_PLUGIN_API_BIND_H_

#include "xla/pjrt/c/pjrt_c_api.h"

namespace treadle::api {

void BindBuffer(PJRT_Api& api);
void BindBufferCreation(PJRT_Api& api);
void BindClient(PJRT_Api& api);
void BindCompile(PJRT_Api& api);
void BindDevice(PJRT_Api& api);
void BindError(PJRT_Api& api);
void BindEvent(PJRT_Api& api);
void BindExecutable(PJRT_Api& api);
void BindExecute(PJRT_Api& api);
void BindMemory(PJRT_Api& api);
void BindPlugin(PJRT_Api& api);
void BindTopology(PJRT_Api& api);
void BindTransfer(PJRT_Api& api);

// What the first word of every PJRT_Memory points to.
const PJRT_Memory_FunctionTable* MemoryFunctions();

// The chain of extensions that the plugin offers.
PJRT_Extension_Base* Extensions();

}  // namespace treadle::api

#endif  // TREADLE_PLUGIN_API_BIND_H_
