#include <algorithm>

#include "tests/unit/sim_model/bench_site.hpp"

namespace busbar::sim {
namespace {

struct update_site : bench_site {
  update_site() {
    shelf_on();
    pass(1s);
    host = token(tray_one);
  }

  http_reply push(const std::string& component, const std::string& image_line) {
    http_request request;
    request.method = "POST";
    request.target = "/redfish/v1/UpdateService/update-multipart";
    request.peer = "127.0.0.1:40000";
    request.headers["x-auth-token"] = host;
    request.headers["content-type"] = "multipart/form-data; boundary=\"edge\"";
    request.body =
        "--edge\r\nContent-Disposition: form-data; name=\"UpdateParameters\"\r\nContent-Type: "
        "application/json\r\n\r\n"
        "{\"Targets\": [\"/redfish/v1/UpdateService/FirmwareInventory/" +
        component +
        "\"]}\r\n"
        "--edge\r\nContent-Disposition: form-data; name=\"UpdateFile\"; filename=\"image\"\r\n"
        "Content-Type: application/octet-stream\r\n\r\n" +
        image_line + "\n" + std::string(100, 'x') + "\r\n--edge--\r\n";
    return model->handle(tray_one, request, now);
  }

  std::string version(const std::string& component) {
    return get(tray_one, "/UpdateService/FirmwareInventory/" + component, host).value("Version", "");
  }

  std::string task_state(const http_reply& pushed) {
    const http_reply task = send(tray_one, "GET", pushed.headers.at("Location"), nullptr, host);
    return task.status == 200 ? json::parse(task.body).value("TaskState", "") : std::to_string(task.status);
  }

  std::string host;
};

TEST(simulated_firmware, three_of_ten_components_start_old) {
  update_site site;
  const json rows = site.get(tray_one, "/UpdateService/FirmwareInventory", site.host);
  EXPECT_EQ(rows["Members@odata.count"], 10);
  EXPECT_EQ(site.version("FW_BMC_0"), "25.07-2");
  EXPECT_EQ(site.version("UEFI"), "2.3.7");
  EXPECT_EQ(site.version("NIC_0"), "48.44.1036");
  EXPECT_EQ(site.version("HGX_FW_BMC_0"), "25.10-A");
}

TEST(simulated_firmware, a_bmc_image_is_active_only_after_the_bmc_restarted) {
  update_site site;
  const http_reply pushed = site.push("FW_BMC_0", "FW_BMC_0 25.10-3");
  ASSERT_EQ(pushed.status, 202) << pushed.body;
  EXPECT_EQ(site.task_state(pushed), "Running");
  site.pass(1s);
  EXPECT_EQ(site.task_state(pushed), "Completed");
  EXPECT_EQ(site.version("FW_BMC_0"), "25.07-2");
  EXPECT_EQ(site.send(tray_one, "POST", "/redfish/v1/Managers/BMC_0/Actions/Manager.Reset",
                      {{"ResetType", "GracefulRestart"}}, site.host)
                .status,
            204);
  EXPECT_EQ(site.send(tray_one, "GET", "/redfish/v1").status, 0);
  site.pass(1s);
  EXPECT_EQ(site.send(tray_one, "GET", "/redfish/v1/Chassis", nullptr, site.host).status, 401);
  site.host = site.token(tray_one);
  EXPECT_EQ(site.version("FW_BMC_0"), "25.10-3");
  const auto is_reset = [](const journal_record& record) { return record.act == "manager_reset"; };
  EXPECT_EQ(std::count_if(site.journal.begin(), site.journal.end(), is_reset), 1);
}

TEST(simulated_firmware, host_firmware_is_active_after_the_next_start_of_the_host) {
  update_site site;
  site.push("UEFI", "UEFI 2.4.1");
  site.pass(1s);
  EXPECT_EQ(site.version("UEFI"), "2.3.7");
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  EXPECT_EQ(site.version("UEFI"), "2.4.1");
}

TEST(simulated_firmware, one_update_at_a_time) {
  update_site site;
  EXPECT_EQ(site.push("UEFI", "UEFI 2.4.1").status, 202);
  EXPECT_EQ(site.push("NIC_0", "NIC_0 1").status, 503);
}

TEST(simulated_firmware, refuses_unknown_components_other_images_and_broken_bodies) {
  update_site site;
  EXPECT_EQ(site.push("NO_SUCH", "NO_SUCH 1").status, 400);
  EXPECT_EQ(site.push("UEFI", "noheader").status, 400);
  const http_reply other = site.push("UEFI", "FW_BMC_0 25.10-3");
  ASSERT_EQ(other.status, 202);
  site.pass(1s);
  EXPECT_EQ(site.task_state(other), "Exception");
  EXPECT_EQ(site.version("UEFI"), "2.3.7");
}

TEST(simulated_firmware, shows_each_update_fault) {
  update_site site;
  site.fault("firmware_unchanged", "r01/c01/UEFI");
  const http_reply unchanged = site.push("UEFI", "UEFI 2.4.1");
  site.pass(1s);
  EXPECT_EQ(site.task_state(unchanged), "Completed");
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  EXPECT_EQ(site.version("UEFI"), "2.3.7");
  site.fault("firmware_refused", "r01/c01/NIC_0");
  const http_reply refused = site.push("NIC_0", "NIC_0 48.45.1020");
  site.pass(1s);
  EXPECT_EQ(site.task_state(refused), "Exception");
  site.fault("task_vanishes", "r01/c01");
  const http_reply vanishing = site.push("DPU_0", "DPU_0 48.0");
  EXPECT_EQ(site.task_state(vanishing), "Running");
  site.pass(1s);
  EXPECT_EQ(site.task_state(vanishing), "404");
}

TEST(simulated_firmware, a_bmc_restart_loses_the_task_and_the_image_in_flight) {
  update_site site;
  site.push("UEFI", "UEFI 2.4.1");
  site.send(tray_one, "POST", "/redfish/v1/Managers/BMC_0/Actions/Manager.Reset",
            {{"ResetType", "ForceRestart"}}, site.host);
  site.pass(1s);
  site.host = site.token(tray_one);
  site.reset(tray_one, "On", site.host);
  site.pass(1s);
  EXPECT_EQ(site.version("UEFI"), "2.3.7");
}

}  // namespace
}  // namespace busbar::sim
