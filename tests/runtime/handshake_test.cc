// Processes of a distributed program meet: here threads, with a store in memory.
#include "plugin/runtime/handshake.h"

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "plugin/runtime/error.h"
#include "tests/cc/check.h"

namespace treadle {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class MemoryStore : public KeyValueStore {
 public:
  void Put(std::string_view key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    if (!values_.emplace(key, value).second) {
      throw Error(StatusCode::kAlreadyExists, StrCat("there is a ", key));
    }
  }
  std::string Get(std::string_view key, milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    const std::string name(key);
    const auto deadline = Clock::now() + timeout;

    while (!values_.contains(name)) {
      if (Clock::now() >= deadline) throw Error(StatusCode::kDeadlineExceeded, StrCat("no ", key));
      lock.unlock();
      std::this_thread::sleep_for(milliseconds(1));
      lock.lock();
    }
    return values_[name];
  }
  std::optional<std::string> TryGet(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(std::string(key));
    return found == values_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

// A store whose server has gone.
class BrokenStore final : public MemoryStore {
 public:
  std::string Get(std::string_view, milliseconds) override {
    throw Error(StatusCode::kUnavailable, "connection refused");
  }
};

ProcessRecord Process(int node_id, int num_nodes, int num_devices = 1) {
  ProcessRecord record = ProcessRecord::OfThisProcess();
  record.node_id = node_id;
  record.num_nodes = num_nodes;
  record.num_devices = num_devices;
  record.pjrt_minor = 114;
  record.compiler_build_id = "c0de";
  return record;
}

// What each of the processes gets, all at once: its records, or its error.
struct Outcome {
  std::vector<ProcessRecord> records;
  int code = 0;
  std::string text;
};
std::vector<Outcome> Meet(KeyValueStore& store, const std::vector<ProcessRecord>& processes,
                          milliseconds timeout = milliseconds(20000)) {
  std::vector<Outcome> outcomes(processes.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < processes.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        outcomes[i].records = Handshake(store, processes[i], timeout);
      } catch (const Error& error) {
        outcomes[i].code = error.code;
        outcomes[i].text = error.text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(EveryoneLearnsOfEveryone) {
  MemoryStore store;
  std::vector<ProcessRecord> processes;
  for (int i = 0; i < 8; ++i) processes.push_back(Process(i, 8, i + 1));
  for (const Outcome& outcome : Meet(store, processes)) {
    CHECK_EQ(outcome.text, "");
    CHECK_EQ(outcome.records.size(), 8u);
    for (size_t i = 0; i < outcome.records.size(); ++i) {
      CHECK_EQ(outcome.records[i].Serialize(), processes[i].Serialize());
    }
  }
}

TEST(LaterClientsOfTheSameProcessesMeetAgain) {
  MemoryStore store;
  for (int round = 0; round < 3; ++round) {
    // Other numbers of devices, so that a record of an earlier round would show.
    const auto outcomes = Meet(store, {Process(0, 2, round + 1), Process(1, 2, round + 5)});
    for (const Outcome& outcome : outcomes) {
      CHECK_EQ(outcome.text, "");
      CHECK_EQ(outcome.records[0].num_devices, round + 1);
      CHECK_EQ(outcome.records[1].num_devices, round + 5);
    }
  }
}

TEST(AnAttemptAfterAFailureJoinsTheRoundInWhichItFailed) {
  MemoryStore store;
  const milliseconds soon(20);
  CHECK_ERROR(Handshake(store, Process(0, 2), soon), kDeadlineExceeded, "process 1.");
  CHECK_ERROR(Handshake(store, Process(0, 2), soon), kDeadlineExceeded, "process 1.");
  for (const Outcome& outcome : Meet(store, {Process(0, 2), Process(1, 2)})) {
    CHECK_EQ(outcome.text, "");
  }
  // With other devices than it has told the others about, it cannot.
  CHECK_ERROR(Handshake(store, Process(0, 2), soon), kDeadlineExceeded, "process 1.");
  CHECK_ERROR(Handshake(store, Process(0, 2, 7), soon), kFailedPrecondition,
              "1 devices then, 7 now");
}

TEST(TheMissingAreNamedWithinOneTimeout) {
  MemoryStore store;
  const auto start = Clock::now();
  const auto outcomes =
      Meet(store, {Process(0, 12), Process(4, 12), Process(5, 12)}, milliseconds(300));
  // Nine are missing: nine timeouts would be 2.7 s.
  CHECK(Clock::now() - start < milliseconds(2000));
  for (const Outcome& outcome : outcomes) {
    CHECK_EQ(outcome.code, static_cast<int>(StatusCode::kDeadlineExceeded));
    CHECK(Contains(outcome.text,
                   "9 of 12 processes did not come within 0.3 s: processes 1-3, 6-11. Here are 0 "
                   "(host "));
    CHECK(Contains(outcome.text, ", 4 (host ") && Contains(outcome.text, ", 5 (host "));
    CHECK(Contains(outcome.text, "this process)"));
    CHECK(Contains(outcome.text, "TREADLE_HANDSHAKE_TIMEOUT"));
  }
  CHECK(Contains(outcomes[1].text, "handshake of process 4 of 12: "));
}

TEST(OtherSoftwareFailsEverywhere) {
  const auto change = [](const std::function<void(ProcessRecord&)>& how, const std::string& shown) {
    MemoryStore store;
    std::vector<ProcessRecord> processes{Process(0, 3), Process(1, 3), Process(2, 3)};
    how(processes[1]);
    for (const Outcome& outcome : Meet(store, processes)) {
      CHECK_EQ(outcome.code, static_cast<int>(StatusCode::kFailedPrecondition));
      CHECK(Contains(outcome.text, "the processes do not run the same software:"));
      CHECK(Contains(outcome.text, "processes 0 (host ") && Contains(outcome.text, "), 2 (host "));
      CHECK(Contains(outcome.text, "process 1 (host "));
      CHECK(Contains(outcome.text, shown));
    }
  };
  change([](ProcessRecord& p) { p.treadle_version = "9.8.7"; }, "Treadle 9.8.7, PJRT 0.114");
  change([](ProcessRecord& p) { p.pjrt_minor = 12; }, "PJRT 0.12, compiler c0de");
  change([](ProcessRecord& p) { p.pjrt_major = 1; }, "PJRT 1.114");
  change([](ProcessRecord& p) { p.compiler_build_id = ""; }, "compiler unknown");
}

TEST(ADisagreementAboutTheNumberOfProcesses) {
  MemoryStore store;
  const auto outcomes = Meet(store, {Process(0, 3), Process(1, 2), Process(2, 3)});
  for (const Outcome& outcome : outcomes) {
    CHECK_EQ(outcome.code, static_cast<int>(StatusCode::kFailedPrecondition));
  }
  for (const size_t index : {size_t{0}, size_t{1}}) {
    CHECK(Contains(outcomes[index].text, "not started for the same number of processes:"));
    CHECK(Contains(outcomes[index].text, "process 1 (host "));
    CHECK(Contains(outcomes[index].text, ": started as one of 2 processes"));
    CHECK(Contains(outcomes[index].text, ": started as one of 3 processes"));
  }
}

TEST(TheAdviceIsTheVersionOfTheMost) {
  MemoryStore store;
  std::vector<ProcessRecord> processes{Process(0, 3), Process(1, 3), Process(2, 3)};
  processes[0].treadle_version = "1.0.0";
  processes[1].treadle_version = processes[2].treadle_version = "2.0.0";
  for (const Outcome& outcome : Meet(store, processes)) {
    CHECK(Contains(outcome.text, "for example treadle==2.0.0, and"));
  }
}

TEST(OtherCpusAndHostsAreFine) {
  MemoryStore store;
  std::vector<ProcessRecord> processes{Process(0, 2), Process(1, 2)};
  processes[1].cpu_features = 1;
  processes[1].host = "elsewhere\nentirely";
  const auto outcomes = Meet(store, processes);
  CHECK_EQ(outcomes[0].text, "");
  CHECK_EQ(outcomes[0].records[1].host, "elsewhere entirely");
}

TEST(RecordsThatCannotBeRead) {
  const std::string good = Process(1, 2).Serialize();
  const std::string other = Process(0, 2).Serialize();
  const std::pair<std::string, std::string> cases[] = {
      {"", "not a record of Treadle (0 bytes: \"\")"},
      {std::string("a\0b\xff", 4), "not a record of Treadle (4 bytes: \"a.b.\")"},
      {std::string(500, 'x'), "(500 bytes: \"" + std::string(40, 'x') + "...\")"},
      {"treadle-process 2 7.0.0\n{}", "Treadle 7.0.0, whose record of format 2"},
      {"treadle-process two 7.0.0\n", "not a record of Treadle"},
      {good.substr(0, good.size() / 2), "a damaged record of Treadle "},
      {std::string(good).replace(good.find("num_devices=1"), 13, "num_devices=0"), "damaged"},
      {std::string(good).replace(good.find("pid="), 4, "pid=x"), "damaged"},
      {other, "the record of process 0, out of place"},
  };
  for (const auto& [bytes, shown] : cases) {
    MemoryStore store;
    store.Put("treadle/handshake/0/1", bytes);
    // A moment for the farewell to the process that never answers.
    CHECK_ERROR(Handshake(store, Process(0, 2), milliseconds(30)), kFailedPrecondition, shown);
  }
}

TEST(FieldsToComeAreSkipped) {
  const ParsedRecord parsed = ParseProcessRecord(Process(3, 4, 5).Serialize() + "colour=blue\n");
  CHECK(parsed.good);
  CHECK_EQ(parsed.record.node_id, 3);
  CHECK_EQ(parsed.record.num_devices, 5);
}

TEST(ATakenNodeId) {
  MemoryStore store;
  ProcessRecord other = Process(1, 2);
  other.host = "twin";
  other.pid = 4711;
  store.Put("treadle/handshake/0/1", other.Serialize());
  CHECK_ERROR(Handshake(store, Process(1, 2), milliseconds(100)), kInvalidArgument,
              "two processes have node_id 1: this one (host ");
  CHECK_ERROR(Handshake(store, Process(1, 2), milliseconds(100)), kInvalidArgument,
              "(host twin, pid 4711)");
}

TEST(AStoreThatFails) {
  BrokenStore store;
  CHECK_ERROR(Handshake(store, Process(0, 2), milliseconds(100)), kUnavailable,
              "waiting for process 1 of 2 failed, because the key-value store did: connection "
              "refused");
}

TEST(NoncesDiffer) {
  std::set<std::string> nonces;
  for (int i = 0; i < 100; ++i) nonces.insert(ProcessRecord::OfThisProcess().nonce);
  CHECK_EQ(nonces.size(), 100u);
}

}  // namespace
}  // namespace treadle

TEST_MAIN()
