#include "plugin/runtime/handshake.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "plugin/runtime/error.h"

namespace treadle {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A process that found different versions stays for this long at most until the others have seen
// them too: the first to leave may be the one that hosts the store.
constexpr milliseconds kFarewell{5000};

// Errors name this many processes with their whereabouts.
constexpr size_t kMaxNamed = 32;

// The records that this process has published, and whether their round went well. A store only
// tells that a key is taken; this tells by whom.
class PublishedRecords {
 public:
  enum class State { kForeign, kUnfinished, kFinished };

  static PublishedRecords& Get() {
    static auto* const records = new PublishedRecords;
    return *records;
  }
  void Add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    finished_.emplace(text, false);
  }
  void Finish(const std::string& text) {
    const std::lock_guard lock(mutex_);
    finished_[text] = true;
  }
  State Find(const std::string& text) const {
    const std::lock_guard lock(mutex_);
    const auto found = finished_.find(text);
    if (found == finished_.end()) return State::kForeign;
    return found->second ? State::kFinished : State::kUnfinished;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, bool> finished_;
};

std::string KeyOf(int round, int node_id) {
  return StrCat("treadle/handshake/", round, "/", node_id);
}

[[noreturn]] void Rethrow(const Error& error, const std::string& doing) {
  Error named = error;
  named.text = StrCat(doing, ": ", error.text);
  throw named;
}

[[noreturn]] void ThrowTaken(const ProcessRecord& self, const std::string& text) {
  const ParsedRecord other = ParseProcessRecord(text);
  throw InvalidArgument(
      "two processes have node_id ", self.node_id, ": this one (", self.Whereabouts(),
      ") and one that was here before (", other.good ? other.record.Whereabouts() : other.problem,
      "). Give each process a process_id of its own in jax.distributed.initialize; if this "
      "process was restarted while the others ran on, restart all of them");
}

struct Published {
  int round;
  std::string text;  // of the record, perhaps that of an earlier attempt
};

// Puts the record into the first round that this process has not been through.
Published Publish(KeyValueStore& store, const ProcessRecord& self) {
  PublishedRecords& mine = PublishedRecords::Get();
  const std::string text = self.Serialize();
  for (int round = 0;; ++round) {
    const std::string key = KeyOf(round, self.node_id);
    std::optional<std::string> there = store.TryGet(key);
    if (!there) {
      // Before it is public: nobody may see a record that its own process does not know.
      mine.Add(text);
      try {
        store.Put(key, text);
        return {round, text};
      } catch (const Error& error) {
        if (error.code != static_cast<int>(StatusCode::kAlreadyExists)) throw;
        there = store.TryGet(key);
        if (!there) throw;
      }
    }
    switch (mine.Find(*there)) {
      case PublishedRecords::State::kFinished:
        continue;
      case PublishedRecords::State::kForeign:
        ThrowTaken(self, *there);
      case PublishedRecords::State::kUnfinished:
        break;
    }
    // A former attempt of this process, which failed; its record has to hold, for it may have been
    // read.
    ProcessRecord before = ParseProcessRecord(*there).record;
    before.nonce = self.nonce;
    if (before.Serialize() != text) {
      throw FailedPrecondition(
          "this process has told the others about itself in a handshake that failed, and now has "
          "other options (",
          before.num_devices, " devices then, ", self.num_devices, " now); restart the processes");
    }
    return {round, *std::move(there)};
  }
}

// "0-3, 7"
std::string Ranges(const std::vector<int>& ids) {
  std::string text;
  for (size_t i = 0; i < ids.size();) {
    size_t end = i + 1;
    while (end < ids.size() && ids[end] == ids[end - 1] + 1) ++end;
    text += StrCat(text.empty() ? "" : ", ", ids[i]);
    if (end - i > 1) text += StrCat(end - i == 2 ? ", " : "-", ids[end - 1]);
    i = end;
  }
  return text;
}

// One slot per process; empty: it has not come.
using Answers = std::vector<std::optional<ParsedRecord>>;

// "0 (host a, pid 1), 2 (host b, pid 7, this process)"
std::string Named(const Answers& answers, const std::vector<int>& ids, int self) {
  std::string text;
  for (size_t i = 0; i < std::min(ids.size(), kMaxNamed); ++i) {
    const ParsedRecord& answer = *answers[static_cast<size_t>(ids[i])];
    text += StrCat(i == 0 ? "" : ", ", ids[i]);
    if (answer.good)
      text += StrCat(" (", answer.record.Whereabouts(), ids[i] == self ? ", this process)" : ")");
  }
  if (ids.size() > kMaxNamed) text += StrCat(" and ", ids.size() - kMaxNamed, " more");
  return text;
}

class Meeting {
 public:
  Meeting(KeyValueStore& store, const ProcessRecord& self, Published published,
          milliseconds timeout)
      : store_(store),
        self_(self),
        published_(std::move(published)),
        timeout_(timeout),
        deadline_(Clock::now() + timeout),
        answers_(static_cast<size_t>(self.num_nodes)) {}

  std::vector<ProcessRecord> Hold() {
    Collect();
    CheckEveryoneCame();
    CheckAgreement();
    PublishedRecords::Get().Finish(published_.text);
    std::vector<ProcessRecord> records;
    for (const auto& answer : answers_) records.push_back(answer->record);
    return records;
  }

 private:
  milliseconds Remaining() const {
    return std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now());
  }

