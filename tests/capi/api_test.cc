// The C API from C++, in many threads, for the sanitizers: compile by way of a hook, run inline and
// through the device's queue, donate, delete, destroy.
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "plugin/runtime/program_abi.h"
#include "tests/cc/check.h"
#include "tests/runtime/artifact_builder.h"
#include "xla/pjrt/c/pjrt_c_api.h"

extern "C" const PJRT_Api* GetPjrtApi();

namespace treadle {
namespace {

constexpr int64_t kSize = 1000;
constexpr float kScale = 3;

template <typename Args>
Args Zeroed(size_t struct_size) {
  Args args{};
  args.struct_size = struct_size;
  return args;
}

#define ARGS(slot) Zeroed<slot##_Args>(slot##_Args_STRUCT_SIZE)
#define CALL(slot, args) CheckOk(GetPjrtApi()->slot(&(args)), #slot)

void CheckOk(PJRT_Error* error, const char* slot) {
  if (error == nullptr) return;
  auto message = ARGS(PJRT_Error_Message);
  message.error = error;
  GetPjrtApi()->PJRT_Error_Message(&message);
  check::Fail(__FILE__, __LINE__,
              StrCat(slot, ": ", std::string(message.message, message.message_size)));
  auto destroy = ARGS(PJRT_Error_Destroy);
  destroy.error = error;
  GetPjrtApi()->PJRT_Error_Destroy(&destroy);
}

// y is given away, and the result takes its place.
int32_t Compile(const TreadleCompileRequest* request, void* sink, TreadleEmitFn emit) {
  ArtifactBuilder builder;
  builder.entry = "saxpy";
  builder.inputs = {{{kSize}}, {{kSize}, -1, TREADLE_BUFFER_DONATED}};
  builder.outputs = {{{kSize}, 1}};
  builder.objects = {HandwrittenObject()};
  builder.constants = std::string(reinterpret_cast<const char*>(&kScale), sizeof kScale);
  const std::string artifact = builder.Build();
  emit(sink, artifact.data(), artifact.size());
  return request->program_size == 0 ? 3 : 0;
}

struct Fixture {
  Fixture() {
    PJRT_NamedValue option{};
    option.struct_size = PJRT_NamedValue_STRUCT_SIZE;
    option.name = "compile_fn";
    option.name_size = std::strlen(option.name);
    option.type = PJRT_NamedValue_kInt64;
    option.int64_value = reinterpret_cast<int64_t>(&Compile);
    option.value_size = 1;
    auto create = ARGS(PJRT_Client_Create);
    create.create_options = &option;
    create.num_options = 1;
    CALL(PJRT_Client_Create, create);
    client = create.client;
    auto devices = ARGS(PJRT_Client_AddressableDevices);
    devices.client = client;
    CALL(PJRT_Client_AddressableDevices, devices);
    device = devices.addressable_devices[0];
    char code[] = "a program";
    auto program = Zeroed<PJRT_Program>(PJRT_Program_STRUCT_SIZE);
    program.code = code;
    program.code_size = sizeof code;
    program.format = "mlir";
    program.format_size = 4;
    auto compile = ARGS(PJRT_Client_Compile);
    compile.client = client;
    compile.program = &program;
    CALL(PJRT_Client_Compile, compile);
    executable = compile.executable;
  }

  ~Fixture() {
    auto executable_args = ARGS(PJRT_LoadedExecutable_Destroy);
    executable_args.executable = executable;
    CALL(PJRT_LoadedExecutable_Destroy, executable_args);
    auto client_args = ARGS(PJRT_Client_Destroy);
    client_args.client = client;
    CALL(PJRT_Client_Destroy, client_args);
  }

  PJRT_Buffer* Put(float value) const {
    const std::vector<float> data(kSize, value);
    auto args = ARGS(PJRT_Client_BufferFromHostBuffer);
    args.client = client;
    args.data = data.data();
    args.type = PJRT_Buffer_Type_F32;
    args.dims = &kSize;
    args.num_dims = 1;
    args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    args.device = device;
    CALL(PJRT_Client_BufferFromHostBuffer, args);
    DestroyEvent(args.done_with_host_buffer);
    return args.buffer;
  }

