// The real drivers over real HTTPS against busbar-sim: one shelf, one compute tray, one switch tray and the
// CDU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>

#include "actors/core/errors.hpp"
#include "actors/devices/inspect.hpp"
#include "actors/devices/redfish/curl_transport.hpp"
#include "actors/devices/redfish/redfish_bmc.hpp"

namespace busbar::devices {
namespace {

using core::fault;
using redfish::curl_transport;

// A simulator of its own for each test: own folder, own network of 127.0.0.0/8.
class simulator {
 public:
  simulator() {
    char name[] = "/tmp/busbar-redfish-sim-XXXXXX";
    folder_ = mkdtemp(name);
    network_ = "127." + std::to_string(130 + getpid() % 110);
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(pipe_ends[1], STDOUT_FILENO);
      close(pipe_ends[0]);
      close(pipe_ends[1]);
      const std::string state = folder_ + "/state";
      execl(BUSBAR_SIM, BUSBAR_SIM, "run", "--state-dir", state.c_str(), "--racks", "1", "--sku", "vr-4x1",
            "--profile", "instant", "--network", network_.c_str(), nullptr);
      _exit(127);
    }
    close(pipe_ends[1]);
    char letter = 0;
    std::string line;
    while (read(pipe_ends[0], &letter, 1) == 1 && letter != '\n') line += letter;
    output_ = pipe_ends[0];
    ready_ = line.starts_with("READY");
  }
  ~simulator() {
    if (child_ > 0) {
      kill(child_, SIGTERM);
      waitpid(child_, nullptr, 0);
    }
    if (output_ >= 0) close(output_);
    std::filesystem::remove_all(folder_);
  }
  simulator(const simulator&) = delete;
  simulator& operator=(const simulator&) = delete;

  bool ready() const { return ready_; }
  std::string address(const std::string& host) const { return network_ + host + ":8443"; }
  std::string site(const std::string& file) const { return folder_ + "/state/site/" + file; }
  std::string password(const std::string& file) const {
    std::string word;
    std::ifstream(site(file)) >> word;
    return word;
  }

 private:
  std::string folder_;
  std::string network_;
  pid_t child_ = -1;
  int output_ = -1;
  bool ready_ = false;
};

class redfish_sim : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(sim.ready()); }

  template <class T, class Method, class... Arguments>
  absl::StatusOr<T> ask(const std::shared_ptr<bmc>& driver, Method method, Arguments... arguments) {
    const auto promise = std::make_shared<std::promise<absl::StatusOr<T>>>();
    (driver.get()->*method)(arguments...,
                            [promise](absl::StatusOr<T> got) { promise->set_value(std::move(got)); });
    return promise->get_future().get();
  }
  template <class Method, class... Arguments>
  absl::Status tell(const std::shared_ptr<bmc>& driver, Method method, Arguments... arguments) {
    const auto promise = std::make_shared<std::promise<absl::Status>>();
    (driver.get()->*method)(arguments...,
                            [promise](absl::Status got) { promise->set_value(std::move(got)); });
    return promise->get_future().get();
  }
  // Asks again, a little later each time, until a condition holds; bounded.
  template <class Condition>
  bool until(Condition holds) {
    for (int i = 0; i < 400; ++i) {
      if (holds()) return true;
      const auto promise = std::make_shared<std::promise<void>>();
      curl_transport* const loop = transport.get();
      transport->post([loop, promise] {
        loop->after(std::chrono::milliseconds(50), [promise] { promise->set_value(); });
      });
      promise->get_future().get();
    }
    return false;
  }
  std::shared_ptr<bmc> enter(const std::string& host, MemberKind kind) {
    auto driver = factory->make_bmc(sim.address(host), kind);
    EXPECT_TRUE(until([this, &driver] { return ask<probe_facts>(driver, &bmc::probe).ok(); })) << host;
    const auto session =
        ask<session_facts>(driver, &bmc::login, credentials{"root", sim.password("factory.pw")});
    EXPECT_TRUE(session.ok()) << session.status();
    return driver;
  }
  void switch_shelf_on() {
    const auto shelf = enter(".1.51", journal::POWER_SHELF);
    EXPECT_TRUE(tell(shelf, &bmc::reset, reset_type::on).ok());
    EXPECT_TRUE(until([this, &shelf] {
      const auto power = ask<power_facts>(shelf, &bmc::read_power);
      return power.ok() && power->state == journal::POWER_ON;
    }));
  }

  simulator sim;
  std::shared_ptr<curl_transport> transport = std::make_shared<curl_transport>();
  std::shared_ptr<driver_factory> factory = redfish::make_redfish_factory(transport, transport);
};

