// One relocatable ELF object, parsed. Nothing in its bytes is trusted: whatever the linker reads
// from here has been bounds-checked.
#ifndef TREADLE_PLUGIN_RUNTIME_ELF_OBJECT_H_
#define TREADLE_PLUGIN_RUNTIME_ELF_OBJECT_H_

#include <elf.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace treadle {

// The three kinds of memory that a section can need, in the order in which the linker lays them
// out.
enum class SegmentKind { kCode, kReadOnly, kData };

struct ElfSection {
  std::string_view name;
  std::string_view contents;  // empty for zero-initialised sections
  uint64_t size = 0;
  uint64_t alignment = 1;
  SegmentKind segment = SegmentKind::kData;
  bool loaded = false;  // false: not part of the program at run time
};

struct ElfSymbol {
  std::string_view name;
  uint64_t value = 0;  // offset in its section, or the value of an absolute symbol
  uint64_t size = 0;
  uint32_t section = 0;  // SHN_UNDEF, SHN_ABS or an index into `sections`
  bool local = false;
  bool function = false;
};

struct ElfRelocation {
  uint32_t section;  // where it applies; a loaded section with contents
  uint64_t offset;   // in that section; its `width` bytes are inside
  uint32_t type;     // R_X86_64_*
  uint32_t width;
  uint32_t symbol;  // index into `symbols`
  int64_t addend;
};

struct ElfObject {
  // Throws INVALID_ARGUMENT: the object is damaged, or it uses a feature that compiled programs do
  // not have, which is named.
  static ElfObject Parse(std::string_view bytes);

  std::vector<ElfSection> sections;  // by the object's own index
  std::vector<ElfSymbol> symbols;
  std::vector<ElfRelocation> relocations;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_ELF_OBJECT_H_
