#include "plugin/runtime/compile_options.h"

#include <cstdint>

#include "plugin/runtime/error.h"

namespace treadle {

namespace {

constexpr int64_t kMaxPrograms = 1 << 20;

// Reads protobuf's wire format. Fields that nobody asks for are skipped, as protobuf's own readers
// do, so newer messages are readable.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool Next() {
    if (rest_.empty()) return false;
    const uint64_t key = Varint();
    field_ = static_cast<uint32_t>(key >> 3);
    type_ = static_cast<uint32_t>(key & 7);
    if (field_ == 0 || key >> 32 != 0) Bad("a bad field number");
    switch (type_) {
      case kVarint:
        number_ = Varint();
        break;
      case kFixed64:
        Take(8);
        break;
      case kBytes:
        bytes_ = Take(Varint());
        break;
      case kFixed32:
        Take(4);
        break;
      default:
        Bad("a bad wire type");
    }
    return true;
  }

  uint32_t field() const { return field_; }
  int64_t number() const {
    if (type_ != kVarint) Bad("a field that should be a number");
    return static_cast<int64_t>(number_);
  }
  std::string_view message() const {
    if (type_ != kBytes) Bad("a field that should be a message");
    return bytes_;
  }
  // The values of a repeated integer field: this occurrence may hold one or, packed, many.
  template <typename Add>
  void ForEachNumber(Add&& add) const {
    if (type_ == kVarint) return add(number());
    WireReader packed(message());
    while (!packed.rest_.empty()) add(static_cast<int64_t>(packed.Varint()));
  }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  [[noreturn]] static void Bad(const char* what) {
    throw InvalidArgument("the compile options are not a serialized CompileOptionsProto: ", what);
  }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) Bad("they end inside a number");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    Bad("a number of more than 64 bits");
  }

  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) Bad("they end inside a field");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_, bytes_;
  uint32_t field_ = 0, type_ = 0;
  uint64_t number_ = 0;
};

int Count(int64_t value, const char* what) {
  // Protobuf does not write a default, and XLA's default for both counts is one.
  if (value == 0) return 1;
  if (value < 0 || value > kMaxPrograms) {
    throw InvalidArgument("compile options: ", what, " is ", value);
  }
  return static_cast<int>(value);
}

DeviceAssignment ParseAssignment(std::string_view bytes) {
  int64_t replicas = 0, partitions = 0;
  std::vector<std::vector<int>> columns;  // one per partition: the device of each replica
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1) replicas = reader.number();
    if (reader.field() == 2) partitions = reader.number();
    if (reader.field() != 3) continue;
    std::vector<int>& column = columns.emplace_back();
    WireReader computation(reader.message());
    while (computation.Next()) {
      if (computation.field() != 1) continue;
      computation.ForEachNumber([&](int64_t id) {
        if (id < 0 || id > INT32_MAX) {
          throw InvalidArgument("compile options: device id ", id, " in the device assignment");
        }
        column.push_back(static_cast<int>(id));
      });
    }
  }
  DeviceAssignment result;
  result.num_replicas = Count(replicas, "the device assignment's replica_count");
  result.num_partitions = Count(partitions, "the device assignment's computation_count");
  bool complete = columns.size() == static_cast<size_t>(result.num_partitions);
  for (const std::vector<int>& column : columns) {
    complete = complete && column.size() == static_cast<size_t>(result.num_replicas);
  }
  if (!complete) {
    throw InvalidArgument("compile options: the device assignment does not name a device for each ",
                          "of ", result.num_replicas, " replicas and ", result.num_partitions,
                          " partitions");
  }
  for (int replica = 0; replica < result.num_replicas; ++replica) {
    for (const std::vector<int>& column : columns) {
      result.device_ids.push_back(column[static_cast<size_t>(replica)]);
    }
  }
  return result;
}

void ParseBuildOptions(std::string_view bytes, CompileOptions* options) {
  WireReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        options->device_ordinal = static_cast<int>(reader.number());
        break;
      case 4:
        options->num_replicas = Count(reader.number(), "num_replicas");
        break;
      case 5:
        options->num_partitions = Count(reader.number(), "num_partitions");
        break;
      case 9:
        options->device_assignment = ParseAssignment(reader.message());
        break;
      default:
        break;
    }
  }
}

void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendField(std::string* out, uint32_t field, int64_t value) {
  AppendVarint(out, field << 3);
  AppendVarint(out, static_cast<uint64_t>(value));
}

void AppendField(std::string* out, uint32_t field, std::string_view bytes) {
  AppendVarint(out, field << 3 | 2);
  AppendVarint(out, bytes.size());
  out->append(bytes);
}

}  // namespace

std::string DeviceAssignment::Serialize() const {
  std::string bytes;
  AppendField(&bytes, 1, int64_t{num_replicas});
  AppendField(&bytes, 2, int64_t{num_partitions});
  for (int partition = 0; partition < num_partitions; ++partition) {
    std::string packed, computation;
    for (int replica = 0; replica < num_replicas; ++replica) {
      AppendVarint(&packed, static_cast<uint64_t>(at(replica, partition)));
    }
    AppendField(&computation, 1, packed);
    AppendField(&bytes, 3, computation);
  }
  return bytes;
}

CompileOptions CompileOptions::Parse(std::string_view bytes) {
  CompileOptions options;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 3) ParseBuildOptions(reader.message(), &options);
    if (reader.field() == 4) options.portable = reader.number() != 0;
  }
  const auto& assignment = options.device_assignment;
  if (assignment && (assignment->num_replicas != options.num_replicas ||
                     assignment->num_partitions != options.num_partitions)) {
    throw InvalidArgument("compile options: ", options.num_replicas, " replicas of ",
                          options.num_partitions, " partitions, but the device assignment is for ",
                          assignment->num_replicas, " of ", assignment->num_partitions);
  }
  if (int64_t{options.num_replicas} * options.num_partitions > kMaxPrograms) {
    throw InvalidArgument("compile options: ", options.num_replicas, " replicas of ",
                          options.num_partitions, " partitions are too many");
  }
  return options;
}

}  // namespace treadle
