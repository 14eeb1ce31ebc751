#include "plugin/runtime/process_record.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <random>

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/version.h"

namespace treadle {

namespace {

constexpr std::string_view kMark = "treadle-process ";

// Strangers' bytes, for an error: what can be printed of the first few.
std::string Excerpt(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes.substr(0, 40)) {
    text += byte >= ' ' && byte <= '~' ? byte : '.';
  }
  return text + (bytes.size() > 40 ? "..." : "");
}

// The part before `separator`, which is taken off `text` with it; all of it when there is none.
std::string_view TakeUntil(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

template <typename Number>
bool ReadNumber(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// The fields of format 1. False when one is missing or is no number where it should be.
bool ReadFields(std::string_view text, ProcessRecord* record) {
  std::map<std::string_view, std::string_view> fields;
  while (!text.empty()) {
    std::string_view value = TakeUntil(text, '\n');
    const std::string_view name = TakeUntil(value, '=');
    fields[name] = value;
  }
  const auto number = [&](std::string_view name, auto* out) {
    return fields.contains(name) && ReadNumber(fields[name], out);
  };
  const auto words = [&](std::string_view name, std::string* out) {
    if (!fields.contains(name)) return false;
    *out = fields[name];
    return true;
  };
  return number("node_id", &record->node_id) && number("num_nodes", &record->num_nodes) &&
         number("num_devices", &record->num_devices) && number("pjrt_major", &record->pjrt_major) &&
         number("pjrt_minor", &record->pjrt_minor) &&
         words("compiler", &record->compiler_build_id) &&
         number("cpu_features", &record->cpu_features) && words("host", &record->host) &&
         number("pid", &record->pid) && words("nonce", &record->nonce) && record->num_devices >= 1;
}

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

std::string NewNonce() {
  std::random_device random;
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%08x%08x%08x%08x", random(), random(), random(),
                random());
  return text.data();
}

// Values are lines.
std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

ProcessRecord ProcessRecord::OfThisProcess() {
  ProcessRecord record;
  record.treadle_version = TreadleVersion();
  record.cpu_features = HostCpuFeatures();
  record.host = HostName();
  record.pid = getpid();
  record.nonce = NewNonce();
  return record;
}

std::string ProcessRecord::Serialize() const {
  return StrCat(kMark, kFormat, " ", treadle_version, "\nnode_id=", node_id,
                "\nnum_nodes=", num_nodes, "\nnum_devices=", num_devices,
                "\npjrt_major=", pjrt_major, "\npjrt_minor=", pjrt_minor,
                "\ncompiler=", OneLine(compiler_build_id), "\ncpu_features=", cpu_features,
                "\nhost=", OneLine(host), "\npid=", pid, "\nnonce=", nonce, "\n");
}

std::string ProcessRecord::Software() const {
  return StrCat("Treadle ", treadle_version, ", PJRT ", pjrt_major, ".", pjrt_minor, ", compiler ",
                compiler_build_id.empty() ? "unknown" : compiler_build_id);
}

std::string ProcessRecord::Whereabouts() const { return StrCat("host ", host, ", pid ", pid); }

ParsedRecord ParseProcessRecord(std::string_view bytes) {
  ParsedRecord parsed;
  std::string_view rest = bytes;
  std::string_view first = TakeUntil(rest, '\n');
  int format = 0;
  const bool ours = first.starts_with(kMark);
  if (ours) first.remove_prefix(kMark.size());
  if (!ours || !ReadNumber(TakeUntil(first, ' '), &format)) {
    parsed.problem =
        StrCat("not a record of Treadle (", bytes.size(), " bytes: \"", Excerpt(bytes), "\")");
    return parsed;
  }
  parsed.record.treadle_version = first;
  if (format != ProcessRecord::kFormat) {
    parsed.problem = StrCat("Treadle ", Excerpt(first), ", whose record of format ", format,
                            " this version (format ", ProcessRecord::kFormat, ") cannot read");
    return parsed;
  }
  parsed.good = ReadFields(rest, &parsed.record);
  if (!parsed.good) {
    parsed.problem =
        StrCat("a damaged record of Treadle ", Excerpt(first), " (", bytes.size(), " bytes)");
  }
  return parsed;
}

}  // namespace treadle
