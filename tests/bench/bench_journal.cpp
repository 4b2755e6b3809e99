// Figures of the journal: what a durable transition costs over a bare append and sync, how many syncs a crowd of writers needs,
// and how much of bare RocksDB's throughput is left. bench_journal [--directory DIR] [--raw DIR] [--quick]
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "actors/core/journal_actor.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "storage/journal_log.hpp"
#include "storage/memory_store.hpp"
#include "storage/rocks_store.hpp"
#include "tests/bench/syncs_counted.hpp"

namespace busbar::bench {
namespace {

using steady = std::chrono::steady_clock;

double microseconds(steady::duration elapsed) { return std::chrono::duration<double, std::micro>(elapsed).count(); }

double percentile(std::vector<double> samples, double share) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1))];
}

// A node's step as the daemon writes it: the node, an event, an intent opened.
core::batch_ptr transition(std::uint64_t number) {
  auto node = std::make_shared<journal::Node>();
  node->set_name(fmt::format("r01/c{:02}", number % 27));
  node->set_uid("8f14e45f-ceea-467f-a0e6-c1d1f3a1b2c3");
  node->set_step(journal::IDENTIFIED);
  node->set_waits_for("own account on the BMC");
  for (int gpu = 0; gpu < 4; ++gpu) {
    journal::Part* part = node->add_parts();
    part->set_kind("gpu");
    part->set_id(fmt::format("gpu{}", gpu));
    part->set_model("GB200");
    part->set_serial(fmt::format("1650123{:04}", gpu));
  }
  core::journal_batch batch;
  batch.put(std::shared_ptr<const journal::Node>(std::move(node)));
  journal::Event event;
  event.set_object(fmt::format("r01/c{:02}", number % 27));
  event.set_kind("node");
  event.set_type("step_entered");
  event.set_message("identified: serial, slot and SKU as the manifest says");
  batch.events.push_back(std::move(event));
  journal::Intent intent;
  intent.set_id(fmt::format("r01/c{:02}/create_account/{}", number % 27, number));
  intent.set_verb("create_account");
  batch.intents_opened.push_back(std::move(intent));
  if (number > 27) batch.intents_closed.push_back(fmt::format("r01/c{:02}/create_account/{}", number % 27, number - 27));
  return std::make_shared<const core::journal_batch>(std::move(batch));
}

// Between the journal and the disk: how much was written, so that the bare append writes as much.
class recording_store final : public storage::store {
 public:
  explicit recording_store(std::unique_ptr<storage::store> below) : below_(std::move(below)) {}
  absl::Status write(const storage::store_write& batch) override {
    std::size_t bytes = 0;
    for (const auto& operation : batch.operations()) bytes += operation.key.size() + operation.value.size() + 4;
    last_bytes_.store(bytes);
    ++writes_;
    return below_->write(batch);
  }
  absl::StatusOr<std::optional<std::string>> get(storage::family where, std::string_view key) const override {
    return below_->get(where, key);
  }
  absl::Status scan(storage::family where, std::string_view from, std::string_view to,
                    const visitor& visit) const override {
    return below_->scan(where, from, to, visit);
  }
  absl::Status scan_back(storage::family where, std::string_view from, std::string_view to,
                         const visitor& visit) const override {
    return below_->scan_back(where, from, to, visit);
  }
  storage::store_health health() const override { return below_->health(); }
  absl::Status probe() override { return below_->probe(); }
  absl::Status close() override { return below_->close(); }

  std::size_t last_bytes() const { return last_bytes_.load(); }
  std::uint64_t writes() const { return writes_.load(); }

 private:
  std::unique_ptr<storage::store> below_;
  std::atomic<std::size_t> last_bytes_{0};
  std::atomic<std::uint64_t> writes_{0};
};

// Keeps what the journal writes; the disk of the run that only records.
class kept_writes final : public storage::memory_store {
 public:
  absl::Status write(const storage::store_write& batch) override {
    kept.push_back(batch);
    return memory_store::write(batch);
  }
  std::vector<storage::store_write> kept;
};

struct rig {
  explicit rig(const std::string& directory) {
    storage::rocks_options options;
    options.directory = directory;
    options.file_system = disk;
    auto opened = storage::open_rocks_store(options);
    if (!opened.ok()) {
      std::cerr << opened.status() << '\n';
      std::exit(1);
    }
    store = std::make_shared<recording_store>(std::move(*opened));
    storage::journal_options journal;
    journal.clock = storage::machine_instant;
    journal.boot_id = storage::machine_boot_id();
    log = *storage::journal_log::open(store, journal);
    hub = std::make_shared<core::snapshot_hub>(log->load()->state);
  }
  std::shared_ptr<syncs_counted> disk = std::make_shared<syncs_counted>();
  std::shared_ptr<recording_store> store;
  std::shared_ptr<storage::journal_log> log;
  std::shared_ptr<core::snapshot_hub> hub;
};

