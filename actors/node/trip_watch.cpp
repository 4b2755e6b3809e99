#include "actors/node/trip_watch.hpp"

#include <algorithm>

namespace busbar::node {

bool is_switched(const journal::Node& node) {
  return node.spec().kind() != journal::RACK_CONTROLLER;
}

bool is_tripped(const journal::Node& node) {
  return node.has_failure() && node.failure().fault() == core::name_of(core::fault::TRIP_OPEN);
}

void show_wet(machine& m, const leak_latch& latch) {
  for (journal::Detector& row : *m.change().mutable_detectors()) {
    if (row.name() != latch.detector) continue;
    row.set_verdict(journal::Detector::LEAK);
    row.set_detail(latch.detail);
  }
}

namespace {

// What a BMC was flashing when its power was cut is not there any more, nor is its task: the versions read
// back say what is due.
void forget_pushes(machine& m) {
  for (journal::FirmwareProgress& row : *m.change().mutable_firmware()) {
    const bool under_way = row.state() == journal::FirmwareProgress::PUSHING ||
                           row.state() == journal::FirmwareProgress::PUSHED ||
                           row.state() == journal::FirmwareProgress::ACTIVATING;
    if (under_way) {
      row.set_state(journal::FirmwareProgress::PENDING);
      row.clear_task_uri();
    }
    m.close_intent("push_firmware", row.component());
  }
  m.close_intent("reset_manager");
}

}  // namespace

// Firmware, boot, suite: whatever went on ends. Its power is unknown until it is read.
std::optional<outcome> take_trip(machine& m, const trip_held& trip) {
  const std::string number = std::to_string(trip.number);
  const journal::Node& node = m.node();
  const auto known = node.facts().find(std::string(trip_fact));
  if (!is_switched(node) || (known != node.facts().end() && known->second == number)) return std::nullopt;
  const bool was_off = node.power().observed() == journal::POWER_OFF &&
                       node.power().wanted() != journal::POWER_ON && !is_energised_step(node.step());
  const bool ours = node.step() >= journal::CREDENTIALED && node.hold() == journal::HOLD_NONE;
  journal::Node& changed = m.change();
  (*changed.mutable_facts())[std::string(trip_fact)] = number;
  if (was_off || !ours) return std::nullopt;
  if (trip.cuts_shelves) forget_pushes(m);
  changed.mutable_power()->set_wanted(journal::POWER_OFF);
  changed.mutable_power()->set_observed(journal::POWER_UNKNOWN);
  changed.mutable_boot()->set_agent_connected(false);
  changed.set_step(std::min(changed.step(), journal::CREDENTIALED));
  changed.set_step_entered_wall_ns(m.now().wall_ns);
  return outcome::fail(core::fault::TRIP_OPEN, trip.text);
}

void take_read_off(machine& m, const interlock_read_off& read) {
  if (m.node().power().observed() == journal::POWER_OFF || is_energised_step(m.node().step())) return;
  const bool taken = is_tripped(m.node()) || m.node().leak_latched();
  journal::NodePower& power = *m.change().mutable_power();
  power.set_observed(journal::POWER_OFF);
  power.set_observed_wall_ns(m.now().wall_ns);
  if (taken) power.set_wanted(journal::POWER_OFF);
  m.tell("power_off", "read off by the interlock: " + read.text);
}

}  // namespace busbar::node
