// Busbar's own drivers against the simulator's faces: the CDU through its register map, outlets in two
// dialects.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>

#include "actors/devices/modbus/map_device.hpp"
#include "actors/devices/snmp/snmp_outlets.hpp"

namespace busbar::devices {
namespace {

using namespace std::chrono_literals;

// A simulator of the test's own: own folder, own network of 127.0.0.0/8.
class simulator {
 public:
  simulator() {
    std::string pattern = (std::filesystem::temp_directory_path() / "busbar-drivers-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) return;
    folder_ = pattern;
    network_ = "127." + std::to_string(20 + getpid() % 20);
    int ends[2];
    if (pipe(ends) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execl(BUSBAR_SIM, BUSBAR_SIM, "run", "--state-dir", folder_.c_str(), "--sku", "vr-4x1", "--profile",
            "instant", "--network", network_.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
    std::string line;
    for (char letter = 0; ::read(output_, &letter, 1) == 1 && letter != '\n';) line += letter;
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
  std::string host(const std::string& octets) const { return network_ + octets; }
  std::string secret(const std::string& file) const {
    std::string word;
    std::ifstream(folder_ + "/site/" + file) >> word;
    return word;
  }

 private:
  std::string folder_;
  std::string network_;
  pid_t child_ = -1;
  int output_ = -1;
  bool ready_ = false;
};

template <class Answer, class Ask>
Answer wait_for(Ask ask) {
  const auto promise = std::make_shared<std::promise<Answer>>();
  ask([promise](Answer got) { promise->set_value(std::move(got)); });
  return promise->get_future().get();
}

TEST(sim_faces, the_register_map_driver_reads_the_cdu_and_sets_it) {
  const simulator sim;
  ASSERT_TRUE(sim.ready());
  modbus::tcp_loop loop;
  const auto map = modbus::parse_register_map(*modbus::shipped_map("lab_cdu"), "lab_cdu");
  ASSERT_TRUE(map.ok()) << map.status();
  const auto wire = loop.open(sim.host(".200.1") + ":5020", {});
  ASSERT_TRUE(wire.ok()) << wire.status();
  const auto device = std::make_shared<modbus::map_device>(*wire, *map, [] { return std::int64_t{1}; });
  const auto batch = wait_for<absl::StatusOr<point_batch>>(
      [&device](auto reply) { device->read(modbus::poll_class::fast, 5s, reply); });
  ASSERT_TRUE(batch.ok()) << batch.status();
  double dp = 0;
  for (const named_point& each : batch->points) {
    if (each.name == "differential_pressure") dp = each.reading.value.value_or(0);
  }
  EXPECT_NEAR(dp, 60, 3);
  const auto set = [&device](const char* name, double value) {
    return wait_for<absl::Status>(
        [&device, name, value](auto reply) { device->write(name, value, 5s, reply); });
  };
  EXPECT_TRUE(set("differential_pressure_set", 50).ok());
  EXPECT_FALSE(set("differential_pressure_set", 500).ok());
  EXPECT_TRUE(set("pump_1_duty", 66).ok());
}

TEST(sim_faces, the_outlet_driver_switches_in_both_dialects_and_both_versions) {
  const simulator sim;
  ASSERT_TRUE(sim.ready());
  const std::string secret = sim.secret("pdu.pw");
  snmp::client client;
  const snmp::login ways[] = {
      {.community = secret, .user = "", .auth_password = "", .privacy_password = "", .context = ""},
      {.community = "", .user = "pdu", .auth_password = secret, .privacy_password = secret, .context = ""}};
  for (const auto& [octets, dialect] :
       {std::pair(".1.81", "raritan_pdu2"), std::pair(".1.82", "apc_rpdu2")}) {
    for (const snmp::login& way : ways) {
      const auto agent = client.open(sim.host(octets) + ":1161", way, 2s);
      ASSERT_TRUE(agent.ok()) << agent.status();
      const auto spoken = snmp::parse_dialect(*snmp::shipped_dialect(dialect), dialect);
      ASSERT_TRUE(spoken.ok());
      const auto bank = snmp::make_snmp_outlets(*agent, *spoken);
      const auto read = [&bank] {
        return wait_for<absl::StatusOr<std::vector<outlet_facts>>>(
            [&bank](auto reply) { bank->read(reply); });
      };
      for (const outlet_act act : {outlet_act::off, outlet_act::on}) {
        const auto asked = wait_for<absl::Status>([&bank, act](auto reply) { bank->ask("2", act, reply); });
        ASSERT_TRUE(asked.ok()) << dialect << " " << asked;
        const outlet_state wanted = act == outlet_act::on ? outlet_state::on : outlet_state::off;
        outlet_state seen = outlet_state::unknown;
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::seconds(20);  // a relay takes its time
        while (seen != wanted && std::chrono::steady_clock::now() < end) {
          const auto outlets = read();
          ASSERT_TRUE(outlets.ok()) << dialect << " " << outlets.status();
          for (const outlet_facts& each : *outlets) {
            if (each.id == "2") seen = each.state;
          }
        }
        EXPECT_EQ(name_of(seen), name_of(wanted)) << dialect;
      }
    }
  }
}

}  // namespace
}  // namespace busbar::devices
