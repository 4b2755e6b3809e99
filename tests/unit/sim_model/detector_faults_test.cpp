// What a detector shows is set word by word, so that every combination of the truth table can be put on the
// wire; and alarms that say nothing of a leak.
#include "tests/unit/sim_model/bench_site.hpp"

namespace busbar::sim {
namespace {

const std::string leaks =
    "/Chassis/Chassis_0/ThermalSubsystem/LeakDetection/LeakDetectors/Chassis_0_LeakDetector_";
const std::string volts = "/Chassis/Chassis_0/Sensors/Chassis_0_LeakDetector_";

struct tray_site : bench_site {
  tray_site() {
    shelf_on();
    pass(1s);
    host = token(tray_one);
  }
  void say(const char* kind, const std::string& value) {
    fault_request wanted;
    wanted.value = value;
    fault(kind, "r01/c01/0_Manifold", wanted);
  }
  json detector(const char* name = "0_Manifold") { return get(tray_one, leaks + name, host); }
  std::string host;
};

TEST(simulated_detectors, give_the_state_and_the_word_that_a_fault_names_and_are_dry_in_truth) {
  tray_site site;
  site.say("detector_state", "UnavailableOffline");
  site.say("detector_word", "Warning");
  EXPECT_EQ(site.detector()["Status"]["State"], "UnavailableOffline");
  EXPECT_EQ(site.detector()["DetectorState"], "Warning");
  EXPECT_EQ(site.detector("1_Manifold")["DetectorState"], "OK");
  EXPECT_EQ(site.detector("1_Manifold")["Status"]["State"], "Enabled");
  EXPECT_EQ(site.truth("r01/c01/detectors/0_Manifold"), "dry");
}

TEST(simulated_detectors, give_any_json_in_the_place_of_their_word_and_of_their_volts) {
  tray_site site;
  site.say("detector_word", "null");
  site.say("detector_volts", "[1.2]");
  EXPECT_TRUE(site.detector()["DetectorState"].is_null());
  EXPECT_TRUE(site.get(tray_one, volts + "0_Manifold", site.host)["Reading"].is_array());
}

TEST(simulated_detectors, hold_their_volts_without_noise) {
  tray_site site;
  fault_request wanted;
  wanted.severity = 1.74;
  site.fault("detector_volts", "r01/c01/0_Manifold", wanted);
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(site.get(tray_one, volts + "0_Manifold", site.host)["Reading"], 1.74);
    site.pass(1s);
  }
}

TEST(simulated_events, a_storm_blows_at_its_rate_until_it_is_cleared) {
  tray_site site;
  int events = 0;
  site_hooks hooks;
  hooks.on_event = [&events](const std::string& address, const std::string& event) {
    events += address == tray_one && event.find("Leak") == std::string::npos ? 1 : 0;
  };
  site.model->set_hooks(std::move(hooks));
  fault_request wanted;
  wanted.severity = 10;
  site.fault("event_storm", "r01/c01", wanted);
  site.pass(2s);
  EXPECT_GE(events, 20);
  EXPECT_LE(events, 22);
  site.model->clear_faults("event_storm", "r01/c01", site.now);
  const int before = events;
  site.pass(2s);
  EXPECT_LE(events, before + 1);
}

}  // namespace
}  // namespace busbar::sim
