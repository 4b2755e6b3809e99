#include "actors/devices/modbus/register_map.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace busbar::devices::modbus {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

register_map map_of(const std::string& points, const std::string& head = R"("name": "m", "unit": 1)") {
  const auto parsed = parse_register_map("{" + head + R"(, "points": [)" + points + "]}", "m.json");
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return *parsed;
}

std::optional<double> value_of(const point_batch& batch, std::string_view name) {
  for (const auto& one : batch.points) {
    if (one.name == name) return one.reading.value;
  }
  return std::nullopt;
}

TEST(register_map, all_shipped_maps_are_without_a_finding) {
  ASSERT_FALSE(shipped_maps().empty());
  for (const std::string_view name : shipped_maps()) {
    const auto parsed = parse_register_map(*shipped_map(name), name);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_THAT(lint(*parsed), IsEmpty()) << name;
  }
}

// The same number in each order a vendor may send its two words.
TEST(register_map, reads_both_words_in_every_order) {
  const auto map = map_of(R"({"name": "a", "address": 0, "type": "u32", "order": "ABCD", "unit": "1"},
                             {"name": "b", "address": 2, "type": "u32", "order": "CDAB", "unit": "1"},
                             {"name": "c", "address": 4, "type": "u32", "order": "BADC", "unit": "1"},
                             {"name": "d", "address": 6, "type": "u32", "order": "DCBA", "unit": "1"},
                             {"name": "f", "address": 8, "type": "f32", "unit": "1"})");
  const request asked{function::read_holding, 1, 0, 10, {}};
  const auto batch =
      decode(map, asked, {0x1122, 0x3344, 0x3344, 0x1122, 0x2211, 0x4433, 0x4433, 0x2211, 0x41c8, 0x0000}, 1);
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(value_of(batch, name), 0x11223344) << name;
  EXPECT_EQ(value_of(batch, "f"), 25.0);
}

TEST(register_map, absent_not_finite_and_out_of_range_have_no_value) {
  const auto map =
      map_of(R"({"name": "flow", "address": 0, "scale": 0.1, "unit": "L/min", "min": 0, "max": 400,
                              "absent": [65535]},
                             {"name": "x", "address": 1, "type": "f32", "unit": "1"},
                             {"name": "t", "address": 3, "type": "s16", "scale": 0.1, "unit": "C", "min": -20, "max": 120})");
  const request asked{function::read_holding, 1, 0, 4, {}};
  auto batch = decode(map, asked, {65535, 0x7fc0, 0, 0x8000}, 1);
  EXPECT_EQ(batch.bad, 3U);
  for (const auto& one : batch.points) {
    EXPECT_EQ(one.reading.value, std::nullopt) << one.name;
    EXPECT_EQ(one.reading.quality, point_quality::bad) << one.name;
    EXPECT_FALSE(one.reading.raw.empty());
  }
  batch = decode(map, asked, {1234, 0x3f80, 0, 0xffce}, 1);
  EXPECT_DOUBLE_EQ(*value_of(batch, "flow"), 123.4);
  EXPECT_DOUBLE_EQ(*value_of(batch, "t"), -5.0);
}

TEST(register_map, a_point_that_lies_half_outside_the_words_read_is_left_out) {
  const auto map = map_of(R"({"name": "a", "address": 1, "type": "u32", "unit": "1"})");
  EXPECT_THAT(decode(map, {function::read_holding, 1, 0, 2, {}}, {1, 2}, 1).points, IsEmpty());
  EXPECT_THAT(decode(map, {function::read_input, 1, 1, 2, {}}, {1, 2}, 1).points, IsEmpty());
}

TEST(register_map, reads_of_a_class_cover_each_point_and_stay_within_a_frame) {
  std::string points;
  for (int at = 0; at < 300; ++at) {
    points += fmt::format(R"({}{{"name": "p{}", "address": {}, "unit": "1", "poll": "fast"}})", at ? "," : "",
                          at, at * (at % 7 == 0 ? 11 : 1));
  }
  const auto map = map_of(points);
  const auto reads = plan_reads(map, poll_class::fast);
  std::size_t covered = 0;
  for (const auto& one : map.points) {
    for (const auto& read : reads) {
      EXPECT_TRUE(check(read).ok());
      if (one.address >= read.address && one.address < read.address + read.count) {
        ++covered;
        break;
      }
    }
  }
  EXPECT_EQ(covered, map.points.size());
  EXPECT_THAT(plan_reads(map, poll_class::slow), IsEmpty());
}

