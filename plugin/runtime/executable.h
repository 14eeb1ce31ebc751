// Compiled programs: as such, and placed on devices.
#ifndef TREADLE_PLUGIN_RUNTIME_EXECUTABLE_H_
#define TREADLE_PLUGIN_RUNTIME_EXECUTABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "plugin/runtime/buffer.h"
#include "plugin/runtime/compile_options.h"
#include "plugin/runtime/program.h"

namespace treadle {

class Client;

// An argument or a result, in the runtime's types and checked.
struct Parameter {
  Parameter(const BufferDesc& desc);  // NOLINT: a view of the description

  ElementType type;
  std::span<const int64_t> dims;
  size_t byte_size;
  int alias;     // results: the argument whose memory is reused, or -1
  bool donated;  // arguments: given away by the caller, unless the execution says otherwise
  MemoryKind memory_kind;
  std::string_view sharding;
};

// A program and what the compiler was told. Immutable; needs no client.
class Executable {
 public:
  // Throws INVALID_ARGUMENT for a program whose description contradicts itself. `options_bytes` may
  // be empty: not recorded.
  Executable(std::shared_ptr<const Program> program, CompileOptions options,
             std::string options_bytes);

  const Program& program() const { return *program_; }
  const CompileOptions& options() const { return options_; }
  const std::string& options_bytes() const { return options_bytes_; }
  int num_replicas() const { return static_cast<int>(program_->manifest().num_replicas); }
  int num_partitions() const { return static_cast<int>(program_->manifest().num_partitions); }
  const std::vector<Parameter>& inputs() const { return inputs_; }
  const std::vector<Parameter>& outputs() const { return outputs_; }
  // Whether the caller gives any argument away.
  bool donates() const { return donates_; }

  // How long a run is going to take: first the compiler's estimate, then what was measured.
  int64_t expected_nanoseconds() const { return expected_ns_.load(std::memory_order_relaxed); }
  void RecordRun(int64_t nanoseconds) const;

 private:
  const std::shared_ptr<const Program> program_;
  const CompileOptions options_;
  const std::string options_bytes_;
  std::vector<Parameter> inputs_, outputs_;
  bool donates_ = false;
  mutable std::atomic<int64_t> expected_ns_;
};

// The arguments of PJRT_LoadedExecutable_Execute.
struct ExecuteRequest {
  std::span<Buffer* const* const> argument_lists;  // one per device
  size_t num_args;
  Buffer** const* output_lists;  // out; one list per device
  Event** complete_events;       // out, one reference per device; or null
  std::span<const int64_t> non_donatable;
  Device* device;  // run on this one only; or null
};

struct LogicalId {
  int replica, partition;
};

class LoadedExecutable {
 public:
  // Throws INVALID_ARGUMENT when the devices do not fit the program or do not exist, and
  // UNIMPLEMENTED when they are not all in this process.
  LoadedExecutable(Client& client, std::shared_ptr<const Executable> executable,
                   const CompileOptions& options);
  LoadedExecutable(const LoadedExecutable&) = delete;
  LoadedExecutable& operator=(const LoadedExecutable&) = delete;

  // Throws FAILED_PRECONDITION after Delete.
  std::shared_ptr<const Executable> executable() const;
  const std::vector<Device*>& devices() const { return devices_; }
  const std::vector<LogicalId>& logical_ids() const { return logical_ids_; }
  const DeviceAssignment& assignment() const { return assignment_; }
  bool portable() const { return portable_; }
  // Also after Delete.
  const std::string& fingerprint() const { return fingerprint_; }

  // Checks all arguments before it touches any. Small work whose inputs are ready runs in the
  // caller's thread, and its errors are thrown; otherwise errors are those of the outputs and
  // events.
  void Execute(const ExecuteRequest& request) const;

  // Drops the program; runs that have started keep it until they are done.
  void Delete();
  bool IsDeleted() const { return deleted_.load(std::memory_order_acquire); }

 private:
  void ExecuteOn(Device& device, const std::shared_ptr<const Executable>& executable,
                 const ExecuteRequest& request, std::span<const char> donated, size_t index) const;

  Client& client_;
  const bool portable_;
  const std::string fingerprint_;
  DeviceAssignment assignment_;
  std::vector<Device*> devices_;
  std::vector<LogicalId> logical_ids_;
  std::atomic<bool> deleted_{false};
  mutable std::mutex mutex_;
  std::shared_ptr<const Executable> executable_;  // guarded by mutex_
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_EXECUTABLE_H_
