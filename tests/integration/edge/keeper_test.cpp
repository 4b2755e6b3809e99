// Once a second: the rack's power from its shelves, and a sample of what is known.
#include "daemon/busbard/readings_keeper.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <limits>

namespace busbar::daemon {
namespace {

using core::reading_quality;

constexpr std::int64_t start_s = 1'800'000'000;
constexpr std::int64_t second_ns = 1'000'000'000;

class keeper : public ::testing::Test {
 protected:
  keeper() {
    std::string pattern = (std::filesystem::temp_directory_path() / "busbar-keeper-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    storage::history_options options;
    options.directory = (folder_ / "history").string();
    history_ = storage::history::open(options, start_s);
    keeper_ = std::make_unique<readings_keeper>(
        keeper_needs{"r01", board_, history_, [this] { return shelves_; }, [] { return std::int64_t{0}; }});
  }
  ~keeper() override {
    keeper_.reset();
    history_.reset();
    std::filesystem::remove_all(folder_);
  }
  void put(const std::string& name, std::optional<double> value,
           reading_quality quality = reading_quality::good) {
    const std::vector<core::named_reading> batch = {{name, {value, "W", quality, "test", 0, 1}}};
    board_->put(batch);
  }

  std::filesystem::path folder_;
  std::vector<std::string> shelves_ = {"r01/p01", "r01/p02"};
  std::shared_ptr<core::reading_board> board_ = std::make_shared<core::reading_board>();
  std::shared_ptr<storage::history> history_;
  std::unique_ptr<readings_keeper> keeper_;
};

TEST_F(keeper, the_racks_power_is_the_sum_of_all_its_shelves_or_unknown) {
  keeper_->keep(start_s * second_ns);
  EXPECT_EQ(board_->find("r01/power")->quality, reading_quality::unknown);
  EXPECT_FALSE(board_->find("r01/power")->value.has_value());
  put("r01/p01/output_power", 15'000);
  keeper_->keep(start_s * second_ns);
  EXPECT_FALSE(board_->find("r01/power")->value.has_value());  // one of two is no sum
  put("r01/p02/output_power", 16'000);
  keeper_->keep(start_s * second_ns);
  EXPECT_EQ(board_->find("r01/power")->value, 31'000);
  EXPECT_EQ(board_->find("r01/power")->quality, reading_quality::good);
  for (const auto quality : {reading_quality::stale, reading_quality::bad, reading_quality::unknown}) {
    put("r01/p02/output_power", 16'000, quality);
    keeper_->keep(start_s * second_ns);
    EXPECT_FALSE(board_->find("r01/power")->value.has_value());
  }
  put("r01/p02/output_power", 0);
  keeper_->keep(start_s * second_ns);
  EXPECT_EQ(board_->find("r01/power")->value, 15'000);  // a shelf that gives nothing, and says so
  shelves_.clear();
  keeper_->keep(start_s * second_ns);
  EXPECT_FALSE(board_->find("r01/power")->value.has_value());
}

TEST_F(keeper, samples_what_is_known_in_each_second_and_leaves_gaps_where_nothing_is) {
  put("r01/flow", 120);
  for (int i = 0; i < 10; ++i) keeper_->keep((start_s + i) * second_ns + 1'000);
  put("r01/flow", 120, reading_quality::stale);
  for (int i = 10; i < 20; ++i) keeper_->keep((start_s + i) * second_ns + 1'000);
  put("r01/flow", 130);
  for (int i = 20; i < 30; ++i) keeper_->keep((start_s + i) * second_ns + 1'000);
  const auto read = history_->read("r01/flow", start_s, start_s + 30, 0, 1'000);
  ASSERT_EQ(read.samples.size(), 21u);
  EXPECT_EQ(read.samples[9].value, 120);
  EXPECT_FALSE(read.samples[10].value.has_value());
  EXPECT_EQ(read.samples[11].wall_s, start_s + 20);
  EXPECT_EQ(read.samples[11].value, 130);
}

TEST_F(keeper, its_thread_ends_at_once) {
  readings_keeper runs({"r01", board_, history_, [] { return std::vector<std::string>(); },
                        [] { return start_s * second_ns + second_ns - 1; }});
  runs.start();
}

}  // namespace
}  // namespace busbar::daemon
