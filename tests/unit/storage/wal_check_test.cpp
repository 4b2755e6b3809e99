// Damage in the write-ahead log: whatever stood there was acknowledged, so it is there or the store says that
// it is not.
#include "storage/wal_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "actors/core/errors.hpp"
#include "storage/rocks_store.hpp"
#include "tests/unit/storage/model.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace busbar::storage {
namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write_all(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A store whose process was killed: all of it is in one log.
class damaged_log : public ::testing::Test {
 protected:
  // `count` batches, the last of them much larger than a block of the log if asked for.
  void write(int count, std::size_t large = 0) {
    rocks_options options;
    options.directory = folder_.file("alive");
    options.ballast_bytes = 0;
    auto opened = open_rocks_store(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    const auto log = journal_log::open(std::move(*opened), model::options());
    ASSERT_TRUE(log.ok()) << log.status();
    for (int number = 1; number <= count; ++number) {
      core::journal_batch batch = model::batch(1, static_cast<std::uint64_t>(number));
      if (large != 0 && number == count / 2) batch.put_record("large", std::string(large, 'l'));
      ASSERT_TRUE((*log)->commit(batch).ok());
    }
    held_ = *model::held_by(**log);
    fs::copy(folder_.file("alive"), image_, fs::copy_options::recursive);
    for (const auto& file : fs::directory_iterator(image_))
      if (file.path().extension() == ".log") name_ = file.path().filename();
    bytes_ = read_all(fs::path(image_) / name_);
    ASSERT_GT(bytes_.size(), 1000U);
  }
  // The killed store with this in the place of its log.
  std::string with(const std::string& bytes) {
    const std::string copy = folder_.file("copy");
    fs::remove_all(copy);
    fs::copy(image_, copy, fs::copy_options::recursive);
    write_all(fs::path(copy) / name_, bytes);
    return copy;
  }
  absl::StatusOr<std::shared_ptr<journal_log>> open(const std::string& directory, bool cut = false) {
    rocks_options options;
    options.directory = directory;
    options.ballast_bytes = 0;
    options.logs_were_cut = cut;
    auto opened = open_rocks_store(options);
    if (!opened.ok()) return opened.status();
    journal_options how = model::options();
    how.restored = cut;
    return journal_log::open(std::move(*opened), how);
  }
  // All is there, or it is refused by name; true: refused.
  bool refused(const std::string& bytes) {
    const std::string directory = with(bytes);
    const auto log = open(directory);
    if (!log.ok()) {
      EXPECT_EQ(core::fault_of(log.status()), core::fault::STORE_DAMAGED) << log.status();
      EXPECT_EQ(read_all(fs::path(directory) / name_), bytes) << "a refused log was changed";
      return true;
    }
    EXPECT_EQ(*model::held_by(**log), held_) << "acknowledged state is gone without a word";
    return false;
  }

  const temporary_folder folder_;
  const std::string image_ = folder_.file("image");
  std::string name_, bytes_;
  model::contents held_;
};

TEST_F(damaged_log, is_read_whole_when_nothing_is_wrong) {
  write(60, 100'000);
  EXPECT_FALSE(find_damage(bytes_).has_value());
  EXPECT_FALSE(refused(bytes_));
}

TEST_F(damaged_log, no_flipped_bit_anywhere_takes_acknowledged_state_away_in_silence) {
  write(3);
  std::size_t found = 0;
  for (std::size_t at = 0; at < bytes_.size() * 8; ++at) {
    std::string flipped = bytes_;
    flipped[at / 8] = static_cast<char>(flipped[at / 8] ^ (1 << (at % 8)));
    if (find_damage(flipped).has_value()) ++found;
  }
  EXPECT_EQ(found, bytes_.size() * 8) << "a log of one block has no padding: every bit counts";
}

TEST_F(damaged_log, a_flipped_bit_refuses_the_store) {
  write(60, 100'000);
  for (std::size_t at = 3; at < bytes_.size(); at += bytes_.size() / 40) {
    SCOPED_TRACE(at);
    std::string flipped = bytes_;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    EXPECT_TRUE(refused(flipped));
  }
}

TEST_F(damaged_log, a_hole_refuses_the_store) {
  write(60, 100'000);
  for (const std::size_t length :
       {std::size_t{1}, std::size_t{512}, std::size_t{4096}, std::size_t{40'000}}) {
    for (std::size_t at = 0; at + length <= bytes_.size(); at += bytes_.size() / 12) {
      SCOPED_TRACE(testing::Message() << length << " zeros at " << at);
      std::string holed = bytes_;
      holed.replace(at, length, length, '\0');
      EXPECT_EQ(refused(holed), holed != bytes_);
    }
  }
  std::string end = bytes_;
  end.replace(end.size() - 700, 700, 700, '\0');
  EXPECT_TRUE(refused(end)) << "zeros at the end stand where something was acknowledged";
}

TEST_F(damaged_log, a_last_record_that_a_crash_cut_off_is_dropped_and_all_before_it_is_held) {
  write(60, 100'000);
  for (std::size_t lost = 1; lost < 200; lost += 7) {
    SCOPED_TRACE(lost);
    const std::string cut = bytes_.substr(0, bytes_.size() - lost);
    EXPECT_FALSE(find_damage(cut).has_value());
    const auto log = open(with(cut));
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_EQ((*log)->head().revision(), 59U);
  }
}

TEST_F(damaged_log, says_which_log_what_would_be_lost_and_the_ways_out) {
  write(60);
  std::string flipped = bytes_;
  flipped[flipped.size() / 3] ^= 1;
  const auto log = open(with(flipped));
  ASSERT_FALSE(log.ok());
  for (const std::string& part :
       {name_, std::string("acknowledged"), std::string("backup"), std::string("--accept-lost-tail")})
    EXPECT_THAT(std::string(log.status().message()), ::testing::HasSubstr(part));
}

TEST_F(damaged_log, an_accepted_loss_goes_on_from_before_the_damage_as_another_journal) {
  write(60, 100'000);
  for (std::size_t at = bytes_.size() / 5; at < bytes_.size(); at += bytes_.size() / 5) {
    SCOPED_TRACE(at);
    std::string flipped = bytes_;
    flipped[at] ^= 1;
    const std::string directory = with(flipped);
    const auto lost = cut_lost_tail(directory);
    ASSERT_TRUE(lost.ok()) << lost.status();
    EXPECT_THAT(*lost, ::testing::HasSubstr(name_));
    EXPECT_EQ(core::fault_of(open(directory).status()), core::fault::STORE_DAMAGED)
        << "not before it is on record";
    const auto again = cut_lost_tail(directory);  // a crash in between: the same acceptance goes on
    ASSERT_TRUE(again.ok() && !again->empty());
    const auto log = open(directory, true);
    ASSERT_TRUE(log.ok()) << log.status();
    const std::uint64_t held = (*log)->head().revision();
    EXPECT_GT(held, 0U);
    EXPECT_LT(held, 60U);
    EXPECT_EQ(*model::held_by(**log), model::expected(1, held)) << "a moment that was, not a mixture";
    ASSERT_TRUE(finish_cut(directory).ok());
    EXPECT_EQ(read_all(fs::path(directory) / ("lost-" + name_)), flipped) << "what was taken away is kept";
    const std::string id = (*log)->head().journal_id();
    ASSERT_TRUE((*log)->close().ok());
    const auto later = open(directory);
    ASSERT_TRUE(later.ok()) << later.status();
    EXPECT_EQ((*later)->head().journal_id(), id);
    EXPECT_EQ((*later)->head().revision(), held);
  }
}

TEST_F(damaged_log, an_acceptance_with_nothing_lost_changes_nothing) {
  write(20);
  const std::string directory = with(bytes_);
  const auto lost = cut_lost_tail(directory);
  ASSERT_TRUE(lost.ok());
  EXPECT_EQ(*lost, "");
  EXPECT_EQ(read_all(fs::path(directory) / name_), bytes_);
}

}  // namespace
}  // namespace busbar::storage
