#include "actors/core/reading_board.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

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

TEST(reading_board, gives_a_name_the_same_place_and_takes_readings_by_it) {
  reading_board board;
  const auto flow = board.place_of("r01/flow", "L/min", "cdu");
  const auto dp = board.place_of("r01/dp", "kPa", "cdu");
  EXPECT_EQ(board.place_of("r01/flow", "L/min", "cdu"), flow);
  EXPECT_EQ(board.size(), 0u);
  EXPECT_FALSE(board.find("r01/flow").has_value());  // a place is no reading
  const std::vector<reading_board::placed_reading> batch = {
      {flow, reading_quality::good, 120, 7},
      {dp, reading_quality::good, std::numeric_limits<double>::infinity(), 7}};
  board.put(batch, 9);
  const auto found = board.find("r01/flow");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->value, 120);
  EXPECT_EQ(found->unit, "L/min");
  EXPECT_EQ(found->source, "cdu");
  EXPECT_EQ(found->source_wall_ns, 7);
  EXPECT_EQ(found->received_wall_ns, 9);
  EXPECT_EQ(board.find("r01/dp")->quality, reading_quality::bad);
  EXPECT_EQ(board.size(), 2u);
  EXPECT_EQ(board.puts(), 2u);
}

TEST(reading_board, a_forgotten_name_takes_nothing_until_its_place_is_asked_for_again) {
  reading_board board;
  const auto place = board.place_of("r01/c07/power", "W", "report");
  const std::vector<reading_board::placed_reading> batch = {{place, reading_quality::good, 5, 0}};
  board.put(batch, 1);
  board.forget("r01/c07/");
  board.put(batch, 2);
  EXPECT_EQ(board.size(), 0u);
  EXPECT_FALSE(board.find("r01/c07/power").has_value());
  EXPECT_EQ(board.place_of("r01/c07/power", "W", "report"), place);
  board.put(batch, 3);
  EXPECT_EQ(board.find("r01/c07/power")->received_wall_ns, 3);
}

TEST(reading_board, names_no_point_twice_where_prefixes_overlap) {
  reading_board board;
  const std::vector<named_reading> batch = {at("r01/c07/power", 1), at("r01/c08/power", 2),
                                            at("r02/flow", 3)};
  board.put(batch);
  const std::vector<std::string> wanted = {"r01/c07", "r01/", "r01/c07/power", "r02/flow"};
  EXPECT_EQ(board.since(0, wanted).points.size(), 3u);
}

TEST(reading_board, counts_what_a_slow_reader_missed) {
  reading_board board;
  for (int i = 1; i <= 5; ++i) {
    const std::vector<named_reading> batch = {at("r01/flow", i)};
    board.put(batch);
  }
  std::uint64_t times = 0;
  board.look(0, {}, [&times](const reading_board::sight& seen) {
    times = seen.times;
    EXPECT_EQ(seen.what.value, 5);
  });
  EXPECT_EQ(times, 5u);
}

TEST(reading_board, places_marked_stale_keep_their_value) {
  reading_board board;
  const auto place = board.place_of("r01/flow", "L/min", "cdu");
  const std::vector<reading_board::place> both = {place, place + 100};  // an unknown place is nobody's
  board.mark_stale(both);
  EXPECT_EQ(board.size(), 0u);
  const std::vector<reading_board::placed_reading> batch = {{place, reading_quality::good, 5, 0}};
  board.put(batch, 1);
  board.mark_stale(both);
  EXPECT_EQ(board.find("r01/flow")->quality, reading_quality::stale);
  EXPECT_EQ(board.find("r01/flow")->value, 5);
}

TEST(reading_board, serves_writers_and_watchers_at_once) {
  reading_board board;
  std::vector<std::thread> writers;
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&board, w] {
      const std::string member = "r01/c0" + std::to_string(w);
      for (int i = 0; i < 300; ++i) {
        const std::vector<named_reading> batch = {at(member + "/power", i), at(member + "/inlet", i)};
        board.put(batch);
        if (i % 100 == 99) board.forget(member);
      }
      const std::vector<named_reading> last = {at(member + "/power", 1000)};
      board.put(last);
    });
  }
  std::uint64_t version = 0;
  for (int i = 0; i < 200; ++i) {
    const auto news = board.since(version, {});
    EXPECT_GE(news.version, version);
    version = news.version;
  }
  for (std::thread& one : writers) one.join();
  EXPECT_EQ(board.under("r01/").size(), 3u);
  for (const named_reading& one : board.under("r01/")) EXPECT_EQ(one.what.value, 1000);
}

}  // namespace
}  // namespace busbar::core
