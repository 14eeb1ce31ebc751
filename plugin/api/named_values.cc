#include "plugin/api/named_values.h"

#include <cstring>

#include "plugin/api/guard.h"
#include "plugin/runtime/error.h"

namespace treadle::api {

namespace {

PJRT_NamedValue Named(const char* name, PJRT_NamedValue_Type type, size_t size) {
  PJRT_NamedValue value{};
  value.struct_size = PJRT_NamedValue_STRUCT_SIZE;
  value.name = name;
  value.name_size = std::strlen(name);
  value.type = type;
  value.value_size = size;
  return value;
}

NamedOption Read(const PJRT_NamedValue& value) {
  NamedOption option{std::string(value.name, value.name_size), {}};
  switch (EnumValue(value.type)) {
    case PJRT_NamedValue_kString:
      option.value = std::string(value.string_value, value.value_size);
      return option;
    case PJRT_NamedValue_kInt64:
      option.value = value.int64_value;
      return option;
    case PJRT_NamedValue_kInt64List:
      option.value =
          std::vector<int64_t>(value.int64_array_value, value.int64_array_value + value.value_size);
      return option;
    case PJRT_NamedValue_kFloat:
      option.value = value.float_value;
      return option;
    case PJRT_NamedValue_kBool:
      option.value = value.bool_value;
      return option;
  }
  throw InvalidArgument("option ", option.name, " has a value of unknown type ",
                        EnumValue(value.type));
}

}  // namespace

std::vector<NamedOption> ReadNamedValues(const PJRT_NamedValue* values, size_t count) {
  std::vector<NamedOption> options;
  options.reserve(count);
  for (size_t i = 0; i < count; ++i) options.push_back(Read(values[i]));
  return options;
}

PJRT_NamedValue Int64Value(const char* name, int64_t value) {
  PJRT_NamedValue named = Named(name, PJRT_NamedValue_kInt64, 1);
  named.int64_value = value;
  return named;
}

PJRT_NamedValue Int64ListValue(const char* name, const int64_t* values, size_t count) {
  PJRT_NamedValue named = Named(name, PJRT_NamedValue_kInt64List, count);
  named.int64_array_value = values;
  return named;
}

PJRT_NamedValue FloatValue(const char* name, float value) {
  PJRT_NamedValue named = Named(name, PJRT_NamedValue_kFloat, 1);
  named.float_value = value;
  return named;
}

}  // namespace treadle::api
