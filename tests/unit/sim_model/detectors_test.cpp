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
  std::string host;
};

TEST(simulated_detectors, a_dry_detector_says_so_by_word_and_by_voltage) {
  tray_site site;
  const json detector = site.get(tray_one, leaks + "0_ColdPlate", site.host);
  EXPECT_EQ(detector["DetectorState"], "OK");
  EXPECT_EQ(detector["Status"]["State"], "Enabled");
  EXPECT_GT(site.get(tray_one, volts + "0_ColdPlate", site.host)["Reading"].get<double>(), 1.617);
}

TEST(simulated_detectors, a_leak_is_critical_and_pulls_the_voltage_below_its_threshold) {
  tray_site site;
  site.fault("leak", "r01/c01/1_Manifold");
  EXPECT_EQ(site.get(tray_one, leaks + "1_Manifold", site.host)["DetectorState"], "Critical");
  EXPECT_LT(site.get(tray_one, volts + "1_Manifold", site.host)["Reading"].get<double>(), 1.617);
  EXPECT_EQ(site.get(tray_one, leaks + "0_Manifold", site.host)["DetectorState"], "OK");
  EXPECT_EQ(site.truth("r01/c01/detectors/1_Manifold"), "wet");
}

TEST(simulated_detectors, a_broken_detector_contradicts_its_dry_voltage) {
  tray_site site;
  site.fault("detector_fault", "r01/c01/1_ColdPlate");
  const json detector = site.get(tray_one, leaks + "1_ColdPlate", site.host);
  EXPECT_EQ(detector["DetectorState"], "Critical");
  EXPECT_EQ(detector["Status"]["State"], "Degraded");
  EXPECT_GT(site.get(tray_one, volts + "1_ColdPlate", site.host)["Reading"].get<double>(), 1.617);
  EXPECT_EQ(site.truth("r01/c01/detectors/1_ColdPlate"), "dry");
}

TEST(simulated_detectors, the_bmc_itself_turns_the_host_off_when_its_reaction_says_so) {
  tray_site site;
  EXPECT_EQ(site.send(tray_one, "PATCH", "/redfish/v1" + leaks + "0_ColdPlate",
                      {{"CriticalReactionType", "ForceOff"}}, site.host)
                .status,
            204);
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  fault_request later;
  later.delay = 10s;
  site.fault("leak", "r01/c01/0_ColdPlate", later);
  site.pass(9s);
  EXPECT_EQ(site.truth("r01/c01/power"), "On");
  site.pass(2s);
  EXPECT_EQ(site.truth("r01/c01/power"), "Off");
}

TEST(simulated_detectors, a_leak_of_the_cdu_names_the_rack_it_stands_under) {
  bench_site site;
  const std::string reader =
      site.login(cdu, "reader", site.model->reader_password()).headers.at("X-Auth-Token");
  const std::string path = "/ThermalEquipment/CDUs/1/LeakDetection/LeakDetectors/r01_";
  site.fault("leak", "cdu01/r01_pan");
  EXPECT_EQ(site.get(cdu, path + "pan", reader)["DetectorState"], "Critical");
  EXPECT_EQ(site.get(cdu, path + "rope", reader)["DetectorState"], "OK");
}

TEST(simulated_faults, have_a_beginning_and_an_end) {
  bench_site site;
  fault_request timed;
  timed.delay = 5s;
  timed.duration = instant(10s);
  site.fault("pump", "cdu01", timed);
  site.pass(4s);
  EXPECT_EQ(site.truth("cdu01/working_pumps"), 2.0);
  site.pass(6s);
  EXPECT_EQ(site.truth("cdu01/working_pumps"), 1.0);
  EXPECT_LT(site.truth("r01/flow_lpm").get<double>(), 24);
  site.pass(20s);
  EXPECT_EQ(site.truth("cdu01/working_pumps"), 2.0);
  EXPECT_GT(site.truth("r01/flow_lpm").get<double>(), 24);
}

TEST(simulated_faults, refuse_kinds_and_targets_that_do_not_exist) {
  bench_site site;
  const auto add = [&site](const char* kind, const char* target) {
    fault_request request;
    request.kind = kind;
    request.target = target;
    return site.model->add_fault(request, site.now).ok();
  };
  EXPECT_FALSE(add("no_such", "r01/c01"));
  EXPECT_FALSE(add("psu", "r01/c01"));
  EXPECT_FALSE(add("leak", "r01/c99"));
  EXPECT_TRUE(add("psu", "r01/p01/psu3"));
  EXPECT_EQ(site.model->faults(site.now).size(), 1u);
}

