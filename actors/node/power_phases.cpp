// Turning a member on and off: never on without its own detectors known dry and the rack's permit, never
// believed without a read.
#include "actors/node/power_phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "actors/core/mutant.hpp"
#include "actors/node/detector_logic.hpp"
#include "actors/node/identity_logic.hpp"
#include "actors/node/node_phases.hpp"

namespace busbar::node {

using core::fault;

namespace {

constexpr core::duration poll_interval = std::chrono::milliseconds(500);
constexpr std::int64_t permit_good_ns = 2'000'000'000;

void note_power(machine& m, const devices::power_facts& facts) {
  m.run().power = facts;
  if (m.node().power().observed() == facts.state) return;
  journal::NodePower& power = *m.change().mutable_power();
  power.set_observed(facts.state);
  power.set_observed_wall_ns(m.now().wall_ns);
}

}  // namespace

// ---- pieces that the restart of firmware and configuration shares
// ------------------------------------------------------------------

outcome enter_read_power(machine& m) {
  return m.ask(call_op::read_power);
}

outcome enter_detectors(machine& m) {
  if (m.is_shelf() || BUSBAR_MUTANT(detectors_not_read)) return outcome::next();
  return m.ask(call_op::read_detectors);
}

outcome take_detectors(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto needed = needed_detectors(m.spec().sku(), m.node().spec().kind());
  const auto found = match_detectors(needed, *facts_of<std::vector<devices::detector_facts>>(*done));
  journal::Node& changed = m.change();
  changed.mutable_detectors()->Assign(found.begin(), found.end());
  if (const auto problem = not_known_dry(found)) {
    if (problem->code == fault::POWER_LEAK_LATCHED) changed.set_leak_latched(true);
    return outcome::fail(problem->code, problem->message, problem->expected, problem->seen);
  }
  m.run().detectors_at_ns = m.now().monotonic_ns;
  return outcome::next();
}

// One that was given while the look at the detectors grew old, and still holds, is not asked for again: the
// second might wait for its inrush group until the next look is old too, and so for ever.
outcome ask_permit(machine& m, permit_kind kind) {
  const auto& lease = m.run().lease;
  const bool brings_energy = kind != permit_kind::blind_window;
  if (brings_energy && m.run().permit_held && lease != nullptr && lease->holds() &&
      m.now().monotonic_ns - m.run().permit_at_ns <= permit_good_ns)
    return outcome::next();
  m.act(want_permit{kind});
  return outcome::wait();
}

outcome take_permit(machine& m, const node_event& event) {
  const auto* answer = std::get_if<permit_answer>(&event);
  if (answer == nullptr) return outcome::wait();
  if (!answer->granted) {
    if (m.node().waits_for() != answer->why) m.change().set_waits_for(answer->why);
    m.run().last_error = core::make_fault(answer->fault.value_or(fault::POWER_OVER_BUDGET), answer->why);
    return outcome::wait();  // the rack answers again when it can grant
  }
  m.run().last_error = absl::OkStatus();
  m.run().permit_held = true;
  m.run().lease = answer->lease;
  m.run().permit_at_ns = m.now().monotonic_ns;
  return outcome::next();
}

std::optional<outcome> first_look_again(machine& m, phase_id detectors, phase_id permit) {
  constexpr std::int64_t detectors_good_ns = 3'000'000'000;
  if (m.node().leak_latched() && !BUSBAR_MUTANT(latch_ignored)) {
    return outcome::fail(fault::POWER_LEAK_LATCHED, "a leak is latched on this member", "no latch",
                         "latched");
  }
  if (BUSBAR_MUTANT(stale_permit_used)) return std::nullopt;
  if (!m.is_shelf() && m.now().monotonic_ns - m.run().detectors_at_ns > detectors_good_ns)
    return outcome::jump(detectors);
  if (m.run().permit_held && m.now().monotonic_ns - m.run().permit_at_ns <= permit_good_ns)
    return std::nullopt;
  give_permit_back(m);
  return outcome::jump(permit);
}

void give_permit_back(machine& m) {
  if (!m.run().permit_held) return;
  m.run().permit_held = false;
  m.run().lease.reset();
  m.act(release_permit{});
}

// Energy is brought on the permit's lease, and soon: a commit that took long has made the look at the
// detectors an old one.
outcome ask_reset(machine& m, devices::reset_type type) {
  constexpr std::int64_t leaves_within_ns = 2'000'000'000;
  m.open_intent("reset", devices::redfish_name(type));
  call wanted;
  wanted.op = call_op::reset;
  wanted.reset = type;
  wanted.lease = m.run().lease;
  wanted.not_after_ns = m.now().monotonic_ns + leaves_within_ns;
  return m.ask(wanted);
}

// Nothing has left for the device: there is nothing to read back. After a moment the way to the act begins
// again, with a new look at the detectors.
outcome act_was_withheld(machine& m, const absl::Status& why, devices::reset_type type) {
  m.close_intent("reset", devices::redfish_name(type));
  if (type != devices::reset_type::on && m.run().agent_before)
    m.change().mutable_boot()->set_agent_connected(true);  // of the host that was not restarted
  give_permit_back(m);
  m.run().last_error = why;
  m.run().detectors_at_ns = INT64_MIN / 2;
  return outcome::again(poll_interval);
}

outcome enter_boot_once(machine& m) {
  if (!m.is_compute()) return outcome::next();
  return m.ask(call_op::set_boot_once);
}

// The shell answers with the URI it asked for (token included), so that the read-back can be compared.
outcome take_boot_once(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  if (const auto* uri = facts_of<std::string>(*done)) m.run().boot_uri = *uri;
  return outcome::next();
}

outcome enter_read_boot_once(machine& m) {
  if (!m.is_compute()) return outcome::next();
  return m.ask(call_op::read_boot_once);
}

outcome take_read_boot_once(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& seen = *facts_of<devices::boot_facts>(*done);
  if (seen.enabled != "Once" || seen.target != "UefiHttp" || seen.uri != m.run().boot_uri) {
    return outcome::fail(fault::CONFIG_DRIFT, "the boot-once setting reads back different",
                         "Once UefiHttp and our URI", fmt::format("{} {}", seen.enabled, seen.target));
  }
  m.change().mutable_boot()->set_boot_once_set(true);
  return outcome::next();
}

outcome take_wait_on(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& facts = *facts_of<devices::power_facts>(*done);
  note_power(m, facts);
  if (facts.state != journal::POWER_ON) return outcome::again(poll_interval);
  m.close_intent("reset", devices::redfish_name(devices::reset_type::on));
  m.tell("power_on", "read back On");
  if (!m.is_compute()) give_permit_back(m);
  return outcome::next();
}

outcome enter_wait_agent(machine& m) {
  if (const auto& refused = m.run().agent_refused; refused.has_value()) {
    return outcome::fail(fault::AGENT_SERIAL_MISMATCH, refused->reason, m.node().identity().serial(),
                         refused->hello.dmi_serial());
  }
  const journal::Boot& boot = m.node().boot();
  if (!boot.agent_connected() || boot.boot_id() == m.run().boot_id_before) return outcome::wait();
  const std::string& expected = m.node().identity().serial();
  if (!is_placeholder_serial(expected) && boot.agent_serial() != expected) {
    return outcome::fail(fault::AGENT_SERIAL_MISMATCH, "the agent's DMI serial is not the one Redfish showed",
                         expected, boot.agent_serial());
  }
  give_permit_back(m);
  return outcome::next();
}

outcome take_wait_agent(machine& m, const node_event&) {
  return enter_wait_agent(m);
}

outcome take_off(machine& m, const call_done& done, outcome when_off, outcome when_not) {
  if (!done.status.ok()) return m.on_error(done.status);
  const auto& facts = *facts_of<devices::power_facts>(done);
  note_power(m, facts);
  return facts.state == journal::POWER_OFF ? std::move(when_off) : std::move(when_not);
}

namespace {

// ---- staged
// -------------------------------------------------------------------------------------------------------------------------

outcome take_read_power(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& facts = *facts_of<devices::power_facts>(*done);
  note_power(m, facts);
  if (facts.state == journal::POWER_ON)
    m.close_intent("reset", devices::redfish_name(devices::reset_type::on));
  if (facts.state == journal::POWER_OFF)
    m.close_intent("reset", devices::redfish_name(devices::reset_type::force_off));
  if (facts.state == journal::POWER_ON)
    return outcome::jump(m.is_compute() ? phase_id::wait_present_agent : phase_id::wait_on);
  if (facts.state == journal::POWERING_ON) return outcome::jump(phase_id::wait_on);
  if (facts.state == journal::POWER_OFF)
    return outcome::jump(m.is_compute() ? phase_id::boot_once : phase_id::detectors);
  return outcome::again(poll_interval);  // going off, or unknown
}

// A host that is on already: our staging image with its agent on the way back, or somebody else's system. The
// first reports within the boot deadline's sixth; the second is turned off and staged.
outcome enter_wait_present_agent(machine& m) {
  const journal::Boot& boot = m.node().boot();
  if (boot.agent_connected()) return outcome::jump(phase_id::wait_agent);
  if (m.run().phase_deadline_ns == core::never_ns) {
    m.run().phase_deadline_ns = m.now().monotonic_ns + m.deadline_of("staged", 1200) / 6;
  }
  if (m.now().monotonic_ns >= m.run().phase_deadline_ns) return outcome::jump(phase_id::rs_off);
  return outcome::wait();
}

outcome take_wait_present_agent(machine& m, const node_event&) {
  return enter_wait_present_agent(m);
}

outcome enter_stage_off(machine& m) {
  return ask_reset(m, devices::reset_type::force_off);
}

outcome take_stage_off(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  return outcome::next();
}

outcome take_stage_wait_off(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  outcome result = take_off(m, *done, outcome::jump(phase_id::boot_once), outcome::again(poll_interval));
  if (result.kind == outcome_kind::jump)
    m.close_intent("reset", devices::redfish_name(devices::reset_type::force_off));
  return result;
}

outcome enter_permit_on(machine& m) {
  return ask_permit(m, permit_kind::power_on);
}

// Stated once more right before the act: what the last read said, and that the permit is ours.
outcome enter_power_on(machine& m) {
  if (const auto first = first_look_again(m, phase_id::detectors, phase_id::permit_on)) return *first;
  journal::NodePower& power = *m.change().mutable_power();
  power.set_wanted(journal::POWER_ON);
  power.set_on_count(power.on_count() + 1);
  m.run().boot_id_before = m.node().boot().boot_id();
  m.run().agent_refused.reset();
  m.change().mutable_boot()->set_agent_connected(false);
  return ask_reset(m, devices::reset_type::on);
}

outcome take_power_on(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (devices::is_withheld(done->status)) {
    journal::NodePower& power = *m.change().mutable_power();
    power.set_wanted(journal::POWER_OFF);
    power.set_on_count(power.on_count() - 1);
    return act_was_withheld(m, done->status, devices::reset_type::on);
  }
  if (!done->status.ok()) {
    if (is_transient(done->status)) {
      m.run().last_error = done->status;
      return outcome::jump(phase_id::read_power);  // unsure whether it took: look before asking again
    }
    return m.on_error(done->status);
  }
  if (BUSBAR_MUTANT(accepted_taken_as_done)) {
    m.change().mutable_power()->set_observed(journal::POWER_ON);
    return outcome::done();
  }
  return outcome::next();
}

constexpr std::array stage_compute{
    phase{phase_id::read_power, "its power state", fault::BMC_SLOW, enter_read_power, take_read_power},
    phase{phase_id::wait_present_agent, "the agent of a host that was on already", fault::AGENT_NOT_SEEN,
          enter_wait_present_agent, take_wait_present_agent},
    phase{phase_id::rs_off, "the host to be told off before staging", fault::POWER_OFF_NOT_CONFIRMED,
          enter_stage_off, take_stage_off},
    phase{phase_id::rs_wait_off, "the host to be read back off", fault::POWER_OFF_NOT_CONFIRMED,
          enter_read_power, take_stage_wait_off},
    phase{phase_id::boot_once, "the boot-once setting", fault::BMC_SLOW, enter_boot_once, take_boot_once},
    phase{phase_id::read_boot_once, "the boot-once setting's read-back", fault::CONFIG_DRIFT,
          enter_read_boot_once, take_read_boot_once},
    phase{phase_id::detectors, "its own leak detectors", fault::POWER_DETECTOR_UNKNOWN, enter_detectors,
          take_detectors},
    phase{phase_id::permit_on, "the rack's permit to power on", fault::POWER_OVER_BUDGET, enter_permit_on,
          take_permit},
    phase{phase_id::power_on, "the BMC to take the power-on", fault::BMC_SLOW, enter_power_on, take_power_on},
    phase{phase_id::wait_on, "the host to be read back On", fault::POWER_ON_NOT_CONFIRMED, enter_read_power,
          take_wait_on},
    phase{phase_id::wait_agent, "this boot's agent", fault::AGENT_NOT_SEEN, enter_wait_agent,
          take_wait_agent},
};

constexpr std::array stage_others{
    phase{phase_id::read_power, "its power state", fault::BMC_SLOW, enter_read_power, take_read_power},
    phase{phase_id::detectors, "its own leak detectors", fault::POWER_DETECTOR_UNKNOWN, enter_detectors,
          take_detectors},
    phase{phase_id::permit_on, "the rack's permit to power on", fault::POWER_OVER_BUDGET, enter_permit_on,
          take_permit},
    phase{phase_id::power_on, "the BMC to take the power-on", fault::BMC_SLOW, enter_power_on, take_power_on},
    phase{phase_id::wait_on, "to be read back On", fault::POWER_ON_NOT_CONFIRMED, enter_read_power,
          take_wait_on},
};

// ---- power down: graceful, then force, each read back
// ----------------------------------------------------------------------------------

outcome went_off(machine& m) {
  journal::Node& changed = m.change();
  changed.mutable_power()->set_wanted(journal::POWER_OFF);
  changed.mutable_boot()->set_agent_connected(false);
  for (const auto type : {devices::reset_type::graceful_shutdown, devices::reset_type::force_off}) {
    m.close_intent("reset", devices::redfish_name(type));
  }
  m.tell("power_off", "read back off");
  if (m.node().blind_window()) {
    changed.set_blind_window(false);
    changed.set_blind_until_wall_ns(0);
    m.tell("blind_window_closed", "the host is off; nothing is left to be seen");
  }
  return outcome::done();
}

outcome take_down_read(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  outcome result = take_off(m, *done, outcome::done(),
                            m.is_shelf() ? outcome::jump(phase_id::down_force) : outcome::next());
  return result.kind == outcome_kind::arrow_done ? went_off(m) : result;
}

outcome enter_down_graceful(machine& m) {
  m.change().mutable_power()->set_wanted(journal::POWER_OFF);
  m.run().phase_deadline_ns = core::never_ns;
  return ask_reset(m, devices::reset_type::graceful_shutdown);
}

outcome take_down_graceful(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok() && is_transient(done->status)) return m.on_error(done->status);
  if (BUSBAR_MUTANT(off_taken_as_done)) return went_off(m);
  return done->status.ok() ? outcome::next() : outcome::jump(phase_id::down_force);  // not offered: by force
}

outcome enter_down_wait(machine& m) {
  if (m.run().phase_deadline_ns == core::never_ns) {
    m.run().phase_deadline_ns = m.now().monotonic_ns + m.deadline_of("graceful_off", 120);
  }
  return m.ask(call_op::read_power);
}

outcome take_down_wait(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  const bool late = m.now().monotonic_ns >= m.run().phase_deadline_ns;
  outcome result =
      take_off(m, *done, outcome::done(), late ? outcome::next() : outcome::again(poll_interval));
  return result.kind == outcome_kind::arrow_done ? went_off(m) : result;
}

outcome enter_down_force(machine& m) {
  return ask_reset(m, devices::reset_type::force_off);
}

outcome take_down_force(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  return outcome::next();
}

outcome take_down_wait_force(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  outcome result = take_off(m, *done, outcome::done(), outcome::again(poll_interval));
  return result.kind == outcome_kind::arrow_done ? went_off(m) : result;
}

constexpr std::array power_down{
    phase{phase_id::down_read, "its power state", fault::POWER_OFF_NOT_CONFIRMED, enter_read_power,
          take_down_read},
    phase{phase_id::down_graceful, "the BMC to take the graceful shutdown", fault::POWER_OFF_NOT_CONFIRMED,
          enter_down_graceful, take_down_graceful},
    phase{phase_id::down_wait, "to be read back off after a graceful shutdown",
          fault::POWER_OFF_NOT_CONFIRMED, enter_down_wait, take_down_wait},
    phase{phase_id::down_force, "the BMC to take ForceOff", fault::POWER_OFF_NOT_CONFIRMED, enter_down_force,
          take_down_force},
    phase{phase_id::down_wait_force, "to be read back off after ForceOff", fault::POWER_OFF_NOT_CONFIRMED,
          enter_read_power, take_down_wait_force},
};

}  // namespace

std::span<const phase> stage_compute_phases() {
  return stage_compute;
}
std::span<const phase> stage_switch_phases() {
  return stage_others;
}
std::span<const phase> stage_shelf_phases() {
  return stage_others;
}
std::span<const phase> power_down_phases() {
  return power_down;
}

}  // namespace busbar::node
