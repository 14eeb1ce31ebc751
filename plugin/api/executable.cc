// PJRT_Executable: what a compiled program tells about itself.
#include "plugin/api/executable.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "plugin/api/bind.h"
#include "plugin/api/guard.h"
#include "plugin/api/header_version.h"
#include "plugin/api/layouts.h"
#include "plugin/api/named_values.h"
#include "plugin/runtime/element_type.h"
#include "plugin/runtime/error.h"

PJRT_Executable::List::List(const std::vector<treadle::Parameter>& parameters) {
  for (const treadle::Parameter& parameter : parameters) {
    memory_kinds.push_back(treadle::MemoryKindName(parameter.memory_kind));
    memory_kind_sizes.push_back(std::strlen(memory_kinds.back()));
    layouts.push_back(treadle::api::RowMajorLayoutHandle(parameter.dims.size()));
    shardings.push_back(parameter.sharding.data());
    sharding_sizes.push_back(parameter.sharding.size());
    has_shardings = has_shardings || !parameter.sharding.empty();
  }
}

PJRT_Executable::PJRT_Executable(std::shared_ptr<const treadle::Executable> e)
    : executable(std::move(e)), inputs(executable->inputs()), outputs(executable->outputs()) {
  for (const treadle::Parameter& output : executable->outputs()) {
    output_types.push_back(static_cast<PJRT_Buffer_Type>(output.type));
    output_dims.insert(output_dims.end(), output.dims.begin(), output.dims.end());
    output_ranks.push_back(output.dims.size());
  }
  const TreadleManifest& manifest = executable->program().manifest();
  cost_analysis = {
      treadle::api::FloatValue("flops", static_cast<float>(manifest.flops)),
      treadle::api::FloatValue("bytes accessed", static_cast<float>(manifest.bytes_accessed)),
  };
}

