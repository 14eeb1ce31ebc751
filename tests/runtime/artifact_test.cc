// The artifact parser: what it reads, what it refuses, and that no damage crashes it.
#include "plugin/runtime/artifact.h"

#include <cstring>
#include <random>

#include "plugin/runtime/cpu_features.h"
#include "tests/cc/check.h"
#include "tests/runtime/artifact_builder.h"

namespace treadle {
namespace {

ArtifactBuilder Example() {
  ArtifactBuilder builder;
  builder.inputs = {{{2, 3}}, {{6}, -1, TREADLE_BUFFER_DONATED}};
  builder.outputs = {{{6}, 1}, {{}, -1, 0, "sharding bytes"}};
  builder.objects = {"first", "second"};
  builder.constants = "constants";
  builder.program = "MLIR";
  builder.devices = {3, 1};
  builder.num_replicas = 2;
  return builder;
}

Artifact Parse(const std::string& bytes) { return Artifact::Parse(bytes, HostCpuFeatures()); }

TEST(ReadsEverything) {
  const std::string bytes = Example().Build();
  const Artifact artifact = Parse(bytes);
  CHECK_EQ(artifact.name, "test");
  CHECK_EQ(artifact.entry, "entry");
  CHECK_EQ(artifact.build_id, "by hand");
  CHECK_EQ(artifact.fingerprint, "f00d");
  CHECK_EQ(artifact.inputs.size(), 2u);
  CHECK(artifact.inputs[0].dims == std::vector<int64_t>({2, 3}));
  CHECK_EQ(artifact.inputs[0].byte_size, 24u);
  CHECK_EQ(artifact.inputs[1].flags, uint32_t{TREADLE_BUFFER_DONATED});
  CHECK_EQ(artifact.outputs.size(), 2u);
  CHECK_EQ(artifact.outputs[0].alias, 1);
  CHECK_EQ(artifact.outputs[1].alias, -1);
  CHECK(artifact.outputs[1].dims.empty());
  CHECK_EQ(artifact.outputs[1].sharding, "sharding bytes");
  CHECK_EQ(artifact.objects.size(), 2u);
  CHECK_EQ(artifact.objects[1], "second");
  CHECK_EQ(artifact.constants, "constants");
  CHECK_EQ(artifact.program, "MLIR");
  CHECK(artifact.device_assignment == std::vector<int32_t>({3, 1}));
}

TEST(ChecksumIsZlibs) {
  // zlib.crc32(b"123456789"), the check value of the polynomial.
  CHECK_EQ(Crc32("123456789"), 0xCBF43926u);
  CHECK_EQ(Crc32(""), 0u);
  CHECK_EQ(Crc32(std::string(1000, 'x')), 0x3B41C9E6u);
}

TEST(RefusesWhatIsNoArtifact) {
  CHECK_ERROR(Parse(""), kInvalidArgument, "0 bytes are not a program");
  CHECK_ERROR(Parse("ML\xefR bytecode or something like it, longer than a header"),
              kInvalidArgument, "not a program");
}

TEST(RefusesDamage) {
  std::string bytes = Example().Build();
  CHECK_ERROR(Parse(bytes.substr(0, bytes.size() - 1)), kDataLoss, "should have");
  bytes[bytes.size() / 2] ^= 1;
  CHECK_ERROR(Parse(bytes), kDataLoss, "checksum");
}

TEST(RefusesOtherVersionsAndCpus) {
  std::string bytes = Example().Build();
  const uint32_t version = TREADLE_ABI_VERSION + 1;
  std::memcpy(bytes.data() + 8, &version, sizeof version);
  CHECK_ERROR(Parse(bytes), kFailedPrecondition, "Compile it again");

  ArtifactBuilder foreign = Example();
  foreign.cpu_features = uint64_t{1} << TREADLE_CPU_AVX512FP16 | uint64_t{1} << TREADLE_CPU_AVX2;
  CHECK_ERROR(Artifact::Parse(foreign.Build(), uint64_t{1} << TREADLE_CPU_AVX2),
              kFailedPrecondition, "lacks avx512fp16.");
  foreign.cpu_features = uint64_t{1} << 63;
  CHECK_ERROR(Parse(foreign.Build()), kFailedPrecondition, "lacks bit 63");
}

TEST(RefusesContradictions) {
  ArtifactBuilder builder = Example();
  builder.outputs[0].alias = 2;
  CHECK_ERROR(Parse(builder.Build()), kDataLoss, "output 0 shares the memory of input 2");
  builder.outputs[0].alias = -2;
  CHECK_ERROR(Parse(builder.Build()), kDataLoss, "input -2");
  builder.outputs = {{{6}, 1}, {{6}, 1}};
  CHECK_ERROR(Parse(builder.Build()), kDataLoss, "output 1 shares the memory of input 1");
  builder.outputs = {{{7}, 1}};
  CHECK_ERROR(Parse(builder.Build()), kDataLoss, "output 0 shares");

  builder = Example();
  builder.devices = {1, 2, 3};
  CHECK_ERROR(Parse(builder.Build()), kDataLoss, "device assignment");
  builder = Example();
  builder.num_partitions = 0;
  CHECK_ERROR(Parse(builder.Build()), kDataLoss, "0 partitions");
  builder = Example();
  builder.inputs[0].dims = {-1};
  CHECK_ERROR(Parse(builder.Build()), kDataLoss, "has a size of -1");
  builder = Example();
  builder.more_sections = {{TREADLE_SECTION_STRINGS, "again"}};
  CHECK_ERROR(Parse(builder.Build()), kDataLoss, "2 strings sections");
}

// Overwrites one field of a section of the sealed example.
template <typename T>
std::string With(uint32_t kind, size_t offset, T value) {
  std::string bytes = Example().Build();
  for (size_t i = 0;; ++i) {
    TreadleSection section;
    const size_t at = sizeof(TreadleArtifactHeader) + i * sizeof section;
    std::memcpy(&section, bytes.data() + at, sizeof section);
    if (section.kind != kind) continue;
    std::memcpy(bytes.data() + section.offset + offset, &value, sizeof value);
    return Sealed(bytes);
  }
}

TEST(RefusesWildOffsets) {
  constexpr uint64_t kHuge = ~uint64_t{0} - 63;
  for (const uint64_t offset : {kHuge, uint64_t{1} << 20}) {
    std::string bytes = Example().Build();
    std::memcpy(bytes.data() + sizeof(TreadleArtifactHeader) + offsetof(TreadleSection, offset),
                &offset, sizeof offset);
    CHECK_ERROR(Parse(Sealed(bytes)), kDataLoss, "lies outside");
  }
  std::string bytes = Example().Build();
  const uint32_t sections = ~0u;
  std::memcpy(bytes.data() + offsetof(TreadleArtifactHeader, num_sections), &sections,
              sizeof sections);
  CHECK_ERROR(Parse(Sealed(bytes)), kDataLoss, "section table lies outside");

  CHECK_ERROR(Parse(With(TREADLE_SECTION_BUFFERS, offsetof(TreadleBufferDesc, dims), ~uint64_t{0})),
              kDataLoss, "buffer 0");
  CHECK_ERROR(
      Parse(With(TREADLE_SECTION_BUFFERS, offsetof(TreadleBufferDesc, dims), uint64_t{100})),
      kDataLoss, "shape lies outside");
  CHECK_ERROR(Parse(With(TREADLE_SECTION_BUFFERS, offsetof(TreadleBufferDesc, rank), ~0u)),
              kDataLoss, "has rank");
  CHECK_ERROR(Parse(With(TREADLE_SECTION_BUFFERS, offsetof(TreadleBufferDesc, sharding), ~0u)),
              kDataLoss, "sharding lies outside");
  CHECK_ERROR(Parse(With(TREADLE_SECTION_MANIFEST, offsetof(TreadleManifest, num_inputs), ~0u)),
              kDataLoss, "buffer table");
  CHECK_ERROR(Parse(With(TREADLE_SECTION_MANIFEST, offsetof(TreadleManifest, entry), ~0u)),
              kDataLoss, "entry's name lies outside");
}

// Whatever the bytes are, the parser returns or throws an Error; sanitizers watch the rest.
TEST(SurvivesMutations) {
  std::mt19937 random(1);
  const std::string original = Example().Build();
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = original;
    const size_t edits = 1 + random() % 4;
    for (size_t e = 0; e < edits; ++e) {
      // Mostly in the tables, in words of 4 bytes as often as in single ones.
      const size_t at = sizeof(TreadleArtifactHeader) - 24 + random() % (bytes.size() - 24);
      const uint32_t values[] = {
          0, 1, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, static_cast<uint32_t>(random())};
      const uint32_t value = values[random() % 7];
      const size_t width = random() % 2 ? 4 : 1;
      if (at + width <= bytes.size()) std::memcpy(bytes.data() + at, &value, width);
    }
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    if (bytes.size() < sizeof(TreadleArtifactHeader)) continue;
    try {
      Parse(Sealed(bytes));
      ++accepted;
    } catch (const Error& error) {
      CHECK(error.code == 3 || error.code == 9 || error.code == 15);
    }
  }
  CHECK(accepted > 0);
}

}  // namespace
}  // namespace treadle

TEST_MAIN()
