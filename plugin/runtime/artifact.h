// Reads the bytes that the compiler returns (program_abi.h, part 2). Nothing in them is trusted:
// every offset, size and index is checked before it is used, so damaged or hostile bytes are an
// error and never a crash.
#ifndef TREADLE_PLUGIN_RUNTIME_ARTIFACT_H_
#define TREADLE_PLUGIN_RUNTIME_ARTIFACT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/runtime/program_abi.h"

namespace treadle {

struct BufferDesc {
  uint32_t element_type;  // a PJRT_Buffer_Type
  std::vector<int64_t> dims;
  uint64_t byte_size;
  int32_t alias;   // outputs: the input whose memory this one shares, or -1
  uint32_t flags;  // TreadleBufferFlags
  std::string_view sharding;
};

// The views point into the bytes that were parsed.
struct Artifact {
  // Throws INVALID_ARGUMENT when the bytes are no artifact, DATA_LOSS when they are a damaged one,
  // FAILED_PRECONDITION when they are one of another ABI version or need CPU features that are not
  // in `host_features`.
  static Artifact Parse(std::string_view bytes, uint64_t host_features);

  TreadleManifest manifest;
  std::string_view name, entry, build_id, fingerprint;
  std::vector<BufferDesc> inputs, outputs;
  std::vector<std::string_view> objects;
  std::string_view constants;
  std::string_view program;
  std::vector<int32_t> device_assignment;
};

// CRC-32 with zlib's polynomial.
uint32_t Crc32(std::string_view bytes);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_ARTIFACT_H_