std::size_t count(const inventory_facts& inventory, std::string_view kind) {
  return static_cast<std::size_t>(
      std::count_if(inventory.parts.begin(), inventory.parts.end(),
                    [kind](const journal::Part& part) { return part.kind() == kind; }));
}

TEST_F(redfish_sim, a_shelf_is_identified_switched_on_and_counted) {
  const auto shelf = enter(".1.51", journal::POWER_SHELF);
  const auto identity = ask<identity_facts>(shelf, &bmc::identify);
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->slot, "p01");
  EXPECT_EQ(identity->mac, "02:18:01:00:00:33");
  EXPECT_EQ(identity->serial, "SN1801051");
  ASSERT_TRUE(tell(shelf, &bmc::reset, reset_type::on).ok());
  EXPECT_TRUE(until([this, &shelf] {
    const auto power = ask<power_facts>(shelf, &bmc::read_power);
    return power.ok() && power->state == journal::POWER_ON;
  }));
  EXPECT_TRUE(tell(shelf, &bmc::reset, reset_type::on).ok()) << "on is on already";
  const auto inventory = ask<inventory_facts>(shelf, &bmc::read_inventory);
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(count(*inventory, "psu"), 6u);
  EXPECT_EQ(inventory->parts.front().watts(), 5500u);
  EXPECT_TRUE(inventory->complete) << inventory->incomplete_why;
}

TEST_F(redfish_sim, a_compute_tray_is_read_and_configured) {
  switch_shelf_on();
  const auto tray = enter(".1.1", journal::COMPUTE_TRAY);
  const auto identity = ask<identity_facts>(tray, &bmc::identify);
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->slot, "c01");
  EXPECT_EQ(identity->mac, "02:18:01:00:00:01");
  EXPECT_EQ(identity->serial, "SN1801001");

  EXPECT_TRUE(tell(tray, &bmc::create_account, credentials{"busbar-0a1b2c3d", "Secret-4711-xyz"},
                   std::string("Administrator"))
                  .ok());
  const auto own = ask<session_facts>(tray, &bmc::login, credentials{"busbar-0a1b2c3d", "Secret-4711-xyz"});
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_TRUE(tell(tray, &bmc::set_password, credentials{"root", "Vaulted-4711-xyz"}).ok());

  const auto detectors = ask<std::vector<detector_facts>>(tray, &bmc::read_detectors);
  ASSERT_TRUE(detectors.ok());
  std::vector<std::string> names;
  for (const detector_facts& one : *detectors) {
    names.push_back(one.name);
    EXPECT_EQ(one.verdict, journal::Detector::DRY) << one.name << ": " << one.detail;
  }
  EXPECT_THAT(names,
              ::testing::UnorderedElementsAre("0_ColdPlate", "0_Manifold", "1_ColdPlate", "1_Manifold"));

  ASSERT_TRUE(tell(tray, &bmc::set_boot_once,
                   boot_facts{"Once", "UefiHttp", "https://images.site/staging-1.efi?token=abc"})
                  .ok());
  const auto boot = ask<boot_facts>(tray, &bmc::read_boot_once);
  ASSERT_TRUE(boot.ok());
  EXPECT_EQ(boot->uri, "https://images.site/staging-1.efi?token=abc");
  EXPECT_EQ(boot->target, "UefiHttp");

  const std::map<std::string, std::string> bios{{"SriovEnable", "true"}, {"PowerProfile", "MaxPerformance"}};
  const absl::Status written = tell(tray, &bmc::write_bios, bios);
  EXPECT_TRUE(written.ok()) << written;
  using attributes = std::map<std::string, attribute_facts>;
  const auto read =
      ask<attributes>(tray, &bmc::read_bios, std::vector<std::string>{"SriovEnable", "PowerProfile"});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->at("SriovEnable").pending, "true");
  EXPECT_EQ(read->at("PowerProfile").value, "Balanced");

  const std::map<std::string, std::string> wanted{
      {"leak_reaction.critical", "ForceOff"}, {"gpu_power_limit_w", "1800"}, {"session_timeout_s", "1800"}};
  const absl::Status set = tell(tray, &bmc::write_device, wanted);
  EXPECT_TRUE(set.ok()) << set;
  const auto device = ask<attributes>(
      tray, &bmc::read_device,
      std::vector<std::string>{"leak_reaction.critical", "gpu_power_limit_w", "session_timeout_s"});
  ASSERT_TRUE(device.ok()) << device.status();
  for (const auto& [name, value] : wanted) EXPECT_EQ(device->at(name).value, value) << name;
}

