// What a failing disk does to the journal: nothing acknowledged is lost, nothing refused appears, and space that comes back is
// enough to go on.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "actors/core/errors.hpp"
#include "storage/disk_room.hpp"
#include "storage/rocks_store.hpp"
#include "tests/unit/storage/faulty_file_system.hpp"
#include "tests/unit/storage/model.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace busbar::storage {
namespace {

class failing_disk : public ::testing::Test {
 protected:
  void open() {
    rocks_options options;
    options.directory = folder_.file("store");
    options.ballast_bytes = 64 << 10;
    options.file_system = disk_;
    options.free_bytes = [this](const std::string&) { return free_; };
    auto opened = open_rocks_store(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = std::move(*opened);
    auto log = journal_log::open(store_, model::options());
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *log;
  }
  // Commits the next batches of the stream; stops at the first refusal. How many were acknowledged.
  int commit(int count) {
    for (int done = 0; done < count; ++done) {
      const core::journal_batch batch = model::batch(1, ++sent_);
      if (const auto outcome = log_->commit(batch); !outcome.ok()) {
        refusal_ = outcome.status();
        return done;
      }
      model::apply(acknowledged_, batch);
    }
    return count;
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder_.file("store"))) names.insert(file.path().filename());
    return names;
  }
  // The files as they are at one moment: copied again if RocksDB's background made or removed one meanwhile.
  void copy_files(const std::string& copy) const {
    std::set<std::string> before;
    std::error_code error;
    do {
      std::filesystem::remove_all(copy);
      before = files();
      error.clear();
      std::filesystem::copy(folder_.file("store"), copy, std::filesystem::copy_options::recursive, error);
    } while (error || files() != before);
  }
  // What a process would find that starts after this one was killed now.
  model::contents after_kill() {
    const std::string copy = folder_.file("copy" + std::to_string(++copies_));
    copy_files(copy);
    rocks_options options;
    options.directory = copy;
    auto opened = open_rocks_store(options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return {};
    const auto log = journal_log::open(std::move(*opened), model::options());
    EXPECT_TRUE(log.ok()) << log.status();
    if (!log.ok()) return {};
    const auto held = model::held_by(**log);
    EXPECT_TRUE(held.ok()) << held.status();
    return held.ok() ? *held : model::contents{};
  }

  const temporary_folder folder_;
  std::shared_ptr<faulty_file_system> disk_ = std::make_shared<faulty_file_system>();
  std::uint64_t free_ = 10ULL << 30;
  std::shared_ptr<store> store_;
  std::shared_ptr<journal_log> log_;
  model::contents acknowledged_;
  absl::Status refusal_;
  std::uint64_t sent_ = 0;
  int copies_ = 0;
};

class full_disk : public failing_disk, public ::testing::WithParamInterface<std::tuple<disk_fault, int>> {};

TEST_P(full_disk, refuses_keeps_reading_and_recovers_by_a_probe) {
  open();
  ASSERT_EQ(commit(5), 5);
  disk_->fail(std::get<0>(GetParam()), std::get<1>(GetParam()));
  EXPECT_LT(commit(50), 50);
  ASSERT_TRUE(disk_->failed());
  EXPECT_EQ(core::fault_of(refusal_), core::fault::STORE_READ_ONLY) << refusal_;
  EXPECT_EQ(log_->health(), store_health::read_only);
  EXPECT_EQ(commit(1), 0);
  EXPECT_EQ(*model::held_by(*log_), acknowledged_) << "reads go on";
  EXPECT_FALSE(log_->probe().ok());
  disk_->heal();
  ASSERT_TRUE(log_->probe().ok());
  EXPECT_EQ(log_->health(), store_health::serving);
  ASSERT_EQ(commit(5), 5);
  EXPECT_EQ(*model::held_by(*log_), acknowledged_);
  EXPECT_EQ(after_kill(), acknowledged_) << "nothing acknowledged is lost, nothing refused appears";
}

INSTANTIATE_TEST_SUITE_P(moments, full_disk,
                         ::testing::Combine(::testing::Values(disk_fault::no_space, disk_fault::short_write),
                                            ::testing::Values(1, 2, 3, 7, 20)));

class broken_disk : public failing_disk, public ::testing::WithParamInterface<std::tuple<disk_fault, int>> {};

TEST_P(broken_disk, stops_for_good_and_loses_nothing_acknowledged) {
  open();
  ASSERT_EQ(commit(5), 5);
  disk_->fail(std::get<0>(GetParam()), std::get<1>(GetParam()));
  EXPECT_LT(commit(50), 50);
  ASSERT_TRUE(disk_->failed());
  EXPECT_EQ(core::fault_of(refusal_), core::fault::STORE_DAMAGED) << refusal_;
  EXPECT_EQ(log_->health(), store_health::failed);
  EXPECT_EQ(*model::held_by(*log_), acknowledged_) << "reads go on";
  disk_->heal();
  EXPECT_FALSE(log_->probe().ok()) << "what a failed sync left on the disk is not known: no going on in this life";
  EXPECT_EQ(commit(1), 0);
  // The one write of unknown outcome may be there or not; whole or not at all.
  model::contents with_unknown = acknowledged_;
  model::apply(with_unknown, model::batch(1, sent_ - 1));
  const model::contents found = after_kill();
  EXPECT_TRUE(found == acknowledged_ || found == with_unknown);
}

INSTANTIATE_TEST_SUITE_P(moments, broken_disk,
                         ::testing::Combine(::testing::Values(disk_fault::io_error, disk_fault::failed_sync),
                                            ::testing::Values(1, 2, 3, 7, 20)));

TEST_F(failing_disk, little_free_space_asks_to_shed_and_then_refuses_all_but_safety) {
  open();
  ASSERT_EQ(commit(1), 1);
  free_ = 100ULL << 20;
  ASSERT_EQ(commit(1), 1);
  EXPECT_EQ(log_->health(), store_health::shedding);
  free_ = 10ULL << 20;
  EXPECT_EQ(commit(1), 0);
  EXPECT_EQ(core::fault_of(refusal_), core::fault::STORE_READ_ONLY);
  core::journal_batch trip;
  trip.safety = true;
  trip.put_record("trip/1", std::string(4000, 't'));
  EXPECT_TRUE(log_->commit(trip).ok());
  EXPECT_FALSE(log_->probe().ok());
  free_ = 1ULL << 30;
  ASSERT_TRUE(log_->probe().ok());
  EXPECT_EQ(commit(1), 1);
  EXPECT_EQ(log_->health(), store_health::serving);
}

TEST_F(failing_disk, the_ballast_is_given_up_for_a_trip_and_reserved_again_later) {
  open();
  ASSERT_EQ(commit(3), 3);
  const std::string ballast = folder_.file("store/ballast");
  ASSERT_TRUE(std::filesystem::exists(ballast));
  disk_->fail(disk_fault::no_space, 1);
  EXPECT_EQ(commit(1), 0);
  EXPECT_TRUE(std::filesystem::exists(ballast)) << "not for ordinary writes";
  // As if the room of the ballast were all there is: the disk takes writes again once it is gone.
  free_ = 0;
  disk_->heal();
  core::journal_batch trip;
  trip.safety = true;
  trip.put_record("trip/1", "tripped");
  const auto done = log_->commit(trip);
  EXPECT_TRUE(done.ok()) << done.status();
  EXPECT_FALSE(std::filesystem::exists(ballast));
  free_ = 10ULL << 30;
  ASSERT_TRUE(log_->probe().ok());
  EXPECT_TRUE(std::filesystem::exists(ballast));
  EXPECT_EQ(*log_->load()->state->record("trip/1"), "tripped");
}

TEST_F(failing_disk, without_room_to_open_it_is_said_and_nothing_is_touched) {
  const auto try_open = [this](std::uint64_t free) {
    rocks_options options;
    options.directory = folder_.file("store");
    options.free_bytes = [free](const std::string&) { return free; };
    return open_rocks_store(options).status();
  };
  EXPECT_EQ(core::fault_of(try_open(0)), core::fault::STORE_READ_ONLY);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("store"))) << "a first start made a folder";
  open();
  ASSERT_EQ(commit(40), 40);
  log_.reset();
  store_.reset();
  const std::set<std::string> before = files();
  std::uint64_t logs = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_.file("store")))
    if (file.path().extension() == ".log") logs += file.file_size();
  for (const std::uint64_t free : {std::uint64_t{0}, std::uint64_t{4096}, std::uint64_t{1} << 20, room_to_open + logs - 1}) {
    SCOPED_TRACE(free);
    const absl::Status refused = try_open(free);
    EXPECT_EQ(core::fault_of(refused), core::fault::STORE_READ_ONLY) << refused;
    for (const std::string& part : {folder_.file("store"), std::to_string(free) + " bytes", std::string("free space")})
      EXPECT_NE(std::string(refused.message()).find(part), std::string::npos) << refused;
    EXPECT_EQ(files(), before);
  }
  EXPECT_TRUE(try_open(room_to_open + logs).ok());
}

TEST_F(failing_disk, a_block_that_rotted_is_damage_never_silence) {
  open();
  ASSERT_EQ(commit(200), 200);
  ASSERT_TRUE(log_->probe().ok());  // flushes: until then all is in the log alone
  ASSERT_TRUE(log_->close().ok());
  log_.reset();
  store_.reset();
  int spoilt = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_.file("store"))) {
    if (file.path().extension() != ".sst") continue;
    std::fstream bytes(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(20));
    bytes.write("rotten rotten", 13);
    ++spoilt;
  }
  ASSERT_GT(spoilt, 0);
  rocks_options options;
  options.directory = folder_.file("store");
  auto opened = open_rocks_store(options);
  absl::Status end = opened.status();
  if (opened.ok()) {
    const auto log = journal_log::open(std::move(*opened), model::options());
    end = log.ok() ? model::held_by(**log).status() : log.status();
  }
  EXPECT_EQ(core::fault_of(end), core::fault::STORE_DAMAGED) << end;
}

}  // namespace
}  // namespace busbar::storage
