// The site's coolant as its devices show it and take commands on it: CDU, valves, heat, leaks, sensors.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/sim_model/bench_site.hpp"

namespace busbar::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* controller = "127.18.1.71";
const std::string controls = "/Chassis/CDU_1/Controls/";
const std::string connectors = "/Chassis/Rack_0/ThermalSubsystem/CoolantConnectors/";

// Two racks of four trays behind one CDU, each rack with its valves.
struct cooled_site : bench_site {
  explicit cooled_site(const std::string& profile = "instant") : bench_site(profile) {
    site_options options;
    options.racks = 2;
    options.sku = "vr-4x1";
    options.profile = profile;
    options.rack_controllers = true;
    auto made = site::make(options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    model = std::move(*made);
    plant = token(cdu);
    rack = token(controller);
  }
  http_reply control(const std::string& name, const json& body) {
    return send(cdu, "PATCH", "/redfish/v1" + controls + name, body, plant);
  }
  json control(const std::string& name) { return get(cdu, controls + name, plant); }
  http_reply valve(const std::string& name, const std::string& state) {
    return send(controller, "POST",
                "/redfish/v1" + connectors + name + "/Actions/CoolantConnector.ValveControl",
                {{"ValveState", state}}, rack);
  }
  double number(const std::string& path) { return truth(path).get<double>(); }
  // One burning host in the first rack.
  void burn() {
    shelf_on();
    pass(1s);
    const std::string host = token(tray_one);
    reset(tray_one, "On", host);
    pass(10s);
    model->set_load("r01/c01", 1.0, now);
    pass(120s);
  }
  std::string plant, rack;
};

TEST(simulated_cdu, holds_its_set_points_without_anybody_and_follows_new_ones) {
  cooled_site site;
  site.burn();
  EXPECT_NEAR(site.number("cdu01/dp_kpa"), 60, 0.5);
  EXPECT_NEAR(site.number("cdu01/supply_c"), 32, 0.2);
  EXPECT_EQ(site.control("supply_temperature", {{"SetPoint", 36}}).status, 204);
  EXPECT_EQ(site.control("differential_pressure", {{"SetPoint", 45}}).status, 204);
  site.pass(600s);
  EXPECT_NEAR(site.number("cdu01/supply_c"), 36, 0.3);
  EXPECT_NEAR(site.number("cdu01/dp_kpa"), 45, 0.5);
  EXPECT_EQ(site.control("differential_pressure")["SetPoint"], 45);
}

TEST(simulated_cdu, refuses_a_set_point_outside_its_limits_and_names_them) {
  cooled_site site;
  for (const double wrong : {19.9, 80.1, -1.0, 1e9}) {
    const http_reply reply = site.control("differential_pressure", {{"SetPoint", wrong}});
    EXPECT_EQ(reply.status, 400) << wrong;
    EXPECT_THAT(reply.body, HasSubstr("20 to 80 kPa"));
  }
  EXPECT_EQ(site.control("differential_pressure", {{"SetPoint", "50"}}).status, 400);
  EXPECT_EQ(site.control("differential_pressure", {{"Name", "x"}}).status, 400);
  EXPECT_EQ(site.control("differential_pressure")["SetPoint"], 60);
  EXPECT_EQ(site.control("no_such", {{"SetPoint", 1}}).status, 404);
}

TEST(simulated_cdu, a_reader_may_look_and_not_touch) {
  cooled_site site;
  const std::string reader =
      site.login(cdu, "reader", site.model->reader_password()).headers.at("X-Auth-Token");
  EXPECT_EQ(site.get(cdu, controls + "pump_1", reader)["ControlMode"], "Automatic");
  EXPECT_EQ(
      site.send(cdu, "PATCH", "/redfish/v1" + controls + "differential_pressure", {{"SetPoint", 50}}, reader)
          .status,
      403);
}

TEST(simulated_cdu, a_duty_has_to_be_taken_and_lapses_unless_renewed) {
  cooled_site site;
  EXPECT_EQ(site.control("pump_1", {{"SetPoint", 50}}).status, 400);
  EXPECT_EQ(site.control("pump_1", {{"ControlMode", "Override"}, {"SetPoint", 90}}).status, 204);
  site.pass(20s);
  EXPECT_NEAR(site.number("cdu01/pumps/1/speed_percent"), 90, 0.1);
  EXPECT_EQ(site.control("pump_1", {{"SetPoint", 80}}).status, 204);  // renews
  site.pass(29s);
  EXPECT_EQ(site.control("pump_1")["ControlMode"], "Override");
  EXPECT_NEAR(site.number("cdu01/pumps/1/speed_percent"), 80, 0.1);
  site.pass(2s);
  EXPECT_EQ(site.control("pump_1")["ControlMode"], "Automatic");
  site.pass(60s);
  EXPECT_NEAR(site.number("cdu01/dp_kpa"), 60, 0.5);
  EXPECT_EQ(site.control("supply_temperature")["SetPoint"], 32);
}

TEST(simulated_cdu, alone_it_does_not_make_good_a_lost_pump_and_a_faster_duty_does) {
  cooled_site site;
  const double whole = site.number("r01/flow_lpm");
  site.fault("pump", "cdu01");
  site.pass(60s);
  EXPECT_LT(site.number("r01/flow_lpm"), 0.79 * whole);
  EXPECT_GT(site.number("r01/flow_lpm"), 0.70 * whole);
  EXPECT_EQ(site.get(cdu, "/ThermalEquipment/CDUs/1/Pumps/2", site.plant)["Status"]["Health"], "Critical");
  EXPECT_EQ(site.control("pump_1", {{"ControlMode", "Override"}, {"SetPoint", 95}}).status, 204);
  site.pass(5s);
  EXPECT_GT(site.number("r01/flow_lpm"), 0.98 * whole);
}

TEST(simulated_valves, a_closed_valve_stops_the_flow_of_its_rack_alone) {
  cooled_site site;
  const double before = site.number("r02/flow_lpm");
  EXPECT_EQ(site.valve("supply", "Closed").status, 204);
  site.pass(30s);
  EXPECT_EQ(site.truth("r01/valves/supply/open_percent"), 0.0);
  EXPECT_LT(site.number("r01/flow_lpm"), 0.1);
  EXPECT_NEAR(site.number("r02/flow_lpm"), before, 0.02 * before);
  EXPECT_EQ(site.valve("supply", "Open").status, 204);
  site.pass(60s);
  EXPECT_NEAR(site.number("r01/flow_lpm"), before, 0.02 * before);
}

TEST(simulated_valves, take_their_stroke) {
  cooled_site site("quick");
  EXPECT_EQ(site.valve("return", "Closed").status, 204);
  site.pass(2s);
  EXPECT_NEAR(site.number("r01/valves/return/open_percent"), 60, 1);
  EXPECT_NEAR(
      site.get(controller, connectors + "return", site.rack)["ValvePositionPercent"]["Reading"].get<double>(),
      60, 1);
  site.pass(4s);
  EXPECT_EQ(site.get(controller, connectors + "return", site.rack)["ValvePositionPercent"]["Reading"], 0.0);
}

TEST(simulated_valves, the_control_valve_meters_flow_and_refuses_what_is_no_opening) {
  cooled_site site;
  const auto set = [&site](const json& opening) {
    return site
        .send(controller, "PATCH", "/redfish/v1/Chassis/Rack_0/Controls/flow", {{"SetPoint", opening}},
              site.rack)
        .status;
  };
  double last = site.number("r01/flow_lpm");
  for (const double opening : {80.0, 60.0, 40.0, 20.0}) {
    EXPECT_EQ(set(opening), 204);
    site.pass(60s);
    EXPECT_LT(site.number("r01/flow_lpm"), last);
    last = site.number("r01/flow_lpm");
  }
  for (const json& wrong : {json(-1), json(101), json("50"), json(nullptr)})
    EXPECT_EQ(set(wrong), 400) << wrong;
}

TEST(simulated_valves, break_as_named) {
  cooled_site site;
  site.fault("valve_stuck", "r01/m01/supply");
  site.valve("supply", "Closed");
  site.pass(10s);
  EXPECT_EQ(site.truth("r01/valves/supply/says_percent"), 100.0);
  EXPECT_GT(site.number("r01/flow_lpm"), 20);

  site.fault("valve_lies_closed", "r01/m01/return");
  site.valve("return", "Closed");
  site.pass(10s);
  EXPECT_EQ(site.truth("r01/valves/return/says_percent"), 0.0);
  EXPECT_EQ(site.truth("r01/valves/return/open_percent"), 100.0);
  EXPECT_GT(site.number("r01/flow_lpm"), 20);

  site.fault("valve_drift", "r01/m01");
  site.pass(120s);
  EXPECT_NEAR(site.number("r01/valves/flow/says_percent"), 80, 1);
  EXPECT_EQ(site.truth("r01/valves/flow/commanded_percent"), 100.0);
  site.model->clear_faults("", "", site.now);
  site.pass(10s);
  EXPECT_LT(site.number("r01/flow_lpm"), 0.1);  // those that were told to close do now
}

TEST(simulated_heat, a_gpu_without_flow_slows_down_and_then_takes_its_host_off) {
  cooled_site site;
  site.burn();
  ASSERT_EQ(site.truth("r01/c01/power"), "On");
  ASSERT_LT(site.truth("r01/c01/gpu_c").at(0).get<double>(), 80);
  site.valve("supply", "Closed");
  int slowed_after = -1;
  int off_after = -1;
  for (int second = 1; second <= 120 && off_after < 0; ++second) {
    site.pass(1s);
    if (slowed_after < 0 && site.truth("r01/c01/gpu_throttled").at(0) == true) slowed_after = second;
    if (site.truth("r01/c01/power") == "Off") off_after = second;
  }
  EXPECT_GT(slowed_after, 1);
  EXPECT_GT(off_after, slowed_after);
  // Cool again, it may be turned on, and it is not slow any more.
  site.valve("supply", "Open");
  site.pass(300s);
  site.reset(tray_one, "On", site.token(tray_one));
  site.pass(10s);
  EXPECT_EQ(site.truth("r01/c01/power"), "On");
  EXPECT_EQ(site.truth("r01/c01/gpu_throttled").at(0), false);
}

TEST(simulated_heat, a_hot_host_goes_off_though_nobody_asks_the_site_meanwhile) {
  cooled_site site;
  site.burn();
  site.valve("supply", "Closed");
  int wakes = 0;
  while (site.model->next_due().has_value() && *site.model->next_due() <= site.now + 60s && wakes < 2000) {
    site.model->advance(*site.model->next_due());
    ++wakes;
    if (site.truth("r01/c01/power") == "Off") break;
  }
  EXPECT_GT(wakes, 10);
  EXPECT_EQ(site.truth("r01/c01/power"), "Off");
}

TEST(simulated_heat, balance_closes_within_a_thousandth_through_all_of_it) {
  cooled_site site;
  site.burn();
  site.fault("pump", "cdu01");
  site.pass(60s);
  site.valve("supply", "Closed");
  site.pass(60s);
  site.model->clear_faults("", "", site.now);
  site.valve("supply", "Open");
  site.pass(300s);
  EXPECT_LT(site.number("site/heat_imbalance"), 1e-3);
}

TEST(simulated_leaks, coolant_that_is_lost_lowers_level_and_pressure_with_every_detector_dry) {
  cooled_site site;
  const double level = site.number("cdu01/level_percent");
  const double pressure = site.number("cdu01/system_kpa");
  fault_request how;
  how.severity = 50;  // mL/min
  site.fault("weep", "r01/c01", how);
  site.pass(300s);
  EXPECT_LT(site.number("cdu01/level_percent"), level - 0.5);
  EXPECT_LT(site.number("cdu01/system_kpa"), pressure - 5);
  EXPECT_EQ(site.truth("r01/c01/detectors/0_ColdPlate"), "dry");
  site.valve("supply", "Closed");
  site.valve("return", "Closed");
  site.pass(5s);
  EXPECT_EQ(site.truth("cdu01/leak_ml_per_min"), 0.0);
  site.model->clear_faults("", "", site.now);
  site.pass(5s);
  EXPECT_NEAR(site.number("cdu01/level_percent"), level, 0.5);
}

TEST(simulated_leaks, a_burst_wets_its_detector_after_a_moment) {
  cooled_site site;
  site.fault("burst", "cdu01/r01_pan");
  site.pass(1s);
  EXPECT_EQ(site.truth("cdu01/detectors/r01_pan"), "dry");
  site.pass(2s);
  EXPECT_EQ(site.truth("cdu01/detectors/r01_pan"), "wet");
  EXPECT_NEAR(site.number("cdu01/leak_ml_per_min"), 2000, 300);
}

TEST(simulated_sensors, lie_as_named_and_the_unit_controls_by_the_lie) {
  cooled_site site;
  const std::string one = "/ThermalEquipment/CDUs/1/SecondaryCoolantConnectors/r01";
  fault_request by;
  by.severity = 10;
  site.fault("sensor_offset", "cdu01/dp", by);
  site.pass(60s);
  EXPECT_NEAR(site.number("cdu01/dp_kpa"), 50, 1);
  EXPECT_NEAR(site.get(cdu, one, site.plant)["DeltaPressurekPa"]["Reading"].get<double>(), 60, 1);
  site.fault("sensor_dead", "cdu01/r01_flow");
  site.pass(1s);
  EXPECT_TRUE(site.get(cdu, one, site.plant)["FlowLitersPerMinute"]["Reading"].is_null());
  EXPECT_FALSE(site.model->register_value("r01_flow", site.now).has_value());
  site.fault("sensor_frozen", "cdu01/r01_return");
  site.pass(1s);
  const json shown = site.get(cdu, one, site.plant)["ReturnTemperatureCelsius"]["Reading"];
  site.pass(10s);
  EXPECT_EQ(site.get(cdu, one, site.plant)["ReturnTemperatureCelsius"]["Reading"], shown);
}

TEST(simulated_faults, are_cleared_one_by_one_by_their_number) {
  cooled_site site;
  site.fault("pump", "cdu01");
  site.fault("filter", "cdu01");
  const std::uint64_t second = site.model->faults(site.now).back().what.id;
  EXPECT_EQ(site.model->clear_faults(std::to_string(second), "", site.now), 1u);
  ASSERT_EQ(site.model->faults(site.now).size(), 1u);
  EXPECT_EQ(site.model->faults(site.now).front().what.kind, fault_kind::pump);
  EXPECT_EQ(site.model->clear_faults("77", "", site.now), 0u);
}

TEST(simulated_load, patterns_drive_the_hosts_that_run_and_end) {
  cooled_site site;
  site.burn();
  EXPECT_FALSE(site.model->set_pattern("no_such", "r01", site.now).ok());
  EXPECT_FALSE(site.model->set_pattern("full", "r09", site.now).ok());
  EXPECT_EQ(site.model->set_pattern("idle_full_idle", "r01", site.now).value_or(0), 4u);
  site.pass(30s);
  const double idle = site.number("r01/c01/power_kw");
  site.pass(60s);
  EXPECT_GT(site.number("r01/c01/power_kw"), 3 * idle);
  EXPECT_LT(site.number("r01/c02/power_kw"), 1);  // off
  EXPECT_EQ(site.model->set_pattern("none", "all", site.now).value_or(0), 8u);
  EXPECT_DOUBLE_EQ(site.number("r01/c01/load"), 0);
  site.pass(1s);
  EXPECT_FALSE(site.model->next_due().has_value());  // nothing is played any more
}

TEST(simulated_registers, say_what_the_unit_is_and_take_set_points_and_duties) {
  cooled_site site;
  const auto read = [&site](const char* name) {
    return site.model->register_value(name, site.now).value_or(-1);
  };
  EXPECT_NEAR(read("differential_pressure"), 60, 1);
  EXPECT_NEAR(read("r02_flow"), 30.5, 1);
  EXPECT_FALSE(site.model->register_value("r03_flow", site.now).has_value());
  EXPECT_FALSE(site.model->register_value("no_such", site.now).has_value());
  EXPECT_TRUE(site.model->set_register("supply_temperature_set", 30, "", site.now).ok());
  EXPECT_EQ(site.control("supply_temperature")["SetPoint"], 30);
  EXPECT_FALSE(site.model->set_register("supply_temperature_set", 10, "", site.now).ok());
  EXPECT_TRUE(site.model->set_register("pump_2_duty", 70, "", site.now).ok());
  EXPECT_EQ(read("override_mask"), 2);
  EXPECT_TRUE(site.model->set_register("override_mask", 0, "", site.now).ok());
  EXPECT_EQ(site.control("pump_2")["ControlMode"], "Automatic");
  EXPECT_FALSE(site.model->set_register("flow", 1, "", site.now).ok());
}

}  // namespace
}  // namespace busbar::sim
