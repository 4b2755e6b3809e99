// Inspected, configured, validated: what the tray holds, how it is set, and what it can do.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "actors/core/mutant.hpp"
#include "actors/node/inspection_logic.hpp"
#include "actors/node/node_phases.hpp"
#include "actors/node/restart_phases.hpp"

namespace busbar::node {
namespace {

using core::fault;
using attribute_map = std::map<std::string, devices::attribute_facts>;

// ---- inspected
// -----------------------------------------------------------------------------------------------------------------

outcome enter_read_inventory(machine& m) {
  return m.ask(call_op::read_inventory);
}

outcome take_read_inventory(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  const auto& seen = *facts_of<devices::inventory_facts>(*done);
  journal::Node& changed = m.change();
  changed.mutable_parts()->Assign(seen.parts.begin(), seen.parts.end());
  changed.set_inventory_digest(inventory_digest(seen.parts));
  const auto problem = m.is_controller() ? compare_valves(m.spec().manifest(), m.node().spec().slot(), seen)
                                         : compare_inventory(m.spec().sku(), m.node().spec().kind(), seen);
  if (problem.has_value())
    return outcome::fail(problem->code, problem->message, problem->expected, problem->seen);
  m.tell("inspected", m.is_controller()
                          ? fmt::format("{} valves, the manifest's among them", seen.parts.size())
                          : fmt::format("{} parts equal SKU {}", seen.parts.size(), m.spec().sku().name()));
  return outcome::next();
}

// A part that changed since the tray was inspected has not been compared with the SKU.
outcome recheck_done(machine& m, const devices::inventory_facts& seen) {
  if (!seen.complete)
    return outcome::fail(fault::INVENTORY_INCOMPLETE, "the BMC announced parts that it did not show",
                         "a complete inventory", seen.incomplete_why);
  const std::string digest = inventory_digest(seen.parts);
  if (digest == m.node().inventory_digest()) return outcome::next();
  return outcome::fail(fault::INVENTORY_WRONG,
                       "parts changed since this tray was inspected; retry it from inspected",
                       m.node().inventory_digest(), digest);
}

// ---- configured
// ------------------------------------------------------------------------------------------------------------------

outcome read_attributes(machine& m, call_op op, const journal::Attributes& wanted) {
  call ask;
  ask.op = op;
  ask.names = attribute_names(wanted);
  return ask.names.empty() ? outcome::next() : m.ask(std::move(ask));
}

outcome keep_attributes(machine& m, const node_event& event, attribute_map& into) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  into = *facts_of<attribute_map>(*done);
  return outcome::next();
}

outcome enter_cfg_bios(machine& m) {
  return read_attributes(m, call_op::read_bios, bios_of(m));
}
outcome take_cfg_bios(machine& m, const node_event& event) {
  return keep_attributes(m, event, m.run().bios);
}
outcome enter_cfg_device(machine& m) {
  return read_attributes(m, call_op::read_device, device_of(m));
}
outcome take_cfg_device(machine& m, const node_event& event) {
  return keep_attributes(m, event, m.run().device);
}

outcome enter_cfg_write_device(machine& m) {
  const attribute_plan plan = plan_attributes(device_of(m), m.run().device);
  if (!plan.impossible.empty()) {
    const journal::Drift& row = plan.impossible.front();
    return outcome::fail(fault::CONFIG_READ_ONLY,
                         fmt::format("device attribute {} cannot be set", row.attribute()), row.expected(),
                         row.seen().empty() ? "no such attribute" : row.seen());
  }
  for (const journal::Drift& row : plan.drift) {
    m.tell("drift",
           fmt::format("{} is {}, the baseline says {}", row.attribute(), row.seen(), row.expected()),
           "warning");
  }
  if (plan.to_write.empty()) return outcome::next();
  call ask;
  ask.op = call_op::write_device;
  ask.values = plan.to_write;
  return m.ask(std::move(ask));
}

outcome take_cfg_write_device(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  return done->status.ok() ? outcome::next() : m.on_error(done->status);
}

outcome enter_cfg_decide(machine& m) {
  const attribute_plan plan = plan_attributes(bios_of(m), m.run().bios);
  for (const journal::Drift& row : plan.drift) {
    m.tell("drift",
           fmt::format("BIOS {} is {}, the baseline says {}", row.attribute(), row.seen(), row.expected()),
           "warning");
  }
  return plan.drift.empty() ? outcome::jump(phase_id::cfg_verify_bios)
                            : go_restart(m, phase_id::cfg_verify_bios);
}

outcome verified(machine& m) {
  std::vector<journal::Drift> left;
  if (!BUSBAR_MUTANT(drift_ignored)) {
    left = plan_attributes(bios_of(m), m.run().bios).drift;
    const auto device = plan_attributes(device_of(m), m.run().device).drift;
    left.insert(left.end(), device.begin(), device.end());
  }
  m.change().mutable_drift()->Assign(left.begin(), left.end());
  // As it was just read back; without one the detector is shown with no local leak reaction.
  const auto reaction = m.run().device.find("leak_reaction.critical");
  if (reaction != m.run().device.end()) {
    for (journal::Detector& row : *m.change().mutable_detectors())
      row.set_reaction(reaction->second.value.value_or(""));
  }
  if (!left.empty()) {
    return outcome::fail(fault::CONFIG_DRIFT,
                         fmt::format("{} still differs after it was set", left.front().attribute()),
                         left.front().expected(), left.front().seen());
  }
  return outcome::done();
}

outcome take_cfg_verify_device(machine& m, const node_event& event) {
  outcome kept = keep_attributes(m, event, m.run().device);
  return kept.kind == outcome_kind::next ? verified(m) : kept;
}

outcome enter_cfg_verify_device(machine& m) {
  outcome asked = enter_cfg_device(m);  // next: the baseline names no device attribute
  return asked.kind == outcome_kind::next ? verified(m) : asked;
}

// ---- validated
// -------------------------------------------------------------------------------------------------------------------

const journal::Suite* node_suite(machine& m) {
  const auto found = m.spec().suites().find("node");
  return found == m.spec().suites().end() ? nullptr : &found->second;
}

outcome enter_start_suite(machine& m) {
  if (!m.is_compute()) {
    m.change().mutable_suite()->set_verdict(journal::SuiteResult::NOT_REQUIRED);
    return outcome::done();
  }
  if (node_suite(m) == nullptr)
    return outcome::fail(fault::SUITE_INCOMPLETE, "the baseline names no node suite", "a suite", "none");
  if (!m.node().boot().agent_connected()) return outcome::wait();
  journal::Node& changed = m.change();
  changed.set_next_intent(changed.next_intent() + 1);
  journal::SuiteResult& suite = *changed.mutable_suite();
  suite.Clear();
  suite.set_run_id(fmt::format("{}/node/{}", changed.name(), changed.next_intent()));
  suite.set_suite(node_suite(m)->name());
  suite.set_verdict(journal::SuiteResult::RUNNING);
  suite.add_members(changed.name());
  m.run().test = 0;
  m.tell("suite_started", fmt::format("suite {} as run {}", suite.suite(), suite.run_id()));
  return outcome::next();
}

outcome take_start_suite(machine& m, const node_event&) {
  return enter_start_suite(m);
}

outcome enter_run_tests(machine& m) {
  const journal::Suite& suite = *node_suite(m);
  if (m.run().test >= static_cast<std::size_t>(suite.tests_size())) return outcome::next();
  const journal::SuiteTest& test = suite.tests(static_cast<int>(m.run().test));
  constexpr std::int64_t grace_ns = 60'000'000'000;
  const std::int64_t length_ns = test.duration().seconds() * 1'000'000'000 + test.duration().nanos();
  m.run().phase_deadline_ns = m.now().monotonic_ns + 3 * length_ns + grace_ns;
  m.run().test_running = true;
  m.act(run_test{m.node().suite().run_id(), test});
  return outcome::wait();
}

outcome take_run_tests(machine& m, const node_event& event) {
  if (m.now().monotonic_ns >= m.run().phase_deadline_ns) {
    return outcome::fail(fault::SUITE_INCOMPLETE,
                         fmt::format("test {} gave no result in its time",
                                     node_suite(m)->tests(static_cast<int>(m.run().test)).name()));
  }
  const auto* news = std::get_if<agent_news>(&event);
  if (news == nullptr) return outcome::wait();
  using kind = validation::agent_event::kind;
  if (news->event.what == kind::lost || news->event.what == kind::hello) {
    return outcome::fail(
        fault::AGENT_LOST,
        fmt::format("the agent's connection ended during test {}: {}",
                    node_suite(m)->tests(static_cast<int>(m.run().test)).name(), news->event.reason));
  }
  const agent::TestDone& done = news->event.test_done;
  if (news->event.what != kind::test_done || done.run_id() != m.node().suite().run_id() ||
      done.test() != node_suite(m)->tests(static_cast<int>(m.run().test)).name()) {
    return outcome::wait();
  }
  m.run().test_running = false;
  ++m.run().test;
  return outcome::jump(phase_id::run_tests);  // a test that failed to run leaves its metrics missing: the
                                              // judge says INCOMPLETE
}

outcome enter_judge(machine& m) {
  m.act(judge_suite{m.node().suite().run_id()});
  return outcome::wait();
}

outcome take_judge(machine& m, const node_event& event) {
  const auto* judged = std::get_if<suite_judged>(&event);
  if (judged == nullptr || judged->result.run_id() != m.node().suite().run_id()) return outcome::wait();
  *m.change().mutable_suite() = judged->result;
  const journal::SuiteResult& suite = m.node().suite();
  const bool whole = suite.expected() > 0 && suite.results() >= suite.expected();  // none of none is no pass
  const bool passed = (suite.verdict() == journal::SuiteResult::PASS && whole) ||
                      (BUSBAR_MUTANT(incomplete_node_suite_passes) && !whole);
  journal::Event& told = m.tell(
      "suite_result",
      fmt::format("suite {}: {}, {} of {} results", suite.suite(),
                  journal::SuiteResult::Verdict_Name(suite.verdict()), suite.results(), suite.expected()),
      passed ? "info" : "error");
  (*told.mutable_details())["evidence"] = suite.evidence();
  (*told.mutable_details())["run"] = suite.run_id();
  if (passed) return outcome::done();
  if (suite.failures_size() == 0)
    return outcome::fail(fault::SUITE_INCOMPLETE, "the suite has no complete result",
                         std::to_string(suite.expected()), std::to_string(suite.results()));
  const journal::MetricResult& worst = suite.failures(0);
  const std::string seen = worst.has_value() ? fmt::format("{} {}", worst.value(), worst.unit())
                                             : (worst.text().empty() ? "no value" : worst.text());
  return outcome::fail(
      suite.verdict() == journal::SuiteResult::FAIL ? fault::SUITE_BELOW_LIMIT : fault::SUITE_INCOMPLETE,
      fmt::format("{} of {} on GPU {}", worst.metric(), worst.test(), worst.gpu()), worst.limit(), seen);
}

outcome enter_pass(machine&) {
  return outcome::done();
}

constexpr std::array inspect{
    phase{phase_id::read_inventory, "its inventory", fault::BMC_SLOW, enter_read_inventory,
          take_read_inventory},
};

constexpr phase configure_own[] = {
    {phase_id::recover_restart, "the host to come back from a restart begun before ours", fault::BOOT_TIMEOUT,
     enter_recover_restart, take_recover_restart},
    {phase_id::cfg_bios, "its BIOS attributes", fault::BMC_SLOW, enter_cfg_bios, take_cfg_bios},
    {phase_id::cfg_device, "its device attributes", fault::BMC_SLOW, enter_cfg_device, take_cfg_device},
    {phase_id::cfg_write_device, "its device settings", fault::CONFIG_DRIFT, enter_cfg_write_device,
     take_cfg_write_device},
    {phase_id::cfg_decide, "", fault::CONFIG_DRIFT, enter_cfg_decide, nullptr},
    {phase_id::cfg_verify_bios, "its BIOS attributes to be read back", fault::CONFIG_DRIFT, enter_cfg_bios,
     take_cfg_bios},
    {phase_id::cfg_verify_device, "its device attributes to be read back", fault::CONFIG_DRIFT,
     enter_cfg_verify_device, take_cfg_verify_device},
};

constexpr std::array validate{
    phase{phase_id::start_suite, "its agent, to start the node suite", fault::AGENT_LOST, enter_start_suite,
          take_start_suite},
    phase{phase_id::run_tests, "the node suite", fault::SUITE_INCOMPLETE, enter_run_tests, take_run_tests},
    phase{phase_id::judge, "the judgement of the node suite", fault::SUITE_INCOMPLETE, enter_judge,
          take_judge},
};

constexpr std::array pass{phase{phase_id::pass, "", fault::DEADLINE, enter_pass, nullptr}};

}  // namespace

outcome enter_recheck_inventory(machine& m) {
  if (m.node().step() < journal::INSPECTED || m.node().inventory_digest().empty()) return outcome::next();
  return m.ask(call_op::read_inventory);
}

outcome take_recheck_inventory(machine& m, const node_event& event) {
  const call_done* const done = m.result_of(event);
  if (done == nullptr) return outcome::wait();
  if (!done->status.ok()) return m.on_error(done->status);
  return recheck_done(m, *facts_of<devices::inventory_facts>(*done));
}

std::span<const phase> inspect_phases() {
  return inspect;
}
std::span<const phase> validate_phases() {
  return validate;
}
std::span<const phase> pass_phases() {
  return pass;
}

std::span<const phase> configure_phases() {
  static const std::vector<phase> phases = [] {
    std::vector<phase> all(std::begin(configure_own), std::end(configure_own));
    const auto shared = restart_phases();
    all.insert(all.end(), shared.begin(), shared.end());
    return all;
  }();
  return phases;
}

}  // namespace busbar::node
