// Readings as people see them: rows, pictures, lines.
#include "daemon/cli/reading_view.hpp"

#include <gmock/gmock.h>
#include <google/protobuf/util/time_util.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/fake_daemon.hpp"

namespace busbar::cli {
namespace {

using ::testing::ElementsAre;

v1::Reading reading(std::optional<double> value, const std::string& unit,
                    v1::Quality quality = v1::QUALITY_GOOD) {
  v1::Reading made;
  if (value) made.set_value(*value);
  made.set_unit(unit);
  made.set_quality(quality);
  *made.mutable_received_time() = testing::sample_time();
  return made;
}

void add(v1::WatchReadingsResponse& to, const std::string& name, const v1::Reading& what) {
  v1::Point& point = *to.add_points();
  point.set_name(name);
  *point.mutable_reading() = what;
}

TEST(reading_view, shows_values_with_units_and_what_is_wrong_with_them) {
  EXPECT_EQ(value_text(reading(21.5, "Cel")), "21.5 Cel");
  EXPECT_EQ(value_text(reading(125'400, "W")), "125.4 kW");
  EXPECT_EQ(value_text(reading(980, "W")), "980 W");
  EXPECT_EQ(value_text(reading(62, "%")), "62%");
  EXPECT_EQ(value_text(reading(1, "1")), "1");
  EXPECT_EQ(value_text(reading(1e-15, "1")), "1e-15");
  EXPECT_EQ(value_text(reading(0, "kPa")), "0 kPa");
  EXPECT_EQ(value_text(reading(21.5, "Cel", v1::QUALITY_STALE)), "21.5 Cel (stale)");
  EXPECT_EQ(value_text(reading(std::nullopt, "Cel", v1::QUALITY_BAD)), "bad");
  EXPECT_EQ(value_text(reading(std::nullopt, "Cel", v1::QUALITY_UNKNOWN)), "unknown");
}

TEST(reading_view, a_row_has_name_value_quality_and_age) {
  v1::Point point;
  point.set_name("racks/r01/nodes/c07/gpu0/power");
  *point.mutable_reading() = reading(1'021, "W", v1::QUALITY_STALE);
  point.mutable_reading()->set_source("/redfish/v1/X");
  EXPECT_THAT(point_row(point, testing::sample_now()),
              ElementsAre("r01/c07/gpu0/power", "1021 W", "stale", "2m05s", "/redfish/v1/X"));
  point.set_name("racks/r01/flow");
  EXPECT_EQ(point_row(point, testing::sample_now())[0], "r01/flow");
  point.set_name("racks/r01/valves/supply/position");
  EXPECT_EQ(point_row(point, testing::sample_now())[0], "r01/valves/supply/position");
  point.set_name("cdus/cdu01/pump1/speed");
  EXPECT_EQ(point_row(point, testing::sample_now())[0], "cdu01/pump1/speed");
}

TEST(reading_view, a_sparkline_rises_with_its_values_and_is_blank_where_nothing_was_known) {
  EXPECT_EQ(sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 8), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline({0, std::nullopt, 7}, 8), "▁ █");
  EXPECT_EQ(sparkline({9, 0, 7}, 2), "▁█");  // the newest
  EXPECT_EQ(sparkline({100, 100.01, 100}, 8), "▄▄▄");
  EXPECT_EQ(sparkline({0, 0}, 8), "▄▄");
  EXPECT_EQ(sparkline({}, 8), "");
  EXPECT_EQ(sparkline({std::nullopt}, 8), " ");
}

TEST(reading_view, cooling_of_a_rack_is_a_line_a_reading) {
  cooling_view view("racks/r01");
  for (int second = 0; second < 4; ++second) {
    v1::WatchReadingsResponse news;
    add(news, "racks/r01/power", reading(120'000 + 3'000 * second, "W"));
    add(news, "racks/r01/flow", reading(130 + second, "L/min"));
    add(news, "racks/r01/supply_temperature", reading(28, "Cel"));
    if (second != 1) add(news, "racks/r01/dp", reading(std::nullopt, "kPa", v1::QUALITY_UNKNOWN));
    add(news, "racks/r01/valves/supply/position", reading(100, "%"));
    add(news, "cdus/cdu01/pump1/speed", reading(60 + 10 * second, "%"));
    add(news, "racks/r02/flow", reading(1, "L/min"));
    view.apply(news);
    view.sample();
  }
  EXPECT_THAT(view.lines(24, 80), ElementsAre("r01",                                         //
                                              "  power                       129 kW  ▁▃▆█",  //
                                              "  flow                     133 L/min  ▁▃▆█",  //
                                              "  supply                      28 Cel  ▄▄▄▄",  //
                                              "  return                     unknown      ",  //
                                              "  dp                         unknown      ",  //
                                              "  valve supply                  100%  ▄▄▄▄",  //
                                              "  cdu01 pump1                    90%  ▁▃▆█"));
  EXPECT_THAT(view.lines(3, 80).back(), ::testing::HasSubstr("and 6 more rows"));
  EXPECT_EQ(view.line(testing::sample_now()).substr(21),
            "r01  power 129 kW  flow 133 L/min  supply 28 Cel  return unknown  dp unknown  "
            "valve supply 100%  cdu01 pump1 90%");
}

TEST(reading_view, history_is_a_picture_and_a_row_a_sample) {
  using google::protobuf::util::TimeUtil;
  v1::ReadHistoryResponse history;
  history.set_unit("L/min");
  for (int i = 0; i < 3; ++i) {
    v1::HistorySample& one = *history.add_samples();
    *one.mutable_time() = TimeUtil::SecondsToTimestamp(1'800'000'000 + i);
    if (i != 1) one.set_value(100 + i);
  }
  EXPECT_EQ(sample_text(history, "r01/flow"),
            "r01/flow  ▁ █\n"
            "TIME                  VALUE\n"
            "2027-01-15T08:00:00Z  100 L/min\n"
            "2027-01-15T08:00:01Z  unknown\n"
            "2027-01-15T08:00:02Z  102 L/min\n");
}

}  // namespace
}  // namespace busbar::cli
