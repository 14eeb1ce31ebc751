// Convolution as a matrix product of patches of the input (im2col): right for every geometry and
// type.
#ifndef TREADLE_PLUGIN_RUNTIME_CONVOLUTION_PATCHES_H_
#define TREADLE_PLUGIN_RUNTIME_CONVOLUTION_PATCHES_H_

#include "plugin/runtime/program_abi.h"
#include "plugin/runtime/thread_pool.h"

namespace treadle {

// `convolution` as CheckedConvolution returns it. Throws UNIMPLEMENTED (types) or
// RESOURCE_EXHAUSTED.
void PatchesConvolution(ThreadPool& pool, const TreadleConvolution& convolution, const void* lhs,
                        const void* rhs, void* out);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_CONVOLUTION_PATCHES_H_
