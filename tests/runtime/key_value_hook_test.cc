// The key-value store as code outside the plugin has it: while its client lives, and after.
#include "plugin/runtime/key_value_hook.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "plugin/runtime/error.h"
#include "plugin/runtime/key_value_abi.h"
#include "tests/cc/check.h"

namespace treadle {
namespace {

using std::chrono::milliseconds;

// Says what it was asked; "slow" takes its time.
class EchoStore final : public KeyValueStore {
 public:
  explicit EchoStore(std::atomic<int>* alive) : alive_(alive) { ++*alive_; }
  ~EchoStore() override { --*alive_; }

  void Put(std::string_view key, std::string_view) override {
    if (key == "taken") throw Error(StatusCode::kAlreadyExists, "taken");
  }
  std::string Get(std::string_view key, milliseconds timeout) override {
    if (key == "slow") std::this_thread::sleep_for(milliseconds(2));
    return StrCat(key, " in ", timeout.count());
  }
  std::optional<std::string> TryGet(std::string_view key) override {
    if (key == "absent") return std::nullopt;
    if (key == "bad") throw std::bad_alloc();
    return std::string(key);
  }

 private:
  std::atomic<int>* const alive_;
};

TreadleKeyValueFunctions taken;
void Take(const TreadleKeyValueFunctions* functions) { taken = *functions; }
const int64_t kTake = reinterpret_cast<int64_t>(&Take);

void Emit(void* sink, const char* bytes, uint64_t size) {
  static_cast<std::vector<std::string>*>(sink)->emplace_back(bytes, size);
}

struct Answer {
  int32_t code = 0;
  std::vector<std::string> emitted;
};
Answer Put(std::string_view key) {
  Answer answer;
  answer.code = taken.put(taken.store, key.data(), key.size(), "v", 1, &answer.emitted, Emit);
  return answer;
}
Answer Get(std::string_view key, int64_t timeout_ms = 7) {
  Answer answer;
  answer.code = taken.get(taken.store, key.data(), key.size(), timeout_ms, &answer.emitted, Emit);
  return answer;
}
Answer TryGet(std::string_view key) {
  Answer answer;
  answer.code = taken.try_get(taken.store, key.data(), key.size(), &answer.emitted, Emit);
  return answer;
}

void Expect(const Answer& answer, StatusCode code, const std::string& text) {
  CHECK_EQ(answer.code, static_cast<int32_t>(code));
  CHECK_EQ(answer.emitted.size(), 1u);
  CHECK_EQ(answer.emitted.at(0), text);
}

TEST(CallsReachTheStore) {
  std::atomic<int> alive{0};
  {
    const KeyValueHook hook(kTake, 3, 5, std::make_shared<EchoStore>(&alive));
    CHECK_EQ(taken.struct_size, sizeof(TreadleKeyValueFunctions));
    CHECK_EQ(taken.node_id, 3);
    CHECK_EQ(taken.num_nodes, 5);
    CHECK_EQ(Put("new").code, 0);
    CHECK(Put("new").emitted.empty());
    Expect(Put("taken"), StatusCode::kAlreadyExists, "taken");
    Expect(Get("a"), StatusCode::kOk, "a in 7");
    Expect(Get("a", -1), StatusCode::kOk, "a in 0");
    Expect(Get("a", INT64_MAX), StatusCode::kOk, "a in 2147483647");
    Expect(TryGet(std::string_view("\0b", 2)), StatusCode::kOk, std::string("\0b", 2));
    Expect(TryGet(""), StatusCode::kOk, "");
    Expect(TryGet("absent"), StatusCode::kNotFound, "the key 'absent' is not there");
    CHECK_EQ(TryGet("bad").code, static_cast<int32_t>(StatusCode::kInternal));
  }
  // The client is gone, and the store with it; who holds the functions gets an error.
  CHECK_EQ(alive.load(), 0);
  for (const Answer& answer : {Put("new"), Get("a"), TryGet("a")}) {
    CHECK_EQ(answer.code, static_cast<int32_t>(StatusCode::kFailedPrecondition));
    CHECK(answer.emitted.at(0).find("has been destroyed") != std::string::npos);
  }
  taken.release(taken.store);
}

TEST(WithoutAHookNothingIsHandedOut) {
  std::atomic<int> alive{0};
  taken = {};
  const KeyValueHook hook(0, 0, 1, std::make_shared<EchoStore>(&alive));
  CHECK(taken.store == nullptr);
  CHECK_EQ(alive.load(), 0);
}

TEST(TheStoreEndsWhenNoCallIsUnderWay) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> alive{0};
    std::atomic<int> answered{0}, refused{0};
    std::vector<std::thread> threads;
    {
      const KeyValueHook hook(kTake, 0, 1, std::make_shared<EchoStore>(&alive));
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          while (refused.load() == 0) ++(Get("slow").code == 0 ? answered : refused);
        });
      }
      while (answered.load() < 4) std::this_thread::yield();
    }
    CHECK_EQ(alive.load(), 0);
    for (std::thread& thread : threads) thread.join();
    CHECK(refused.load() >= 1);
    taken.release(taken.store);
  }
}

}  // namespace
}  // namespace treadle

TEST_MAIN()
