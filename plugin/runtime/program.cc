#include "plugin/runtime/program.h"

#include <cstring>
#include <utility>

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/perf_map.h"
#include "plugin/runtime/run.h"

namespace treadle {
namespace {

// Tables up to this size live on the stack of Run.
constexpr size_t kInlineBuffers = 62;

}  // namespace

std::shared_ptr<const Program> Program::Load(std::string artifact_bytes) {
  return std::shared_ptr<const Program>(new Program(std::move(artifact_bytes)));
}

Program::Program(std::string artifact_bytes)
    : bytes_(std::move(artifact_bytes)),
      parsed_(Artifact::Parse(bytes_, HostCpuFeatures())),
      constants_(parsed_.constants.size()),
      image_(CodeImage::Link(parsed_.objects)),
      entry_(reinterpret_cast<TreadleEntryFn>(image_.Find(parsed_.entry))) {
  if (entry_ == nullptr) {
    throw InvalidArgument("The compiled program '", parsed_.name, "' does not define its entry '",
                          parsed_.entry, "'.");
  }
  // A string's bytes are not aligned; the promise to compiled code is 64.
  if (!parsed_.constants.empty()) {
    std::memcpy(constants_.data(), parsed_.constants.data(), parsed_.constants.size());
  }
  WritePerfMap(image_.functions());
}

HostBlock Program::TakeScratch() const {
  {
    std::lock_guard lock(mutex_);
    if (!scratch_.empty()) {
      HostBlock block = std::move(scratch_.back());
      scratch_.pop_back();
      return block;
    }
  }
  return HostBlock(manifest().scratch_bytes);
}

void Program::ReturnScratch(HostBlock block) const {
  std::lock_guard lock(mutex_);
  scratch_.push_back(std::move(block));
}

void Program::Run(ThreadPool& pool, void* const* inputs, void* const* outputs) const {
  const size_t num_inputs = parsed_.inputs.size(), num_outputs = parsed_.outputs.size();
  void* inline_table[kInlineBuffers + 2];
  std::vector<void*> heap_table;
  void** table = inline_table;
  if (num_inputs + num_outputs > kInlineBuffers) {
    heap_table.resize(num_inputs + num_outputs + 2);
    table = heap_table.data();
  }
  if (num_inputs > 0) std::memcpy(table, inputs, num_inputs * sizeof(void*));
  if (num_outputs > 0) std::memcpy(table + num_inputs, outputs, num_outputs * sizeof(void*));
  table[num_inputs + num_outputs] = constants_.data();

  TreadleRun run(pool);
  int32_t code;
  if (manifest().scratch_bytes == 0) {
    table[num_inputs + num_outputs + 1] = constants_.data();
    code = entry_(&run, table);
  } else {
    HostBlock scratch = TakeScratch();
    table[num_inputs + num_outputs + 1] = scratch.data();
    code = entry_(&run, table);
    ReturnScratch(std::move(scratch));
  }
  if (code != 0) {
    throw Error(code, run.text.empty()
                          ? StrCat("The program '", name(), "' failed with code ", code, ".")
                          : std::move(run.text));
  }
}

}  // namespace treadle
