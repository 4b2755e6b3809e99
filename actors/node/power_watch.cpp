#include "actors/node/power_watch.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace busbar::node {
namespace {

constexpr std::string_view lost_fact = "power_lost";    // how it was read off
constexpr std::string_view sight_fact = "not_watched";  // why its detectors are not known
constexpr unsigned looks_before_unknown = 2;
constexpr unsigned looks_before_off = 2;

// An act of ours may turn it off for a moment; its own phases read the power then.
bool is_acting(machine& m) {
  return m.run().permit_held || m.node().intents_size() > 0 || m.node().blind_window() ||
         m.node().hold() != journal::HOLD_NONE;
}

void set_observed(machine& m, journal::PowerState seen) {
  if (m.node().power().observed() == seen) return;
  journal::NodePower& power = *m.change().mutable_power();
  power.set_observed(seen);
  power.set_observed_wall_ns(m.now().wall_ns);
}

}  // namespace

void judge_health(machine& m) {
  if (m.node().has_failure() || !is_energised_step(m.node().step()) || !is_switched(m.node())) return;
  const auto unwatched = m.node().facts().find(std::string(sight_fact));
  const bool power_unknown = m.node().power().observed() == journal::POWER_UNKNOWN;
  const bool is_unknown = power_unknown || unwatched != m.node().facts().end();
  const journal::Health now_is = is_unknown ? journal::HEALTH_UNKNOWN : journal::HEALTH_GOOD;
  if (m.node().health() == now_is && !is_unknown) return;
  const std::string why = power_unknown ? "its power to be read: the BMC does not answer"
                          : is_unknown  ? "its detectors to be known: " + unwatched->second
                                        : "";
  if (m.node().health() == now_is && m.node().waits_for() == why) return;
  m.change().set_health(now_is);
  m.change().set_waits_for(why);
}

namespace {

void note_unread(machine& m, const absl::Status& why) {
  if (m.node().power().observed() != journal::POWER_UNKNOWN) {
    set_observed(m, journal::POWER_UNKNOWN);
    m.tell("power_unknown", fmt::format("its power could not be read: {}", std::string(why.message())),
           "warning");
  }
  judge_health(m);
  m.act(report_power{false, journal::POWER_UNKNOWN});
}

void fall(machine& m) {
  journal::Node& changed = m.change();
  changed.mutable_power()->set_wanted(journal::POWER_OFF);
  changed.mutable_boot()->set_agent_connected(false);
  changed.set_step(std::min(changed.step(), journal::CREDENTIALED));
  changed.set_step_entered_wall_ns(m.now().wall_ns);
  changed.clear_suite();
}

std::optional<outcome> read_off(machine& m) {
  const std::string tripped = std::exchange(m.run().look_tripped, {});
  const bool was_to_be_on =
      is_energised_step(m.node().step()) || m.node().power().wanted() == journal::POWER_ON;
  if (was_to_be_on && tripped.empty() && ++m.run().off_reads < looks_before_off) {
    m.run().look_waits = true;
    return std::nullopt;
  }
  m.run().off_reads = 0;
  set_observed(m, journal::POWER_OFF);
  m.act(report_power{true, journal::POWER_OFF});
  if (!was_to_be_on) return std::nullopt;
  fall(m);
  if (m.node().has_failure()) return std::nullopt;
  const std::string why = tripped.empty() ? "nothing of ours turned it off" : tripped;
  (*m.change().mutable_facts())[std::string(lost_fact)] = why;
  return outcome::fail(tripped.empty() ? core::fault::POWER_LOST : core::fault::TRIP_OPEN,
                       fmt::format("it was turned on and is read off: {}", why), "on", "off");
}

}  // namespace

bool lost_its_power(const journal::Node& node) {
  // Stores of a release before POWER_LOST say POWER_ON_NOT_CONFIRMED beside the fact.
  const bool lost = node.failure().fault() == core::name_of(core::fault::POWER_LOST) ||
                    (node.facts().contains(std::string(lost_fact)) &&
                     node.failure().fault() == core::name_of(core::fault::POWER_ON_NOT_CONFIRMED));
  return node.has_failure() && !node.leak_latched() && (lost || is_tripped(node));
}

void take_up_again(machine& m) {
  m.change().clear_failure();
  m.change().mutable_facts()->erase(std::string(lost_fact));
  m.change().set_health(journal::HEALTH_UNKNOWN);
  m.change().set_waits_for("");
  m.run().recheck = true;
  m.tell("taken_up_again", "a bring-up turns on again what lost its power");
}

