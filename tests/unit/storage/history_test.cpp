// The history of readings: what comes back, what is dropped, and that nothing of it ends the daemon.
#include "storage/history.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "tests/unit/storage/temporary_folder.hpp"

namespace busbar::storage {
namespace {

constexpr std::int64_t start_s = 1'800'000'000 - 1'800'000'000 % 86'400;  // midnight

class kept_history : public ::testing::Test {
 protected:
  history_options options() {
    history_options made;
    made.directory = folder_.file("history");
    made.say = [this](const std::string& what) { said_.push_back(what); };
    return made;
  }
  void open(std::int64_t now_s) { open(options(), now_s); }
  void open(history_options with, std::int64_t now_s) {
    history_.reset();
    history_ = history::open(std::move(with), now_s);
  }
  // A value each second; what value() gives not at all is not known then.
  void run(std::string_view name, std::int64_t from_s, std::int64_t to_s,
           const std::function<std::optional<double>(std::int64_t)>& value) {
    const auto of = history_->series_of(name);
    for (std::int64_t at = from_s; at < to_s; ++at) {
      history_->begin_second(at);
      if (const auto now = value(at)) history_->note(of, *now);
    }
  }
  std::vector<std::filesystem::path> files(const std::string& prefix) {
    std::vector<std::filesystem::path> found;
    for (const auto& one : std::filesystem::directory_iterator(folder_.file("history"))) {
      if (one.path().filename().string().starts_with(prefix)) found.push_back(one.path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  temporary_folder folder_;
  std::vector<std::string> said_;
  std::shared_ptr<history> history_;
};

double wave(std::int64_t at) {
  return std::round(1'000 + 50 * std::sin(static_cast<double>(at) / 7)) / 10;
}

TEST_F(kept_history, gives_back_every_sample_from_files_and_memory) {
  open(start_s);
  run("r01/flow", start_s, start_s + 200, wave);
  const auto read = history_->read("r01/flow", start_s, start_s + 200, 0, 10'000);
  ASSERT_EQ(read.samples.size(), 200u);
  EXPECT_FALSE(read.more);
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(read.samples[i].wall_s, start_s + static_cast<std::int64_t>(i));
    EXPECT_EQ(read.samples[i].value, wave(read.samples[i].wall_s));
  }
  EXPECT_EQ(history_->read("r01/flow", start_s + 10, start_s + 20, 0, 10'000).samples.size(), 10u);
  EXPECT_TRUE(history_->read("r01/dp", start_s, start_s + 200, 0, 10'000).samples.empty());
  EXPECT_TRUE(said_.empty());
}

TEST_F(kept_history, a_gap_stays_a_gap) {
  open(start_s);
  run("r01/flow", start_s, start_s + 300, [](std::int64_t at) -> std::optional<double> {
    if (at >= start_s + 100 && at < start_s + 180) return std::nullopt;
    return 5;
  });
  const auto all = history_->read("r01/flow", start_s, start_s + 300, 0, 10'000);
  ASSERT_EQ(all.samples.size(), 221u);  // 220 values, and one that says where they end
  EXPECT_EQ(all.samples[100].wall_s, start_s + 100);
  EXPECT_FALSE(all.samples[100].value.has_value());
  const auto steps = history_->read("r01/flow", start_s, start_s + 300, 20, 10'000);
  ASSERT_EQ(steps.samples.size(), 15u);
  for (std::size_t i = 0; i < steps.samples.size(); ++i)
    EXPECT_EQ(steps.samples[i].value.has_value(), i < 5 || i > 8) << i;
}

TEST_F(kept_history, a_step_has_the_least_mean_and_most_of_its_samples) {
  open(start_s);
  run("r01/flow", start_s, start_s + 60, [](std::int64_t at) { return static_cast<double>(at - start_s); });
  const auto steps = history_->read("r01/flow", start_s, start_s + 60, 10, 10'000);
  ASSERT_EQ(steps.samples.size(), 6u);
  EXPECT_EQ(steps.samples[1].least, 10);
  EXPECT_EQ(steps.samples[1].value, 14.5);
  EXPECT_EQ(steps.samples[1].most, 19);
  const auto cut = history_->read("r01/flow", start_s, start_s + 60, 10, 4);
  EXPECT_EQ(cut.samples.size(), 4u);
  EXPECT_TRUE(cut.more);
}

TEST_F(kept_history, outlives_a_restart_with_its_minutes) {
  open(start_s);
  run("r01/flow", start_s, start_s + 3'000, wave);
  const auto before = history_->read("r01/flow", start_s, start_s + 3'000, 60, 10'000);
  const auto seconds = history_->read("r01/flow", start_s, start_s + 3'000, 0, 10'000);
  open(start_s + 3'000);
  run("r01/flow", start_s + 3'000, start_s + 3'600, wave);
  const auto after = history_->read("r01/flow", start_s, start_s + 3'000, 60, 10'000);
  ASSERT_EQ(after.samples.size(), 50u);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(after.samples[i].least, before.samples[i].least) << i;
    EXPECT_EQ(after.samples[i].most, before.samples[i].most) << i;
    ASSERT_TRUE(after.samples[i].value.has_value()) << i;
    EXPECT_NEAR(*after.samples[i].value, *before.samples[i].value, 1e-9) << i;
  }
  EXPECT_EQ(history_->read("r01/flow", start_s, start_s + 3'000, 0, 10'000).samples.size(),
            seconds.samples.size());
  EXPECT_TRUE(said_.empty());
}

TEST_F(kept_history, a_process_that_is_killed_loses_its_last_minute_and_no_more) {
  open(start_s);
  run("r01/flow", start_s, start_s + 330, wave);
  // What a kill leaves: the files as they are, without the end of this object.
  std::filesystem::copy(folder_.file("history"), folder_.file("killed"));
  auto with = options();
  with.directory = folder_.file("killed");
  open(with, start_s + 400);
  EXPECT_EQ(history_->read("r01/flow", start_s, start_s + 330, 0, 10'000).samples.size(), 300u);
}

TEST_F(kept_history, keeps_samples_for_hours_and_minutes_for_longer) {
  auto with = options();
  with.seconds_kept_s = 1'800;
  with.minutes_kept_s = 4 * 86'400;
  open(with, start_s);
  run("r01/flow", start_s, start_s + 4 * 3'600, wave);
  EXPECT_LE(files("s-").size(), 5u);
  const auto old = history_->read("r01/flow", start_s, start_s + 3'600, 0, 100'000);
  ASSERT_EQ(old.samples.size(), 60u);  // as minutes
  EXPECT_TRUE(old.samples[0].least.has_value());
  const auto fresh = history_->read("r01/flow", start_s + 4 * 3'600 - 600, start_s + 4 * 3'600, 0, 100'000);
  EXPECT_EQ(fresh.samples.size(), 600u);
  // Both in one answer, without a gap between.
  const auto all = history_->read("r01/flow", start_s, start_s + 4 * 3'600, 0, 100'000);
  for (const history_sample& one : all.samples) EXPECT_TRUE(one.value.has_value()) << one.wall_s - start_s;
}

TEST_F(kept_history, never_takes_more_bytes_than_it_may) {
  auto with = options();
  with.seconds_bytes = 60'000;
  with.minutes_bytes = 20'000;
  open(with, start_s);
  std::vector<history::series> many;
  for (int i = 0; i < 40; ++i) many.push_back(history_->series_of("r01/p" + std::to_string(i)));
  std::mt19937 random(1);
  for (std::int64_t at = start_s; at < start_s + 7'200; ++at) {
    history_->begin_second(at);
    for (const auto one : many) history_->note(one, static_cast<double>(random()) / 3);
  }
  EXPECT_LE(files("s-").size(), 1u);
  // The file that is being written may be larger than the bound; nothing else is kept beside it.
  EXPECT_LT(history_->bytes(), 400'000u);
}

TEST_F(kept_history, damage_costs_what_it_hit_and_nothing_else) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::filesystem::remove_all(folder_.file("history"));
    open(start_s);
    run("r01/flow", start_s, start_s + 1'800, wave);
    history_.reset();
    const auto files_now = files("s-");
    ASSERT_EQ(files_now.size(), 3u);
    const auto& victim = files_now[random() % 3];
    const auto size = std::filesystem::file_size(victim);
    if (round % 3 == 0) {
      std::filesystem::resize_file(victim, random() % size);
    } else {
      std::fstream file(victim, std::ios::in | std::ios::out | std::ios::binary);
      for (int i = 0; i <= round % 5; ++i) {
        file.seekp(static_cast<std::streamoff>(random() % size));
        file.put(static_cast<char>(random()));
      }
    }
    open(start_s + 1'800);
    const auto read = history_->read("r01/flow", start_s, start_s + 1'800, 0, 10'000);
    std::size_t known = 0;
    for (const history_sample& one : read.samples) {
      if (!one.value) continue;
      ++known;
      EXPECT_EQ(*one.value, wave(one.wall_s));  // lost, never wrong
    }
    EXPECT_GE(known, 1'200u);
    run("r01/flow", start_s + 1'800, start_s + 2'000, wave);  // and it goes on
    EXPECT_EQ(history_->read("r01/flow", start_s + 1'800, start_s + 2'000, 0, 10'000).samples.size(), 200u);
  }
}

TEST_F(kept_history, a_torn_end_is_cut_off_before_more_is_written) {
  open(start_s);
  run("r01/flow", start_s, start_s + 120, wave);
  history_.reset();
  const auto file = files("s-").front();
  std::ofstream(file, std::ios::app | std::ios::binary) << "half a page";
  open(start_s + 121);
  run("r01/flow", start_s + 121, start_s + 300, wave);
  history_.reset();
  open(start_s + 300);
  EXPECT_EQ(history_->read("r01/flow", start_s, start_s + 300, 0, 10'000).samples.size(), 299u);
}

TEST_F(kept_history, a_folder_that_cannot_be_used_is_said_and_nothing_more) {
  auto with = options();
  with.directory = "/proc/busbar-no-such-folder";
  open(with, start_s);
  run("r01/flow", start_s, start_s + 200, wave);
  EXPECT_FALSE(said_.empty());
  EXPECT_LE(said_.size(), 8u);  // once a text, not once a minute
  EXPECT_GE(history_->read("r01/flow", start_s + 180, start_s + 200, 0, 100).samples.size(),
            20u);  // from memory
}

TEST_F(kept_history, a_full_disk_loses_samples_and_is_said) {
  open(start_s);
  // A file where a page cannot go: /dev/full takes nothing.
  std::filesystem::create_symlink("/dev/full",
                                  folder_.file("history") + "/s-" + std::to_string(start_s) + ".hst");
  run("r01/flow", start_s, start_s + 700, wave);
  EXPECT_FALSE(said_.empty());
  const auto read = history_->read("r01/flow", start_s, start_s + 700, 0, 10'000);
  EXPECT_EQ(read.samples.size(), 100u);  // those of the next file
}

TEST_F(kept_history, leaves_the_disk_to_the_journal_and_gives_up_its_oldest_for_it) {
  open(start_s);
  run("r01/flow", start_s, start_s + 1'900, wave);
  EXPECT_EQ(files("s-").size(), 4u);
  auto with = options();
  with.least_free = UINT64_MAX / 2;  // never that much
  open(with, start_s + 1'900);
  run("r01/flow", start_s + 1'900, start_s + 2'000, wave);
  EXPECT_EQ(files("s-").size(), 1u);
  EXPECT_FALSE(said_.empty());
  EXPECT_EQ(history_->read("r01/flow", start_s + 1'980, start_s + 2'000, 0, 100).samples.size(), 20u);  // from memory
}

TEST_F(kept_history, a_clock_that_is_set_back_writes_anew) {
  open(start_s);
  run("r01/flow", start_s, start_s + 600, [](std::int64_t) { return 1.0; });
  run("r01/flow", start_s + 120, start_s + 180, [](std::int64_t) { return 2.0; });
  const auto read = history_->read("r01/flow", start_s, start_s + 600, 0, 10'000);
  ASSERT_EQ(read.samples.size(), 600u);
  EXPECT_EQ(read.samples[119].value, 1);
  EXPECT_EQ(read.samples[120].value, 2);
  EXPECT_EQ(read.samples[180].value, 1);
}

TEST(history_page, gives_every_double_back_to_the_bit) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20'000; ++round) {
    block_values block;
    block.mask = random() | 1;
    const auto count = static_cast<std::size_t>(std::popcount(block.mask));
    for (std::size_t i = 0; i < count; ++i) {
      const auto raw = random();
      switch (round % 5) {
        case 0:
          block.values.push_back(static_cast<double>(raw % 2'000'000) / 1'000);
          break;
        case 1:
          block.values.push_back(static_cast<double>(raw % 1'000'000'000'000'000));
          break;
        case 2:
          block.values.push_back(std::bit_cast<double>(raw));
          break;
        case 3:
          block.values.push_back(7.25);
          break;
        default:
          block.values.push_back(i % 2 == 0 ? -0.0 : 0.0);
          break;
      }
    }
    const std::string bytes = encode_block(42, block);
    const auto back = decode_block(bytes, 42, 1);
    ASSERT_TRUE(back.has_value());
    ASSERT_EQ(back->mask, block.mask);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(std::bit_cast<std::uint64_t>(back->values[i]), std::bit_cast<std::uint64_t>(block.values[i]));
    }
    EXPECT_FALSE(decode_block(bytes, 43, 1).has_value());  // another series' block
  }
}

TEST(history_page, refuses_any_damage_to_a_block) {
  std::mt19937 random(11);
  block_values block{0xFFFF, {}};
  for (int i = 0; i < 16; ++i) block.values.push_back(i * 1.5);
  const std::string bytes = encode_block(9, block);
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = bytes;
    bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
    if (random() % 8 == 0) bad.resize(random() % bad.size());
    const auto back = decode_block(bad, 9, 1);
    EXPECT_FALSE(back.has_value());
    static_cast<void>(decode_header(bad));
  }
}

}  // namespace
}  // namespace busbar::storage
