// Makes artifacts, right ones and damaged ones, for the tests of the runtime.
#ifndef TREADLE_TESTS_RUNTIME_ARTIFACT_BUILDER_H_
#define TREADLE_TESTS_RUNTIME_ARTIFACT_BUILDER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugin/runtime/program_abi.h"

namespace treadle {

// A program of f32 buffers. Change the members, then call Build.
struct ArtifactBuilder {
  struct Buffer {
    std::vector<int64_t> dims;
    int32_t alias = -1;
    uint32_t flags = 0;
    std::string sharding = {};
  };

  std::string name = "test", entry = "entry", build_id = "by hand", fingerprint = "f00d";
  std::vector<Buffer> inputs, outputs;
  std::vector<std::string> objects;
  std::string constants, program;
  std::vector<int32_t> devices;
  uint64_t scratch_bytes = 0, cpu_features = 0;
  uint32_t num_replicas = 1, num_partitions = 1;
  std::vector<std::pair<uint32_t, std::string>> more_sections;

  std::string Build() const;
};

// The bytes with a header that fits them: size and checksum. For artifacts that were damaged behind
// their header.
std::string Sealed(std::string artifact);

// The object of saxpy_program.c, from the file that TREADLE_TEST_OBJECT names.
std::string HandwrittenObject();

// A well-formed ELF object with the sections, symbols and relocations of the test's choice; text is
// `ret` padded to 64 bytes.
struct ObjectBuilder {
  struct Section {
    std::string name;
    uint32_t type;
    uint64_t flags;
    std::string contents;
    uint64_t alignment = 16;
  };
  struct Symbol {
    std::string name;
    uint8_t type, binding;
    uint16_t section;  // from 1, in the order of `sections`; 0 is undefined
    uint64_t value = 0, size = 0;
  };
  struct Relocation {
    uint16_t section;
    uint64_t offset;
    uint32_t type, symbol;  // symbols from 1
    int64_t addend;
  };

  std::vector<Section> sections;
  std::vector<Symbol> symbols;
  std::vector<Relocation> relocations;

  // A text section (1) of `size` bytes of `ret` with a global function `entry` (symbol 1) at its
  // start.
  static ObjectBuilder WithEntry(size_t size = 64);
  std::string Build() const;
};

}  // namespace treadle

#endif  // TREADLE_TESTS_RUNTIME_ARTIFACT_BUILDER_H_