void want_look(machine& m, const look_at_power& wanted) {
  if (!wanted.tripped.empty()) m.run().look_tripped = wanted.tripped;
  const bool may =
      m.node().step() >= journal::CREDENTIALED && (m.run().session_open || !m.node().has_failure());
  if (may) {
    m.run().look_waits = true;
  } else if (is_energised_step(m.node().step()) || m.node().power().observed() == journal::POWER_ON) {
    note_unread(m, absl::UnavailableError("no session is open while it waits for an operator"));
  }
}

void ask_beside(machine& m, bool going_down) {
  if (!m.run().session_open) return;
  if (m.run().nvlink_waits) {
    m.run().nvlink_waits = false;
    call wanted;
    wanted.op = call_op::read_nvlink;
    wanted.id = m.run().nvlink_call = m.run().next_call++;
    m.act(wanted);
  }
  if (!m.run().look_waits || m.run().look_call != 0) return;
  if (is_acting(m) && !going_down) return;  // as soon as that is over
  m.run().look_waits = false;
  if (going_down || !is_switched(m.node())) return;  // of what has no power of its own the session was all
  call wanted;
  wanted.op = call_op::read_power;
  wanted.id = m.run().look_call = m.run().next_call++;
  m.act(wanted);
}

std::optional<outcome> take_look(machine& m, const call_done& done) {
  m.run().look_call = 0;
  if (is_acting(m)) return std::nullopt;  // begun meanwhile
  const auto* const facts = done.status.ok() ? facts_of<devices::power_facts>(done) : nullptr;
  if (facts == nullptr || facts->state == journal::POWER_UNKNOWN) {
    // The interlock read it off, then cut its shelves: a BMC without power says nothing against that.
    if (is_tripped(m.node()) && m.node().power().observed() == journal::POWER_OFF) return std::nullopt;
    const unsigned enough = m.run().look_tripped.empty() ? looks_before_unknown : 1;
    if (++m.run().failed_looks < enough) {
      m.run().look_waits = true;
      return std::nullopt;
    }
    note_unread(m, done.status.ok() ? absl::UnknownError("the BMC does not say") : done.status);
    return std::nullopt;
  }
  m.run().failed_looks = 0;
  if (facts->state == journal::POWER_OFF) return read_off(m);
  m.run().off_reads = 0;
  const bool was_unknown = m.node().power().observed() == journal::POWER_UNKNOWN;
  set_observed(m, facts->state);
  if (was_unknown) m.tell("power_read", "its power is read again");
  m.run().look_tripped.clear();
  judge_health(m);
  m.act(report_power{true, facts->state});
  return std::nullopt;
}

bool give_look_up(machine& m) {
  m.run().look_waits = false;
  if (m.node().has_failure() || m.node().goal() > m.node().step()) return false;
  note_unread(
      m, m.run().last_error.ok() ? absl::UnavailableError("no session could be opened") : m.run().last_error);
  return true;
}

// What the interlock no longer sees is not dry, whatever was read before. Told once a change.
void take_sight(machine& m, const interlock_sight& sight) {
  const std::string key(sight_fact);
  const auto known = m.node().facts().find(key);
  const std::string before = known == m.node().facts().end() ? std::string() : known->second;
  if (before == sight.lost) return judge_health(m);
  auto& facts = *m.change().mutable_facts();
  for (journal::Detector& row : *m.change().mutable_detectors()) {
    if (sight.lost.empty() && row.verdict() == journal::Detector::UNKNOWN) {
      row.set_verdict(journal::Detector::DRY);
      row.set_detail("as the interlock reads it");
    } else if (!sight.lost.empty() && row.verdict() == journal::Detector::DRY) {
      row.set_verdict(journal::Detector::UNKNOWN);
      row.set_detail(fmt::format("last known dry before {:%Y-%m-%dT%H:%M:%SZ}: {}",
                                 fmt::gmtime(static_cast<std::time_t>(m.now().wall_ns / 1'000'000'000)),
                                 sight.lost));
    }
  }
  if (sight.lost.empty()) {
    facts.erase(key);
    m.tell("detectors_watched", "the interlock reads its detectors dry again");
  } else {
    facts[key] = sight.lost;
    m.tell("detectors_not_watched", sight.lost, "warning");
  }
  judge_health(m);
}

void take_nvlink(machine& m, const call_done& done) {
  m.run().nvlink_call = 0;
  devices::nvlink_facts facts;
  facts.complete = false;
  if (done.status.ok()) {
    if (const auto* read = facts_of<devices::nvlink_facts>(done)) facts = *read;
  }
  m.act(report_nvlink{facts});
}

}  // namespace busbar::node