TEST(simulated_faults, spoil_identity_as_named) {
  tray_site site;
  const auto serial = [&site] {
    return site.get(tray_one, "/Systems/System_0", site.host)["SerialNumber"].get<std::string>();
  };
  EXPECT_EQ(serial(), "SN1801001");
  site.fault("wrong_serial", "r01/c01");
  EXPECT_EQ(serial(), "SN1801001X");
  site.fault("na_serial", "r01/c01");
  EXPECT_EQ(serial(), "NA");
  site.fault("wrong_slot", "r01/c01");
  EXPECT_EQ(
      site.get(tray_one, "/Chassis/CBC_0", site.host)["Location"]["PartLocation"]["LocationOrdinalValue"], 2);
  site.fault("duplicate_bmc", "r01/c01");
  EXPECT_EQ(site.get(tray_one, "/Managers/BMC_0/EthernetInterfaces/eth0", site.host)["MACAddress"],
            "02:18:01:00:00:02");
  int same = 0;
  for (const announced_bmc& each : site.model->announced(site.now)) {
    same += each.mac == "02:18:01:00:00:02" ? 1 : 0;
  }
  EXPECT_EQ(same, 2);
}

TEST(simulated_faults, spoil_inventory_as_named) {
  tray_site site;
  const std::string processors = "/Systems/HGX_Baseboard_0/Processors";
  EXPECT_EQ(site.get(tray_one, processors, site.host)["Members@odata.count"], 6);
  site.fault("missing_gpu", "r01/c01/gpu3");
  EXPECT_EQ(site.get(tray_one, processors, site.host)["Members@odata.count"], 5);
  EXPECT_EQ(site.send(tray_one, "GET", "/redfish/v1" + processors + "/GPU_3", nullptr, site.host).status,
            404);
  EXPECT_EQ(site.model->gpu_serials("r01/c01", site.now).size(), 3u);
  site.fault("pcie_degraded", "r01/c01/nic5");
  const json nic = site.get(tray_one, "/Chassis/Chassis_0/NetworkAdapters/NIC_5", site.host);
  EXPECT_EQ(nic["Controllers"][0]["PCIeInterface"]["LanesInUse"], 8);
  EXPECT_EQ(nic["Controllers"][0]["PCIeInterface"]["PCIeType"], "Gen6");
}

TEST(simulated_faults, spoil_bodies_as_named) {
  tray_site site;
  const std::string sensor = "/redfish/v1" + volts + "0_ColdPlate";
  site.fault("string_for_number", "r01/c01");
  EXPECT_TRUE(site.get(tray_one, volts + "0_ColdPlate", site.host)["Reading"].is_string());
  site.fault("unknown_enum", "r01/c01");
  EXPECT_EQ(site.get(tray_one, leaks + "0_ColdPlate", site.host)["DetectorState"], "Peculiar");
  site.fault("half_page", "r01/c01");
  const http_reply half =
      site.send(tray_one, "GET", "/redfish/v1/Systems/System_0/Processors", nullptr, site.host);
  EXPECT_TRUE(json::parse(half.body, nullptr, false).is_discarded());
  site.fault("error_5xx", "r01/c01");
  EXPECT_EQ(site.send(tray_one, "GET", sensor, nullptr, site.host).status, 500);
  site.model->clear_faults("", "", site.now);
  EXPECT_TRUE(site.get(tray_one, volts + "0_ColdPlate", site.host)["Reading"].is_number());
}

TEST(simulated_gpus, measure_within_their_spread_and_below_it_when_slow) {
  tray_site site;
  EXPECT_FALSE(site.model->measure("r01/c01", 0, "memory_copy", "hbm_copy", site.now).value.has_value());
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  for (int gpu = 0; gpu < 4; ++gpu) {
    EXPECT_GT(site.model->measure("r01/c01", gpu, "memory_copy", "hbm_copy", site.now).value.value(), 15000);
    EXPECT_GT(site.model->measure("r01/c01", gpu, "host_device", "h2d", site.now).value.value(), 180);
  }
  site.fault("slow_gpu", "r01/c01/gpu2");
  EXPECT_LT(site.model->measure("r01/c01", 2, "memory_copy", "hbm_copy", site.now).value.value(), 15000);
  EXPECT_GT(site.model->measure("r01/c01", 1, "memory_copy", "hbm_copy", site.now).value.value(), 15000);
  EXPECT_FALSE(site.model->measure("r01/c01", 0, "memory_copy", "no_such", site.now).value.has_value());
}

}  // namespace
}  // namespace busbar::sim
