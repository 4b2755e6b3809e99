#include "actors/core/reading_board.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace busbar::core {
namespace {

named_reading at(std::string name, double value, std::int64_t received_wall_ns = 1) {
  return {std::move(name), {value, "kPa", reading_quality::good, "test", 0, received_wall_ns}};
}

TEST(reading_board, gives_the_newest_value_and_only_what_changed_since) {
  reading_board board;
  const std::vector<named_reading> first = {at("r01/dp", 40), at("r01/flow", 100), at("r02/dp", 41)};
  board.put(first);
  const auto all = board.since(0, {});
  EXPECT_EQ(all.points.size(), 3u);
  const std::vector<named_reading> second = {at("r01/dp", 42)};
  board.put(second);
  const std::vector<named_reading> third = {at("r01/dp", 43)};
  board.put(third);
  const auto changed = board.since(all.version, {});
  ASSERT_EQ(changed.points.size(), 1u);
  EXPECT_EQ(changed.points.front().name, "r01/dp");
  EXPECT_EQ(changed.points.front().what.value, 43);
  EXPECT_TRUE(board.since(changed.version, {}).points.empty());
}

TEST(reading_board, filters_by_any_of_the_prefixes) {
  reading_board board;
  const std::vector<named_reading> batch = {at("r01/dp", 1), at("r02/dp", 2), at("r03/dp", 3)};
  board.put(batch);
  const std::vector<std::string> wanted = {"r01/", "r03/"};
  EXPECT_EQ(board.since(0, wanted).points.size(), 2u);
  EXPECT_EQ(board.under("r02/").size(), 1u);
  EXPECT_TRUE(board.under("r9").empty());
}

TEST(reading_board, what_is_not_a_number_is_bad_and_has_no_value) {
  reading_board board;
  const std::vector<named_reading> batch = {at("a", std::numeric_limits<double>::quiet_NaN()),
                                            at("b", std::numeric_limits<double>::infinity())};
  board.put(batch);
  for (const char* name : {"a", "b"}) {
    const auto found = board.find(name);
    ASSERT_TRUE(found.has_value());
    EXPECT_FALSE(found->value.has_value());
    EXPECT_EQ(found->quality, reading_quality::bad);
  }
  EXPECT_FALSE(board.find("c").has_value());
}

TEST(reading_board, an_old_reading_turns_stale_once_and_is_told_as_a_change) {
  reading_board board;
  const std::vector<named_reading> batch = {at("r01/old", 1, 10), at("r01/new", 2, 30)};
  board.put(batch);
  const auto version = board.since(0, {}).version;
  board.mark_stale("r01/", 20);
  const auto changed = board.since(version, {});
  ASSERT_EQ(changed.points.size(), 1u);
  EXPECT_EQ(changed.points.front().name, "r01/old");
  EXPECT_EQ(changed.points.front().what.quality, reading_quality::stale);
  board.mark_stale("r01/", 20);
  EXPECT_TRUE(board.since(changed.version, {}).points.empty());
}

TEST(reading_board, forgets_what_is_under_a_prefix_and_nothing_else) {
  reading_board board;
  const std::vector<named_reading> batch = {at("r01/a", 1), at("r01/b", 1), at("r010", 1)};
  board.put(batch);
  board.forget("r01/");
  EXPECT_EQ(board.size(), 1u);
}

}  // namespace
}  // namespace busbar::core
