#include "plugin/runtime/artifact.h"

#include <array>
#include <cstring>
#include <limits>

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/error.h"

namespace treadle {
namespace {

// A rank beyond this is damage: JAX's limit is 64 in places, NumPy's too.
constexpr uint32_t kMaxRank = 1024;

template <typename T>
T ReadAt(std::string_view bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The part [offset, offset + size) of `bytes`, or DATA_LOSS naming `what`.
std::string_view Part(std::string_view bytes, uint64_t offset, uint64_t size, const char* what) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    throw DataLoss("The compiled program is damaged: ", what, " lies outside of it (offset ",
                   offset, ", size ", size, ", of ", bytes.size(), " bytes).");
  }
  return bytes.substr(offset, size);
}

constexpr auto kSlices = [] {
  // Slicing by 8: table[j][b] is the checksum of byte b followed by j zero bytes.
  std::array<std::array<uint32_t, 256>, 8> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0u);
    table[0][i] = value;
  }
  for (size_t j = 1; j < 8; ++j) {
    for (size_t i = 0; i < 256; ++i) {
      const uint32_t before = table[j - 1][i];
      table[j][i] = (before >> 8) ^ table[0][before & 255];
    }
  }
  return table;
}();

// The sections of one artifact, found by kind.
class Sections {
 public:
  Sections(std::string_view bytes, uint32_t count) : bytes_(bytes) {
    const std::string_view table =
        Part(bytes, sizeof(TreadleArtifactHeader), uint64_t{count} * sizeof(TreadleSection),
             "the section table");
    for (uint32_t i = 0; i < count; ++i) {
      const auto section = ReadAt<TreadleSection>(table, i * sizeof(TreadleSection));
      if (section.offset % 64 != 0) {
        throw DataLoss("The compiled program is damaged: section ", i, " is not aligned.");
      }
      Part(bytes, section.offset, section.size, "a section");
      sections_.push_back(section);
    }
  }

  std::vector<std::string_view> All(TreadleSectionKind kind) const {
    std::vector<std::string_view> found;
    for (const TreadleSection& section : sections_) {
      if (section.kind == static_cast<uint32_t>(kind)) {
        found.push_back(bytes_.substr(section.offset, section.size));
      }
    }
    return found;
  }

  std::string_view AtMostOne(TreadleSectionKind kind, const char* what) const {
    const auto found = All(kind);
    if (found.size() > 1) {
      throw DataLoss("The compiled program is damaged: it has ", found.size(), " ", what,
                     " sections instead of one.");
    }
    return found.empty() ? std::string_view() : found[0];
  }

  std::string_view One(TreadleSectionKind kind, const char* what) const {
    const std::string_view found = AtMostOne(kind, what);
    if (found.data() == nullptr) {
      throw DataLoss("The compiled program is damaged: it has no ", what, " section.");
    }
    return found;
  }

 private:
  std::string_view bytes_;
  std::vector<TreadleSection> sections_;
};

TreadleArtifactHeader CheckHeader(std::string_view bytes, uint64_t host_features) {
  if (bytes.size() < sizeof(TreadleArtifactHeader) ||
      std::memcmp(bytes.data(), TREADLE_ARTIFACT_MAGIC, 8) != 0) {
    throw InvalidArgument("These ", bytes.size(),
                          " bytes are not a program compiled by Treadle (they do not start with "
                          "its mark).");
  }
  const auto header = ReadAt<TreadleArtifactHeader>(bytes, 0);
  // Before the checksum, whose meaning is part of the version.
  if (header.abi_version != TREADLE_ABI_VERSION) {
    throw FailedPrecondition("The program was compiled for version ", header.abi_version,
                             " of Treadle's program format; this runtime reads version ",
                             TREADLE_ABI_VERSION, ". Compile it again.");
  }
  if (header.total_size != bytes.size()) {
    throw DataLoss("The compiled program is damaged: it should have ", header.total_size,
                   " bytes and has ", bytes.size(), ".");
  }
  if (header.checksum != Crc32(bytes.substr(sizeof(TreadleArtifactHeader)))) {
    throw DataLoss("The compiled program is damaged: its checksum does not match its bytes.");
  }
  if (const uint64_t missing = header.cpu_features & ~host_features) {
    throw FailedPrecondition("The program was compiled for another CPU: this one lacks ",
                             CpuFeatureNames(missing), ". Compile it on this machine.");
  }
  return header;
}

}  // namespace

uint32_t Crc32(std::string_view bytes) {
  uint32_t crc = ~0u;
  while (bytes.size() >= 8) {
    const uint64_t word = ReadAt<uint64_t>(bytes, 0) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kSlices[7 - i][(word >> (8 * i)) & 255];
    bytes.remove_prefix(8);
  }
  for (const char byte : bytes) {
    crc = (crc >> 8) ^ kSlices[0][(crc ^ static_cast<unsigned char>(byte)) & 255];
  }
  return ~crc;
}

