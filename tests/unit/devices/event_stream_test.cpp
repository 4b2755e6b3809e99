// Bytes of event streams and reports: however they are cut, and whatever they are.
#include "actors/devices/redfish/event_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "actors/core/reading_board.hpp"
#include "actors/devices/redfish/metric_report.hpp"
#include "actors/devices/redfish/telemetry_points.hpp"

namespace busbar::devices::redfish {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> events_of(event_stream_decoder& decoder, std::string_view bytes, std::size_t piece) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    decoder.feed(bytes.substr(at, piece), [&found](std::string_view data) { found.emplace_back(data); });
  }
  return found;
}

TEST(event_stream, gives_the_same_events_wherever_the_bytes_are_cut) {
  const std::string bytes =
      ": alive\n\nid: 1\ndata: {\"a\":1}\n\ndata:two\ndata: lines\r\n\r\nevent: x\rid: 2\rdata: three\r\r"
      "database: no\n\ndata\n\nid: 3\ndata: \n\nretry: 5\ndata: last\n\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    event_stream_decoder decoder;
    EXPECT_THAT(events_of(decoder, bytes, piece),
                ElementsAre("{\"a\":1}", "two\n lines", "three", "", "last"))
        << piece;
    EXPECT_EQ(decoder.figures().comments, 1u);
    EXPECT_EQ(decoder.figures().gaps, 0u);
  }
}

TEST(event_stream, an_event_without_its_end_is_none_yet) {
  event_stream_decoder decoder;
  EXPECT_TRUE(events_of(decoder, "data: half", 3).empty());
  EXPECT_TRUE(events_of(decoder, " of it\n", 3).empty());
  EXPECT_THAT(events_of(decoder, "\n", 3), ElementsAre("half of it"));
}

TEST(event_stream, counts_ids_that_do_not_follow_each_other) {
  event_stream_decoder decoder;
  events_of(decoder,
            "id: 7\ndata: a\n\nid: 8\ndata: b\n\nid: 10\ndata: c\n\nid: word\ndata: d\n\nid: 11\ndata: e\n\n",
            9);
  EXPECT_EQ(decoder.figures().gaps, 1u);
}

TEST(event_stream, leaves_out_an_event_that_is_too_large_and_goes_on) {
  event_stream_decoder decoder(100);
  const std::string bytes = "data: " + std::string(1'000, 'x') + "\n\ndata: small\n\n" +
                            std::string(100'000, 'y') + "\n\ndata: again\n\n";
  EXPECT_THAT(events_of(decoder, bytes, 64), ElementsAre("small", "again"));
  EXPECT_EQ(decoder.figures().too_large, 1u);
}

TEST(metric_reports, are_read_whatever_the_order_of_their_members) {
  metric_report report;
  ASSERT_TRUE(report.read(R"({"Id":"A","MetricValues":[{"MetricValue":"1","MetricProperty":"/a"},
      {"MetricProperty":"/b","MetricValue":2.5,"Oem":{"MetricValue":"9","Nvidia":{"MetricValueStale":true}}},
      {"MetricId":"c","MetricValue":null},{"MetricProperty":"/d"},{"MetricProperty":"/e","MetricValue":{"MetricValue":"7"}}],
      "@odata.id":"/r/A","ReportSequence":"4"})"));
  ASSERT_EQ(report.size(), 5u);
  EXPECT_EQ(report.id(), "A");
  EXPECT_EQ(report.uri(), "/r/A");
  EXPECT_EQ(report.sequence(), "4");
  EXPECT_EQ(report[0].text, "1");
  EXPECT_EQ(report[1].number, 2.5);
  EXPECT_EQ(report[1].value, metric_row::form::number);
  EXPECT_TRUE(report[1].stale);
  EXPECT_EQ(report[2].value, metric_row::form::other);
  EXPECT_EQ(report[3].value, metric_row::form::missing);
  EXPECT_EQ(report[4].value, metric_row::form::other);
  // Nothing of the last report stays in the next one.
  ASSERT_TRUE(report.read(R"({"MetricValues":[{"MetricId":"x"}]})"));
  ASSERT_EQ(report.size(), 1u);
  EXPECT_TRUE(report[0].property.empty() && report[0].text.empty() && report.id().empty() &&
              !report[0].stale);
}

TEST(metric_reports, what_is_none_is_none) {
  metric_report report;
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[]"), std::string("<html>"),
        std::string(R"({"MetricValues":{}})"),
        std::string(R"({"Oem":{"MetricValues":[{"MetricProperty":"/a"}]}})"),
        std::string(R"({"MetricValues":[{"MetricProperty":"/a","MetricValue":"1"})"),
        R"({"MetricValues":[{"MetricProperty":"/a","X":)" + deep + "}]}",
        std::string(R"({"@odata.type":"#Event.v1_7_0.Event","Events":[{"MessageId":"a"}]})")}) {
    EXPECT_FALSE(report.read(text)) << text;
    EXPECT_EQ(report.size(), 0u);
  }
  EXPECT_TRUE(report.read(R"({"MetricValues":[[1,{"MetricValue":3}],7,"MetricValue",null]})"));
  EXPECT_EQ(report.size(), 0u);
}

// Random damage to real bytes: every byte string is read to its end, and no value appears that stood nowhere.
TEST(event_stream, survives_any_bytes) {
  std::mt19937 random(20260101);
  const std::string good =
      "id: 1\ndata: "
      "{\"@odata.id\":\"/r/A\",\"Id\":\"A\",\"MetricValues\":[{\"MetricProperty\":\"/redfish/v1/Chassis/C/"
      "Sensors/S#/"
      "Reading\",\"MetricValue\":\"12.5\",\"Timestamp\":\"2026-01-06T22:56:02Z\"},{\"MetricId\":\"m\","
      "\"MetricValue\":7,\"Oem\":{\"Nvidia\":{\"MetricValueStale\":false}}}],\"ReportSequence\":\"9\"}\n\n";
  auto board = std::make_shared<core::reading_board>();
  telemetry_points points("r01/c07", board);
  metric_report report;
  std::size_t whole = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    const auto changes = random() % 4;
    for (std::uint32_t i = 0; i < changes; ++i) {
      if (bytes.empty()) bytes = good;
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          bytes.erase(at, random() % 40);
          break;
        case 2:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 60));
          break;
        default:
          bytes.resize(at + 1);
          break;
      }
    }
    event_stream_decoder decoder(4'096);
    const std::size_t piece = 1 + random() % 64;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      decoder.feed(std::string_view(bytes).substr(at, piece), [&](std::string_view data) {
        if (!report.read(data)) return;
        ++whole;
        points.take(points.group("A"), report, "fuzz", {round + 1, round + 1});
      });
    }
  }
  EXPECT_GT(whole, 5'000u);
  for (const core::named_reading& one : board->under("")) {
    EXPECT_TRUE(one.what.quality == core::reading_quality::good ? one.what.value.has_value() : true)
        << one.name;
  }
}

}  // namespace
}  // namespace busbar::devices::redfish
