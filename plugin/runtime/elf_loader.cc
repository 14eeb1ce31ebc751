#include "plugin/runtime/elf_loader.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <utility>

#include "plugin/runtime/elf_object.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/symbols.h"

namespace treadle {
namespace {

// Functions and constants start on a cache line, as vector constants must and hot loops should.
constexpr uint64_t kSectionAlignment = 64;
// A PC-relative operand reaches 2 GB; the whole image must lie within that.
constexpr uint64_t kMaxImage = uint64_t{1} << 31;
constexpr uint64_t kStubSize = 16;

uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

template <typename... Parts>
Error Bad(const Parts&... parts) {
  return InvalidArgument("The machine code of the compiled program cannot be linked: ", parts...);
}

bool UsesGot(uint32_t type) {
  return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
}

}  // namespace

// Links in four steps: bind names, lay out, copy, relocate. A symbol's address is known when its
// section's is, so everything before `Map` works with section numbers.
class Linker {
 public:
  explicit Linker(std::span<const std::string_view> objects) {
    for (const std::string_view bytes : objects) objects_.push_back(ElfObject::Parse(bytes));
  }

  CodeImage Run() {
    BindNames();
    FindIndirections();
    LayOut();
    Map();
    Copy();
    Relocate();
    Publish();
    Protect();
    return std::move(image_);
  }

 private:
  struct Definition {
    size_t object;
    uint32_t symbol;
  };
  struct Segment {
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  static bool Defines(const ElfObject& object, const ElfSymbol& symbol) {
    return symbol.section == SHN_ABS ||
           (symbol.section != SHN_UNDEF && object.sections[symbol.section].loaded);
  }

  void BindNames() {
    for (size_t i = 0; i < objects_.size(); ++i) {
      for (uint32_t j = 0; j < objects_[i].symbols.size(); ++j) {
        const ElfSymbol& symbol = objects_[i].symbols[j];
        if (!symbol.local && Defines(objects_[i], symbol))
          globals_.try_emplace(symbol.name, Definition{i, j});
      }
    }
  }

  // What a symbol index of an object refers to: a definition in some object, or (nullptr) a
  // function of the runtime at `external`.
  struct Target {
    const ElfObject* object;
    const ElfSymbol* symbol;
    size_t object_index;
    void* external;
  };

  Target Resolve(size_t object_index, uint32_t symbol_index) const {
    const ElfObject& object = objects_[object_index];
    const ElfSymbol& symbol = object.symbols[symbol_index];
    if (symbol.local) {
      if (!Defines(object, symbol)) throw Bad("local symbol '", symbol.name, "' is undefined.");
      return {&object, &symbol, object_index, nullptr};
    }
    if (const auto found = globals_.find(symbol.name); found != globals_.end()) {
      const ElfObject& owner = objects_[found->second.object];
      return {&owner, &owner.symbols[found->second.symbol], found->second.object, nullptr};
    }
    if (void* address = FindRuntimeSymbol(symbol.name)) return {nullptr, nullptr, 0, address};
    throw Bad("it calls '", symbol.name, "', which the runtime does not offer.");
  }

  // Gives every runtime function a GOT slot, plus a stub if it is reached by a 32-bit displacement
  // (the image may lie farther than 2 GB from this library), and every symbol that is loaded
  // through the GOT a slot.
  void FindIndirections() {
    for (size_t i = 0; i < objects_.size(); ++i) {
      for (const ElfRelocation& relocation : objects_[i].relocations) {
        const Target target = Resolve(i, relocation.symbol);
        const bool got = UsesGot(relocation.type);
        const bool stub = target.external != nullptr && !got && relocation.width == 4;
        if (!got && !stub) continue;
        const Key key = KeyOf(target);
        slots_.try_emplace(key, slots_.size());
        if (stub) stubs_.try_emplace(key, stubs_.size());
      }
    }
  }

