// What a client may be created with.
#ifndef TREADLE_PLUGIN_RUNTIME_OPTIONS_H_
#define TREADLE_PLUGIN_RUNTIME_OPTIONS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace treadle {

// One named value as a caller of the C API gives it. JAX passes what users write in
// jax_pjrt_client_create_options as strings, so numbers are accepted in that form too.
struct NamedOption {
  std::string name;
  std::variant<std::string, int64_t, std::vector<int64_t>, float, bool> value;
};

struct ClientOptions {
  int num_devices = 1;          // of this process
  int num_threads = 0;          // 0: as many as the process may use
  int64_t compile_fn = 0;       // address of a TreadleCompileFn; 0: ask the process's Python
  int64_t compile_enabled = 0;  // address of an int32_t that is zero once the compiler must not be
                                // called; 0: no such flag
  std::string compiler_build_id;
  std::array<int64_t, 3> stablehlo_version{
      0, 0, 0};  // of the caller's StableHLO; zeros: the oldest supported
  // They come with jax.distributed, also for a single process. Without num_nodes (zero here) the
  // caller has no key-value store.
  int node_id = 0;
  int num_nodes = 0;
  int handshake_timeout_seconds = 300;  // as long as JAX waits for the processes to connect
  int64_t kv_hook = 0;  // address of a TreadleKeyValueHook; 0: nobody wants to be told

  // Environment variables first, then `options`, which win. Throws INVALID_ARGUMENT for an unknown
  // name (listing the known ones) or a value that does not fit.
  static ClientOptions Parse(std::span<const NamedOption> options);
};

// The version that a program is serialized for when the caller does not say which it has: that of
// the oldest jaxlib supported.
inline constexpr std::array<int64_t, 3> kOldestStablehlo{1, 17, 0};
inline constexpr std::array<int64_t, 3> kMinimumStablehlo{0, 9, 0};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_OPTIONS_H_