  // The value of a key, waiting for it while there is time.
  std::optional<std::string> Await(const std::string& key) {
    const milliseconds remaining = Remaining();
    if (remaining <= milliseconds::zero()) return store_.TryGet(key);
    try {
      return store_.Get(key, remaining);
    } catch (const Error& error) {
      if (error.code == static_cast<int>(StatusCode::kDeadlineExceeded)) return std::nullopt;
      throw;
    }
  }

  void Collect() {
    for (int id = 0; id < self_.num_nodes; ++id) {
      std::optional<std::string> text;
      try {
        text = id == self_.node_id ? published_.text : Await(KeyOf(published_.round, id));
      } catch (const Error& error) {
        Rethrow(error, StrCat("waiting for process ", id, " of ", self_.num_nodes,
                              " failed, because the key-value store did"));
      }
      if (!text) continue;
      ParsedRecord answer = ParseProcessRecord(*text);
      if (answer.good && answer.record.node_id != id) {
        answer.good = false;
        answer.problem = StrCat("the record of process ", answer.record.node_id, ", out of place");
      }
      answers_[static_cast<size_t>(id)] = std::move(answer);
    }
  }

  void CheckEveryoneCame() const {
    std::vector<int> missing, came;
    for (int id = 0; id < self_.num_nodes; ++id) {
      (answers_[static_cast<size_t>(id)] ? came : missing).push_back(id);
    }
    if (missing.empty()) return;
    const bool one = missing.size() == 1;
    throw Error(
        StatusCode::kDeadlineExceeded,
        StrCat(missing.size(), " of ", self_.num_nodes, " processes did not come within ",
               static_cast<double>(timeout_.count()) / 1000,
               " s: ", one ? "process " : "processes ", Ranges(missing), ". Here ",
               came.size() == 1 ? "is " : "are ", Named(answers_, came, self_.node_id),
               ". Look into the output of ", one ? "process " : "processes ", Ranges(missing),
               ": every process has to use JAX (jax.devices() will do) after "
               "jax.distributed.initialize. TREADLE_HANDSHAKE_TIMEOUT sets the seconds to wait"));
  }

  // What is said of processes, and of which.
  using Groups = std::map<std::string, std::vector<int>>;

  template <typename Say>
  Groups GroupBy(Say&& say) const {
    Groups groups;
    for (int id = 0; id < self_.num_nodes; ++id) {
      groups[say(*answers_[static_cast<size_t>(id)])].push_back(id);
    }
    return groups;
  }

  // Every process reads every record, so all of them find a difference.
  void CheckAgreement() {
    const Groups software = GroupBy([](const ParsedRecord& answer) {
      return answer.good ? answer.record.Software() : answer.problem;
    });
    if (software.size() > 1) {
      Fail("the processes do not run the same software:", software,
           StrCat("Install the same wheels on every host, for example treadle==",
                  MostCommonVersion(software), ", and one version of jax, jaxlib and llvmlite."));
    }
    const Groups counts = GroupBy([](const ParsedRecord& answer) {
      return StrCat("started as one of ", answer.record.num_nodes, " processes");
    });
    if (counts.size() > 1) {
      Fail("the processes were not started for the same number of processes:", counts,
           "Give num_processes the same value in every jax.distributed.initialize.");
    }
  }

  // The Treadle of the largest group, so that all processes give the same advice.
  std::string MostCommonVersion(const Groups& software) const {
    const std::vector<int>* largest = nullptr;
    for (const auto& [_, ids] : software) {
      const bool more = largest == nullptr || ids.size() > largest->size() ||
                        (ids.size() == largest->size() && ids[0] < (*largest)[0]);
      if (more && !VersionOf(ids[0]).empty()) largest = &ids;
    }
    return VersionOf((*largest)[0]);
  }
  const std::string& VersionOf(int id) const {
    return answers_[static_cast<size_t>(id)]->record.treadle_version;
  }

  [[noreturn]] void Fail(const char* what, const Groups& groups, const std::string& advice) {
    std::string text = what;
    for (const auto& [said, ids] : groups) {
      text += StrCat("\n  ", ids.size() == 1 ? "process " : "processes ",
                     Named(answers_, ids, self_.node_id), ": ", said);
    }
    Farewell();
    throw FailedPrecondition(text, "\n", advice);
  }

  // Waits until the others have read the records too, or for a moment.
  void Farewell() {
    deadline_ = std::min(deadline_, Clock::now() + kFarewell);
    try {
      store_.Put(KeyOf(published_.round, self_.node_id) + "/read", "");
      for (int id = 0; id < self_.num_nodes && Remaining() > milliseconds::zero(); ++id) {
        Await(KeyOf(published_.round, id) + "/read");
      }
    } catch (const Error&) {
      // Somebody has gone already; there is an error to report anyway.
    }
  }

  KeyValueStore& store_;
  const ProcessRecord& self_;
  const Published published_;
  const milliseconds timeout_;
  Clock::time_point deadline_;
  Answers answers_;
};

}  // namespace

std::vector<ProcessRecord> Handshake(KeyValueStore& store, const ProcessRecord& self,
                                     std::chrono::milliseconds timeout) {
  try {
    return Meeting(store, self, Publish(store, self), timeout).Hold();
  } catch (const Error& error) {
    Rethrow(error, StrCat("handshake of process ", self.node_id, " of ", self.num_nodes));
  }
}

}  // namespace treadle