namespace treadle::api {

namespace {

#define TREADLE_SAME_TYPE(pjrt, ours)                             \
  static_assert(static_cast<uint32_t>(PJRT_Buffer_Type_##pjrt) == \
                static_cast<uint32_t>(ElementType::ours))
TREADLE_SAME_TYPE(PRED, pred);
TREADLE_SAME_TYPE(S64, s64);
TREADLE_SAME_TYPE(U64, u64);
TREADLE_SAME_TYPE(F16, f16);
TREADLE_SAME_TYPE(BF16, bf16);
TREADLE_SAME_TYPE(C128, c128);
TREADLE_SAME_TYPE(F8E5M2, f8e5m2);
TREADLE_SAME_TYPE(F8E4M3FNUZ, f8e4m3fnuz);
TREADLE_SAME_TYPE(S4, s4);
TREADLE_SAME_TYPE(TOKEN, token);
TREADLE_SAME_TYPE(S2, s2);
TREADLE_SAME_TYPE(F8E4M3, f8e4m3);
TREADLE_SAME_TYPE(F8E3M4, f8e3m4);
TREADLE_SAME_TYPE(F8E8M0FNU, f8e8m0fnu);
TREADLE_SAME_TYPE(F4E2M1FN, f4e2m1fn);
TREADLE_SAME_TYPE(U1, u1);
TREADLE_SINCE_0_114(TREADLE_SAME_TYPE(F6E3M2FN, f6e3m2fn);)
#undef TREADLE_SAME_TYPE

void SetText(std::string_view text, const char** data, size_t* size) {
  *data = text.data();
  *size = text.size();
}

void Destroy(PJRT_Executable_Destroy_Args& args) { delete args.executable; }

void Name(PJRT_Executable_Name_Args& args) {
  SetText(Unwrap(args.executable).executable->program().name(), &args.executable_name,
          &args.executable_name_size);
}

void NumReplicas(PJRT_Executable_NumReplicas_Args& args) {
  args.num_replicas = static_cast<size_t>(Unwrap(args.executable).executable->num_replicas());
}

void NumPartitions(PJRT_Executable_NumPartitions_Args& args) {
  args.num_partitions = static_cast<size_t>(Unwrap(args.executable).executable->num_partitions());
}

void NumOutputs(PJRT_Executable_NumOutputs_Args& args) {
  args.num_outputs = Unwrap(args.executable).output_types.size();
}

void SizeOfGeneratedCode(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args& args) {
  args.size_in_bytes =
      static_cast<int64_t>(Unwrap(args.executable).executable->program().code_size());
}

void Fingerprint(PJRT_Executable_Fingerprint_Args& args) {
  SetText(Unwrap(args.executable).executable->program().fingerprint(), &args.executable_fingerprint,
          &args.executable_fingerprint_size);
}

void GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args& args) {
  const std::vector<PJRT_NamedValue>& values = Unwrap(args.executable).cost_analysis;
  args.properties = values.data();
  args.num_properties = values.size();
}

void GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  const Executable& executable = *Unwrap(args.executable).executable;
  // Per kind of memory: the device's, the host's.
  struct Sizes {
    int64_t arguments = 0, outputs = 0, aliased = 0;
  } device, host;
  const auto sizes = [&](const Parameter& parameter) -> Sizes& {
    return parameter.memory_kind == MemoryKind::kDevice ? device : host;
  };
  for (const Parameter& input : executable.inputs()) {
    sizes(input).arguments += static_cast<int64_t>(input.byte_size);
  }
  for (const Parameter& output : executable.outputs()) {
    sizes(output).outputs += static_cast<int64_t>(output.byte_size);
    if (output.alias >= 0) sizes(output).aliased += static_cast<int64_t>(output.byte_size);
  }
  args.generated_code_size_in_bytes = static_cast<int64_t>(executable.program().code_size());
  args.argument_size_in_bytes = device.arguments;
  args.output_size_in_bytes = device.outputs;
  args.alias_size_in_bytes = device.aliased;
  args.temp_size_in_bytes = static_cast<int64_t>(executable.program().manifest().scratch_bytes);
  args.host_generated_code_size_in_bytes = 0;
  args.host_argument_size_in_bytes = host.arguments;
  args.host_output_size_in_bytes = host.outputs;
  args.host_alias_size_in_bytes = host.aliased;
  args.host_temp_size_in_bytes = 0;
  // Arguments, results and the one scratch block are all there at once.
  const int64_t total = args.argument_size_in_bytes + args.output_size_in_bytes -
                        args.alias_size_in_bytes + args.temp_size_in_bytes;
  using Args = PJRT_Executable_GetCompiledMemoryStats_Args;
  if (TREADLE_HAS(args, Args, peak_memory_in_bytes)) args.peak_memory_in_bytes = total;
  if (TREADLE_HAS(args, Args, total_size_in_bytes)) args.total_size_in_bytes = total;
  if (TREADLE_HAS(args, Args, total_allocation_bytes)) args.total_allocation_bytes = total;
  if (TREADLE_HAS(args, Args, indefinite_allocations)) args.indefinite_allocations = 0;
  if (TREADLE_HAS(args, Args, peak_unpadded_heap_bytes)) args.peak_unpadded_heap_bytes = total;
}

void OutputElementTypes(PJRT_Executable_OutputElementTypes_Args& args) {
  PJRT_Executable& executable = Unwrap(args.executable);
  args.output_types = executable.output_types.data();
  args.num_output_types = executable.output_types.size();
}

void OutputDimensions(PJRT_Executable_OutputDimensions_Args& args) {
  const PJRT_Executable& executable = Unwrap(args.executable);
  args.num_outputs = executable.output_ranks.size();
  args.dims = executable.output_dims.data();
  args.dim_sizes = executable.output_ranks.data();
}

void OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args& args) {
  const PJRT_Executable::List& list = Unwrap(args.executable).outputs;
  args.num_outputs = list.memory_kinds.size();
  args.memory_kinds = list.memory_kinds.data();
  args.memory_kind_sizes = list.memory_kind_sizes.data();
}

void ParameterMemoryKinds(PJRT_Executable_ParameterMemoryKinds_Args& args) {
  const PJRT_Executable::List& list = Unwrap(args.executable).inputs;
  args.num_parameters = list.memory_kinds.size();
  args.memory_kinds = list.memory_kinds.data();
  args.memory_kind_sizes = list.memory_kind_sizes.data();
}

