// How the processes of a distributed program find each other.
#ifndef TREADLE_PLUGIN_RUNTIME_HANDSHAKE_H_
#define TREADLE_PLUGIN_RUNTIME_HANDSHAKE_H_

#include <chrono>
#include <vector>

#include "plugin/runtime/key_value_store.h"
#include "plugin/runtime/process_record.h"

namespace treadle {

// Publishes `self` under "treadle/handshake/<round>/<node_id>", waits for the records of the other
// `self.num_nodes - 1` processes, and returns all of them in the order of their node ids.
//
// The n-th client of a process meets the n-th clients of the others: that is the round. A process
// whose handshake failed may try again, and joins the round in which it failed.
//
// The whole wait is bounded by `timeout`. Throws
//   DEADLINE_EXCEEDED    with the names of all processes that did not come, and of those that did;
//   FAILED_PRECONDITION  when the processes do not run the same software, or do not agree on their
//                        number: in every process, with the versions of each;
//   INVALID_ARGUMENT     when another process has taken this node id;
//   the store's error    when the store fails.
std::vector<ProcessRecord> Handshake(KeyValueStore& store, const ProcessRecord& self,
                                     std::chrono::milliseconds timeout);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_HANDSHAKE_H_