  PJRT_Buffer* Run(PJRT_Buffer* x, PJRT_Buffer* y, PJRT_Event** done) const {
    PJRT_Buffer* const arguments[] = {x, y};
    PJRT_Buffer* const* const lists[] = {arguments};
    PJRT_Buffer* result = nullptr;
    PJRT_Buffer** const results[] = {&result};
    auto options = Zeroed<PJRT_ExecuteOptions>(PJRT_ExecuteOptions_STRUCT_SIZE);
    auto args = ARGS(PJRT_LoadedExecutable_Execute);
    args.executable = executable;
    args.options = &options;
    args.argument_lists = lists;
    args.num_devices = 1;
    args.num_args = 2;
    args.output_lists = results;
    args.device_complete_events = done;
    CALL(PJRT_LoadedExecutable_Execute, args);
    return result;
  }

  static void DestroyEvent(PJRT_Event* event) {
    auto args = ARGS(PJRT_Event_Destroy);
    args.event = event;
    CALL(PJRT_Event_Destroy, args);
  }

  static void DestroyBuffer(PJRT_Buffer* buffer) {
    auto args = ARGS(PJRT_Buffer_Destroy);
    args.buffer = buffer;
    CALL(PJRT_Buffer_Destroy, args);
  }

  static float First(PJRT_Buffer* buffer) {
    std::vector<float> data(kSize);
    auto args = ARGS(PJRT_Buffer_ToHostBuffer);
    args.src = buffer;
    args.dst = data.data();
    args.dst_size = kSize * sizeof(float);
    CALL(PJRT_Buffer_ToHostBuffer, args);
    auto await = ARGS(PJRT_Event_Await);
    await.event = args.event;
    CALL(PJRT_Event_Await, await);
    DestroyEvent(args.event);
    return data.front();
  }

  PJRT_Client* client;
  PJRT_Device* device;
  PJRT_LoadedExecutable* executable;
};

TEST(DonatesAndDeletes) {
  const Fixture fixture;
  PJRT_Buffer* const x = fixture.Put(2);
  PJRT_Buffer* const y = fixture.Put(5);
  PJRT_Event* done = nullptr;
  PJRT_Buffer* const z = fixture.Run(x, y, &done);
  CHECK_EQ(Fixture::First(z), kScale * 2 + 5);
  auto deleted = ARGS(PJRT_Buffer_IsDeleted);
  deleted.buffer = y;
  CALL(PJRT_Buffer_IsDeleted, deleted);
  CHECK(deleted.is_deleted);
  Fixture::DestroyEvent(done);
  for (PJRT_Buffer* buffer : {x, y, z}) Fixture::DestroyBuffer(buffer);
}

TEST(ManyThreadsShareAClient) {
  const Fixture fixture;
  std::atomic<int> called{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      PJRT_Buffer* const x = fixture.Put(1);
      PJRT_Buffer* y = fixture.Put(static_cast<float>(t));
      for (int i = 0; i < 100; ++i) {
        PJRT_Event* done = nullptr;
        PJRT_Buffer* const z = fixture.Run(x, y, &done);
        auto on_ready = ARGS(PJRT_Event_OnReady);
        on_ready.event = done;
        on_ready.user_arg = &called;
        on_ready.callback = [](PJRT_Error* error, void* arg) {
          if (error == nullptr) ++*static_cast<std::atomic<int>*>(arg);
        };
        CALL(PJRT_Event_OnReady, on_ready);
        Fixture::DestroyEvent(done);
        Fixture::DestroyBuffer(y);
        y = z;
      }
      CHECK_EQ(Fixture::First(y), 100 * kScale + static_cast<float>(t));
      Fixture::DestroyBuffer(x);
      Fixture::DestroyBuffer(y);
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Those who wait for an event may be awake before its callbacks have run.
  for (int i = 0; i < 10000 && called.load() < 400; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK_EQ(called.load(), 400);
}

}  // namespace
}  // namespace treadle

TEST_MAIN()
