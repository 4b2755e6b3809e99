// How little is asked of a device while nothing happens, and that no reading suffers from it.
#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/interlock/device_walk.hpp"
#include "daemon/interlock/interlock_logic.hpp"
#include "tests/unit/interlock/logic_rig.hpp"
#include "tests/unit/interlock/records.hpp"
#include "tests/unit/interlock/tray_bodies.hpp"

namespace busbar::interlock {
namespace {

using news = device_walk::news;
using test::detectors_path;
using test::tray;

const std::string sensors_path = "/redfish/v1/Chassis/Chassis_0/Sensors";
const std::string expand = "?$expand=.($levels=1)";

// A tray that gives the members of a collection in one answer.
class expanding_tray : public tray {
 public:
  expanding_tray() {
    std::string& root = bodies["/redfish/v1/"];
    root.insert(root.rfind('}'), R"(,"ProtocolFeaturesSupported":{"ExpandQuery":{"NoLinks":true}})");
  }
  http_response answer(const http_request& request) {
    if (request.path == detectors_path + expand) bodies[request.path] = whole(true);
    if (request.path == sensors_path + expand && !refuses_sensors) bodies[request.path] = whole(false);
    http_response response = serve(request);
    const bool refused = refuses_sensors && status_of_sensors != 0 && request.path == sensors_path + expand;
    if (refused) response.status = status_of_sensors;
    return response;
  }
  bool refuses_sensors = false;
  int status_of_sensors = 0;  // 0: as the bodies say

 private:
  std::string whole(bool detectors) const {
    std::string members;
    for (const std::string& name : test::four_detectors) {
      const std::string uri = detectors ? path(name) : raw_path(name);
      members +=
          (members.empty() ? "" : ",") + (R"({"@odata.id":")" + uri + "\"," + bodies.at(uri).substr(1));
    }
    return R"({"Members":[)" + members + "]}";
  }
};

class polls : public ::testing::Test {
 protected:
  // The requests of the next whole poll.
  std::vector<std::string> poll() {
    const std::size_t before = tray_.asked.size();
    for (int i = 0; i < 200; ++i) {
      const news seen = walk_.on(tray_.answer(walk_.next()));
      if (seen == news::poll_done) break;
      EXPECT_TRUE(seen == news::none || seen == news::logged_in || seen == news::detectors_done);
    }
    std::vector<std::string> paths;
    for (std::size_t i = before; i < tray_.asked.size(); ++i) paths.push_back(tray_.asked[i].path);
    return paths;
  }
  verdict seen(const std::string& name) const { return walk_.readings().at(name).seen; }

  expanding_tray tray_;
  device_walk walk_{test::make_device("r01/c01"), ""};
};

TEST_F(polls, read_all_detectors_in_one_request_and_all_their_values_in_one_at_every_fourth) {
  poll();
  int values = 0;
  for (int i = 0; i < 8; ++i) {
    const auto paths = poll();
    for (const std::string& path : paths)
      EXPECT_TRUE(path == detectors_path + expand || path == sensors_path + expand) << path;
    EXPECT_LE(paths.size(), 2U);
    values += paths.size() == 2 ? 1 : 0;
  }
  EXPECT_EQ(values, 2);
}

TEST_F(polls, are_told_from_the_search_before_them_whose_time_says_nothing_of_theirs) {
  bool polling = false;
  for (int i = 0; i < 200; ++i) {
    const std::string path = walk_.next().path;
    const bool read = path == detectors_path + expand || path == sensors_path + expand;
    EXPECT_EQ(walk_.polling(), read) << path;
    polling = polling || read;
    if (walk_.on(tray_.answer(walk_.next())) == news::poll_done) break;
  }
  EXPECT_TRUE(polling);
}

TEST_F(polls, read_the_values_at_every_one_where_polls_are_rare) {
  poll();
  walk_.read_raw_always(true);
  poll();  // laid out before
  tray_.volts("0_ColdPlate", 0.4);
  EXPECT_EQ(poll().size(), 2U);
  EXPECT_EQ(seen("0_ColdPlate"), DetectorReading::LEAK) << "OK by word, wet by its own value";
}

TEST_F(polls, read_the_values_one_by_one_where_the_list_of_sensors_is_not_given_as_a_whole) {
  tray_.refuses_sensors = true;
  tray_.bodies[sensors_path + expand] = tray_.bodies[sensors_path];
  poll();
  EXPECT_EQ(seen("0_ColdPlate"), DetectorReading::DRY);
  tray_.volts("0_ColdPlate", 0.4);
  bool found = false;
  for (int i = 0; i < 4 && !found; ++i) {
    poll();
    found = seen("0_ColdPlate") == DetectorReading::LEAK;
  }
  EXPECT_TRUE(found);
}

TEST_F(polls, judge_an_answer_like_the_last_one_anew_when_a_value_has_changed) {
  poll();
  for (int i = 0; i < 4; ++i) poll();
  EXPECT_EQ(seen("1_Manifold"), DetectorReading::DRY);
  tray_.volts("1_Manifold", 0.4);  // the detectors' own answer stays byte by byte the same
  bool found = false;
  for (int i = 0; i < 4 && !found; ++i) {
    poll();
    found = seen("1_Manifold") == DetectorReading::LEAK;
  }
  EXPECT_TRUE(found);
  tray_.volts("1_Manifold", 1.74);
  for (int i = 0; i < 4; ++i) poll();
  EXPECT_EQ(seen("1_Manifold"), DetectorReading::DRY);
}

TEST_F(polls, see_a_leak_in_the_first_answer_after_equal_ones) {
  for (int i = 0; i < 6; ++i) poll();
  tray_.say("0_Manifold", "Critical", "Enabled", "Critical");
  tray_.volts("0_Manifold", 0.4);
  poll();
  EXPECT_EQ(seen("0_Manifold"), DetectorReading::LEAK);
}

TEST_F(polls, read_alone_what_the_answer_of_all_sensors_leaves_out) {
  poll();
  tray_.refuses_sensors = true;  // answers, with one sensor only
  tray_.bodies[sensors_path + expand] = R"({"Members":[{"@odata.id":")" + tray::raw_path("0_Manifold") +
                                        "\"," + tray_.bodies[tray::raw_path("0_Manifold")].substr(1) + "]}";
  tray_.say("1_Manifold", "Critical", "Enabled", "Critical");
  for (int i = 0; i < 8; ++i) {
    poll();
    EXPECT_EQ(seen("0_Manifold"), DetectorReading::DRY);
    EXPECT_EQ(seen("1_Manifold"), DetectorReading::UNKNOWN) << "Critical beside a dry value, poll " << i;
  }
}

