// The extension that tells JAX how arrays lie in memory: here always dense and row-major.
#ifndef TREADLE_PLUGIN_API_LAYOUTS_H_
#define TREADLE_PLUGIN_API_LAYOUTS_H_

#include <cstddef>

#include "xla/pjrt/c/pjrt_c_api.h"
#include "xla/pjrt/c/pjrt_c_api_layouts_extension.h"

namespace treadle::api {

// The layout of an array of `rank` dimensions, shared by all of them; lives as long as the process.
// Throws UNIMPLEMENTED for a rank that no array has.
PJRT_Layouts_MemoryLayout* RowMajorLayoutHandle(size_t rank);

// Lives as long as the process.
//
// JAX asks every executable for the layouts of its arguments and results. Without this extension
// jaxlib answers by translating the whole program to HLO, three times a compilation.
PJRT_Extension_Base* LayoutsExtension(PJRT_Extension_Base* next);

}  // namespace treadle::api

#endif  // TREADLE_PLUGIN_API_LAYOUTS_H_
