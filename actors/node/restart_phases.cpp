#include "actors/node/restart_phases.hpp"

#include <fmt/format.h>

#include <array>

#include "actors/node/power_phases.hpp"

namespace busbar::node {

using core::fault;

attribute_plan plan_attributes(const journal::Attributes& wanted,
                               const std::map<std::string, devices::attribute_facts>& seen) {
  attribute_plan plan;
  const std::map<std::string, std::string> ordered(wanted.values().begin(), wanted.values().end());
  for (const auto& [name, value] : ordered) {
    const auto found = seen.find(name);
    const bool known = found != seen.end() && found->second.value.has_value();
    if (known && *found->second.value == value) continue;
    journal::Drift row;
    row.set_attribute(name);
    row.set_expected(value);
    row.set_seen(known ? *found->second.value : "");
    plan.drift.push_back(row);
    if (!known || found->second.read_only) {
      plan.impossible.push_back(row);
    } else if (!found->second.pending.has_value() || *found->second.pending != value) {
      plan.to_write.emplace(name, value);
    }
  }
  return plan;
}

std::vector<std::string> attribute_names(const journal::Attributes& wanted) {
  std::vector<std::string> names;
  for (const auto& [name, value] : wanted.values()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

const journal::Attributes& attributes_of(
    const google::protobuf::Map<std::string, journal::Attributes>& by_kind, std::string_view kind) {
  const auto found = by_kind.find(std::string(kind));
  return found == by_kind.end() ? journal::Attributes::default_instance() : found->second;
}

constexpr core::duration poll_interval = std::chrono::milliseconds(500);

// Until when what was asked must have shown an effect; after that another way is taken.
void expect_effect(machine& m) {
  m.run().went_down_by_ns = m.now().monotonic_ns + m.deadline_of("host_off", 60);
}

bool is_overdue(machine& m) {
  return m.now().monotonic_ns >= m.run().went_down_by_ns;
}

bool offers(machine& m, devices::reset_type type) {
  const auto& offered = m.run().power.offered;
  return offered.empty() ||
         std::find(offered.begin(), offered.end(), devices::redfish_name(type)) != offered.end();
}

std::string offered_words(machine& m) {
  std::string words;
  for (const std::string& one : m.run().power.offered) words += (words.empty() ? "" : ", ") + one;
  return words;
}

// What was asked was read to have no effect: off and on, each read back; PowerCycle where the BMC has no
// other; then it is a person's turn. Nothing is asked twice.
outcome escalate(machine& m, devices::reset_type asked) {
  m.close_intent("reset", devices::redfish_name(asked));
  m.tell("restart_not_taken",
         fmt::format("{} was taken by the BMC and the host shows no effect", devices::redfish_name(asked)),
         "warning");
  const bool off_and_on = offers(m, devices::reset_type::force_off) && offers(m, devices::reset_type::on);
  if (asked == devices::reset_type::force_restart && off_and_on) {
    m.run().restart_composed = true;
    return outcome::jump(phase_id::rs_off);
  }
  if (asked != devices::reset_type::power_cycle && offers(m, devices::reset_type::power_cycle)) {
    m.run().restart_composed = false;
    m.run().restart_cycle = true;
    return outcome::jump(phase_id::rs_detectors);
  }
  return outcome::fail(fault::POWER_OFF_NOT_CONFIRMED,
                       fmt::format("the host does not restart; the BMC offers {}", offered_words(m)),
                       "the host to leave its old boot", "on throughout");
}

outcome enter_rs_read_bios(machine& m) {
  call wanted;
  wanted.op = call_op::read_bios;
  wanted.names = attribute_names(bios_of(m));
  return wanted.names.empty() ? outcome::jump(phase_id::rs_boot_once) : m.ask(std::move(wanted));
}

outcome take_rs_read_bios(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto plan =
      plan_attributes(bios_of(m), *facts_of<std::map<std::string, devices::attribute_facts>>(*done));
  if (!plan.impossible.empty()) {
    const journal::Drift& row = plan.impossible.front();
    return outcome::fail(fault::CONFIG_READ_ONLY,
                         fmt::format("BIOS attribute {} cannot be set", row.attribute()), row.expected(),
                         row.seen().empty() ? "no such attribute" : row.seen());
  }
  m.run().bios_changes = plan.to_write;
  return outcome::next();
}

outcome enter_rs_write_bios(machine& m) {
  if (m.run().bios_changes.empty()) return outcome::next();
  call wanted;
  wanted.op = call_op::write_bios;
  wanted.values = m.run().bios_changes;
  return m.ask(std::move(wanted));
}

outcome take_rs_write_bios(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  for (const auto& [name, value] : m.run().bios_changes) {
    m.tell("attribute_set", fmt::format("BIOS {} set to {}; takes effect at the next restart", name, value));
  }
  return outcome::next();
}

outcome enter_rs_permit(machine& m) {
  return ask_permit(m, permit_kind::restart);
}

outcome enter_rs_reset(machine& m) {
  if (const auto first = first_look_again(m, phase_id::rs_detectors, phase_id::rs_permit)) return *first;
  if (m.run().restart_composed) return outcome::jump(phase_id::rs_on);  // off already
  if (m.run().restart_cycle) return outcome::jump(phase_id::rs_cycle);
  m.run().boot_id_before = m.node().boot().boot_id();
  m.run().agent_refused.reset();
  m.run().agent_before = m.node().boot().agent_connected();
  m.run().went_down = false;  // an effect may be seen before the answer comes
  m.change().mutable_boot()->set_agent_connected(false);
  return ask_reset(m, devices::reset_type::force_restart);
}

outcome take_rs_reset(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  expect_effect(m);
  if (done->status.ok()) return outcome::jump(phase_id::rs_wait_on);
  if (devices::is_withheld(done->status))
    return act_was_withheld(m, done->status, devices::reset_type::force_restart);
  if (core::fault_of(done->status) == fault::POWER_RESET_NOT_OFFERED) {
    m.run().restart_composed = true;  // off and on instead
    return outcome::jump(phase_id::rs_off);
  }
  if (is_transient(done->status)) {
    m.run().last_error = done->status;
    return outcome::jump(
        phase_id::rs_wait_on);  // unsure whether it took; the agent's boot id and the read-back tell
  }
  return m.on_error(done->status);
}

outcome enter_rs_cycle(machine& m) {
  return ask_reset(m, devices::reset_type::power_cycle);
}

outcome take_rs_cycle(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (devices::is_withheld(done->status))
    return act_was_withheld(m, done->status, devices::reset_type::power_cycle);
  if (!done->status.ok() && !is_transient(done->status)) return m.on_error(done->status);
  expect_effect(m);
  return outcome::jump(phase_id::rs_wait_on);  // unsure whether it took, or asked: the read-back tells
}

outcome enter_rs_off(machine& m) {
  m.run().went_down_by_ns = core::never_ns;
  return ask_reset(m, devices::reset_type::force_off);
}

outcome take_ask(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  return done->status.ok() ? outcome::next() : m.on_error(done->status);
}

outcome take_rs_wait_off(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (m.run().on_unsure && done->status.ok()) {
    const auto seen = facts_of<devices::power_facts>(*done)->state;
    m.run().on_unsure = seen != journal::POWER_OFF && seen != journal::POWER_ON;
    if (seen == journal::POWER_ON || seen == journal::POWERING_ON) return outcome::jump(phase_id::rs_wait_on);
  }
  if (m.run().went_down_by_ns == core::never_ns)
    m.run().went_down_by_ns = m.now().monotonic_ns + m.deadline_of("host_off", 60);
  outcome result = take_off(m, *done, outcome::jump(phase_id::rs_detectors), outcome::again(poll_interval));
  if (result.kind == outcome_kind::jump) m.run().went_down = true;
  const bool stays_on = done->status.ok() && m.node().power().observed() == journal::POWER_ON;
  if (stays_on && is_overdue(m) && offers(m, devices::reset_type::power_cycle))
    return escalate(m, devices::reset_type::force_off);
  return result;
}

outcome enter_rs_on(machine& m) {
  if (const auto first = first_look_again(m, phase_id::rs_detectors, phase_id::rs_permit)) return *first;
  return ask_reset(m, devices::reset_type::on);
}

outcome take_rs_on(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (done->status.ok()) return outcome::next();
  if (devices::is_withheld(done->status)) return act_was_withheld(m, done->status, devices::reset_type::on);
  if (!is_transient(done->status)) return m.on_error(done->status);
  m.run().last_error = done->status;
  m.run().on_unsure = true;
  return outcome::jump(phase_id::rs_wait_off);  // looked at before it is asked again
}

void close_restart_intents(machine& m) {
  for (const auto type : {devices::reset_type::force_restart, devices::reset_type::force_off,
                          devices::reset_type::on, devices::reset_type::power_cycle}) {
    m.close_intent("reset", devices::redfish_name(type));
  }
}

// A boot that is not the old one, or the way there, was seen. Of a tray without an agent nothing tells the
// boots apart: its versions and settings are read back afterwards.
bool left_old_boot(machine& m, const devices::power_facts& facts) {
  if (!facts.boot_progress.empty() && facts.boot_progress != "OSRunning") m.run().went_down = true;
  return m.run().went_down || !m.is_compute() || m.node().boot().boot_id() != m.run().boot_id_before;
}

outcome finish_restart(machine& m) {
  close_restart_intents(m);
  m.run().restart_composed = false;
  m.run().restart_cycle = false;
  m.run().went_down_by_ns = core::never_ns;
  give_permit_back(m);
  m.tell("host_restarted", "the host came back from its restart");
  return outcome::jump(static_cast<phase_id>(m.run().after_restart));
}

outcome take_rs_wait_on(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& facts = *facts_of<devices::power_facts>(*done);
  m.run().power = facts;
  if (facts.state != journal::POWER_ON) m.run().went_down = true;
  if (!left_old_boot(m, facts)) {
    if (!is_overdue(m)) return outcome::again(poll_interval);
    return escalate(
        m, m.run().restart_cycle ? devices::reset_type::power_cycle : devices::reset_type::force_restart);
  }
  const bool booted = m.is_compute() || facts.boot_progress.empty() || facts.boot_progress == "OSRunning";
  if (facts.state != journal::POWER_ON || !booted) return outcome::again(poll_interval);
  return m.is_compute() ? outcome::next() : finish_restart(m);
}

outcome enter_rs_wait_agent(machine& m) {
  const outcome result = enter_wait_agent(m);
  return result.kind == outcome_kind::next ? finish_restart(m) : result;
}

outcome take_rs_wait_agent(machine& m, const node_event& event) {
  const outcome result = take_wait_agent(m, event);
  return result.kind == outcome_kind::next ? finish_restart(m) : result;
}

constexpr std::array restart{
    phase{phase_id::rs_read_bios, "its BIOS attributes", fault::BMC_SLOW, enter_rs_read_bios,
          take_rs_read_bios},
    phase{phase_id::rs_write_bios, "its BIOS settings", fault::CONFIG_DRIFT, enter_rs_write_bios,
          take_rs_write_bios},
    phase{phase_id::rs_boot_once, "the boot-once setting", fault::BMC_SLOW, enter_boot_once, take_boot_once},
    phase{phase_id::rs_read_boot_once, "the boot-once setting's read-back", fault::CONFIG_DRIFT,
          enter_read_boot_once, take_read_boot_once},
    phase{phase_id::rs_detectors, "its own leak detectors", fault::POWER_DETECTOR_UNKNOWN, enter_detectors,
          take_detectors},
    phase{phase_id::rs_permit, "the rack's permit to restart", fault::POWER_OVER_BUDGET, enter_rs_permit,
          take_permit},
    phase{phase_id::rs_reset, "the BMC to take the restart", fault::BMC_SLOW, enter_rs_reset, take_rs_reset},
    phase{phase_id::rs_off, "the BMC to take ForceOff", fault::POWER_OFF_NOT_CONFIRMED, enter_rs_off,
          take_ask},
    phase{phase_id::rs_wait_off, "to be read back off", fault::POWER_OFF_NOT_CONFIRMED, enter_read_power,
          take_rs_wait_off},
    phase{phase_id::rs_cycle, "the BMC to take the PowerCycle", fault::BMC_SLOW, enter_rs_cycle,
          take_rs_cycle},
    phase{phase_id::rs_on, "the BMC to take the power-on", fault::BMC_SLOW, enter_rs_on, take_rs_on},
    phase{phase_id::rs_wait_on, "the host to be read back On", fault::POWER_ON_NOT_CONFIRMED,
          enter_read_power, take_rs_wait_on},
    phase{phase_id::rs_wait_agent, "the agent of the restarted host", fault::AGENT_NOT_SEEN,
          enter_rs_wait_agent, take_rs_wait_agent},
};

}  // namespace

std::span<const phase> restart_phases() {
  return restart;
}

outcome enter_recover_restart(machine& m) {
  const bool restarted = m.intent_is_open("reset", devices::redfish_name(devices::reset_type::force_restart));
  const bool composed = m.intent_is_open("reset", devices::redfish_name(devices::reset_type::force_off)) ||
                        m.intent_is_open("reset", devices::redfish_name(devices::reset_type::power_cycle));
  return restarted || composed ? m.ask(call_op::read_power) : outcome::next();
}

outcome take_recover_restart(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& facts = *facts_of<devices::power_facts>(*done);
  const bool composed = m.intent_is_open("reset", devices::redfish_name(devices::reset_type::force_off));
  if (composed && facts.state == journal::POWER_OFF) {  // between its off and its on
    m.run().restart_composed = true;
    return go_restart(m,
                      m.node().step() == journal::INSPECTED ? phase_id::read_firmware : phase_id::cfg_bios);
  }
  const bool settled =
      facts.state == journal::POWER_ON && (facts.boot_progress.empty() || facts.boot_progress == "OSRunning");
  if (!settled || (m.is_compute() && !m.node().boot().agent_connected()))
    return outcome::again(poll_interval);
  close_restart_intents(m);
  return outcome::next();
}

outcome go_restart(machine& m, phase_id then) {
  m.run().after_restart = static_cast<int>(then);
  return outcome::jump(phase_id::rs_read_bios);
}

const journal::Attributes& bios_of(machine& m) {
  return attributes_of(m.spec().baseline().bios(), m.kind_key());
}
const journal::Attributes& device_of(machine& m) {
  return attributes_of(m.spec().baseline().device(), m.kind_key());
}

}  // namespace busbar::node
