#include "tests/runtime/artifact_builder.h"

#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "plugin/runtime/artifact.h"

namespace treadle {
namespace {

template <typename T>
std::string Bytes(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

void Pad(std::string& bytes, size_t alignment) {
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment, '\0');
}

}  // namespace

std::string ArtifactBuilder::Build() const {
  std::string strings, dims, buffers;
  const auto intern = [&](const std::string& text) {
    const TreadleString where{static_cast<uint32_t>(strings.size()),
                              static_cast<uint32_t>(text.size())};
    strings += text;
    return where;
  };
  uint64_t num_dims = 0;
  for (const auto* list : {&inputs, &outputs}) {
    for (const Buffer& buffer : *list) {
      TreadleBufferDesc desc{};
      desc.element_type = 11;
      desc.rank = static_cast<uint32_t>(buffer.dims.size());
      desc.dims = num_dims;
      desc.byte_size = sizeof(float);
      for (const int64_t dim : buffer.dims) {
        dims += Bytes(dim);
        desc.byte_size *= static_cast<uint64_t>(dim);
      }
      num_dims += buffer.dims.size();
      desc.alias = buffer.alias;
      desc.flags = buffer.flags;
      desc.sharding = intern(buffer.sharding);
      buffers += Bytes(desc);
    }
  }
  TreadleManifest manifest{};
  manifest.num_inputs = static_cast<uint32_t>(inputs.size());
  manifest.num_outputs = static_cast<uint32_t>(outputs.size());
  manifest.num_replicas = num_replicas;
  manifest.num_partitions = num_partitions;
  manifest.scratch_bytes = scratch_bytes;
  manifest.name = intern(name);
  manifest.entry = intern(entry);
  manifest.build_id = intern(build_id);
  manifest.fingerprint = intern(fingerprint);

  std::vector<std::pair<uint32_t, std::string>> sections = {
      {TREADLE_SECTION_MANIFEST, Bytes(manifest)},
      {TREADLE_SECTION_BUFFERS, buffers},
      {TREADLE_SECTION_DIMS, dims},
      {TREADLE_SECTION_STRINGS, strings},
  };
  for (const std::string& object : objects) sections.emplace_back(TREADLE_SECTION_OBJECT, object);
  if (!constants.empty()) sections.emplace_back(TREADLE_SECTION_CONSTANTS, constants);
  if (!program.empty()) sections.emplace_back(TREADLE_SECTION_PROGRAM, program);
  if (!devices.empty()) {
    std::string bytes;
    for (const int32_t device : devices) bytes += Bytes(device);
    sections.emplace_back(TREADLE_SECTION_DEVICES, bytes);
  }
  sections.insert(sections.end(), more_sections.begin(), more_sections.end());

  TreadleArtifactHeader header{};
  std::memcpy(header.magic, TREADLE_ARTIFACT_MAGIC, sizeof header.magic);
  header.abi_version = TREADLE_ABI_VERSION;
  header.num_sections = static_cast<uint32_t>(sections.size());
  header.cpu_features = cpu_features;
  std::string table, body;
  const size_t start = (sizeof header + sections.size() * sizeof(TreadleSection) + 63) / 64 * 64;
  for (const auto& [kind, contents] : sections) {
    table += Bytes(TreadleSection{kind, 0, start + body.size(), contents.size()});
    body += contents;
    Pad(body, 64);
  }
  std::string artifact = Bytes(header) + table;
  artifact.resize(start, '\0');
  return Sealed(artifact + body);
}

std::string Sealed(std::string artifact) {
  TreadleArtifactHeader header;
  std::memcpy(&header, artifact.data(), sizeof header);
  header.total_size = artifact.size();
  header.checksum = Crc32(std::string_view(artifact).substr(sizeof header));
  std::memcpy(artifact.data(), &header, sizeof header);
  return artifact;
}

std::string HandwrittenObject() {
  const char* path = std::getenv("TREADLE_TEST_OBJECT");
  std::ifstream file(path == nullptr ? "" : path, std::ios::binary);
  if (!file) throw std::runtime_error("TREADLE_TEST_OBJECT names no file");
  return std::string(std::istreambuf_iterator<char>(file), {});
}

ObjectBuilder ObjectBuilder::WithEntry(size_t size) {
  ObjectBuilder object;
  object.sections.push_back(
      {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, std::string(size, '\xC3')});
  object.symbols.push_back({"entry", STT_FUNC, STB_GLOBAL, 1, 0, size});
  return object;
}

std::string ObjectBuilder::Build() const {
  // null | sections | one .rela per section that needs it | .symtab | .strtab | .shstrtab
  std::string names(1, '\0'), symbol_names(1, '\0'), symbol_table = Bytes(Elf64_Sym{});
  std::vector<Elf64_Shdr> headers(1);
  std::string body;
  const auto add = [&](const std::string& name, uint32_t type, uint64_t flags,
                       const std::string& contents, uint64_t alignment) {
    Elf64_Shdr header{};
    header.sh_name = static_cast<uint32_t>(names.size());
    names += name + '\0';
    header.sh_type = type;
    header.sh_flags = flags;
    Pad(body, 64);
    header.sh_offset = sizeof(Elf64_Ehdr) + body.size();
    header.sh_size = contents.size();
    header.sh_addralign = alignment;
    if (type != SHT_NOBITS) body += contents;
    headers.push_back(header);
    return headers.size() - 1;
  };
  for (const Section& section : sections) {
    add(section.name, section.type, section.flags, section.contents, section.alignment);
  }
  std::map<uint16_t, std::string> tables;
  for (const Relocation& relocation : relocations) {
    tables[relocation.section] += Bytes(
        Elf64_Rela{relocation.offset, ELF64_R_INFO(uint64_t{relocation.symbol}, relocation.type),
                   relocation.addend});
  }
  const auto symtab = static_cast<uint32_t>(headers.size() + tables.size());
  for (const auto& [section, contents] : tables) {
    const size_t at = add(".rela", SHT_RELA, 0, contents, 8);
    headers[at].sh_info = section;
    headers[at].sh_link = symtab;
    headers[at].sh_entsize = sizeof(Elf64_Rela);
  }
  for (const Symbol& symbol : symbols) {
    Elf64_Sym raw{};
    raw.st_name = static_cast<uint32_t>(symbol_names.size());
    symbol_names += symbol.name + '\0';
    raw.st_info = static_cast<unsigned char>(ELF64_ST_INFO(symbol.binding, symbol.type));
    raw.st_shndx = symbol.section;
    raw.st_value = symbol.value;
    raw.st_size = symbol.size;
    symbol_table += Bytes(raw);
  }
  add(".symtab", SHT_SYMTAB, 0, symbol_table, 8);
  headers[symtab].sh_link = symtab + 1;
  headers[symtab].sh_entsize = sizeof(Elf64_Sym);
  add(".strtab", SHT_STRTAB, 0, symbol_names, 1);
  names += ".shstrtab" + std::string(1, '\0');
  const size_t shstrtab = add("", SHT_STRTAB, 0, names + std::string(1, '\0'), 1);
  Pad(body, 64);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(headers.size());
  header.e_shstrndx = static_cast<uint16_t>(shstrtab);
  header.e_shoff = sizeof header + body.size();
  std::string bytes = Bytes(header) + body;
  for (const Elf64_Shdr& section : headers) bytes += Bytes(section);
  return bytes;
}

}  // namespace treadle