// One writer, one transition at a time; between two of them the same number of bytes appended to a file and synced.
struct alone_run {
  int rounds;
  int file;
  core::journal_actor journal;
  std::shared_ptr<recording_store> store;
  std::vector<double> journal_us;
  std::vector<double> raw_us;
  std::promise<void> done;
};

void next_round(caf::event_based_actor* self, const std::shared_ptr<alone_run>& run) {
  if (static_cast<int>(run->journal_us.size()) == run->rounds) {
    run->done.set_value();
    self->quit();
    return;
  }
  const auto batch = transition(run->journal_us.size());
  const auto begin = steady::now();
  self->request(run->journal, core::commit_timeout, core::commit_atom_v, batch)
      .then(
          [self, run, begin](const core::commit_ptr&) {
            run->journal_us.push_back(microseconds(steady::now() - begin));
            const std::string bytes(run->store->last_bytes(), 'x');
            const auto raw_begin = steady::now();
            const bool written = ::write(run->file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
                                 ::fdatasync(run->file) == 0;
            run->raw_us.push_back(written ? microseconds(steady::now() - raw_begin) : 0);
            next_round(self, run);
          },
          [self, run](const caf::error& error) {
            std::cerr << "commit failed: " << caf::to_string(error) << '\n';
            run->done.set_value();
            self->quit();
          });
}

std::shared_ptr<alone_run> measure_alone(caf::actor_system& system, const std::string& directory, int rounds) {
  rig journal(directory + "/alone");
  auto run = std::make_shared<alone_run>();
  run->rounds = rounds;
  run->file = ::open((directory + "/raw").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  run->store = journal.store;
  run->journal = core::spawn_journal(system, {journal.log, journal.hub}, {}, true);
  auto done = run->done.get_future();
  system.spawn<caf::detached>([run](caf::event_based_actor* self) { next_round(self, run); });
  done.wait();
  caf::anon_send_exit(run->journal, caf::exit_reason::user_shutdown);
  run->journal = nullptr;
  ::close(run->file);
  system.await_all_actors_done();
  return run;
}

// Each writer has one transition under way at any time.
struct crowd_run {
  const std::vector<core::batch_ptr>* batches;
  core::journal_actor journal;
  std::atomic<int> left;
  std::atomic<int> writers;
  std::promise<void> done;
};

void next_of_crowd(caf::event_based_actor* self, const std::shared_ptr<crowd_run>& run) {
  const int number = run->left.fetch_sub(1);
  if (number <= 0) {
    if (run->writers.fetch_sub(1) == 1) run->done.set_value();
    self->quit();
    return;
  }
  self->request(run->journal, core::commit_timeout, core::commit_atom_v, (*run->batches)[static_cast<std::size_t>(number - 1)])
      .then([self, run](const core::commit_ptr&) { next_of_crowd(self, run); },
            [self, run](const caf::error& error) {
              std::cerr << "commit failed: " << caf::to_string(error) << '\n';
              if (run->writers.fetch_sub(1) == 1) run->done.set_value();
              self->quit();
            });
}

struct crowd_figures {
  double per_second = 0;
  double syncs_per_1000 = 0;
  std::size_t group = 0;  // batches a sync, on average
};

crowd_figures measure_crowd(caf::actor_system& system, const std::string& directory, int writers,
                            const std::vector<core::batch_ptr>& batches) {
  rig journal(directory);
  const auto commits = static_cast<int>(batches.size());
  auto run = std::make_shared<crowd_run>();
  run->batches = &batches;
  run->left.store(commits);
  run->writers.store(writers);
  run->journal = core::spawn_journal(system, {journal.log, journal.hub}, {}, true);
  auto done = run->done.get_future();
  const std::uint64_t syncs_before = journal.disk->syncs();
  const std::uint64_t writes_before = journal.store->writes();
  const auto begin = steady::now();
  for (int i = 0; i < writers; ++i) {
    system.spawn([run](caf::event_based_actor* self) { next_of_crowd(self, run); });
  }
  done.wait();
  const double seconds = microseconds(steady::now() - begin) / 1e6;
  crowd_figures figures;
  figures.per_second = commits / seconds;
  figures.syncs_per_1000 = static_cast<double>(journal.disk->syncs() - syncs_before) * 1000 / commits;
  caf::anon_send_exit(run->journal, caf::exit_reason::user_shutdown);
  run->journal = nullptr;
  system.await_all_actors_done();
  figures.group = batches.size() / std::max<std::uint64_t>(journal.store->writes() - writes_before, 1);
  return figures;
}

// What the journal writes for these batches, in groups as large as the crowd's were. Not timed.
std::vector<storage::store_write> writes_of(const std::vector<core::batch_ptr>& batches, std::size_t group) {
  const auto disk = std::make_shared<kept_writes>();
  storage::journal_options options;
  options.clock = storage::machine_instant;
  options.boot_id = storage::machine_boot_id();
  const auto log = *storage::journal_log::open(disk, options);
  disk->kept.clear();
  for (std::size_t at = 0; at < batches.size(); at += group) {
    const auto outcomes = log->commit_many({batches.data() + at, std::min(group, batches.size() - at)});
    for (const auto& outcome : outcomes) {
      if (!outcome.ok()) return {};
    }
  }
  return std::move(disk->kept);
}

// The very same writes, straight into RocksDB: one synced WriteBatch a group.
double measure_bare(const std::string& directory, const std::vector<storage::store_write>& writes, int commits) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  std::vector<rocksdb::ColumnFamilyDescriptor> families = {{rocksdb::kDefaultColumnFamilyName, options}};
  for (const storage::family where : storage::families) families.emplace_back(std::string(name_of(where)), options);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  if (!rocksdb::DB::Open(options, directory, families, &handles, &opened).ok()) return 0;
  const std::unique_ptr<rocksdb::DB> database(opened);
  rocksdb::WriteOptions synced;
  synced.sync = true;
  const auto begin = steady::now();
  for (const storage::store_write& write : writes) {
    rocksdb::WriteBatch batch;
    for (const auto& operation : write.operations()) {
      auto* handle = handles[1 + static_cast<std::size_t>(operation.where)];
      if (operation.what == storage::store_write::action::put) {
        batch.Put(handle, operation.key, operation.value);
      } else {
        batch.Delete(handle, operation.key);
      }
    }
    if (!database->Write(synced, &batch).ok()) return 0;
  }
  const double seconds = microseconds(steady::now() - begin) / 1e6;
  for (auto* handle : handles) database->DestroyColumnFamilyHandle(handle);
  return commits / seconds;
}

struct arguments {
  std::string directory;
  std::string raw;
  bool quick = false;
};

arguments parse(int argc, char** argv) {
  arguments given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--quick") given.quick = true;
    if (word == "--directory" && i + 1 < argc) given.directory = argv[++i];
    if (word == "--raw" && i + 1 < argc) given.raw = argv[++i];
  }
  return given;
}

