// Retention of evidence: what nothing names goes, what anything names stays, whatever crash comes between.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "actors/core/errors.hpp"
#include "storage/evidence.hpp"
#include "storage/journal_log.hpp"
#include "storage/key_codec.hpp"
#include "storage/memory_store.hpp"
#include "storage/migrations.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace busbar::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t hour_ns = 3'600'000'000'000;
constexpr std::size_t large = 100'000;  // a file; below 64 KiB it is a row

// Hands through to a store in memory until its time to stop: as a process that is killed at that write.
class stopping_store final : public store {
 public:
  explicit stopping_store(std::shared_ptr<memory_store> below) : below_(std::move(below)) {}
  absl::Status write(const store_write& batch) override {
    if (writes_left == 0) return absl::UnavailableError("the process was killed here");
    --writes_left;
    return below_->write(batch);
  }
  absl::StatusOr<std::optional<std::string>> get(family where, std::string_view key) const override {
    return below_->get(where, key);
  }
  absl::Status scan(family where, std::string_view from, std::string_view to, const visitor& visit) const override {
    ++scans;
    return below_->scan(where, from, to, visit);
  }
  absl::Status scan_back(family where, std::string_view from, std::string_view to, const visitor& visit) const override {
    return below_->scan_back(where, from, to, visit);
  }
  store_health health() const override { return below_->health(); }
  absl::Status probe() override { return below_->probe(); }
  absl::Status close() override { return below_->close(); }

  int writes_left = 1'000'000;
  mutable std::size_t scans = 0;

 private:
  std::shared_ptr<memory_store> below_;
};

class evidence_retention : public ::testing::Test {
 protected:
  evidence_retention() { restart(); }

  void restart() {
    log_.reset();
    disk_ = std::make_shared<stopping_store>(memory_);
    journal_options options;
    options.clock = [this] { return now_; };
    options.evidence_directory = folder_.file("evidence");
    options.kept_events = 1000;  // as many as are always kept
    auto opened = journal_log::open(disk_, options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    log_ = *opened;
  }
  std::string store(const std::string& bytes) {
    core::journal_batch batch;
    batch.evidence.push_back(std::make_shared<const std::string>(bytes));
    EXPECT_TRUE(log_->commit(batch).ok());
    return core::evidence_name(bytes);
  }
  void tell(const std::string& name, const std::string& role = "system") {
    core::journal_batch batch;
    journal::Event& event = batch.events.emplace_back();
    event.mutable_principal()->set_role(role);
    (*event.mutable_details())["evidence"] = name;
    ASSERT_TRUE(log_->commit(batch).ok());
  }
  void hold_in_state(const std::string& name) {
    auto node = std::make_shared<journal::Node>();
    node->set_name("r01/c01");
    node->mutable_suite()->set_evidence(name);
    core::journal_batch batch;
    batch.put(std::shared_ptr<const journal::Node>(node));
    ASSERT_TRUE(log_->commit(batch).ok());
  }
  // Pushes out every event there was.
  void fill() {
    for (int i = 0; i < 11; ++i) {
      core::journal_batch batch;
      batch.events.resize(1000);
      for (journal::Event& event : batch.events) event.mutable_principal()->set_role("system");
      ASSERT_TRUE(log_->commit(batch).ok());
    }
    trim();
  }
  void trim() {
    for (int i = 0; i < 100; ++i) {
      const auto more = log_->trim();
      if (!more.ok() || !*more) return;
    }
    FAIL() << "retention does not end";
  }
  // Two sweeps further: what is stored counts as unnamed only when it has been so for a whole interval.
  void hours_pass() {
    for (int i = 0; i < 2; ++i) {
      now_.monotonic_ns += hour_ns;
      trim();
    }
  }
  bool is_kept(const std::string& bytes) const {
    const auto read = log_->read_evidence(core::evidence_name(bytes));
    return read.ok() && *read == bytes;
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.file("evidence")), {}));
  }
  std::size_t rows() const {
    std::size_t count = 0;
    const absl::Status done = memory_->scan(family::evidence, {}, {}, [&count](std::string_view, std::string_view) {
      ++count;
      return true;
    });
    EXPECT_TRUE(done.ok());
    return count;
  }

  const temporary_folder folder_;
  core::instant now_{5 * hour_ns, 1'767'225'600'000'000'000};
  std::shared_ptr<memory_store> memory_ = std::make_shared<memory_store>();
  std::shared_ptr<stopping_store> disk_;
  std::shared_ptr<journal_log> log_;
};

TEST_F(evidence_retention, what_an_event_names_stays_as_long_as_the_event) {
  for (const std::size_t size : {std::size_t{100}, large}) {
    const std::string bytes(size, 'e');
    tell(store(bytes));
    hours_pass();
    EXPECT_TRUE(is_kept(bytes));
    restart();
    EXPECT_TRUE(is_kept(bytes));
    fill();
    hours_pass();
    EXPECT_FALSE(is_kept(bytes));
  }
  EXPECT_EQ(files(), 0U);
  EXPECT_EQ(rows(), 0U) << "no row is left of it either";
}

TEST_F(evidence_retention, the_last_of_several_events_keeps_it) {
  const std::string bytes(large, 'm');
  const std::string name = store(bytes);
  tell(name);
  fill();
  tell(name);
  hours_pass();
  EXPECT_TRUE(is_kept(bytes));
  fill();
  hours_pass();
  EXPECT_FALSE(is_kept(bytes));
}

