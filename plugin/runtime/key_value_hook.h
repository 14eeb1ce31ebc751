// Hands a client's key-value store to code outside the plugin.
#ifndef TREADLE_PLUGIN_RUNTIME_KEY_VALUE_HOOK_H_
#define TREADLE_PLUGIN_RUNTIME_KEY_VALUE_HOOK_H_

#include <cstdint>
#include <memory>

#include "plugin/runtime/key_value_store.h"

namespace treadle {

// Owned by the client. What it has handed out may be called for as long as its receiver likes, and
// fails from this object's destruction on.
class KeyValueHook {
 public:
  // `hook` is the address of a TreadleKeyValueHook, which is called now; nothing happens when it is
  // zero.
  KeyValueHook(int64_t hook, int node_id, int num_nodes, std::shared_ptr<KeyValueStore> store);
  // Waits for calls that are under way.
  ~KeyValueHook();
  KeyValueHook(const KeyValueHook&) = delete;
  KeyValueHook& operator=(const KeyValueHook&) = delete;

 private:
  class Door;
  std::shared_ptr<Door> door_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_KEY_VALUE_HOOK_H_
