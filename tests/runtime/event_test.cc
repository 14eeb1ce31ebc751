// Events: set once, seen by everyone, safe to drop at any moment.
#include "plugin/runtime/event.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cc/check.h"

namespace treadle {
namespace {

TEST(CallbacksRunInOrderAndLateOnesAtOnce) {
  const Ref<Event> event = Event::Pending();
  std::vector<int> seen;
  event->OnReady([&](const Error* error) { seen.push_back(error == nullptr ? 1 : -1); });
  event->OnReady([&](const Error*) { seen.push_back(2); });
  CHECK(!event->IsReady() && seen.empty());
  CHECK(event->SetReady());
  CHECK(!event->SetError(Internal("late")));
  event->OnReady([&](const Error*) { seen.push_back(3); });
  CHECK((seen == std::vector<int>{1, 2, 3}));
  CHECK(event->error() == nullptr);
}

TEST(AnErrorReachesEveryone) {
  const Ref<Event> event = Event::Failed(DataLoss("gone"));
  CHECK(event->IsReady());
  std::string seen;
  event->OnReady([&](const Error* error) { seen = error->text; });
  CHECK_EQ(seen, "gone");
}

TEST(ACallbackMayDropTheLastReference) {
  Ref<Event> event = Event::Pending();
  Event* const raw = event.get();
  event->OnReady([&](const Error*) { event = nullptr; });
  raw->SetReady();
  CHECK(!event);
}

TEST(CallbacksOfAnEventThatIsNeverSetAreFreed) {
  const auto token = std::make_shared<int>(0);
  Event::Pending()->OnReady([token](const Error*) {});
  CHECK_EQ(token.use_count(), 1);
}

TEST(ManyThreads) {
  for (int round = 0; round < 200; ++round) {
    const Ref<Event> event = Event::Pending();
    std::atomic<int> called{0}, woken{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, own = event] {
        own->OnReady([&](const Error*) { ++called; });
        own->Wait();
        ++woken;
      });
    }
    threads.emplace_back([own = event] { own->SetReady(); });
    for (std::thread& thread : threads) thread.join();
    CHECK_EQ(called.load(), 4);
    CHECK_EQ(woken.load(), 4);
  }
}

}  // namespace
}  // namespace treadle

TEST_MAIN()
