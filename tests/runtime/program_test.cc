// Whole programs, written by hand in C (saxpy_program.c): load and run without any compiler.
#include "plugin/runtime/program.h"

#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "plugin/runtime/memory_block.h"
#include "tests/cc/check.h"
#include "tests/runtime/artifact_builder.h"

namespace treadle {
namespace {

constexpr int kSize = 1000;
constexpr float kScale = 3;

ArtifactBuilder Handwritten(const std::string& entry) {
  ArtifactBuilder builder;
  builder.name = "jit_" + entry;
  builder.entry = entry;
  builder.inputs = {{{kSize}}, {{kSize}}};
  builder.outputs = {{{kSize}}};
  builder.objects = {HandwrittenObject()};
  builder.constants = std::string(reinterpret_cast<const char*>(&kScale), sizeof kScale);
  return builder;
}

struct Buffers {
  Buffers() : x(kSize * sizeof(float)), y(kSize * sizeof(float)), out(kSize * sizeof(float)) {
    for (int i = 0; i < kSize; ++i) {
      X()[i] = static_cast<float>(i % 37 + 1);
      Y()[i] = static_cast<float>(i % 11);
    }
  }
  float* X() const { return static_cast<float*>(x.data()); }
  float* Y() const { return static_cast<float*>(y.data()); }
  float* Out() const { return static_cast<float*>(out.data()); }
  void Run(const Program& program, ThreadPool& pool) const {
    void* inputs[] = {x.data(), y.data()};
    void* outputs[] = {out.data()};
    program.Run(pool, inputs, outputs);
  }

  HostBlock x, y, out;
};

void CheckSaxpy(const Buffers& buffers) {
  int wrong = 0;
  for (int i = 0; i < kSize; ++i)
    wrong += buffers.Out()[i] != kScale * buffers.X()[i] + buffers.Y()[i];
  CHECK_EQ(wrong, 0);
}

TEST(RunsSaxpy) {
  const auto program = Program::Load(Handwritten("saxpy").Build());
  CHECK_EQ(program->name(), "jit_saxpy");
  CHECK_EQ(program->artifact(), Handwritten("saxpy").Build());
  CHECK(program->code_size() > 0);
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    const Buffers buffers;
    buffers.Run(*program, pool);
    CheckSaxpy(buffers);
  }
}

TEST(GivesEveryRunItsScratch) {
  ArtifactBuilder builder = Handwritten("saxpy_scratch");
  builder.scratch_bytes = kSize * sizeof(float);
  const auto program = Program::Load(builder.Build());
  ThreadPool pool(2);
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t) {
    clients.emplace_back([&] {
      const Buffers buffers;
      for (int i = 0; i < 200; ++i) buffers.Run(*program, pool);
      CheckSaxpy(buffers);
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(RunsFromManyThreads) {
  const auto program = Program::Load(Handwritten("saxpy").Build());
  ThreadPool pool(3);
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t) {
    clients.emplace_back([&] {
      const Buffers buffers;
      for (int i = 0; i < 200; ++i) buffers.Run(*program, pool);
      CheckSaxpy(buffers);
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(CallsTheMatrixProduct) {
  const auto program = Program::Load(Handwritten("product").Build());
  ThreadPool pool(2);
  const Buffers buffers;
  buffers.Run(*program, pool);
  int wrong = 0;
  for (int m = 0; m < 25; ++m) {
    for (int n = 0; n < 25; ++n) {
      float sum = 0;
      for (int k = 0; k < 40; ++k) sum += buffers.X()[m * 40 + k] * buffers.Y()[k + n * 40];
      wrong += buffers.Out()[m * 25 + n] != sum;
    }
  }
  CHECK_EQ(wrong, 0);
}

TEST(ResolvesEveryKindOfReference) {
  const auto program = Program::Load(Handwritten("references").Build());
  ThreadPool pool(1);
  const Buffers buffers;
  buffers.Run(*program, pool);
  const float* out = buffers.Out();
  CHECK_EQ(out[0], static_cast<float>(std::exp(1.0)) + 0.5f);
  CHECK_EQ(out[1], static_cast<float>(std::log(2.0)) + 0.25f);
  CHECK_EQ(out[2], static_cast<float>(std::sqrt(3.0)) + 0.125f);
  CHECK_EQ(out[3], std::tanh(4.0f));
  CHECK_EQ(out[4], 0.5f);
  CHECK_EQ(out[5], 1.0f);
  CHECK_EQ(out[6], 0.0f);
}

TEST(ReportsTheProgramsErrors) {
  ThreadPool pool(1);
  const Buffers buffers;
  CHECK_ERROR(buffers.Run(*Program::Load(Handwritten("fails").Build()), pool), kOutOfRange,
              "the index is out of range");
  CHECK_ERROR(buffers.Run(*Program::Load(Handwritten("fails_silently").Build()), pool), kInternal,
              "The program 'jit_fails_silently' failed with code 13");
  CHECK_ERROR(buffers.Run(*Program::Load(Handwritten("refused").Build()), pool), kInvalidArgument,
              "matrix product: a malformed description");
}

TEST(RefusesProgramsWithoutEntry) {
  CHECK_ERROR(Program::Load(Handwritten("missing").Build()), kInvalidArgument,
              "does not define its entry 'missing'");
  // Data is no entry.
  CHECK_ERROR(Program::Load(Handwritten("table").Build()), kInvalidArgument, "entry 'table'");
  CHECK_ERROR(Program::Load("not an artifact"), kInvalidArgument, "not a program");
}

TEST(HasRoomForManyBuffers) {
  ArtifactBuilder builder = Handwritten("fails");
  builder.inputs.resize(500, {{1}});
  const auto program = Program::Load(builder.Build());
  ThreadPool pool(1);
  const HostBlock block(64);
  const std::vector<void*> inputs(500, block.data());
  void* outputs[] = {block.data()};
  CHECK_ERROR(program->Run(pool, inputs.data(), outputs), kOutOfRange, "out of range");
}

TEST(RefusesMemoryThatIsNotThere) {
  CHECK_ERROR(HostBlock(size_t{1} << 60), kResourceExhausted, "1152921504606846976 bytes");
  CHECK_ERROR(HostBlock(~size_t{0}), kResourceExhausted, "Cannot allocate");
  ArtifactBuilder builder = Handwritten("saxpy_scratch");
  builder.scratch_bytes = uint64_t{1} << 60;
  const auto program = Program::Load(builder.Build());
  ThreadPool pool(1);
  CHECK_ERROR(Buffers().Run(*program, pool), kResourceExhausted, "Cannot allocate");
}

TEST(BlocksAreAligned) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, HostBlock::kMapThreshold,
                            HostBlock::kMapThreshold + 1}) {
    HostBlock block(size);
    CHECK(block.data() != nullptr);
    CHECK_EQ(reinterpret_cast<uintptr_t>(block.data()) % kAlignment, 0u);
    std::memset(block.data(), 1, size);
    HostBlock moved = std::move(block);
    CHECK_EQ(moved.size(), size);
    CHECK(block.data() == nullptr);
  }
}

}  // namespace
}  // namespace treadle

TEST_MAIN()