// Called twice: with no `code` for the size, then with a block of that size.
void OptimizedProgram(PJRT_Executable_OptimizedProgram_Args& args) {
  static constexpr std::string_view kFormat = "mlir";
  const std::string_view program =
      Unwrap(args.executable).executable->program().optimized_program();
  if (program.empty()) throw Unimplemented("this executable does not carry its program");
  PJRT_Program& out = *args.program;
  out.format = kFormat.data();
  out.format_size = kFormat.size();
  if (out.code != nullptr) {
    if (out.code_size < program.size()) {
      throw InvalidArgument("the program has ", program.size(), " bytes and there is room for ",
                            out.code_size);
    }
    program.copy(out.code, program.size());
  }
  out.code_size = program.size();
}

// The artifact itself, kept alive by the program that was loaded from it.
void Serialize(PJRT_Executable_Serialize_Args& args) {
  using Program = std::shared_ptr<const Executable>;
  const Program& executable = Unwrap(args.executable).executable;
  SetText(executable->program().artifact(), &args.serialized_bytes, &args.serialized_bytes_size);
  args.serialized_executable =
      reinterpret_cast<PJRT_SerializedExecutable*>(new Program(executable));
  args.serialized_executable_deleter = [](PJRT_SerializedExecutable* serialized) {
    delete reinterpret_cast<Program*>(serialized);
  };
}

void GetCompileOptions(PJRT_Executable_GetCompileOptions_Args& args) {
  const std::string& options = Unwrap(args.executable).executable->options_bytes();
  if (options.empty()) {
    throw Unimplemented(
        "this executable was deserialized, which does not keep the options it was "
        "compiled with");
  }
  auto* const copy = new std::string(options);
  SetText(*copy, &args.serialized_bytes, &args.serialized_bytes_size);
  args.serialized_compile_options = reinterpret_cast<PJRT_SerializedCompileOptions*>(copy);
  args.serialized_compile_options_deleter = [](PJRT_SerializedCompileOptions* serialized) {
    delete reinterpret_cast<std::string*>(serialized);
  };
}

}  // namespace

void BindExecutable(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_Executable_Destroy, Destroy, executable);
  TREADLE_BIND(api, PJRT_Executable_Name, Name, executable_name_size);
  TREADLE_BIND(api, PJRT_Executable_NumReplicas, NumReplicas, num_replicas);
  TREADLE_BIND(api, PJRT_Executable_NumPartitions, NumPartitions, num_partitions);
  TREADLE_BIND(api, PJRT_Executable_NumOutputs, NumOutputs, num_outputs);
  TREADLE_BIND(api, PJRT_Executable_SizeOfGeneratedCodeInBytes, SizeOfGeneratedCode, size_in_bytes);
  TREADLE_BIND(api, PJRT_Executable_Fingerprint, Fingerprint, executable_fingerprint_size);
  TREADLE_BIND(api, PJRT_Executable_GetCostAnalysis, GetCostAnalysis, properties);
  TREADLE_BIND(api, PJRT_Executable_GetCompiledMemoryStats, GetCompiledMemoryStats,
               host_temp_size_in_bytes);
  TREADLE_BIND(api, PJRT_Executable_OutputElementTypes, OutputElementTypes, num_output_types);
  TREADLE_BIND(api, PJRT_Executable_OutputDimensions, OutputDimensions, dim_sizes);
  TREADLE_BIND(api, PJRT_Executable_OutputMemoryKinds, OutputMemoryKinds, memory_kind_sizes);
  TREADLE_BIND(api, PJRT_Executable_ParameterMemoryKinds, ParameterMemoryKinds, memory_kind_sizes);
  TREADLE_BIND(api, PJRT_Executable_OptimizedProgram, OptimizedProgram, program);
  TREADLE_BIND(api, PJRT_Executable_Serialize, Serialize, serialized_executable_deleter);
  TREADLE_BIND(api, PJRT_Executable_GetCompileOptions, GetCompileOptions,
               serialized_compile_options_deleter);
}

}  // namespace treadle::api
