// Batched matrix products (program_abi.h's TreadleDot).
#ifndef TREADLE_PLUGIN_RUNTIME_DOT_DOT_H_
#define TREADLE_PLUGIN_RUNTIME_DOT_DOT_H_

#include "plugin/runtime/program_abi.h"
#include "plugin/runtime/thread_pool.h"

namespace treadle {

// Throws INVALID_ARGUMENT, UNIMPLEMENTED (types) or RESOURCE_EXHAUSTED.
void Dot(ThreadPool& pool, const TreadleDot& dot, const void* lhs, const void* rhs, void* out);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_DOT_DOT_H_
