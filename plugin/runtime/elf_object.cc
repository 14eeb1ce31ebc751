#include "plugin/runtime/elf_object.h"

#include <cstring>

#include "plugin/runtime/error.h"

namespace treadle {
namespace {

constexpr uint32_t kUnwindSection = 0x70000001;  // SHT_X86_64_UNWIND
constexpr uint64_t kMaxAlignment = 4096;
constexpr uint64_t kMaxSection = uint64_t{1} << 31;

template <typename... Parts>
Error Bad(const Parts&... parts) {
  return InvalidArgument("The machine code of the compiled program cannot be loaded: ", parts...);
}

template <typename T>
T ReadAt(std::string_view bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string_view Part(std::string_view bytes, uint64_t offset, uint64_t size, const char* what) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    throw Bad(what, " lies outside of the object.");
  }
  return bytes.substr(offset, size);
}

// The zero-terminated string at `offset` of a string table.
std::string_view StringAt(std::string_view table, uint64_t offset) {
  if (offset >= table.size()) throw Bad("a name lies outside of its string table.");
  const std::string_view rest = table.substr(offset);
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) throw Bad("a string table has no end.");
  return rest.substr(0, end);
}

// How many bytes a relocation writes; 0 for a type that the linker does not support.
uint32_t Width(uint32_t type) {
  switch (type) {
    case R_X86_64_64:
    case R_X86_64_PC64:
      return 8;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
    case R_X86_64_32:
    case R_X86_64_32S:
      return 4;
    default:
      return 0;
  }
}

class Parser {
 public:
  explicit Parser(std::string_view bytes) : bytes_(bytes) {}

  ElfObject Run() {
    ReadHeader();
    ReadSections();
    ReadSymbols();
    ReadRelocations();
    return std::move(object_);
  }

