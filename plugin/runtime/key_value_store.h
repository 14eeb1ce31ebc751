// What the processes of one distributed program tell each other before they have anything better:
// small values under names, kept by whoever started them (for JAX: its coordination service).
#ifndef TREADLE_PLUGIN_RUNTIME_KEY_VALUE_STORE_H_
#define TREADLE_PLUGIN_RUNTIME_KEY_VALUE_STORE_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace treadle {

// Keys and values are bytes; a value may be empty and may hold zeros. Thread-safe. Every function
// throws treadle::Error with the code that the store gave.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;

  // Most stores refuse a key that is there already, with ALREADY_EXISTS.
  virtual void Put(std::string_view key, std::string_view value) = 0;
  // Waits until the key is there. Throws DEADLINE_EXCEEDED when it does not come in time.
  virtual std::string Get(std::string_view key, std::chrono::milliseconds timeout) = 0;
  // Does not wait: nothing when the key is not there now.
  virtual std::optional<std::string> TryGet(std::string_view key) = 0;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_KEY_VALUE_STORE_H_
