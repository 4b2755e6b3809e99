// Rack PDUs: outlets, what hangs behind them, and the words of each family.
#include <algorithm>

#include "daemon/sim/rack_pdu.hpp"
#include "tests/unit/sim_model/bench_site.hpp"

namespace busbar::sim {
namespace {

constexpr const char* raritan = "127.18.1.81";
constexpr const char* apc = "127.18.1.82";
const oid_path raritan_control = {1, 3, 6, 1, 4, 1, 13742, 6, 4, 1, 2, 1, 2, 1, 1};
const oid_path raritan_state = {1, 3, 6, 1, 4, 1, 13742, 6, 4, 1, 2, 1, 3, 1, 1};
const oid_path apc_control = {1, 3, 6, 1, 4, 1, 318, 1, 1, 26, 9, 2, 4, 1, 5, 1};
const oid_path apc_state = {1, 3, 6, 1, 4, 1, 318, 1, 1, 26, 9, 2, 3, 1, 5, 1};

struct fed_site : bench_site {
  int code(const char* address, const oid_path& object) {
    const auto all = model->snmp_objects(address, now);
    const auto found = all.find(object);
    return found == all.end() ? -1 : std::get<std::int32_t>(found->second);
  }
  bool set(const char* address, const oid_path& object, int value) {
    return model->set_snmp_object(address, object, value, "", "", now).ok();
  }
};

TEST(simulated_pdus, each_family_switches_and_tells_by_its_own_codes) {
  fed_site site;
  EXPECT_EQ(site.code(raritan, raritan_state), 7);
  EXPECT_EQ(site.code(apc, apc_state), 1);
  EXPECT_TRUE(site.set(raritan, raritan_control, 0));
  EXPECT_TRUE(site.set(apc, apc_control, 2));
  EXPECT_EQ(site.code(raritan, raritan_state), 7);  // accepted is not done
  site.pass(1s);
  EXPECT_EQ(site.code(raritan, raritan_state), 8);
  EXPECT_EQ(site.code(apc, apc_state), 2);
  EXPECT_FALSE(site.set(raritan, raritan_control, 9));
  EXPECT_FALSE(site.set(raritan, raritan_state, 7));
  EXPECT_FALSE(site.set(apc, apc_control, 0));
  EXPECT_TRUE(site.set(apc, apc_control, 1));
  site.pass(1s);
  EXPECT_EQ(site.code(apc, apc_state), 1);
}

TEST(simulated_pdus, one_feed_off_takes_half_of_the_supplies_and_both_the_shelf) {
  fed_site site;
  site.shelf_on();
  site.pass(1s);
  ASSERT_EQ(site.truth("r01/p01/output_on"), true);
  site.set(raritan, raritan_control, 0);
  site.pass(1s);
  EXPECT_EQ(site.truth("r01/p01/output_on"), true);
  EXPECT_EQ(site.truth("r01/p01/working_psus"), 3);
  EXPECT_EQ(site.truth("r01/pdus/u01/1/on"), false);
  EXPECT_EQ(site.truth("r01/p01/input_w/a"), 0.0);
  EXPECT_GT(site.truth("r01/p01/input_w/b").get<double>(), 500);
  site.set(apc, apc_control, 2);
  site.pass(1s);
  EXPECT_EQ(site.truth("r01/p01/output_on"), false);
  EXPECT_EQ(site.send(shelf, "GET", "/redfish/v1").status, 0);
  EXPECT_EQ(site.send(tray_one, "GET", "/redfish/v1").status, 0);
  // It comes back with its output off.
  site.set(apc, apc_control, 1);
  site.pass(2s);
  EXPECT_EQ(site.send(shelf, "GET", "/redfish/v1").status, 200);
  EXPECT_EQ(site.truth("r01/p01/output_on"), false);
  site.shelf_on();
  EXPECT_EQ(site.truth("r01/p01/output_on"), true);
}

TEST(simulated_pdus, a_slow_relay_is_late_and_a_stuck_one_never_moves) {
  fed_site site;
  site.fault("pdu_slow", "r01/u01");
  site.fault("pdu_stuck", "r01/u02/outlet1");
  EXPECT_TRUE(site.set(raritan, raritan_control, 0));
  EXPECT_TRUE(site.set(apc, apc_control, 2));
  site.pass(14s);
  EXPECT_EQ(site.code(raritan, raritan_state), 7);
  site.pass(2s);
  EXPECT_EQ(site.code(raritan, raritan_state), 8);
  site.pass(60s);
  EXPECT_EQ(site.code(apc, apc_state), 1);
}

TEST(simulated_pdus, a_cycle_goes_off_and_comes_back) {
  fed_site site;
  EXPECT_TRUE(site.set(raritan, raritan_control, 2));
  site.pass(1s);
  EXPECT_EQ(site.code(raritan, raritan_state), 8);
  site.pass(3s);
  EXPECT_EQ(site.code(raritan, raritan_state), 7);
}

TEST(simulated_pdus, show_and_switch_outlets_over_redfish_too) {
  fed_site site;
  const std::string with = site.token(raritan);
  const std::string outlet = "/PowerEquipment/RackPDUs/1/Outlets/3";
  EXPECT_EQ(site.get(raritan, outlet, with)["PowerState"], "On");
  const auto act = [&site, &with, &outlet](const char* word) {
    return site
        .send(raritan, "POST", "/redfish/v1" + outlet + "/Actions/Outlet.PowerControl",
              {{"PowerState", word}}, with)
        .status;
  };
  EXPECT_EQ(act("Off"), 204);
  EXPECT_EQ(site.get(raritan, outlet, with)["PowerStateInTransition"], true);
  site.pass(1s);
  EXPECT_EQ(site.get(raritan, outlet, with)["PowerState"], "Off");
  EXPECT_EQ(act("Hibernate"), 400);
}

TEST(simulated_shelves, trip_when_they_carry_too_much_for_too_long) {
  fed_site site;
  site.shelf_on();
  site.pass(1s);
  for (int tray = 1; tray <= 4; ++tray) {
    const std::string address = "127.18.1." + std::to_string(tray);
    site.reset(address, "On", site.token(address));
  }
  site.pass(5s);
  ASSERT_TRUE(site.model->set_pattern("full", "r01", site.now).ok());
  site.pass(60s);
  EXPECT_EQ(site.truth("r01/p01/output_on"), true);  // 26 kW of 33
  site.set(raritan, raritan_control, 0);             // 26 kW of 16.5
  site.pass(1s);
  EXPECT_EQ(site.truth("r01/p01/output_on"), true);
  site.pass(30s);
  EXPECT_EQ(site.truth("r01/p01/output_on"), false);
  EXPECT_EQ(site.truth("r01/p01/tripped"), true);
}

TEST(simulated_shelves, may_say_off_and_feed_on) {
  fed_site site;
  site.shelf_on();
  site.fault("shelf_output_stays_on", "r01/p01");
  const std::string with = site.token(shelf);
  EXPECT_EQ(site.send(shelf, "POST", "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.Reset",
                      {{"ResetType", "ForceOff"}}, with)
                .status,
            204);
  site.pass(5s);
  const json body = site.get(shelf, "/Chassis/PowerShelf_0", with);
  EXPECT_EQ(body["PowerState"], "Off");
  EXPECT_EQ(body["Status"]["Health"], "OK");
  EXPECT_GT(
      site.get(shelf, "/Chassis/PowerShelf_0/Sensors/voltage_chassis_output", with)["Reading"].get<double>(),
      45);
  EXPECT_EQ(site.truth("r01/p01/output_on"), true);
}

}  // namespace
}  // namespace busbar::sim
