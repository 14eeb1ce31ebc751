// Convolution by definition: right for every geometry and type, and the last resort.
#ifndef TREADLE_PLUGIN_RUNTIME_CONVOLUTION_DIRECT_H_
#define TREADLE_PLUGIN_RUNTIME_CONVOLUTION_DIRECT_H_

#include "plugin/runtime/program_abi.h"
#include "plugin/runtime/thread_pool.h"

namespace treadle {

void DirectConvolution(ThreadPool& pool, const TreadleConvolution& convolution, const void* lhs,
                       const void* rhs, void* out);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CONVOLUTION_DIRECT_H_
