// A compiled program in memory: an artifact, parsed, linked and ready to run.
#ifndef TREADLE_PLUGIN_RUNTIME_PROGRAM_H_
#define TREADLE_PLUGIN_RUNTIME_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/runtime/artifact.h"
#include "plugin/runtime/elf_loader.h"
#include "plugin/runtime/memory_block.h"
#include "plugin/runtime/program_abi.h"
#include "plugin/runtime/thread_pool.h"

namespace treadle {

// Immutable once loaded; any number of threads may run it at once.
class Program {
 public:
  // Throws treadle::Error: Artifact::Parse's codes, or what the loader says of the machine code.
  static std::shared_ptr<const Program> Load(std::string artifact_bytes);

  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const std::string& artifact() const { return bytes_; }
  const TreadleManifest& manifest() const { return parsed_.manifest; }
  std::string_view name() const { return parsed_.name; }
  std::string_view fingerprint() const { return parsed_.fingerprint; }
  std::string_view build_id() const { return parsed_.build_id; }
  // The StableHLO that this was compiled from; empty if the artifact carries none.
  std::string_view optimized_program() const { return parsed_.program; }
  std::span<const BufferDesc> inputs() const { return parsed_.inputs; }
  std::span<const BufferDesc> outputs() const { return parsed_.outputs; }
  // num_replicas * num_partitions device ids, replica-major; empty if the artifact carries none.
  std::span<const int32_t> device_assignment() const { return parsed_.device_assignment; }
  // Bytes of machine code and read-only data.
  uint64_t code_size() const { return image_.size(); }

  // Runs the program and returns when it is done. `inputs` and `outputs` hold one 64-byte aligned
  // pointer per BufferDesc; aliased pairs are equal, as program_abi.h demands of the caller. Throws
  // the error that the program reports.
  void Run(ThreadPool& pool, void* const* inputs, void* const* outputs) const;

 private:
  explicit Program(std::string artifact_bytes);

  // A run's scratch block; blocks are kept between runs, one per run that was ever in flight at the
  // same time.
  HostBlock TakeScratch() const;
  void ReturnScratch(HostBlock block) const;

  const std::string bytes_;
  Artifact parsed_;  // views into bytes_
  HostBlock constants_;
  CodeImage image_;
  TreadleEntryFn entry_;

  mutable std::mutex mutex_;
  mutable std::vector<HostBlock> scratch_;  // guarded by mutex_
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_PROGRAM_H_