Artifact Artifact::Parse(std::string_view bytes, uint64_t host_features) {
  const TreadleArtifactHeader header = CheckHeader(bytes, host_features);
  const Sections sections(bytes, header.num_sections);
  const std::string_view strings = sections.One(TREADLE_SECTION_STRINGS, "strings");
  const std::string_view dims = sections.AtMostOne(TREADLE_SECTION_DIMS, "dimensions");
  const auto text = [&](TreadleString where, const char* what) {
    return Part(strings, where.offset, where.size, what);
  };

  Artifact artifact;
  const std::string_view manifest_bytes = sections.One(TREADLE_SECTION_MANIFEST, "manifest");
  artifact.manifest =
      ReadAt<TreadleManifest>(Part(manifest_bytes, 0, sizeof(TreadleManifest), "the manifest"), 0);
  const TreadleManifest& manifest = artifact.manifest;
  artifact.name = text(manifest.name, "the program's name");
  artifact.entry = text(manifest.entry, "the entry's name");
  artifact.build_id = text(manifest.build_id, "the build id");
  artifact.fingerprint = text(manifest.fingerprint, "the fingerprint");

  const std::string_view buffers = sections.One(TREADLE_SECTION_BUFFERS, "buffers");
  const uint64_t count = uint64_t{manifest.num_inputs} + manifest.num_outputs;
  if (buffers.size() != count * sizeof(TreadleBufferDesc)) {
    throw DataLoss("The compiled program is damaged: its buffer table does not hold the ", count,
                   " buffers that its manifest names.");
  }
  // The table was found to hold `count` descriptions, so these are sizes of memory that exists.
  artifact.inputs.reserve(manifest.num_inputs);
  artifact.outputs.reserve(manifest.num_outputs);
  std::vector<bool> aliased(manifest.num_inputs);
  for (uint64_t i = 0; i < count; ++i) {
    const auto raw = ReadAt<TreadleBufferDesc>(buffers, i * sizeof(TreadleBufferDesc));
    const bool is_input = i < manifest.num_inputs;
    if (raw.rank > kMaxRank || raw.dims > std::numeric_limits<uint64_t>::max() / 16) {
      throw DataLoss("The compiled program is damaged: buffer ", i, " has rank ", raw.rank, ".");
    }
    const std::string_view own_dims =
        Part(dims, raw.dims * sizeof(int64_t), raw.rank * sizeof(int64_t), "a buffer's shape");
    BufferDesc desc{raw.element_type, std::vector<int64_t>(raw.rank),
                    raw.byte_size,    raw.alias,
                    raw.flags,        text(raw.sharding, "a buffer's sharding")};
    if (raw.rank > 0) std::memcpy(desc.dims.data(), own_dims.data(), own_dims.size());
    for (const int64_t dim : desc.dims) {
      if (dim < 0)
        throw DataLoss("The compiled program is damaged: buffer ", i, " has a size of ", dim, ".");
    }
    if (is_input) {
      artifact.inputs.push_back(std::move(desc));
      continue;
    }
    if (raw.alias != -1) {
      if (raw.alias < 0 || static_cast<uint32_t>(raw.alias) >= manifest.num_inputs ||
          artifact.inputs[static_cast<size_t>(raw.alias)].byte_size != raw.byte_size ||
          aliased[static_cast<size_t>(raw.alias)]) {
        throw DataLoss("The compiled program is damaged: output ", i - manifest.num_inputs,
                       " shares the memory of input ", raw.alias, ", which cannot be.");
      }
      aliased[static_cast<size_t>(raw.alias)] = true;
    }
    artifact.outputs.push_back(std::move(desc));
  }

  artifact.objects = sections.All(TREADLE_SECTION_OBJECT);
  artifact.constants = sections.AtMostOne(TREADLE_SECTION_CONSTANTS, "constants");
  artifact.program = sections.AtMostOne(TREADLE_SECTION_PROGRAM, "program");
  const std::string_view devices = sections.AtMostOne(TREADLE_SECTION_DEVICES, "devices");
  const uint64_t instances = uint64_t{manifest.num_replicas} * manifest.num_partitions;
  if (instances == 0 || (!devices.empty() && (devices.size() % sizeof(int32_t) != 0 ||
                                              devices.size() / sizeof(int32_t) != instances))) {
    throw DataLoss("The compiled program is damaged: its device assignment does not fit ",
                   manifest.num_replicas, " replicas of ", manifest.num_partitions, " partitions.");
  }
  artifact.device_assignment.resize(devices.size() / sizeof(int32_t));
  if (!devices.empty()) {
    std::memcpy(artifact.device_assignment.data(), devices.data(), devices.size());
  }
  return artifact;
}

}  // namespace treadle