 private:
  void ReadHeader() {
    const auto header =
        ReadAt<Elf64_Ehdr>(Part(bytes_, 0, sizeof(Elf64_Ehdr), "the ELF header"), 0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) throw Bad("it is no ELF object.");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_machine != EM_X86_64) {
      throw Bad("it is not for x86-64.");
    }
    if (header.e_type != ET_REL) throw Bad("it is not a relocatable object.");
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0) {
      throw Bad("its section table is malformed.");
    }
    const std::string_view table = Part(
        bytes_, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), "the section table");
    for (uint32_t i = 0; i < header.e_shnum; ++i) {
      headers_.push_back(ReadAt<Elf64_Shdr>(table, i * sizeof(Elf64_Shdr)));
    }
    names_ = Contents(header.e_shstrndx, SHT_STRTAB, "the table of section names");
  }

  // The bytes of section `index`, which must be of `type`.
  std::string_view Contents(uint32_t index, uint32_t type, const char* what) const {
    if (index >= headers_.size() || headers_[index].sh_type != type) {
      throw Bad(what, " is not where it should be.");
    }
    return Part(bytes_, headers_[index].sh_offset, headers_[index].sh_size, what);
  }

  void ReadSections() {
    object_.sections.resize(headers_.size());
    for (size_t i = 0; i < headers_.size(); ++i) {
      const Elf64_Shdr& header = headers_[i];
      ElfSection& section = object_.sections[i];
      section.name = StringAt(names_, header.sh_name);
      switch (header.sh_type) {
        case SHT_INIT_ARRAY:
        case SHT_FINI_ARRAY:
        case SHT_PREINIT_ARRAY:
          throw Bad("it has constructors or destructors (section ", section.name, ").");
        case SHT_SYMTAB_SHNDX:
          throw Bad("it has too many sections.");
        default:
          break;
      }
      if (!(header.sh_flags & SHF_ALLOC)) continue;
      if (header.sh_flags & SHF_TLS)
        throw Bad("it has thread-local data (section ", section.name, ").");
      if (header.sh_flags & SHF_COMPRESSED) throw Bad("section ", section.name, " is compressed.");
      // Compiled code throws nothing, so nobody reads its unwind tables.
      if (header.sh_type == kUnwindSection || section.name == ".eh_frame" ||
          header.sh_type == SHT_NOTE) {
        continue;
      }
      if (header.sh_type != SHT_PROGBITS && header.sh_type != SHT_NOBITS) {
        throw Bad("section ", section.name, " has type ", header.sh_type, ".");
      }
      const bool code = header.sh_flags & SHF_EXECINSTR, data = header.sh_flags & SHF_WRITE;
      if (code && data) throw Bad("section ", section.name, " is both code and writable.");
      section.segment = code   ? SegmentKind::kCode
                        : data ? SegmentKind::kData
                               : SegmentKind::kReadOnly;
      section.size = header.sh_size;
      section.alignment = header.sh_addralign == 0 ? 1 : header.sh_addralign;
      if (section.alignment > kMaxAlignment || (section.alignment & (section.alignment - 1)) != 0 ||
          section.size > kMaxSection) {
        throw Bad("section ", section.name, " has size ", section.size, " and alignment ",
                  section.alignment, ".");
      }
      if (header.sh_type == SHT_PROGBITS) {
        section.contents = Part(bytes_, header.sh_offset, header.sh_size, "a section");
      }
      section.loaded = true;
    }
  }

  void ReadSymbols() {
    uint32_t table_index = 0;
    for (uint32_t i = 1; i < headers_.size(); ++i) {
      if (headers_[i].sh_type != SHT_SYMTAB) continue;
      if (table_index != 0) throw Bad("it has two symbol tables.");
      table_index = i;
    }
    if (table_index == 0) return;
    symbol_table_ = table_index;
    const std::string_view table = Contents(table_index, SHT_SYMTAB, "the symbol table");
    const std::string_view names =
        Contents(headers_[table_index].sh_link, SHT_STRTAB, "the table of symbol names");
    if (headers_[table_index].sh_entsize != sizeof(Elf64_Sym) ||
        table.size() % sizeof(Elf64_Sym) != 0) {
      throw Bad("its symbol table is malformed.");
    }
    object_.symbols.reserve(table.size() / sizeof(Elf64_Sym));
    for (uint64_t at = 0; at < table.size(); at += sizeof(Elf64_Sym)) {
      object_.symbols.push_back(ReadSymbol(ReadAt<Elf64_Sym>(table, at), names));
    }
  }

  ElfSymbol ReadSymbol(const Elf64_Sym& raw, std::string_view names) const {
    ElfSymbol symbol;
    symbol.name = StringAt(names, raw.st_name);
    symbol.value = raw.st_value;
    symbol.size = raw.st_size;
    symbol.section = raw.st_shndx;
    switch (ELF64_ST_TYPE(raw.st_info)) {
      case STT_NOTYPE:
      case STT_OBJECT:
      case STT_SECTION:
      case STT_FILE:
        break;
      case STT_FUNC:
        symbol.function = true;
        break;
      case STT_TLS:
        throw Bad("it has thread-local data (symbol ", symbol.name, ").");
      case STT_GNU_IFUNC:
        throw Bad("it has an indirect function (symbol ", symbol.name, ").");
      default:
        throw Bad("symbol ", symbol.name, " is of an unknown type.");
    }
    switch (ELF64_ST_BIND(raw.st_info)) {
      case STB_LOCAL:
        symbol.local = true;
        break;
      case STB_GLOBAL:
      case STB_WEAK:
        break;
      default:
        throw Bad("symbol ", symbol.name, " has an unknown binding.");
    }
    if (raw.st_shndx == SHN_UNDEF || raw.st_shndx == SHN_ABS) return symbol;
    if (raw.st_shndx == SHN_COMMON) throw Bad("it has a common symbol (", symbol.name, ").");
    if (raw.st_shndx >= object_.sections.size()) {
      throw Bad("symbol ", symbol.name, " is in a section that does not exist.");
    }
    const ElfSection& section = object_.sections[raw.st_shndx];
    if (section.loaded &&
        (symbol.value > section.size || symbol.size > section.size - symbol.value)) {
      throw Bad("symbol ", symbol.name, " lies outside of its section.");
    }
    return symbol;
  }

  void ReadRelocations() {
    for (size_t i = 0; i < headers_.size(); ++i) {
      const Elf64_Shdr& header = headers_[i];
      if (header.sh_type != SHT_RELA && header.sh_type != SHT_REL) continue;
      if (header.sh_info >= object_.sections.size()) throw Bad("relocations for no section.");
      const ElfSection& target = object_.sections[header.sh_info];
      if (!target.loaded) continue;
      const std::string_view table =
          Contents(static_cast<uint32_t>(i), SHT_RELA, "a relocation table (with addends)");
      if (header.sh_entsize != sizeof(Elf64_Rela) || table.size() % sizeof(Elf64_Rela) != 0 ||
          header.sh_link != symbol_table_) {
        throw Bad("a relocation table is malformed.");
      }
      for (uint64_t at = 0; at < table.size(); at += sizeof(Elf64_Rela)) {
        const auto raw = ReadAt<Elf64_Rela>(table, at);
        const auto type = static_cast<uint32_t>(ELF64_R_TYPE(raw.r_info));
        const auto symbol = static_cast<uint32_t>(ELF64_R_SYM(raw.r_info));
        if (type == R_X86_64_NONE) continue;
        const uint32_t width = Width(type);
        if (width == 0)
          throw Bad("relocation type ", type, " in ", target.name, " is not supported.");
        if (symbol >= object_.symbols.size()) throw Bad("a relocation names no symbol.");
        // Zero-initialised sections have no contents, so they take no relocations either.
        if (raw.r_offset > target.contents.size() ||
            width > target.contents.size() - raw.r_offset) {
          throw Bad("a relocation lies outside of ", target.name, ".");
        }
        object_.relocations.push_back(
            {header.sh_info, raw.r_offset, type, width, symbol, raw.r_addend});
      }
    }
  }

  std::string_view bytes_;
  std::vector<Elf64_Shdr> headers_;
  std::string_view names_;
  uint32_t symbol_table_ = 0;
  ElfObject object_;
};

}  // namespace

ElfObject ElfObject::Parse(std::string_view bytes) { return Parser(bytes).Run(); }

}  // namespace treadle