TEST_F(redfish_sim, a_compute_tray_shows_its_parts_and_takes_firmware) {
  switch_shelf_on();
  const auto tray = enter(".1.2", journal::COMPUTE_TRAY);
  ASSERT_TRUE(tell(tray, &bmc::reset, reset_type::on).ok());
  EXPECT_TRUE(until([this, &tray] {
    const auto power = ask<power_facts>(tray, &bmc::read_power);
    return power.ok() && power->state == journal::POWER_ON;
  }));
  const auto inventory = ask<inventory_facts>(tray, &bmc::read_inventory);
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(count(*inventory, "gpu"), 4u);
  EXPECT_EQ(count(*inventory, "cpu"), 2u);
  EXPECT_EQ(count(*inventory, "nic"), 8u);
  EXPECT_EQ(count(*inventory, "dpu"), 1u);
  EXPECT_EQ(count(*inventory, "drive"), 4u);
  EXPECT_EQ(count(*inventory, "dimm"), 16u);
  EXPECT_TRUE(inventory->complete) << inventory->incomplete_why;
  for (const journal::Part& part : inventory->parts) {
    EXPECT_EQ(part.health(), journal::HEALTH_GOOD) << part.ShortDebugString();
    EXPECT_EQ(part.gbps(), part.kind() == "nic" ? 800u : part.gbps());
    EXPECT_EQ(part.pcie_width(), part.kind() == "nic" ? 16u : part.pcie_width());
    EXPECT_GE(part.memory_gib(), part.kind() == "gpu" ? 288u : part.kind() == "drive" ? 3500u : 0u);
  }

  const auto task = ask<std::string>(tray, &bmc::push_firmware, std::string("NIC_0"),
                                     sim.site("fw/compute_tray-NIC_0.fwpkg"));
  ASSERT_TRUE(task.ok()) << task.status();
  EXPECT_FALSE(task->empty());
  EXPECT_TRUE(until([this, &tray, &task] {
    const auto facts = ask<task_facts>(tray, &bmc::read_task, *task);
    return facts.ok() && (facts->state == task_state::completed || facts->state == task_state::gone);
  }));
  const auto found = ask<std::string>(tray, &bmc::find_update, std::string("NIC_0"));
  EXPECT_TRUE(found.ok()) << found.status();
  const auto components = ask<std::vector<component_facts>>(tray, &bmc::read_firmware);
  ASSERT_TRUE(components.ok());
  EXPECT_EQ(components->size(), 10u);

  ASSERT_TRUE(tell(tray, &bmc::reset_manager).ok());
  EXPECT_TRUE(until([this, &tray] { return ask<power_facts>(tray, &bmc::read_power).ok(); }))
      << "after the BMC's restart";
}

