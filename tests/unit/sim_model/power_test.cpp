#include "tests/unit/sim_model/bench_site.hpp"

namespace busbar::sim {
namespace {

constexpr const char* boot_settings = "/redfish/v1/Systems/System_0/Settings";

struct powered_site : bench_site {
  explicit powered_site(const std::string& profile = "instant") : bench_site(profile) {
    shelf_on();
    pass(10s);
    host = token(tray_one);
  }
  std::string power(const char* address, const std::string& with) {
    return get(address, "/Systems/System_0", with).value("PowerState", "");
  }
  std::string host;
};

TEST(simulated_power, trays_are_silent_until_half_of_the_shelves_are_on_and_their_bmc_is_up) {
  bench_site site("quick");
  EXPECT_EQ(site.send(tray_one, "GET", "/redfish/v1").status, 0);
  site.shelf_on();
  EXPECT_EQ(site.send(tray_one, "GET", "/redfish/v1").status, 0);
  site.pass(3s);
  EXPECT_EQ(site.send(tray_one, "GET", "/redfish/v1").status, 200);
  EXPECT_EQ(site.truth("r01/c01/power"), "Off");
}

TEST(simulated_power, cutting_the_shelf_takes_host_bmc_and_sessions) {
  powered_site site;
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  ASSERT_EQ(site.truth("r01/c01/power"), "On");
  const std::string with = site.token(shelf);
  site.send(shelf, "POST", "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.Reset",
            {{"ResetType", "ForceOff"}}, with);
  site.pass(1s);
  EXPECT_EQ(site.truth("r01/c01/power"), "Off");
  EXPECT_EQ(site.send(tray_one, "GET", "/redfish/v1").status, 0);
  EXPECT_EQ(site.truth("r01/c01/sessions"), 0);
}

TEST(simulated_power, a_host_takes_its_time_to_come_up_and_to_go_down) {
  powered_site site("quick");
  EXPECT_EQ(site.reset(tray_one, "On", site.host).status, 204);
  EXPECT_EQ(site.power(tray_one, site.host), "PoweringOn");
  site.pass(1s);
  EXPECT_EQ(site.power(tray_one, site.host), "On");
  EXPECT_EQ(site.truth("r01/c01/host"), "OSBootStarted");
  site.pass(5s);
  EXPECT_EQ(site.truth("r01/c01/host"), "OSRunning");
  EXPECT_EQ(site.reset(tray_one, "ForceOff", site.host).status, 204);
  EXPECT_EQ(site.power(tray_one, site.host), "PoweringOff");
  site.pass(1s);
  EXPECT_EQ(site.power(tray_one, site.host), "Off");
}

TEST(simulated_power, boot_once_is_read_back_used_by_one_start_and_forgotten) {
  powered_site site;
  const json wanted = {{"Boot",
                        {{"BootSourceOverrideEnabled", "Once"},
                         {"BootSourceOverrideTarget", "UefiHttp"},
                         {"HttpBootUri", "https://images.site/s.efi?token=abc"}}}};
  EXPECT_EQ(site.send(tray_one, "PATCH", boot_settings, wanted, site.host).status, 204);
  EXPECT_EQ(site.get(tray_one, "/Systems/System_0/Settings", site.host)["Boot"]["HttpBootUri"],
            "https://images.site/s.efi?token=abc");
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  ASSERT_EQ(site.boots.size(), 1u);
  EXPECT_EQ(site.boots[0],
            std::pair(std::string("r01/c01"), std::string("https://images.site/s.efi?token=abc")));
  EXPECT_EQ(site.get(tray_one, "/Systems/System_0/Settings", site.host)["Boot"]["BootSourceOverrideEnabled"],
            "Disabled");
  site.reset(tray_one, "ForceRestart", site.host);
  site.pass(1s);
  ASSERT_EQ(site.boots.size(), 2u);
  EXPECT_EQ(site.boots[1].second, "");
}

TEST(simulated_power, bios_settings_wait_for_the_next_start) {
  powered_site site;
  const json wanted = {{"Attributes", {{"SriovEnable", true}, {"PowerProfile", "MaxPerformance"}}}};
  EXPECT_EQ(
      site.send(tray_one, "PATCH", "/redfish/v1/Systems/System_0/Bios/Settings", wanted, site.host).status,
      204);
  EXPECT_EQ(site.get(tray_one, "/Systems/System_0/Bios", site.host)["Attributes"]["SriovEnable"], false);
  EXPECT_EQ(site.get(tray_one, "/Systems/System_0/Bios/Settings", site.host)["Attributes"]["SriovEnable"],
            true);
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  EXPECT_EQ(site.get(tray_one, "/Systems/System_0/Bios", site.host)["Attributes"]["SriovEnable"], true);
  const json unknown = {{"Attributes", {{"NoSuchThing", 1}}}};
  EXPECT_EQ(
      site.send(tray_one, "PATCH", "/redfish/v1/Systems/System_0/Bios/Settings", unknown, site.host).status,
      400);
}

TEST(simulated_power, an_ignored_force_off_is_acknowledged_and_takes_effect_late) {
  powered_site site("quick");
  site.reset(tray_one, "On", site.host);
  site.pass(6s);
  site.fault("off_ignored", "r01/c01");
  EXPECT_EQ(site.reset(tray_one, "ForceOff", site.host).status, 204);
  site.pass(15s);
  EXPECT_EQ(site.power(tray_one, site.host), "On");
  site.pass(6s);
  EXPECT_EQ(site.power(tray_one, site.host), "Off");
}

TEST(simulated_power, refuses_reset_types_that_it_does_not_offer) {
  powered_site site;
  EXPECT_EQ(site.reset(tray_one, "Explode", site.host).status, 400);
  site.fault("reset_not_offered", "r01/c01");
  const json info = site.get(tray_one, "/Systems/System_0/ResetActionInfo", site.host);
  EXPECT_EQ(info.dump().find("\"On\""), std::string::npos);
  EXPECT_EQ(site.reset(tray_one, "On", site.host).status, 400);
}

TEST(simulated_power, a_reset_to_the_present_state_is_fine_or_400_by_fault) {
  powered_site site;
  EXPECT_EQ(site.reset(tray_one, "ForceOff", site.host).status, 204);
  site.fault("already_400", "r01/c01");
  const http_reply reply = site.reset(tray_one, "ForceOff", site.host);
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("PropertyValueConflict"), std::string::npos);
}

TEST(simulated_power, links_are_up_when_the_switch_trays_and_the_host_run) {
  powered_site site;
  const std::string path = "/Systems/HGX_Baseboard_0/Processors/GPU_2/Ports/NVLink_5";
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  EXPECT_EQ(site.get(tray_one, path, site.host)["LinkStatus"], "LinkDown");
  const std::string with = site.token(switch_one);
  site.reset(switch_one, "On", with);
  site.pass(1s);
  EXPECT_EQ(site.get(tray_one, path, site.host)["LinkStatus"], "LinkUp");
  EXPECT_EQ(
      site.get(switch_one, "/Fabrics/NVLinkFabric_0", with)["Oem"]["Nvidia"]["FabricManager"]["Primary"],
      true);
  EXPECT_EQ(site.get(tray_one, "/Systems/HGX_Baseboard_0/Processors/GPU_2",
                     site.host)["Oem"]["Nvidia"]["FabricCliqueId"],
            "1");
}

TEST(simulated_power, a_link_that_is_down_is_seen_from_both_ends) {
  powered_site site;
  const std::string with = site.token(switch_one);
  site.reset(switch_one, "On", with);
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  const auto up = [&site, &with] {
    int count = 0;
    for (const char* const asic : {"NVSwitch_0", "NVSwitch_1"}) {
      for (int port = 0; port < 144; ++port) {
        const json body = site.get(
            switch_one,
            std::string("/Fabrics/NVLinkFabric_0/Switches/") + asic + "/Ports/Port_" + std::to_string(port),
            with);
        count += body["LinkStatus"] == "LinkUp" ? 1 : 0;
      }
    }
    return count;
  };
  EXPECT_EQ(up(), 4 * 18);
  site.fault("link_down", "r01/c01/gpu2/nvlink5");
  EXPECT_EQ(up(), 4 * 18 - 1);
  EXPECT_EQ(
      site.get(tray_one, "/Systems/HGX_Baseboard_0/Processors/GPU_2/Ports/NVLink_5", site.host)["LinkStatus"],
      "LinkDown");
}

TEST(simulated_power, burning_hosts_warm_the_coolant_that_the_cdu_shows) {
  powered_site site;
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  site.model->set_load("r01/c01", 1.0, site.now);
  site.pass(300s);
  EXPECT_DOUBLE_EQ(site.truth("r01/c01/power_kw").get<double>(), 6.5);
  EXPECT_NEAR(site.truth("r01/c01/gpu_c").at(0).get<double>(), 32 + 0.03 * 1400, 0.1);
  const std::string reader =
      site.login(cdu, "reader", site.model->reader_password()).headers.at("X-Auth-Token");
  const json loop = site.get(cdu, "/ThermalEquipment/CDUs/1/SecondaryCoolantConnectors/r01", reader);
  const double heat = 0.0669 * loop["FlowLitersPerMinute"]["Reading"].get<double>() *
                      (loop["ReturnTemperatureCelsius"]["Reading"].get<double>() -
                       loop["SupplyTemperatureCelsius"]["Reading"].get<double>());
  EXPECT_NEAR(heat, site.truth("r01/power_kw").get<double>(), 0.5);
  EXPECT_LT(site.truth("site/heat_imbalance").get<double>(), 1e-3);
}

TEST(simulated_power, a_lower_gpu_limit_lowers_the_tray) {
  powered_site site;
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  site.model->set_load("r01/c01", 1.0, site.now);
  const std::string path = "/redfish/v1/Systems/HGX_Baseboard_0/Processors/GPU_0/EnvironmentMetrics";
  EXPECT_EQ(site.send(tray_one, "PATCH", path, {{"PowerLimitWatts", {{"SetPoint", 700}}}}, site.host).status,
            204);
  EXPECT_NEAR(site.truth("r01/c01/power_kw").get<double>(), 6.5 - 0.7, 1e-9);
  EXPECT_EQ(
      site.send(tray_one, "PATCH", path, {{"PowerLimitWatts", {{"SetPoint", "700"}}}}, site.host).status,
      400);
}

}  // namespace
}  // namespace busbar::sim
