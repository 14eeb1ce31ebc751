/* The key-value store of a distributed program, for code outside the plugin that wants to use it.
 *
 * C, without dependencies. The create option `kv_hook` is the address of a TreadleKeyValueHook. The
 * plugin calls it once for each client that has a store, when the client is complete.
 */
#ifndef TREADLE_PLUGIN_RUNTIME_KEY_VALUE_ABI_H_
#define TREADLE_PLUGIN_RUNTIME_KEY_VALUE_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes the value, or the text of the error: called once by each of the functions below that gives
 * one, before it returns. The bytes are the plugin's. */
typedef void (*TreadleKeyValueEmit)(void* sink, const char* bytes, uint64_t size);

typedef struct TreadleKeyValueFunctions {
  uint32_t struct_size; /* of the struct as the plugin has it; fields are only ever appended */
  int32_t node_id;      /* of this process */
  int32_t num_nodes;
  int32_t reserved;
  void* store; /* the first argument of every function */

  /* Each returns 0, or a PJRT_Error_Code with the error's text in `emit`. They may be called from
   * any thread, and block without holding a lock of the caller's. After the client's destruction
   * they fail with 9 (FAILED_PRECONDITION). Keys are those of the plugin itself, which are
   * "treadle/..."; choose others. */

  /* Fails with 6 (ALREADY_EXISTS) where the store does not let values be replaced. */
  int32_t (*put)(void* store, const char* key, uint64_t key_size, const char* value,
                 uint64_t value_size, void* sink, TreadleKeyValueEmit emit);
  /* Waits for the key; 4 (DEADLINE_EXCEEDED) when it does not come in time. */
  int32_t (*get)(void* store, const char* key, uint64_t key_size, int64_t timeout_ms, void* sink,
                 TreadleKeyValueEmit emit);
  /* Does not wait; 5 (NOT_FOUND) when the key is not there. */
  int32_t (*try_get)(void* store, const char* key, uint64_t key_size, void* sink,
                     TreadleKeyValueEmit emit);
  /* To be called once, when nothing is going to call the others any more. */
  void (*release)(void* store);
} TreadleKeyValueFunctions;

/* `functions` is valid during the call; copy it. */
typedef void (*TreadleKeyValueHook)(const TreadleKeyValueFunctions* functions);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TREADLE_PLUGIN_RUNTIME_KEY_VALUE_ABI_H_ */
