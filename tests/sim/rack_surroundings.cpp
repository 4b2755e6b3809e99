// What goes on around the daemon of a rack_world: the interlock's beats and gates, the site's due times,
// faults.
#include <caf/event_based_actor.hpp>

#include <utility>

#include "tests/sim/rack_world.hpp"

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;
using verdict = test::fake_interlock::verdict;

constexpr auto heartbeat = 1s;

verdict to_verdict(detector_truth truth) {
  if (truth == detector_truth::wet) return interlock::DetectorReading::LEAK;
  return truth == detector_truth::dry ? interlock::DetectorReading::DRY : interlock::DetectorReading::UNKNOWN;
}

std::string base64(const std::string& text) {
  static constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8U | (at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      out += at + i > text.size() ? '=' : letters[group >> (18U - 6U * static_cast<unsigned>(i)) & 63U];
  }
  return out;
}

}  // namespace

void rack_world::beat() {
  follow_truth();
  if (!silent_) interlock.heartbeat();
  sim.devices().after(heartbeat, [this] { beat(); });
}

// The interlock sees what is; each change of what it sees is a heartbeat.
void rack_world::follow_truth() {
  watch->sample(now());
  if (!options_.interlock_sees || silent_) return;
  const auto status = interlock.last()->status;
  if (status == nullptr) return;
  for (const interlock::DeviceStatus& device : status->devices()) {
    for (const interlock::DetectorReading& reading : device.detectors()) {
      const verdict seen = to_verdict(watch->truth_of(device.name(), reading.name(), now()));
      if (seen == reading.verdict()) continue;
      interlock.set_detector(device.name(), reading.name(), seen);
      const bool of_rack = device.name().find('/') == std::string::npos;
      if (of_rack && seen == interlock::DetectorReading::LEAK && !interlock.is_tripped("r01"))
        trip("r01", interlock::LEAK, reading.name() + " at " + device.name());
    }
  }
}

void rack_world::force_off(const interlock::ArmedDevice& device) {
  const bool shelf = device.kind() == "power_shelf";
  if (!shelf && device.kind() != "compute_tray" && device.kind() != "switch_tray") return;
  sim::http_request request;
  request.method = "POST";
  request.target = shelf ? "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.Reset"
                         : "/redfish/v1/Systems/System_0/Actions/ComputerSystem.Reset";
  request.body = R"({"ResetType":"ForceOff"})";
  request.headers["authorization"] = "Basic " + base64(device.account() + ":" + device.password());
  request.peer = "127.0.0.1:50000";
  static_cast<void>(site->handle(address_of(device.name()), request, now()));
}

void rack_world::trip(const std::string& scope, interlock::Cause cause, const std::string& detail) {
  sim.note("trip of " + scope);
  if (interlock.records.empty()) return;
  const interlock::ArmingRecord record = interlock.records.back();
  std::vector<std::string> taken;
  for (const bool shelves : {false, true}) {
    for (const interlock::ArmedDevice& device : record.devices()) {
      const bool of_scope = scope == "r01" || scope == device.name();
      if (!of_scope || (device.kind() == "power_shelf") != shelves) continue;
      force_off(device);
      if (device.name().find('/') != std::string::npos && device.kind() != "rack_controller")
        taken.push_back(device.name());
    }
  }
  const std::uint64_t number = interlock.open_trip(scope, cause, detail);
  closing_[number] = taken;
  close_trips_later();
}

void rack_world::close_trips_later() {
  for (const auto& [number, taken] : closing_) {
    sim.devices().after(500ms, [this, number = number, taken = taken] {
      interlock.close_trip(number, taken);
      closing_.erase(number);
    });
  }
}

// A gate that shuts is known once the rack has answered what was asked behind that news.
void rack_world::gates_moved() {
  watch->sample(now());
  for (const sim::device_identity& each : site->devices()) {
    const bool open = gate_is_open(each.member);
    const bool was = std::exchange(gates_[each.member], open);
    if (open) watch->gate_known(each.member, true);
    if (open || !was) continue;
    const auto known = [this, member = each.member, life = lives_] {
      if (life == lives_ && !gates_[member]) watch->gate_known(member, false);
    };
    sim.actors().spawn([rack = rack_, known](caf::event_based_actor* self) {
      self->request(rack, caf::infinite, core::status_atom_v)
          .then([known](const core::actor_status&) { known(); }, [](const caf::error&) {});
    });
  }
}

bool rack_world::gate_is_open(const std::string& member) const {
  return interlock.gate(member).allowed;
}

void rack_world::arm_site() {
  const auto due = site->next_due();
  if (due == site_due_) return;
  if (site_due_.has_value()) sim.devices().cancel(site_timer_);
  site_due_ = due;
  if (!due.has_value()) return;
  site_timer_ = sim.devices().after(*due - now(), [this] {
    site_due_.reset();
    site->advance(now());
  });
}

void rack_world::fault(const std::string& kind, const std::string& target, std::chrono::milliseconds delay,
                       std::chrono::milliseconds length, std::optional<double> severity,
                       const std::string& value) {
  sim::fault_request request;
  request.kind = kind;
  request.target = target;
  request.delay = delay;
  if (length.count() > 0) request.duration = length;
  request.severity = severity;
  request.value = value;
  const auto added = site->add_fault(request, now());
  EXPECT_TRUE(added.ok()) << kind << " " << target << ": " << added.status();
  sim.note("fault " + kind + " " + target);
  sim.devices().after(delay, [this] { follow_truth(); });
}

void rack_world::silence_interlock(bool silent) {
  silent_ = silent;
  sim.note(silent ? "the interlock is silent" : "the interlock is heard again");
  if (!silent) {
    follow_truth();
    return interlock.heartbeat();
  }
  sim.devices().after(rack::interlock_dead_after, [this] {
    if (silent_) interlock.die();
  });
}

void rack_world::clear_faults() {
  site->clear_faults("", "", now());
  follow_truth();
}

}  // namespace busbar::test_support