  void LayOut() {
    for (const ElfObject& object : objects_) offsets_.emplace_back(object.sections.size());
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    uint64_t at = 0;
    const auto reserve = [&at](uint64_t size, uint64_t alignment) {
      const uint64_t start = AlignUp(at, alignment);
      at = start + size;
      if (at > kMaxImage) throw Bad("it is larger than 2 GB.");
      return start;
    };
    for (const SegmentKind kind :
         {SegmentKind::kCode, SegmentKind::kReadOnly, SegmentKind::kData}) {
      Segment& segment = segments_[static_cast<size_t>(kind)];
      segment.offset = at = AlignUp(at, page);
      for (size_t i = 0; i < objects_.size(); ++i) {
        for (size_t j = 0; j < objects_[i].sections.size(); ++j) {
          const ElfSection& section = objects_[i].sections[j];
          if (!section.loaded || section.segment != kind) continue;
          offsets_[i][j] = reserve(section.size, std::max(section.alignment, kSectionAlignment));
        }
      }
      if (kind == SegmentKind::kCode) stubs_offset_ = reserve(stubs_.size() * kStubSize, kStubSize);
      if (kind == SegmentKind::kReadOnly)
        got_offset_ = reserve(slots_.size() * sizeof(uint64_t), 8);
      segment.size = at - segment.offset;
    }
    image_.size_ = std::max(AlignUp(at, page), page);
  }

  void Map() {
    void* base =
        mmap(nullptr, image_.size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
      throw ResourceExhausted("Cannot map ", image_.size_,
                              " bytes for the machine code of a program.");
    }
    image_.base_ = base;
    base_ = static_cast<char*>(base);
  }

  void Copy() {
    for (size_t i = 0; i < objects_.size(); ++i) {
      for (size_t j = 0; j < objects_[i].sections.size(); ++j) {
        const ElfSection& section = objects_[i].sections[j];
        if (section.loaded && !section.contents.empty()) {
          std::memcpy(base_ + offsets_[i][j], section.contents.data(), section.contents.size());
        }
      }
    }
    for (const auto& [key, slot] : slots_) {
      const uint64_t address = key.external != nullptr ? reinterpret_cast<uint64_t>(key.external)
                                                       : AddressOf(key.object, *key.symbol);
      std::memcpy(base_ + got_offset_ + slot * 8, &address, sizeof address);
    }
    for (const auto& [key, index] : stubs_) {
      const uint64_t at = stubs_offset_ + index * kStubSize;
      const uint64_t slot = got_offset_ + slots_.at(key) * 8;
      unsigned char code[kStubSize];
      std::memset(code, 0xCC, sizeof code);
      code[0] = 0xFF;  // jmp *displacement(%rip)
      code[1] = 0x25;
      const auto displacement = static_cast<int32_t>(slot - (at + 6));
      std::memcpy(code + 2, &displacement, sizeof displacement);
      std::memcpy(base_ + at, code, sizeof code);
    }
  }

  void Relocate() {
    for (size_t i = 0; i < objects_.size(); ++i) {
      for (const ElfRelocation& relocation : objects_[i].relocations) Apply(i, relocation);
    }
  }

  // The names of the psABI: S symbol, A addend, P place, G + GOT the slot.
  void Apply(size_t object_index, const ElfRelocation& relocation) {
    const Target target = Resolve(object_index, relocation.symbol);
    char* place = base_ + offsets_[object_index][relocation.section] + relocation.offset;
    const auto p = reinterpret_cast<uint64_t>(place);
    const auto a = static_cast<uint64_t>(relocation.addend);
    uint64_t s;
    if (UsesGot(relocation.type)) {
      s = reinterpret_cast<uint64_t>(base_) + got_offset_ + slots_.at(KeyOf(target)) * 8;
    } else if (target.external == nullptr) {
      s = AddressOf(target.object_index, *target.symbol);
    } else if (relocation.width == 4) {
      s = reinterpret_cast<uint64_t>(base_) + stubs_offset_ + stubs_.at(KeyOf(target)) * kStubSize;
    } else {
      s = reinterpret_cast<uint64_t>(target.external);
    }
    const auto refuse_unless = [&](bool fits) {
      if (!fits) {
        throw Bad("relocation type ", relocation.type, " against '",
                  objects_[object_index].symbols[relocation.symbol].name,
                  "' does not reach its target; compile position-independent code.");
      }
    };
    switch (relocation.type) {
      case R_X86_64_64: {
        const uint64_t value = s + a;
        std::memcpy(place, &value, sizeof value);
        return;
      }
      case R_X86_64_PC64: {
        const uint64_t value = s + a - p;
        std::memcpy(place, &value, sizeof value);
        return;
      }
      case R_X86_64_32: {
        const uint64_t value = s + a;
        refuse_unless(value <= std::numeric_limits<uint32_t>::max());
        const auto narrow = static_cast<uint32_t>(value);
        std::memcpy(place, &narrow, sizeof narrow);
        return;
      }
      default: {
        // 32S, and everything that is relative to the place.
        const auto value = static_cast<int64_t>(s + a - (relocation.type == R_X86_64_32S ? 0 : p));
        refuse_unless(value >= std::numeric_limits<int32_t>::min() &&
                      value <= std::numeric_limits<int32_t>::max());
        const auto narrow = static_cast<int32_t>(value);
        std::memcpy(place, &narrow, sizeof narrow);
        return;
      }
    }
  }

