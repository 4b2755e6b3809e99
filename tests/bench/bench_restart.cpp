// How soon a daemon serves after kill -9 with 1,000,000 events in its journal. A child fills the store and is
// killed in the middle of a write; then: open, load the state, make the hub, read the newest events, commit
// one batch. bench_restart [--directory DIR] [--raw DIR] [--events N] [--rounds N]
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "actors/core/snapshot_hub.hpp"
#include "storage/journal_log.hpp"
#include "storage/rocks_store.hpp"

namespace busbar::bench {
namespace {

using steady = std::chrono::steady_clock;

storage::journal_options journal_settings() {
  storage::journal_options options;
  options.clock = storage::machine_instant;
  options.boot_id = storage::machine_boot_id();
  return options;
}

std::shared_ptr<const core::journal_batch> step(std::uint64_t number) {
  auto node = std::make_shared<journal::Node>();
  node->set_name(fmt::format("r01/c{:02}", number % 27));
  node->set_waits_for(std::string(400, 'w'));
  core::journal_batch batch;
  batch.put(std::shared_ptr<const journal::Node>(std::move(node)));
  for (const char* type : {"step_entered", "condition_set"}) {
    journal::Event event;
    event.set_object(fmt::format("r01/c{:02}", number % 27));
    event.set_kind("node");
    event.set_type(type);
    event.set_message(fmt::format("identified: serial, slot and SKU as the manifest says ({})", number));
    batch.events.push_back(std::move(event));
  }
  return std::make_shared<const core::journal_batch>(std::move(batch));
}

// Never returns: writes on until it is killed; one byte to `ready` once the events are there.
[[noreturn]] void fill(const std::string& directory, std::uint64_t events, int ready) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the bench
  storage::rocks_options options;
  options.directory = directory;
  auto opened = storage::open_rocks_store(options);
  if (!opened.ok()) std::_Exit(1);
  storage::journal_options settings = journal_settings();
  settings.kept_events = events * 2;  // retention is not what is measured
  const auto log = storage::journal_log::open(std::move(*opened), settings);
  if (!log.ok()) std::_Exit(1);
  bool told = false;
  for (std::uint64_t number = 1;;) {
    std::vector<std::shared_ptr<const core::journal_batch>> group;
    for (int i = 0; i < 500; ++i) group.push_back(step(number++));
    for (const auto& outcome : (*log)->commit_many(group)) {
      if (!outcome.ok()) std::_Exit(1);
    }
    if (!told && number * 2 > events) {
      told = true;
      const char word = 'r';
      if (::write(ready, &word, 1) != 1) std::_Exit(1);
    }
  }
}

// The writer is this program begun anew: RocksDB leaves threads behind, and a fork of a process with threads
// may hang on a lock that one of them held.
bool fill_and_kill(const std::string& directory, std::uint64_t events) {
  int ends[2];
  if (::pipe(ends) != 0) return false;
  std::string count = std::to_string(events);
  std::string ready_end = std::to_string(ends[1]);
  std::string folder = directory;
  std::string word_of_writer = "--write";
  std::string self = "/proc/self/exe";
  char* const words[] = {self.data(),  word_of_writer.data(), folder.data(),
                         count.data(), ready_end.data(),      nullptr};
  pid_t child = -1;
  if (::posix_spawn(&child, self.c_str(), nullptr, nullptr, words, environ) != 0) return false;
  ::close(ends[1]);
  char word = 0;
  const bool ready = ::read(ends[0], &word, 1) == 1;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  return ready;
}

struct stage {
  std::string name;
  double seconds;
};

// Empty on failure.
std::vector<stage> restart(const std::string& directory, std::uint64_t& events_found) {
  std::vector<stage> stages;
  auto last = steady::now();
  const auto done = [&stages, &last](const char* name) {
    const auto now = steady::now();
    stages.push_back({name, std::chrono::duration<double>(now - last).count()});
    last = now;
  };
  storage::rocks_options options;
  options.directory = directory;
  auto opened = storage::open_rocks_store(options);
  if (!opened.ok()) return {};
  done("open the store");
  const auto log = storage::journal_log::open(std::move(*opened), journal_settings());
  if (!log.ok()) return {};
  const auto contents = (*log)->load();
  if (!contents.ok()) return {};
  core::snapshot_hub hub(contents->state);
  done("load all state");
  const auto newest = (*log)->last_events(100);
  if (!newest.ok() || newest->size() != 100 || hub.read()->nodes->size() != 27) return {};
  done("read the newest 100 events");
  const auto outcome = (*log)->commit(*step(1));
  if (!outcome.ok()) return {};
  hub.publish({&outcome->commit, 1});
  done("first commit and its publication");
  events_found = (*log)->head().revision() * 2;
  return stages;
}

int measure(const std::string& directory, const std::string& raw, std::uint64_t events, int rounds) {
  std::vector<double> totals;
  std::string csv = "round,stage,seconds\n";
  for (int round = 0; round < rounds; ++round) {
    const std::string store = fmt::format("{}/store{}", directory, round);
    if (!fill_and_kill(store, events)) return 1;
    std::uint64_t found = 0;
    const auto stages = restart(store, found);
    if (stages.empty() || found < events) {
      std::cerr << "the store did not come back\n";
      return 1;
    }
    double total = 0;
    for (const stage& each : stages) {
      fmt::print("{:<44}{:>10.3f} s\n", fmt::format("round {}: {}", round, each.name), each.seconds);
      csv += fmt::format("{},{},{:.6f}\n", round, each.name, each.seconds);
      total += each.seconds;
    }
    totals.push_back(total);
    std::error_code ignored;
    std::filesystem::remove_all(store, ignored);
  }
  if (!raw.empty()) {
    std::filesystem::create_directories(raw);
    std::ofstream(raw + "/restart.csv") << csv;
  }
  // The worst of the rounds: a restart has no p50 to hide behind.
  fmt::print("{{\"seconds_1m_events\":{:.3f}}}\n", *std::max_element(totals.begin(), totals.end()));
  return 0;
}

}  // namespace
}  // namespace busbar::bench

int main(int argc, char** argv) {
  if (argc == 5 && std::string(argv[1]) == "--write") {
    busbar::bench::fill(argv[2], std::strtoull(argv[3], nullptr, 10), std::atoi(argv[4]));
  }
  std::string directory = ".";
  std::string raw;
  std::uint64_t events = 1'000'000;
  int rounds = 3;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--directory") directory = argv[i + 1];
    if (word == "--raw") raw = argv[i + 1];
    if (word == "--rounds") rounds = std::atoi(argv[i + 1]);
    if (word == "--events") events = std::strtoull(argv[i + 1], nullptr, 10);
  }
  directory += "/bench-restart-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    std::cerr << "cannot make " << directory << '\n';
    return 1;
  }
  const int result = busbar::bench::measure(directory, raw, events, rounds);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return result;
}
