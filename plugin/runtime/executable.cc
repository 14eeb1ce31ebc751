#include "plugin/runtime/executable.h"

#include <algorithm>
#include <compare>

#include "plugin/runtime/client.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/launch.h"

namespace treadle {

namespace {

// A run that takes less is not worth waking a thread for: handing it over costs about 10 us and the
// caller would often just wait.
constexpr int64_t kInlineNanoseconds = 60'000;

// First guesses, deliberately on the fast side: a guess is corrected after one run.
constexpr uint64_t kFlopsPerNanosecond = 8;
constexpr uint64_t kBytesPerNanosecond = 8;

int64_t Estimate(const TreadleManifest& manifest) {
  const uint64_t nanoseconds =
      std::max(manifest.flops / kFlopsPerNanosecond, manifest.bytes_accessed / kBytesPerNanosecond);
  return static_cast<int64_t>(std::min<uint64_t>(nanoseconds, INT64_MAX));
}

void CheckArgument(const Buffer* argument, const Parameter& wanted, const Device& device,
                   size_t index) {
  if (argument == nullptr) throw InvalidArgument("argument ", index, " is null");
  const Buffer& buffer = *argument;
  const bool same_shape = buffer.type() == wanted.type && buffer.byte_size() == wanted.byte_size &&
                          std::ranges::equal(buffer.dims(), wanted.dims);
  if (same_shape && &buffer.device() == &device && !buffer.IsDeleted()) return;
  if (buffer.IsDeleted()) {
    throw InvalidArgument("argument ", index, ", ", ShapeName(buffer.type(), buffer.dims()),
                          ": buffer has been deleted or donated");
  }
  if (!same_shape) {
    throw InvalidArgument("argument ", index, ": expected ", ShapeName(wanted.type, wanted.dims),
                          ", got ", ShapeName(buffer.type(), buffer.dims()));
  }
  throw InvalidArgument("argument ", index, " is on ", buffer.device().description().to_string,
                        ", but the program runs on ", device.description().to_string);
}

// Which arguments the caller gives away; empty when it is none of them.
std::vector<char> Donations(const Executable& executable, std::span<const int64_t> non_donatable) {
  std::vector<char> donated;
  if (!executable.donates()) return donated;
  for (const Parameter& input : executable.inputs()) donated.push_back(input.donated ? 1 : 0);
  for (const int64_t index : non_donatable) {
    if (index >= 0 && static_cast<size_t>(index) < donated.size()) {
      donated[static_cast<size_t>(index)] = 0;
    }
  }
  return donated;
}

// A buffer that is given away may appear once only: there would be two owners, or a reader of what
// is overwritten.
void CheckDonations(std::span<Buffer* const> arguments, std::span<const char> donated) {
  struct Use {
    Buffer* buffer;
    bool kept;
    size_t index;
    auto operator<=>(const Use&) const = default;
  };
  std::vector<Use> uses;
  for (size_t i = 0; i < arguments.size(); ++i) uses.push_back({arguments[i], donated[i] == 0, i});
  // A buffer's uses become neighbours, those that give it away first.
  std::sort(uses.begin(), uses.end());
  for (size_t i = 1; i < uses.size(); ++i) {
    const Use &first = uses[i - 1], &second = uses[i];
    if (first.buffer != second.buffer || first.kept) continue;
    throw InvalidArgument("the same buffer is argument ", std::min(first.index, second.index),
                          " and argument ", std::max(first.index, second.index),
                          second.kept ? ", one of them donated: f(donate(a), a)"
                                      : ", both of them donated: f(donate(a), donate(a))");
  }
}

}  // namespace

Parameter::Parameter(const BufferDesc& desc)
    : type(CheckedElementType(desc.element_type)),
      dims(desc.dims),
      byte_size(desc.byte_size),
      alias(desc.alias),
      donated((desc.flags & TREADLE_BUFFER_DONATED) != 0),
      memory_kind((desc.flags & TREADLE_BUFFER_HOST) != 0 ? MemoryKind::kPinnedHost
                                                          : MemoryKind::kDevice),
      sharding(desc.sharding) {}

Executable::Executable(std::shared_ptr<const Program> program, CompileOptions options,
                       std::string options_bytes)
    : program_(std::move(program)),
      options_(std::move(options)),
      options_bytes_(std::move(options_bytes)),
      inputs_(program_->inputs().begin(), program_->inputs().end()),
      outputs_(program_->outputs().begin(), program_->outputs().end()),
      expected_ns_(Estimate(program_->manifest())) {
  for (const Parameter& input : inputs_) donates_ = donates_ || input.donated;
  for (const auto* list : {&inputs_, &outputs_}) {
    for (const Parameter& parameter : *list) {
      if (parameter.byte_size != ArrayBytes(parameter.type, parameter.dims)) {
        throw InvalidArgument("the program describes ", ShapeName(parameter.type, parameter.dims),
                              " as ", parameter.byte_size, " bytes");
      }
    }
  }
}

void Executable::RecordRun(int64_t nanoseconds) const {
  // Faster than expected is believed at once, slower by and by: an outlier is more likely slow than
  // fast.
  const int64_t expected = expected_nanoseconds();
  expected_ns_.store(nanoseconds < expected ? nanoseconds : (3 * expected + nanoseconds) / 4,
                     std::memory_order_relaxed);
}

LoadedExecutable::LoadedExecutable(Client& client, std::shared_ptr<const Executable> executable,
                                   const CompileOptions& options)
    : client_(client),
      portable_(options.portable),
      fingerprint_(executable->program().fingerprint()),
      executable_(std::move(executable)) {
  const int num_replicas = executable_->num_replicas();
  const int num_partitions = executable_->num_partitions();
  const auto compiled_for = executable_->program().device_assignment();
  if (options.device_assignment) {
    assignment_ = *options.device_assignment;
  } else if (!compiled_for.empty()) {
    assignment_ = {num_replicas, num_partitions, {compiled_for.begin(), compiled_for.end()}};
  } else {
    assignment_ = client.AssignmentFor(options);
  }
  if (assignment_.num_replicas != num_replicas || assignment_.num_partitions != num_partitions ||
      assignment_.device_ids.size() !=
          static_cast<size_t>(num_replicas) * static_cast<size_t>(num_partitions)) {
    throw InvalidArgument("the program is compiled for ", num_replicas, " replicas of ",
                          num_partitions, " partitions, and the devices are given for ",
                          assignment_.num_replicas, " of ", assignment_.num_partitions);
  }
  client.CheckAddressable(assignment_);
  for (int replica = 0; replica < num_replicas; ++replica) {
    for (int partition = 0; partition < num_partitions; ++partition) {
      devices_.push_back(&client.LookupDevice(assignment_.at(replica, partition)));
      logical_ids_.push_back({replica, partition});
    }
  }
}

std::shared_ptr<const Executable> LoadedExecutable::executable() const {
  {
    const std::lock_guard lock(mutex_);
    if (executable_) return executable_;
  }
  throw FailedPrecondition("the executable has been deleted");
}

void LoadedExecutable::Delete() {
  std::shared_ptr<const Executable> dropped;  // after the lock
  const std::lock_guard lock(mutex_);
  deleted_.store(true, std::memory_order_release);
  dropped = std::move(executable_);
}

void LoadedExecutable::Execute(const ExecuteRequest& request) const {
  const std::shared_ptr<const Executable> executable = this->executable();
  const std::vector<Parameter>& parameters = executable->inputs();
  const size_t num_devices = request.argument_lists.size();
  if (request.device != nullptr) request.device->CheckAddressable("to run a program");
  if (num_devices != (request.device != nullptr ? 1 : devices_.size())) {
    throw InvalidArgument(num_devices, " argument lists for ",
                          request.device != nullptr ? 1 : devices_.size(), " devices");
  }
  if (request.num_args != parameters.size()) {
    throw InvalidArgument("the program takes ", parameters.size(), " arguments and was given ",
                          request.num_args);
  }
  const std::vector<char> donated = Donations(*executable, request.non_donatable);
  for (size_t d = 0; d < num_devices; ++d) {
    const Device& device = request.device != nullptr ? *request.device : *devices_[d];
    const std::span arguments(request.argument_lists[d], request.num_args);
    for (size_t i = 0; i < arguments.size(); ++i) {
      CheckArgument(arguments[i], parameters[i], device, i);
    }
    if (!donated.empty()) CheckDonations(arguments, donated);
  }
  for (size_t d = 0; d < num_devices; ++d) {
    ExecuteOn(request.device != nullptr ? *request.device : *devices_[d], executable, request,
              donated, d);
  }
}

void LoadedExecutable::ExecuteOn(Device& device,
                                 const std::shared_ptr<const Executable>& executable,
                                 const ExecuteRequest& request, std::span<const char> donated,
                                 size_t index) const {
  const std::vector<Parameter>& outputs = executable->outputs();
  Launch launch(executable, client_.pool());
  for (size_t i = 0; i < request.num_args; ++i) {
    Buffer& buffer = *request.argument_lists[index][i];
    const bool give_away = !donated.empty() && donated[i] != 0;
    BufferContents contents = give_away ? buffer.GiveAway() : buffer.Contents();
    if (!contents.storage) {
      throw InvalidArgument("argument ", i, " was deleted while the program was being started");
    }
    launch.AddInput(std::move(contents), give_away);
  }
  std::vector<Ref<Storage>> storages;
  storages.reserve(outputs.size());
  for (const Parameter& output : outputs) {
    storages.push_back(Storage::Deferred(device.arena(), output.byte_size));
    launch.AddOutput(storages.back());
  }

  DeviceQueue& queue = device.queue();
  const bool own_thread = queue.InOwnThread();
  // A program of several devices may wait for its peers, so each part needs a thread of its own.
  const bool run_here = own_thread || (request.argument_lists.size() == 1 && queue.Idle() &&
                                       executable->expected_nanoseconds() < kInlineNanoseconds &&
                                       launch.FirstPending() == nullptr);
  Ref<Event> done;
  if (run_here) {
    while (Event* const pending = launch.FirstPending()) pending->Wait();
    if (const Error* const error = launch.InputError()) {
      done = Event::Failed(*error);
    } else {
      launch.Run();
      done = Event::Ready();
    }
  } else {
    done = Event::Pending();
    queue.Submit(std::make_unique<LaunchTask>(std::move(launch), done));
  }
  Buffer** const results = request.output_lists[index];
  for (size_t o = 0; o < outputs.size(); ++o) {
    results[o] = new Buffer(device.memory(outputs[o].memory_kind), outputs[o].type, outputs[o].dims,
                            outputs[o].byte_size, BufferContents{std::move(storages[o]), done});
  }
  if (request.complete_events != nullptr) request.complete_events[index] = done.Detach();
}

}  // namespace treadle