// A detector that says Critical beside its dry value is broken, however its value has to be read.
class sensor_lists : public polls, public ::testing::WithParamInterface<int> {};

TEST_P(sensor_lists, that_are_refused_do_not_let_a_broken_detectors_word_stand_alone) {
  tray_.refuses_sensors = true;
  tray_.status_of_sensors = GetParam();
  tray_.say("1_ColdPlate", "Critical", "Degraded", "Critical");
  for (int i = 0; i < 12; ++i) {
    poll();
    EXPECT_EQ(seen("1_ColdPlate"), DetectorReading::UNKNOWN) << "poll " << i;
    EXPECT_EQ(seen("0_ColdPlate"), DetectorReading::DRY) << "poll " << i;
  }
  tray_.volts("1_ColdPlate", 0.4);
  poll();
  EXPECT_EQ(seen("1_ColdPlate"), DetectorReading::LEAK);
}

INSTANTIATE_TEST_SUITE_P(answers, sensor_lists, ::testing::Values(200, 400, 404, 500, 501, 503));

TEST(event_streams, tell_an_event_of_a_leak_from_others) {
  event_cutter cutter;
  EXPECT_FALSE(cutter.feed("id: 1\ndata: {\"MessageId\":\"ResourceEvent.1.4.X\"}\n\n").leak);
  const auto seen =
      cutter.feed("id: 2\ndata: {\"MessageId\":\"Environmental.1.0.LeakDetectedCritical\"}\n\n");
  EXPECT_TRUE(seen.leak);
  EXPECT_EQ(seen.events, 1);
  EXPECT_FALSE(cutter.feed(": alive\n\n").leak);
}

class intervals : public test::bench {
 protected:
  std::int64_t interval() const { return poll_interval_ms(interlock_, interlock_.devices.at("r01/c01")); }
};

TEST_F(intervals, are_a_second_beside_a_living_stream_while_all_is_dry_and_short_otherwise) {
  arm();
  EXPECT_EQ(interval(), 250);
  feed(stream_changed{"r01/c01", true});
  EXPECT_EQ(interval(), 1'000);
  auto readings = test::all(DetectorReading::DRY);
  readings["0_Manifold"].seen = DetectorReading::UNKNOWN;
  feed(detectors_read{"r01/c01", readings, 5});
  EXPECT_EQ(interval(), 250) << "a detector that is not known is looked at as if there were no stream";
  feed(detectors_read{"r01/c01", test::all(DetectorReading::DRY), 5});
  EXPECT_EQ(interval(), 1'000);
  feed(stream_changed{"r01/c01", false});
  EXPECT_EQ(interval(), 250);
}

TEST_F(intervals, of_a_stream_that_has_ended_do_not_make_its_last_reading_stale_at_once) {
  arm();
  feed(stream_changed{"r01/c01", true});
  feed(detectors_read{"r01/c01", test::all(DetectorReading::DRY), 5});
  now_ms_ += 900;
  feed(stream_changed{"r01/c01", false});
  EXPECT_TRUE(row("r01/c01").armed()) << row("r01/c01").reason();
  feed(detectors_read{"r01/c01", test::all(DetectorReading::DRY), 5});
  now_ms_ += 751;
  EXPECT_FALSE(row("r01/c01").armed()) << "three polls of 250 ms without a stream";
}

TEST_F(intervals, beside_a_stream_leave_a_silent_device_not_armed_after_three_of_them) {
  arm();
  feed(stream_changed{"r01/c01", true});
  feed(detectors_read{"r01/c01", test::all(DetectorReading::DRY), 5});
  now_ms_ += 3'001;
  EXPECT_FALSE(row("r01/c01").armed());
}

TEST_F(intervals, are_told_when_they_change) {
  arm();
  feed(stream_changed{"r01/c01", true});
  const auto effects = feed(detectors_read{"r01/c01", test::all(DetectorReading::DRY), 5});
  EXPECT_TRUE(std::any_of(effects.begin(), effects.end(),
                          [](const effect& each) { return std::holds_alternative<publish>(each); }));
}

}  // namespace
}  // namespace busbar::interlock
