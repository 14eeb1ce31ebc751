// From programs to executables, and from executables' bytes to loaded executables.
#include <memory>
#include <string>

#include "plugin/api/bind.h"
#include "plugin/api/executable.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"

namespace treadle::api {

namespace {

struct ProgramView {
  explicit ProgramView(const PJRT_Program& program)
      : code(View(program.code, program.code_size)),
        format(View(program.format, program.format_size)) {}
  std::string_view code, format;
};

void CompileAndLoad(PJRT_Client_Compile_Args& args) {
  Client& client = Unwrap(args.client);
  const ProgramView program(NotNull(args.program, "program"));
  std::shared_ptr<const Executable> executable = client.Compile(
      program.code, program.format, View(args.compile_options, args.compile_options_size));
  const CompileOptions& options = executable->options();
  args.executable = Wrap(client.Load(executable, options).release());
}

void Compile(PJRT_Compile_Args& args) {
  const ProgramView program(NotNull(args.program, "program"));
  const std::string_view options = View(args.compile_options, args.compile_options_size);
  args.executable = new PJRT_Executable(
      args.client != nullptr
          ? Unwrap(args.client).Compile(program.code, program.format, options)
          : CompileForTopology(Unwrap(args.topology), program.code, program.format, options));
}

void Load(PJRT_Client_Load_Args& args) {
  const std::shared_ptr<const Executable>& executable = Unwrap(args.executable).executable;
  const std::string_view options = View(args.compile_options, args.compile_options_size);
  args.loaded_executable =
      Wrap(Unwrap(args.client)
               .Load(executable,
                     options.empty() ? executable->options() : CompileOptions::Parse(options))
               .release());
}

void DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args& args) {
  std::string_view options;
  if (TREADLE_HAS(args, PJRT_Executable_DeserializeAndLoad_Args,
                  overridden_serialized_compile_options_size) &&
      args.overridden_serialized_compile_options != nullptr) {
    options = View(args.overridden_serialized_compile_options,
                   args.overridden_serialized_compile_options_size);
  }
  const CompileOptions parsed = CompileOptions::Parse(options);
  auto executable = std::make_shared<Executable>(
      Program::Load(std::string(View(args.serialized_executable, args.serialized_executable_size))),
      parsed, std::string(options));
  args.loaded_executable = Wrap(Unwrap(args.client).Load(std::move(executable), parsed).release());
}

}  // namespace

void BindCompile(PJRT_Api& api) {
  TREADLE_BIND(api, PJRT_Client_Compile, CompileAndLoad, executable);
  TREADLE_BIND(api, PJRT_Compile, Compile, executable);
  TREADLE_BIND(api, PJRT_Client_Load, Load, loaded_executable);
  TREADLE_BIND(api, PJRT_Executable_DeserializeAndLoad, DeserializeAndLoad, loaded_executable);
}

}  // namespace treadle::api