TEST_F(redfish_sim, a_switch_tray_and_the_cdu_are_read) {
  switch_shelf_on();
  const auto tray = enter(".1.31", journal::SWITCH_TRAY);
  const auto identity = ask<identity_facts>(tray, &bmc::identify);
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(identity->slot, "s01");
  ASSERT_TRUE(tell(tray, &bmc::reset, reset_type::on).ok());
  const auto detectors = ask<std::vector<detector_facts>>(tray, &bmc::read_detectors);
  ASSERT_TRUE(detectors.ok());
  EXPECT_GE(detectors->size(), 6u);
  for (const detector_facts& one : *detectors)
    EXPECT_EQ(one.verdict, journal::Detector::DRY) << one.name << ": " << one.detail;
  const auto inventory = ask<inventory_facts>(tray, &bmc::read_inventory);
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(count(*inventory, "asic"), 2u);
  EXPECT_TRUE(until([this, &tray] {
    const auto nvlink = ask<nvlink_facts>(tray, &bmc::read_nvlink);
    return nvlink.ok() && nvlink->links_announced.size() == 2 && nvlink->complete &&
           nvlink->fabric_primary.value_or(false);
  }));

  const auto cdu = factory->make_cooling_source(sim.address(".200.1"), {"reader", sim.password("cdu01.pw")});
  const auto promise = std::make_shared<std::promise<absl::StatusOr<cooling_facts>>>();
  cdu->read("r01", [promise](absl::StatusOr<cooling_facts> got) { promise->set_value(std::move(got)); });
  const auto facts = promise->get_future().get();
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_GT(facts->flow_lpm.value_or(0), 0);
  EXPECT_TRUE(facts->dp_kpa.has_value());
  EXPECT_TRUE(facts->supply_c.has_value());
  EXPECT_EQ(facts->cdu_health, "OK");
  std::vector<std::string> names;
  for (const detector_facts& one : facts->detectors) names.push_back(one.name);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("rope", "pan"));
}

core::instant wall_and_steady() {
  const auto ns = [](auto time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  };
  return {ns(std::chrono::steady_clock::now()), ns(std::chrono::system_clock::now())};
}

TEST_F(redfish_sim, readings_come_over_the_event_stream_and_come_again_after_the_bmc_restarted) {
  switch_shelf_on();
  const auto tray = enter(".1.1", journal::COMPUTE_TRAY);
  const auto board = std::make_shared<core::reading_board>();
  tray->start_telemetry({"r01/c01", {"HGX_PlatformEnvironmentMetrics_0"}, board, wall_and_steady});
  const auto good_after = [&board](std::int64_t wall_ns) {
    const auto inlet = board->find("r01/c01/inlet_temperature");
    return inlet && inlet->quality == core::reading_quality::good && inlet->received_wall_ns > wall_ns;
  };
  ASSERT_TRUE(until([&good_after] { return good_after(0); }));
  EXPECT_EQ(board->find("r01/c01/inlet_temperature")->unit, "Cel");
  EXPECT_EQ(board->find("r01/c01/gpu0/nvlink0/up")->value, 0);  // the host is off
  EXPECT_GT(board->under("r01/c01/").size(), 300u);
  EXPECT_TRUE(tell(tray, &bmc::reset_manager).ok());
  const std::int64_t restarted_ns = wall_and_steady().wall_ns;
  EXPECT_TRUE(until([&good_after, restarted_ns] { return good_after(restarted_ns); }));
  tray->stop_telemetry();
  EXPECT_TRUE(until([&board] {
    return board->find("r01/c01/inlet_temperature")->quality == core::reading_quality::stale;
  }));
}

TEST_F(redfish_sim, a_running_tray_is_inspected_as_good) {
  switch_shelf_on();
  const auto tray = enter(".1.3", journal::COMPUTE_TRAY);
  ASSERT_TRUE(tell(tray, &bmc::reset, reset_type::on).ok());
  const auto look = [this] {
    inspect_options options;
    options.login = credentials{"root", sim.password("factory.pw")};
    const auto promise = std::make_shared<std::promise<inspect_report>>();
    inspect(sim.address(".1.3"), transport, transport, options,
            [promise](inspect_report got) { promise->set_value(std::move(got)); });
    return promise->get_future().get();
  };
  inspect_report report;
  until([&report, &look] {
    report = look();
    return report.health == inspect_health::good;
  });
  EXPECT_EQ(exit_code(report), 0) << render_text(report);
  EXPECT_EQ(report.count("gpu"), 4u);
  EXPECT_EQ(report.count("cpu"), 2u);
  EXPECT_EQ(report.detectors.size(), 4u);
  EXPECT_EQ(report.sensors.listed, report.sensors.read) << render_text(report);
}

}  // namespace
}  // namespace busbar::devices
