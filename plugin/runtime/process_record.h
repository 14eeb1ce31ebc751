// What a process of a distributed program publishes about itself.
#ifndef TREADLE_PLUGIN_RUNTIME_PROCESS_RECORD_H_
#define TREADLE_PLUGIN_RUNTIME_PROCESS_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace treadle {

// The format is text. Its first line, "treadle-process <format> <Treadle's version>", is the same
// in all formats to come, so that processes of different versions can at least tell each other so.
// In format 1 the lines "<name>=<value>" follow; names that a reader does not know are skipped.
struct ProcessRecord {
  static constexpr int kFormat = 1;

  int node_id = 0;
  int num_nodes = 0;
  int num_devices = 0;
  std::string treadle_version;
  int pjrt_major = 0, pjrt_minor = 0;
  std::string compiler_build_id;  // empty: not known
  uint64_t cpu_features = 0;      // may differ: programs are compiled where they run
  std::string host;
  int64_t pid = 0;
  std::string nonce;  // of this attempt to join: tells it from every other one

  // The record of this process, with everything that can be found out here, and a new nonce.
  static ProcessRecord OfThisProcess();

  std::string Serialize() const;

  // "Treadle 0.1.0, PJRT 0.114, compiler 0123456789abcdef": what has to be equal everywhere.
  std::string Software() const;
  // "host node-7, pid 123"
  std::string Whereabouts() const;
};

// What came of reading a record: the record, or why there is none, in words such as "a record of
// format 2, from Treadle 0.9.0, which this version cannot read".
struct ParsedRecord {
  bool good = false;
  ProcessRecord record;
  std::string problem;
};
ParsedRecord ParseProcessRecord(std::string_view bytes);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_PROCESS_RECORD_H_
