#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/interlock/folder_lock.hpp"
#include "daemon/interlock/latch_file.hpp"
#include "daemon/interlock/sealed_file.hpp"
#include "tests/unit/interlock/records.hpp"

namespace busbar::interlock {
namespace {

using test::make_record;

class in_folder : public ::testing::Test {
 protected:
  in_folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "interlock-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~in_folder() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

using sealed_file = in_folder;
using latches_on_disk = in_folder;

seal_key key_of(unsigned char byte) {
  seal_key key{};
  key.fill(byte);
  return key;
}

TEST_F(sealed_file, makes_a_key_once_for_its_owner_alone) {
  ASSERT_TRUE(make_key_file(path("key")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(make_key_file(path("key"))));
  EXPECT_TRUE(read_key_file(path("key")).ok());
  ::chmod(path("key").c_str(), 0640);
  EXPECT_FALSE(read_key_file(path("key")).ok());
  EXPECT_FALSE(read_key_file(path("none")).ok());
}

TEST_F(sealed_file, refuses_a_key_of_another_length) {
  std::ofstream(path("key")) << "short";
  ::chmod(path("key").c_str(), 0600);
  EXPECT_FALSE(read_key_file(path("key")).ok());
}

TEST_F(sealed_file, opens_what_it_sealed_and_shows_no_secret_meanwhile) {
  const auto sealed = seal_record(key_of(1), make_record(7));
  ASSERT_TRUE(sealed.ok());
  EXPECT_THAT(*sealed, ::testing::Not(::testing::HasSubstr("secret")));
  const auto opened = open_record(key_of(1), *sealed, "r01");
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ(opened->SerializeAsString(), make_record(7).SerializeAsString());
}

TEST_F(sealed_file, seals_the_same_record_differently_each_time) {
  EXPECT_NE(*seal_record(key_of(1), make_record(7)), *seal_record(key_of(1), make_record(7)));
}

TEST_F(sealed_file, opens_under_no_other_key_and_for_no_other_rack) {
  const auto sealed = seal_record(key_of(1), make_record(7));
  EXPECT_TRUE(absl::IsDataLoss(open_record(key_of(2), *sealed, "r01").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(open_record(key_of(1), *sealed, "r02").status()));
}

TEST_F(sealed_file, notices_a_change_of_any_byte_the_generation_in_clear_included) {
  const auto sealed = seal_record(key_of(1), make_record(7));
  for (std::size_t i = 0; i < sealed->size(); ++i) {
    std::string changed = *sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(open_record(key_of(1), changed, "r01").ok()) << "byte " << i;
  }
}

TEST_F(sealed_file, opens_no_part_of_a_file) {
  const auto sealed = seal_record(key_of(1), make_record(7));
  for (std::size_t size = 0; size < sealed->size(); ++size) {
    EXPECT_FALSE(open_record(key_of(1), std::string_view(*sealed).substr(0, size), "r01").ok()) << size;
  }
}

TEST_F(sealed_file, replaces_a_file_as_a_whole) {
  ASSERT_TRUE(replace_file(path("f"), "old").ok());
  ASSERT_TRUE(replace_file(path("f"), "newer").ok());
  EXPECT_EQ(*read_file(path("f")), "newer");
  EXPECT_FALSE(std::filesystem::exists(path("f.new")));
  EXPECT_TRUE(absl::IsNotFound(read_file(path("none")).status()));
  EXPECT_FALSE(replace_file(path("no/such/folder"), "x").ok());
}

Latch make_latch(std::uint64_t number, Latch::Kind kind, const std::string& device) {
  Latch line;
  line.set_number(number);
  line.set_kind(kind);
  line.set_device(device);
  line.set_detector("0_Manifold");
  line.set_detail("DetectorState Critical");
  line.set_principal("uid 0");
  line.set_wall_time_ns(1'700'000'000'000'000'000);
  line.set_durable(true);
  return line;
}

using locked_folder = in_folder;

TEST_F(locked_folder, is_taken_once_and_names_its_holder) {
  {
    folder_lock first;
    ASSERT_TRUE(first.take(path("lock"), "socket folder", "pid 4711, state in /var/one").ok());
    folder_lock second;
    const absl::Status refused = second.take(path("lock"), "socket folder", "pid 4712");
    EXPECT_TRUE(absl::IsFailedPrecondition(refused));
    EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("pid 4711, state in /var/one"));
    EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr(folder_));
  }
  folder_lock third;
  EXPECT_TRUE(third.take(path("lock"), "socket folder", "pid 4713").ok());
}

void spoil(const std::string& file, std::size_t at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put('\x5a');
}

TEST_F(latches_on_disk, reads_back_what_it_wrote) {
  latch_file first;
  ASSERT_TRUE(first.open(path("latches.bin")).ok());
  EXPECT_TRUE(first.lines().empty());
  ASSERT_TRUE(first.append(make_latch(1, Latch::LEAK_SEEN, "r01/c01")).ok());
  ASSERT_TRUE(first.append(make_latch(2, Latch::RESET, "r01/c01")).ok());
  latch_file second;
  ASSERT_TRUE(second.open(path("latches.bin")).ok());
  EXPECT_EQ(second.damage(), "");
  ASSERT_EQ(second.lines().size(), 2U);
  EXPECT_EQ(second.lines()[0].SerializeAsString(),
            make_latch(1, Latch::LEAK_SEEN, "r01/c01").SerializeAsString());
  EXPECT_EQ(second.lines()[1].kind(), Latch::RESET);
}

TEST_F(latches_on_disk, has_all_its_blocks_before_the_first_leak) {
  latch_file file;
  ASSERT_TRUE(file.open(path("latches.bin")).ok());
  struct stat facts {};
  ASSERT_EQ(::stat(path("latches.bin").c_str(), &facts), 0);
  EXPECT_EQ(static_cast<std::size_t>(facts.st_size), latch_record_size * latch_records_max);
  ASSERT_TRUE(file.append(make_latch(1, Latch::LEAK_SEEN, "r01/c01")).ok());
  EXPECT_EQ(std::filesystem::file_size(path("latches.bin")), latch_record_size * latch_records_max);
}

TEST_F(latches_on_disk, tells_of_a_damaged_record_and_keeps_the_others) {
  {
    latch_file file;
    ASSERT_TRUE(file.open(path("latches.bin")).ok());
    for (std::uint64_t n = 1; n <= 3; ++n)
      ASSERT_TRUE(file.append(make_latch(n, Latch::LEAK_SEEN, "r01/c01")).ok());
  }
  spoil(path("latches.bin"), latch_record_size + 40);
  latch_file file;
  ASSERT_TRUE(file.open(path("latches.bin")).ok());
  EXPECT_THAT(file.damage(), ::testing::HasSubstr("record 1"));
  EXPECT_EQ(file.lines().size(), 2U);
}

TEST_F(latches_on_disk, remembers_that_a_person_acknowledged_the_damage) {
  {
    latch_file file;
    ASSERT_TRUE(file.open(path("latches.bin")).ok());
    ASSERT_TRUE(file.append(make_latch(1, Latch::LEAK_SEEN, "r01/c01")).ok());
  }
  spoil(path("latches.bin"), 40);
  {
    latch_file file;
    ASSERT_TRUE(file.open(path("latches.bin")).ok());
    EXPECT_NE(file.damage(), "");
    ASSERT_TRUE(file.append(make_latch(2, Latch::RESET, "*")).ok());
  }
  latch_file file;
  ASSERT_TRUE(file.open(path("latches.bin")).ok());
  EXPECT_EQ(file.damage(), "");
}

TEST_F(latches_on_disk, takes_a_file_that_was_cut_short_as_damaged) {
  {
    latch_file file;
    ASSERT_TRUE(file.open(path("latches.bin")).ok());
    ASSERT_TRUE(file.append(make_latch(1, Latch::LEAK_SEEN, "r01/c01")).ok());
  }
  std::filesystem::resize_file(path("latches.bin"), 700);
  latch_file file;
  ASSERT_TRUE(file.open(path("latches.bin")).ok());
  EXPECT_NE(file.damage(), "");
  EXPECT_EQ(file.lines().size(), 1U);
  EXPECT_FALSE(file.append(make_latch(2, Latch::LEAK_SEEN, "r01/c02")).ok())
      << "only a person drops damaged records";
  EXPECT_TRUE(file.append(make_latch(3, Latch::RESET, "*")).ok());
}

TEST_F(latches_on_disk, forgets_no_open_latch_when_it_is_full) {
  latch_file file;
  ASSERT_TRUE(file.open(path("latches.bin")).ok());
  std::uint64_t number = 0;
  ASSERT_TRUE(file.append(make_latch(++number, Latch::LEAK_SEEN, "r01/c18")).ok());
  for (std::size_t i = 0; i < latch_records_max; ++i) {
    ASSERT_TRUE(
        file.append(make_latch(++number, i % 2 == 0 ? Latch::LEAK_SEEN : Latch::RESET, "r01/c01")).ok());
  }
  latch_file again;
  ASSERT_TRUE(again.open(path("latches.bin")).ok());
  EXPECT_LT(again.lines().size(), 100U);
  EXPECT_EQ(again.lines().front().device(), "r01/c18");
  EXPECT_EQ(again.lines().back().number(), number);
}

TEST_F(latches_on_disk, one_that_was_expected_and_is_missing_is_damaged_until_a_person_acknowledges) {
  for (int start = 0; start < 3; ++start) {
    latch_file file;
    ASSERT_TRUE(file.open(path("latches.bin"), "it was removed").ok());
    EXPECT_EQ(file.damage(), "it was removed") << "also for the next process";
    EXPECT_TRUE(
        file.append(make_latch(static_cast<std::uint64_t>(start) + 2, Latch::LEAK_SEEN, "r01/c01")).ok());
  }
  {
    latch_file file;
    ASSERT_TRUE(file.open(path("latches.bin"), "it was removed").ok());
    ASSERT_TRUE(file.append(make_latch(9, Latch::RESET, "*")).ok());
    EXPECT_EQ(file.damage(), "");
  }
  latch_file file;
  ASSERT_TRUE(file.open(path("latches.bin"), "it was removed").ok());
  EXPECT_EQ(file.damage(), "");
}

TEST_F(latches_on_disk, keep_an_unacknowledged_loss_when_they_are_full) {
  std::uint64_t number = 1;
  {
    latch_file file;
    ASSERT_TRUE(file.open(path("latches.bin"), "it was removed").ok());
    for (std::size_t i = 0; i < 2 * latch_records_max; ++i)
      ASSERT_TRUE(
          file.append(make_latch(++number, i % 2 == 0 ? Latch::LEAK_SEEN : Latch::RESET, "r01/c01")).ok());
  }
  latch_file file;
  ASSERT_TRUE(file.open(path("latches.bin")).ok());
  EXPECT_EQ(file.damage(), "it was removed");
  EXPECT_EQ(file.lines().back().number(), number);
}

TEST_F(latches_on_disk, decodes_no_foreign_bytes) {
  EXPECT_FALSE(decode_latch(std::string(latch_record_size, 'x')).ok());
  EXPECT_FALSE(decode_latch("BBLT").ok());
  EXPECT_FALSE(decode_latch(std::string(latch_record_size, '\0'))->has_value());
}

}  // namespace
}  // namespace busbar::interlock