TEST_F(evidence_retention, an_audit_record_keeps_it_after_its_event_is_gone) {
  const std::string bytes(large, 'a');
  tell(store(bytes), "operator");
  fill();
  hours_pass();
  EXPECT_TRUE(is_kept(bytes));
  now_.wall_ns += 401 * 24 * hour_ns;
  fill();
  hours_pass();
  EXPECT_FALSE(is_kept(bytes));
}

TEST_F(evidence_retention, state_keeps_it_after_its_event_is_gone_and_lets_it_go) {
  const std::string bytes(large, 's');
  const std::string name = store(bytes);
  tell(name);
  hold_in_state(name);
  fill();
  for (int i = 0; i < 3; ++i) hours_pass();
  restart();
  EXPECT_TRUE(is_kept(bytes));
  hold_in_state("");
  hours_pass();
  EXPECT_FALSE(is_kept(bytes));
  EXPECT_EQ(files(), 0U);
}

TEST_F(evidence_retention, what_was_just_stored_waits_for_the_batch_that_names_it) {
  const std::string bytes(large, 'y');
  now_.monotonic_ns += hour_ns;
  const std::string name = store(bytes);
  trim();
  EXPECT_TRUE(is_kept(bytes));
  now_.monotonic_ns += hour_ns - 1;
  trim();
  EXPECT_TRUE(is_kept(bytes));
  tell(name);
  hours_pass();
  EXPECT_TRUE(is_kept(bytes));
}

TEST_F(evidence_retention, what_no_batch_came_to_name_goes_with_the_next_start) {
  const std::string bytes(large, 'n');
  store(bytes);
  restart();
  EXPECT_FALSE(is_kept(bytes));
  EXPECT_EQ(files(), 0U);
}

TEST_F(evidence_retention, a_kill_at_any_write_loses_nothing_named_and_leaves_nothing_behind) {
  const std::string named(large, 'k');
  const std::string unnamed(large, 'u');
  tell(store(named));
  hours_pass();
  const std::size_t rows_before = rows();
  for (int survived = 0; survived < 12; ++survived) {
    disk_->writes_left = survived;
    core::journal_batch batch;  // storing, naming, forgetting: each may be where it ends
    batch.evidence.push_back(std::make_shared<const std::string>(unnamed));
    log_->commit(batch).IgnoreError();
    now_.monotonic_ns += hour_ns;
    log_->trim().IgnoreError();
    now_.monotonic_ns += hour_ns;
    log_->trim().IgnoreError();
    restart();
    EXPECT_TRUE(is_kept(named)) << "killed at write " << survived;
    EXPECT_FALSE(is_kept(unnamed)) << "killed at write " << survived;
    EXPECT_EQ(files(), 1U) << "killed at write " << survived;
    EXPECT_EQ(rows(), rows_before) << "killed at write " << survived;
  }
}

TEST_F(evidence_retention, a_file_that_cannot_be_removed_is_tried_again) {
  const std::string bytes(large, 'r');
  const std::string name = store(bytes);
  const fs::path file = *fs::directory_iterator(folder_.file("evidence"));
  fs::remove(file);
  fs::create_directories(file / "in_the_way");  // unlink refuses a folder
  hours_pass();
  EXPECT_EQ(log_->read_evidence(name).status().code(), absl::StatusCode::kNotFound);
  fs::remove_all(file);
  hours_pass();
  EXPECT_EQ(rows(), 0U);
}

TEST_F(evidence_retention, the_same_content_stored_again_after_it_went_is_there) {
  const std::string bytes(large, 'b');
  store(bytes);
  hours_pass();
  ASSERT_FALSE(is_kept(bytes));
  tell(store(bytes));
  hours_pass();
  EXPECT_TRUE(is_kept(bytes));
}

TEST_F(evidence_retention, a_sweep_costs_what_changed_and_not_what_is_kept) {
  for (int i = 0; i < 200; ++i) tell(store("evidence " + std::to_string(i)));
  hours_pass();
  now_.monotonic_ns += 10 * hour_ns;
  EXPECT_FALSE(log_->trim_is_due()) << "nothing changed: nothing is looked at";
  store("one more");
  EXPECT_TRUE(log_->trim_is_due());
  disk_->scans = 0;
  hours_pass();
  EXPECT_LT(disk_->scans, 10U) << "one name is looked up, not 201";
}

TEST_F(evidence_retention, a_store_of_schema_1_keeps_what_is_named_and_loses_the_rest) {
  const std::string named(large, 'o');
  const std::string unnamed(large, 'p');
  tell(store(named));
  store(unnamed);
  store_write older;  // as that release left it: no rows beside the evidence
  older.put(family::meta, schema_key(), encode_u64(1));
  older.erase_range(family::evidence, {}, "s");
  ASSERT_TRUE(memory_->write(older).ok());
  restart();
  EXPECT_TRUE(is_kept(named));
  EXPECT_FALSE(is_kept(unnamed));
  fill();
  hours_pass();
  EXPECT_FALSE(is_kept(named));
}

TEST(evidence_names, are_found_in_any_bytes_and_nothing_else_is) {
  const std::string name = core::evidence_name("content");
  EXPECT_TRUE(is_evidence_name(name));
  for (const std::string& bad : {std::string(), std::string("sha256:"), name.substr(1), name + "0", "sha256:" + std::string(64, 'G')})
    EXPECT_FALSE(is_evidence_name(bad)) << bad;
  EXPECT_EQ(evidence_named_in("\x01\x02" + name + "\x03 sha256:short sha256:" + name), std::vector{name});
  EXPECT_TRUE(evidence_named_in("sha256:").empty());
  EXPECT_EQ(name_of_candidate(candidate_key(name)), name);
}

}  // namespace
}  // namespace busbar::storage
