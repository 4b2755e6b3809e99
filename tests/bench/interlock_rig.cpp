#include "tests/bench/interlock_rig.hpp"

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>

namespace busbar::bench {

using namespace interlock;

// --- one rack
rack_rig::rack_rig(interlock_rig& of, int number)
    : of_(of), number_(number), name_(fmt::format("r{:02}", number)) {
  const std::string& folder = of_.options().folder;
  const std::string key = fmt::format("{}/{}.key", folder, name_);
  const std::string log = fmt::format("{}/{}.log", folder, name_);
  const std::string program = of_.options().programs + "/busbar-interlock";
  if (::waitpid(spawn({program, "key", "new", key}, log), nullptr, 0) < 0) give_up("no key");
  pid_ = spawn({program, "--instance", name_, "--run-dir", folder + "/run", "--state-dir", folder + "/state",
                "--key-file", key},
               log);
  link_ = std::make_unique<interlock_link>(folder + "/run/" + name_ + "/interlock.sock");
  person_ = std::make_unique<interlock_link>(folder + "/run/" + name_ + "/operator.sock");
  poster_ = std::make_unique<wire_poster>(of_.password());
}

rack_rig::~rack_rig() {
  link_.reset();
  person_.reset();
  if (pid_ > 0) ::kill(pid_, SIGTERM), ::waitpid(pid_, nullptr, 0);
}

std::string rack_rig::tray_name(int index) const {
  return index < 18 ? fmt::format("{}/c{:02}", name_, index + 1)
                    : fmt::format("{}/s{:02}", name_, index - 17);
}

std::string rack_rig::address_of(int index) const {
  return fmt::format("{}.{}.{}", of_.options().network, number_, index < 18 ? index + 1 : index + 13);
}

std::vector<std::string> rack_rig::detectors_of(int index) {
  if (index < 18) return {"0_ColdPlate", "0_Manifold", "1_ColdPlate", "1_Manifold"};
  return {"leakage1", "leakage2", "leakage3", "leakage4", "leakage5", "leakage6"};
}

ArmedDevice rack_rig::device(const std::string& name, const char* kind, const std::string& address) const {
  ArmedDevice made;
  made.set_name(name);
  made.set_kind(kind);
  made.set_address(address + ":8443");
  made.set_pin_sha256(of_.certificate_pin(address));
  made.set_account("root");
  made.set_password(of_.password());
  return made;
}

void rack_rig::arm() {
  Request arm;
  ArmingRecord& record = *arm.mutable_arm()->mutable_record();
  record.set_rack(name_);
  record.set_generation(1);
  record.mutable_limits()->set_reset_dry_s(1);
  for (int index = 0; index < trays; ++index) {
    ArmedDevice& made = *record.add_devices();
    made = device(tray_name(index), index < 18 ? "compute_tray" : "switch_tray", address_of(index));
    for (const std::string& each : detectors_of(index)) {
      made.add_detectors(each);
      if (of_.options().confirm_ms == 0) continue;
      Confirm* row = made.add_confirm();
      row->set_detector(each);
      row->set_confirm_ms(of_.options().confirm_ms);
    }
  }
  const std::string subnet = fmt::format("{}.{}.", of_.options().network, number_);
  for (int n = 1; n <= 8; ++n) {
    *record.add_devices() =
        device(fmt::format("{}/p{:02}", name_, n), "power_shelf", subnet + std::to_string(50 + n));
  }
  ArmedDevice& controller = *record.add_devices();
  controller = device(name_ + "/m01", "rack_controller", subnet + "71");
  for (const char* name : {"supply", "return"}) {
    Valve* valve = controller.add_valves();
    valve->set_name(name);
    valve->set_stroke_ms(static_cast<std::uint32_t>(of_.stroke_ms()));
  }
  ArmedDevice& cdu = *record.add_devices();
  cdu = device("cdu01", "cdu", of_.options().network + ".200.1");
  cdu.add_detectors(name_ + "_rope");
  cdu.add_detectors(name_ + "_pan");
  cdu.set_connector(name_);
  if (const Answer answer = link_->ask(arm); answer.code() != 0) give_up("not armed: " + answer.message());
}

void rack_rig::power_up() {
  std::vector<wire_post> all;
  for (const char* valve : {"supply", "return"}) {
    all.push_back({fmt::format("{}.{}.71", of_.options().network, number_),
                   fmt::format("/redfish/v1/Chassis/Rack_0/ThermalSubsystem/CoolantConnectors/{}/Actions/"
                               "CoolantConnector.ValveControl",
                               valve),
                   R"({"ValveState":"Open"})"});
  }
  for (int n = 51; n <= 58; ++n) {
    all.push_back({fmt::format("{}.{}.{}", of_.options().network, number_, n),
                   "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.Reset", R"({"ResetType":"On"})"});
  }
  if (const std::size_t refused = poster_->post(all); refused > 0)
    give_up(fmt::format("{}: {} shelves or valves did not take power-up", name_, refused));
}

void rack_rig::hosts_on(const std::vector<int>& which) {
  std::vector<wire_post> all;
  for (const int index : which)
    all.push_back({address_of(index), "/redfish/v1/Systems/System_0/Actions/ComputerSystem.Reset",
                   R"({"ResetType":"On"})"});
  if (const std::size_t refused = poster_->post(all); refused > 0)
    give_up(fmt::format("{}: {} hosts did not take power-on", name_, refused));
}

void rack_rig::hosts_on() {
  std::vector<int> all;
  for (int index = 0; index < trays; ++index) all.push_back(index);
  hosts_on(all);
}

void rack_rig::until_ready() {
  link_->until(name_ + " armed", [](const Status& status) {
    return status.devices_size() == trays + 10 && status.open_trips_size() == 0 &&
           status.latches_size() == 0 &&
           std::all_of(status.devices().begin(), status.devices().end(),
                       [](const DeviceStatus& each) { return each.armed(); });
  });
}

void rack_rig::reset(const std::string& scope) {
  Request request;
  request.mutable_reset()->set_device(scope);
  request.mutable_reset()->set_reason("bench: dried, nothing was broken");
  const std::int64_t end = now_ns() + 60'000 * ms;
  for (;;) {
    const Answer answer = person_->ask(request);
    if (answer.code() == 0) return;
    if (now_ns() > end) give_up("no reset of " + scope + ": " + answer.message());
    ::usleep(50'000);
  }
}

void rack_rig::fault(const std::string& kind, const std::string& target, const json& more) {
  json request = {{"op", "fault_add"}, {"kind", kind}, {"target", target}};
  if (more.is_object()) request.update(more);
  ask_sim(of_.sim_socket(), request);
}

std::int64_t rack_rig::wet(const std::string& target) {
  return ask_sim(of_.sim_socket(), {{"op", "fault_add"}, {"kind", "leak"}, {"target", target}})["from_ns"]
      .get<std::int64_t>();
}

void rack_rig::clear(const std::string& kind, const std::string& target) {
  ask_sim(of_.sim_socket(), {{"op", "fault_clear"}, {"kind", kind}, {"target", target}});
}

// --- all of it
interlock_rig::interlock_rig(rig_options options) : options_(std::move(options)) {
  // What measures is not what is put under load: a starved simulator would only be a slower BMC.
  sim_ = spawn({"/usr/bin/nice", "-n", "-15", options_.programs + "/busbar-sim", "run", "--racks",
                std::to_string(options_.racks), "--profile", options_.profile, "--seed",
                std::to_string(options_.seed), "--rack-controllers", "--stamp-writes", "--network",
                options_.network, "--state-dir", options_.folder + "/sim"},
               options_.folder + "/sim.log");
  ::close(connect_to(sim_socket()));
  password_ = ask_sim(sim_socket(), {{"op", "factory_password"}}).get<std::string>();
  journal_ = std::make_unique<wire_journal>(options_.folder + "/sim/journal.jsonl");
  for (int number = 1; number <= options_.racks; ++number)
    racks_.push_back(std::make_unique<rack_rig>(*this, number));
  for (auto& each : racks_) each->power_up();
  for (auto& each : racks_) each->arm();
  for (auto& each : racks_) each->until_ready();
  for (auto& each : racks_) each->hosts_on();
}

interlock_rig::~interlock_rig() {
  racks_.clear();
  if (sim_ > 0) ::kill(sim_, SIGTERM), ::waitpid(sim_, nullptr, 0);
}

int interlock_rig::simulator_nice() const {
  return ::getpriority(PRIO_PROCESS, static_cast<id_t>(sim_));
}

int interlock_rig::stroke_ms() const {
  return options_.profile == "instant" ? 200 : options_.profile == "quick" ? 5'000 : 15'000;
}

std::string interlock_rig::certificate_pin(const std::string& address) const {
  std::FILE* file = std::fopen((options_.folder + "/sim/tls/" + address + ".pem").c_str(), "r");
  X509* certificate = file == nullptr ? nullptr : PEM_read_X509(file, nullptr, nullptr, nullptr);
  if (certificate == nullptr) give_up("no certificate of " + address);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  X509_digest(certificate, EVP_sha256(), digest, &size);
  X509_free(certificate);
  std::fclose(file);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

double share_of(std::vector<double> values, double p) {
  if (values.empty()) return -1;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<std::size_t>(p * static_cast<double>(values.size())))];
}

void print_row(const char* what, const std::vector<double>& values, const char* unit) {
  std::printf("%-26s n %5zu  p50 %9.3f  p99 %9.3f  max %9.3f %s\n", what, values.size(),
              share_of(values, 0.5), share_of(values, 0.99),
              values.empty() ? -1 : *std::max_element(values.begin(), values.end()), unit);
}

}  // namespace busbar::bench