  void Publish() {
    for (const auto& [name, definition] : globals_) {
      const ElfSymbol& symbol = objects_[definition.object].symbols[definition.symbol];
      if (IsCode(definition.object, symbol)) {
        image_.symbols_.emplace(name,
                                reinterpret_cast<void*>(AddressOf(definition.object, symbol)));
      }
    }
    for (size_t i = 0; i < objects_.size(); ++i) {
      for (const ElfSymbol& symbol : objects_[i].symbols) {
        if (!symbol.function || !IsCode(i, symbol)) continue;
        image_.functions_.push_back({std::string(symbol.name), AddressOf(i, symbol), symbol.size});
      }
    }
  }

  bool IsCode(size_t object, const ElfSymbol& symbol) const {
    if (symbol.section == SHN_UNDEF || symbol.section == SHN_ABS) return false;
    const ElfSection& section = objects_[object].sections[symbol.section];
    return section.loaded && section.segment == SegmentKind::kCode && symbol.value < section.size;
  }

  void Protect() {
    const auto protect = [&](SegmentKind kind, int protection) {
      const Segment& segment = segments_[static_cast<size_t>(kind)];
      if (segment.size == 0) return;
      if (mprotect(base_ + segment.offset, segment.size, protection) != 0) {
        throw FailedPrecondition("The system refuses to make the machine code of a program ",
                                 protection & PROT_EXEC ? "executable" : "read-only",
                                 "; its security policy may forbid code that is made at run time.");
      }
    };
    protect(SegmentKind::kCode, PROT_READ | PROT_EXEC);
    protect(SegmentKind::kReadOnly, PROT_READ);
  }

  uint64_t AddressOf(size_t object, const ElfSymbol& symbol) const {
    if (symbol.section == SHN_ABS) return symbol.value;
    return reinterpret_cast<uint64_t>(base_) + offsets_[object][symbol.section] + symbol.value;
  }

  // Identifies what a GOT slot or a stub is for.
  struct Key {
    void* external;
    size_t object;
    const ElfSymbol* symbol;
    auto operator<=>(const Key&) const = default;
  };
  static Key KeyOf(const Target& target) {
    return {target.external, target.object_index, target.symbol};
  }

  std::vector<ElfObject> objects_;
  std::unordered_map<std::string_view, Definition> globals_;
  std::map<Key, uint64_t> slots_, stubs_;       // indices of GOT slots and of call stubs
  std::vector<std::vector<uint64_t>> offsets_;  // of object and section, in the image
  std::array<Segment, 3> segments_;
  uint64_t stubs_offset_ = 0, got_offset_ = 0;
  char* base_ = nullptr;
  CodeImage image_;
};

CodeImage::~CodeImage() {
  if (base_ != nullptr) munmap(base_, size_);
}

CodeImage::CodeImage(CodeImage&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      symbols_(std::move(other.symbols_)),
      functions_(std::move(other.functions_)) {}

CodeImage& CodeImage::operator=(CodeImage&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(symbols_, other.symbols_);
  std::swap(functions_, other.functions_);
  return *this;
}

CodeImage CodeImage::Link(std::span<const std::string_view> objects) {
  return Linker(objects).Run();
}

void* CodeImage::Find(std::string_view symbol) const {
  const auto found = symbols_.find(std::string(symbol));
  return found == symbols_.end() ? nullptr : found->second;
}

}  // namespace treadle
