#include "plugin/runtime/options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <optional>

#include "plugin/runtime/error.h"

namespace treadle {

namespace {

constexpr int64_t kMaxDevices = 1024;
constexpr int64_t kMaxThreads = 4096;
constexpr int64_t kMaxProcesses = 1 << 14;
constexpr int64_t kMaxTimeoutSeconds = 7 * 24 * 3600;

const char* TypeName(const NamedOption& option) {
  constexpr const char* kNames[] = {"a string", "an integer", "a list of integers", "a float",
                                    "a bool"};
  return kNames[option.value.index()];
}

std::optional<int64_t> ParseInteger(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int64_t Integer(const NamedOption& option, int64_t low, int64_t high) {
  std::optional<int64_t> value;
  if (const auto* number = std::get_if<int64_t>(&option.value)) value = *number;
  if (const auto* text = std::get_if<std::string>(&option.value)) value = ParseInteger(*text);
  if (!value) {
    throw InvalidArgument("option ", option.name, " wants an integer and was given ",
                          TypeName(option));
  }
  if (*value < low || *value > high) {
    throw InvalidArgument("option ", option.name, " is ", *value, " and must be from ", low, " to ",
                          high);
  }
  return *value;
}

int64_t Address(const NamedOption& option) {
  if (const auto* number = std::get_if<int64_t>(&option.value)) return *number;
  throw InvalidArgument("option ", option.name, " wants an address and was given ",
                        TypeName(option));
}

std::string Text(const NamedOption& option) {
  if (const auto* text = std::get_if<std::string>(&option.value)) return *text;
  throw InvalidArgument("option ", option.name, " wants a string and was given ", TypeName(option));
}

// "1.17.0"
std::array<int64_t, 3> Version(const NamedOption& option) {
  const std::string text = Text(option);
  std::array<int64_t, 3> version{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t part = 0; part < version.size(); ++part) {
    const auto [next, error] = std::from_chars(at, end, version[part]);
    const bool last = part + 1 == version.size();
    if (error != std::errc() || version[part] < 0 || (last ? next != end : *next != '.')) {
      throw InvalidArgument("option ", option.name, " is '", text,
                            "' and must be a version such as 1.17.0");
    }
    at = next + 1;
  }
  return version;
}

struct KnownOption {
  const char* name;
  std::function<void(ClientOptions&, const NamedOption&)> set;
};

const std::vector<KnownOption>& KnownOptions() {
  static const auto* const known = new std::vector<KnownOption>{
      {"num_devices",
       [](ClientOptions& o, const NamedOption& v) {
         o.num_devices = static_cast<int>(Integer(v, 1, kMaxDevices));
       }},
      {"num_threads",
       [](ClientOptions& o, const NamedOption& v) {
         o.num_threads = static_cast<int>(Integer(v, 0, kMaxThreads));
       }},
      {"compile_fn", [](ClientOptions& o, const NamedOption& v) { o.compile_fn = Address(v); }},
      {"compile_enabled",
       [](ClientOptions& o, const NamedOption& v) { o.compile_enabled = Address(v); }},
      {"compiler_build_id",
       [](ClientOptions& o, const NamedOption& v) { o.compiler_build_id = Text(v); }},
      {"stablehlo_version",
       [](ClientOptions& o, const NamedOption& v) { o.stablehlo_version = Version(v); }},
      {"node_id",
       [](ClientOptions& o, const NamedOption& v) {
         o.node_id = static_cast<int>(Integer(v, 0, kMaxProcesses - 1));
       }},
      {"num_nodes",
       [](ClientOptions& o, const NamedOption& v) {
         o.num_nodes = static_cast<int>(Integer(v, 1, kMaxProcesses));
       }},
      {"handshake_timeout_seconds",
       [](ClientOptions& o, const NamedOption& v) {
         o.handshake_timeout_seconds = static_cast<int>(Integer(v, 1, kMaxTimeoutSeconds));
       }},
      {"kv_hook", [](ClientOptions& o, const NamedOption& v) { o.kv_hook = Address(v); }},
      // Of a job of several slices; this plugin has no use for it.
      {"partition_index", [](ClientOptions&, const NamedOption& v) { Integer(v, 0, INT32_MAX); }},
  };
  return *known;
}

std::string KnownNames() {
  std::string names;
  for (const KnownOption& known : KnownOptions()) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return names;
}

void Apply(ClientOptions& options, const NamedOption& option) {
  for (const KnownOption& known : KnownOptions()) {
    if (option.name == known.name) return known.set(options, option);
  }
  throw InvalidArgument("unknown option '", option.name, "'; the known ones are ", KnownNames());
}

}  // namespace

ClientOptions ClientOptions::Parse(std::span<const NamedOption> options) {
  ClientOptions result;
  constexpr const char* kEnvironment[][2] = {
      {"TREADLE_NUM_DEVICES", "num_devices"},
      {"TREADLE_NUM_THREADS", "num_threads"},
      {"TREADLE_HANDSHAKE_TIMEOUT", "handshake_timeout_seconds"}};
  for (const auto& [variable, name] : kEnvironment) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    try {
      Apply(result, {name, std::string(value)});
    } catch (const Error& error) {
      throw InvalidArgument("environment variable ", variable, "='", value, "': ", error.text);
    }
  }
  bool has_node_id = false;
  for (const NamedOption& option : options) {
    Apply(result, option);
    has_node_id = has_node_id || option.name == "node_id";
  }
  const int num_nodes = std::max(result.num_nodes, 1);
  if (result.node_id >= num_nodes) {
    throw InvalidArgument("option node_id is ", result.node_id, " and must be below num_nodes, ",
                          result.num_nodes == 0 ? "which was not given" : "which is ",
                          result.num_nodes == 0 ? "" : std::to_string(result.num_nodes));
  }
  if (num_nodes > 1 && !has_node_id) {
    throw InvalidArgument("option num_nodes is ", num_nodes, ", and node_id was not given");
  }
  return result;
}

}  // namespace treadle
