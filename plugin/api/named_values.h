// PJRT_NamedValue: read from callers, and lists of them for callers.
#ifndef TREADLE_PLUGIN_API_NAMED_VALUES_H_
#define TREADLE_PLUGIN_API_NAMED_VALUES_H_

#include <cstddef>
#include <vector>

#include "plugin/runtime/options.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace treadle::api {

// Throws INVALID_ARGUMENT for a value of a type that the header does not know.
std::vector<NamedOption> ReadNamedValues(const PJRT_NamedValue* values, size_t count);

// These do not copy: names and values live as long as the list.
PJRT_NamedValue Int64Value(const char* name, int64_t value);
PJRT_NamedValue Int64ListValue(const char* name, const int64_t* values, size_t count);
PJRT_NamedValue FloatValue(const char* name, float value);

}  // namespace treadle::api

#endif  // TREADLE_PLUGIN_API_NAMED_VALUES_H_
