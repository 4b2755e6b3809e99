#include "daemon/interlock/device_walk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/interlock/records.hpp"
#include "tests/unit/interlock/tray_bodies.hpp"

namespace busbar::interlock {
namespace {

using ::testing::HasSubstr;
using news = device_walk::news;

using test::detectors_path;
using test::tray;

class device_walking : public ::testing::Test {
 protected:
  news until_news() {
    for (int i = 0; i < 200; ++i) {
      const news seen = walk_.on(tray_.serve(walk_.next()));
      if (seen != news::none) return seen;
    }
    return news::none;
  }

  void log_in_and_poll() {
    ASSERT_EQ(until_news(), news::logged_in);
    ASSERT_EQ(until_news(), news::poll_done);
  }

  verdict seen(const std::string& name) const { return walk_.readings().at(name).seen; }

  tray tray_;
  device_walk walk_{test::make_device("r01/c01"), ""};
};

TEST_F(device_walking, logs_in_without_telling_the_token_to_the_login_and_reads_every_detector) {
  log_in_and_poll();
  ASSERT_EQ(walk_.readings().size(), 4U);
  for (const std::string& name : test::four_detectors) EXPECT_EQ(seen(name), DetectorReading::DRY);
  EXPECT_EQ(walk_.session_uri(), "/redfish/v1/SessionService/Sessions/7");
  EXPECT_EQ(tray_.asked[1].method, "POST");
  EXPECT_EQ(tray_.asked[1].token, "");
  EXPECT_THAT(tray_.asked[1].body, HasSubstr(R"("Password":"secret")"));
}

TEST_F(device_walking, asks_for_nothing_but_reads_and_its_own_session) {
  log_in_and_poll();
  tray_.say("0_Manifold", "Critical", "Enabled", "Critical");
  tray_.volts("0_Manifold", 0.4);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(until_news(), news::poll_done);
  int posts = 0;
  for (const http_request& request : tray_.asked) {
    if (request.method == "GET") continue;
    ASSERT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/redfish/v1/SessionService/Sessions");
    ++posts;
  }
  EXPECT_EQ(posts, 1);
}

TEST_F(device_walking, deletes_first_the_session_that_a_killed_process_left) {
  walk_ = device_walk(test::make_device("r01/c01"), "/redfish/v1/SessionService/Sessions/3");
  log_in_and_poll();
  EXPECT_EQ(tray_.asked[2].method, "DELETE");
  EXPECT_EQ(tray_.asked[2].path, "/redfish/v1/SessionService/Sessions/3");
}

TEST_F(device_walking, sees_a_leak_in_the_very_next_poll) {
  log_in_and_poll();
  tray_.say("1_ColdPlate", "Critical", "Enabled", "Critical");
  tray_.volts("1_ColdPlate", 0.4);
  ASSERT_EQ(until_news(), news::poll_done);
  EXPECT_EQ(seen("1_ColdPlate"), DetectorReading::LEAK);
}

TEST_F(device_walking, takes_a_detector_that_contradicts_its_own_voltage_as_unknown) {
  log_in_and_poll();
  tray_.say("1_ColdPlate", "Critical", "Degraded", "Critical");
  ASSERT_EQ(until_news(), news::poll_done);
  EXPECT_EQ(seen("1_ColdPlate"), DetectorReading::UNKNOWN);
}

TEST_F(device_walking, finds_a_detector_that_says_ok_while_its_voltage_is_wet_within_four_polls) {
  log_in_and_poll();
  tray_.volts("0_ColdPlate", 0.4);
  bool found = false;
  for (int i = 0; i < 4 && !found; ++i) {
    ASSERT_EQ(until_news(), news::poll_done);
    found = seen("0_ColdPlate") == DetectorReading::LEAK;
  }
  EXPECT_TRUE(found);
}

TEST_F(device_walking,
       an_answer_that_is_an_error_or_no_json_or_of_another_detector_is_unknown_for_that_detector_alone) {
  log_in_and_poll();
  tray_.bodies[tray::path("0_ColdPlate")] = "{\"Id\":";
  tray_.bodies[tray::path("0_Manifold")] = tray_.bodies[tray::path("1_Manifold")];
  tray_.bodies[tray::path("1_ColdPlate")] =
      R"({"Id":"Chassis_0_LeakDetector_1_ColdPlate","DetectorState":3,"Status":"OK"})";
  ASSERT_EQ(until_news(), news::poll_done);
  EXPECT_EQ(seen("0_ColdPlate"), DetectorReading::UNKNOWN);
  EXPECT_EQ(seen("0_Manifold"), DetectorReading::UNKNOWN);
  EXPECT_EQ(seen("1_ColdPlate"), DetectorReading::UNKNOWN);
  EXPECT_EQ(seen("1_Manifold"), DetectorReading::DRY);
}

TEST_F(device_walking, polls_the_detectors_there_are_and_calls_the_missing_ones_unknown) {
  tray_.bodies[detectors_path] = R"({"Members":[{"@odata.id":")" + tray::path("0_Manifold") + R"("}]})";
  log_in_and_poll();
  EXPECT_EQ(seen("0_Manifold"), DetectorReading::DRY);
  EXPECT_EQ(seen("1_Manifold"), DetectorReading::UNKNOWN);
}

TEST_F(device_walking, takes_an_empty_detector_list_for_no_answer) {
  tray_.bodies[detectors_path] = R"({"Members":[]})";
  ASSERT_EQ(until_news(), news::logged_in);
  EXPECT_EQ(until_news(), news::failed);
  EXPECT_THAT(walk_.trouble(), HasSubstr("none of the needed detectors"));
}

TEST_F(device_walking, looks_again_for_detectors_that_a_firmware_update_moved) {
  log_in_and_poll();
  const std::string moved = detectors_path + "2/" + tray::id("0_Manifold");
  tray_.bodies[moved] = tray_.bodies[tray::path("0_Manifold")];
  tray_.bodies.erase(tray::path("0_Manifold"));
  std::string& list = tray_.bodies[detectors_path];
  list.replace(list.find(tray::path("0_Manifold")), tray::path("0_Manifold").size(), moved);
  ASSERT_EQ(until_news(), news::poll_done);
  EXPECT_EQ(seen("0_Manifold"), DetectorReading::UNKNOWN);
  ASSERT_EQ(until_news(), news::poll_done);
  EXPECT_EQ(seen("0_Manifold"), DetectorReading::DRY);
}

TEST_F(device_walking, logs_in_again_when_the_device_ended_the_session) {
  log_in_and_poll();
  tray_.ended = true;
  ASSERT_EQ(until_news(), news::session_lost);
  EXPECT_FALSE(walk_.logged_in());
  tray_.ended = false;
  log_in_and_poll();
}

TEST_F(device_walking, tells_a_refused_login_from_a_device_in_trouble) {
  tray_.login_status = 401;
  EXPECT_EQ(until_news(), news::login_refused);
  tray_.login_status = 503;
  EXPECT_EQ(until_news(), news::failed);
}

TEST_F(device_walking, follows_no_link_off_the_device) {
  tray_.bodies["/redfish/v1/"] =
      R"({"Links":{"Sessions":{"@odata.id":"//elsewhere/x"}},"Chassis":{"@odata.id":"/redfish/v1/Chassis HTTP/1.1"}})";
  EXPECT_EQ(until_news(), news::failed);
  EXPECT_EQ(tray_.asked.size(), 1U);
}

TEST_F(device_walking, begins_the_poll_anew_after_a_lost_answer) {
  log_in_and_poll();
  ASSERT_EQ(walk_.on(tray_.serve(walk_.next())), news::none);
  walk_.on_transport_failure();
  ASSERT_EQ(until_news(), news::poll_done);
  EXPECT_EQ(walk_.readings().size(), 4U);
}

TEST(detector_names, match_the_short_name_of_the_sku_and_no_other) {
  EXPECT_TRUE(is_detector("Chassis_0_LeakDetector_0_ColdPlate", "0_ColdPlate"));
  EXPECT_TRUE(is_detector("leakage1", "leakage1"));
  EXPECT_FALSE(is_detector("leakage_aggr", "leakage1"));
  EXPECT_FALSE(is_detector("Chassis_0_LeakDetector_10_ColdPlate", "0_ColdPlate"));
}

}  // namespace
}  // namespace busbar::interlock