void leave_raw(const std::string& directory, const alone_run& alone, const std::vector<std::string>& rounds) {
  if (directory.empty()) return;
  std::filesystem::create_directories(directory);
  std::ofstream samples(directory + "/journal_alone.csv");
  samples << "journal_us,raw_us\n";
  for (std::size_t i = 0; i < alone.raw_us.size(); ++i) {
    samples << fmt::format("{:.1f},{:.1f}\n", alone.journal_us[i], alone.raw_us[i]);
  }
  std::ofstream crowd(directory + "/journal_crowd.csv");
  crowd << "round,journal_per_second,bare_per_second,syncs_per_1000\n";
  for (const std::string& round : rounds) crowd << round << '\n';
}

int measure(const arguments& given, const std::string& directory) {
  caf::actor_system_config config;
  caf::actor_system system(config);
  const int rounds = given.quick ? 300 : 2000;
  const int commits = given.quick ? 10'000 : 40'000;
  constexpr int writers = 256;
  const auto alone = measure_alone(system, directory, rounds);
  std::vector<core::batch_ptr> batches;
  for (int number = 0; number < commits; ++number) batches.push_back(transition(static_cast<std::uint64_t>(number)));
  std::vector<double> shares;
  std::vector<double> syncs;
  std::vector<std::string> lines;
  for (int round = 0; round < 5; ++round) {
    const std::string name = fmt::format("{}/round{}", directory, round);
    const crowd_figures crowd = measure_crowd(system, name + "-journal", writers, batches);
    const double bare = measure_bare(name + "-bare", writes_of(batches, crowd.group), commits);
    shares.push_back(bare > 0 ? crowd.per_second / bare : 0);
    syncs.push_back(crowd.syncs_per_1000);
    lines.push_back(fmt::format("{},{:.1f},{:.1f},{:.3f}", round, crowd.per_second, bare, crowd.syncs_per_1000));
    fmt::print("{:<44}{:>12.0f}{:>12.0f}\n", fmt::format("commits/s, {} writers: journal, bare RocksDB", writers),
               crowd.per_second, bare);
  }
  for (const double share : {0.5, 0.9, 0.99}) {
    fmt::print("{:<44}{:>12.1f}{:>12.1f}\n", fmt::format("one transition p{:.0f}, us: journal, raw append", share * 100),
               percentile(alone->journal_us, share), percentile(alone->raw_us, share));
  }
  leave_raw(given.raw, *alone, lines);
  fmt::print("{{\"alone_over_raw_p50_us\":{:.1f},\"syncs_per_1000_at_256\":{:.2f},\"grouped_over_bare_rocksdb\":{:.2f}}}\n",
             percentile(alone->journal_us, 0.5) - percentile(alone->raw_us, 0.5), percentile(syncs, 0.5),
             percentile(shares, 0.5));
  return 0;
}

}  // namespace
}  // namespace busbar::bench

int main(int argc, char** argv) {
  const auto given = busbar::bench::parse(argc, argv);
  std::string directory = given.directory.empty() ? "." : given.directory;
  directory += "/bench-journal-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    std::cerr << "cannot make " << directory << '\n';
    return 1;
  }
  const int result = busbar::bench::measure(given, directory);
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
  return result;
}