TEST(register_map, a_write_outside_its_limits_is_refused_with_the_limits) {
  const auto map = map_of(
      R"({"name": "set", "address": 5, "scale": 0.1, "unit": "C", "min": 10, "max": 60, "writable": true},
                             {"name": "seen", "address": 6, "unit": "C"})");
  EXPECT_EQ(encode_write(map, "set", 45.0)->values, std::vector<std::uint16_t>{450});
  for (const double wrong : {9.9, 60.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const auto refused = encode_write(map, "set", wrong);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("10 to 60"));
  }
  EXPECT_FALSE(encode_write(map, "seen", 1).ok());
  EXPECT_FALSE(encode_write(map, "nothing", 1).ok());
}

TEST(register_map, every_error_of_a_file_is_told_at_once) {
  const auto parsed = parse_register_map(R"({"name": "m", "units": 3, "points": [
    {"name": "a", "address": 70000}, {"address": 1, "type": "u17"}, {"name": "c", "address": 2, "colour": "red"}]})",
                                         "m.json");
  ASSERT_FALSE(parsed.ok());
  const std::string text(parsed.status().message());
  for (const char* part :
       {"m.json: units", "points[0].address", "points[1].name", "points[1].type", "points[2].colour"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

struct defect {
  const char* points;
  const char* finding;
};
class register_map_linter : public ::testing::TestWithParam<defect> {};

TEST_P(register_map_linter, finds_the_defect) {
  EXPECT_THAT(lint(map_of(GetParam().points)), Contains(HasSubstr(GetParam().finding)));
}

INSTANTIATE_TEST_SUITE_P(
    defects_of_public_maps, register_map_linter,
    ::testing::Values(
        defect{R"({"name": "clear_leak_history", "address": 37899, "type": "flags", "bits": {"0": "go"}},
                  {"name": "clear_error_log", "address": 37899, "type": "flags", "bits": {"0": "go"}})",
               "shares register 37899"},
        defect{
            R"({"name": "a", "address": 1, "scale": 0.1, "unit": "C"}, {"name": "b", "address": 1, "scale": 0.5, "unit": "C"})",
            "another scale"},
        defect{
            R"({"name": "sensor_alarm", "address": 37375, "unit": "1"}, {"name": "sensor_alarm", "address": 41474, "unit": "1"})",
            "stands at 37375 too"},
        defect{R"({"name": "hex_input_current", "address": 1, "unit": "V"})",
               "is called current and has the unit V"},
        defect{R"({"name": "rpu_power", "address": 36869, "scale": 0.1, "unit": "W", "min": 0, "max": 8500})",
               "at most 6553.5 W"},
        defect{R"({"name": "leak", "address": 1, "type": "flags", "leak": true, "bits": {"0": "pan"}})",
               "not polled fast"},
        defect{
            R"({"name": "latched", "address": 1, "type": "flags", "sticky": true, "poll": "slow", "bits": {"0": "pan"}})",
            "not read at connect"},
        defect{R"({"name": "set", "address": 1, "unit": "C", "writable": true})", "without limits"},
        defect{
            R"({"name": "set", "address": 1, "table": "input", "unit": "C", "writable": true, "min": 0, "max": 1})",
            "input table"},
        defect{R"({"name": "x", "address": 65535, "type": "f32", "unit": "1"})", "past register"},
        defect{R"({"name": "x", "address": 1, "scale": 0, "unit": "1"})", "scale"},
        defect{R"({"name": "x", "address": 1})", "has no unit"}));

TEST(register_map_linter, slow_leak_polling_is_a_finding) {
  const auto map = map_of(
      R"({"name": "leak", "address": 1, "type": "flags", "leak": true, "poll": "fast", "bits": {"0": "pan"}})",
      R"("name": "m", "fast_ms": 180000)");
  EXPECT_THAT(lint(map), Contains(HasSubstr("fast_ms is 180000")));
}

}  // namespace
}  // namespace busbar::devices::modbus
