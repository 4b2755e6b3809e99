// The fabric proved from both sides, and the rack suite run in lockstep on every declared compute tray.
#include <fmt/format.h>

#include <algorithm>

#include "actors/core/mutant.hpp"
#include "actors/rack/rack_engine.hpp"

namespace busbar::rack {

using core::fault;

namespace {
constexpr std::int64_t reread_ns = 2'000'000'000;
}

// Asks every member once, judges when all have answered, asks again while it is not proven.
std::optional<refusal> engine::prove_fabric() {
  if (!run().nvlink_asked || now_.monotonic_ns >= run().nvlink_again_ns) {
    run().nvlink_asked = true;
    run().nvlink_again_ns = core::never_ns;
    run().nvlink.clear();
    for (const auto& [name, member] : run().members) {
      if (is_tray(*member) && !is_failed(*member)) act(ask_nvlink{name});
    }
  }
  std::size_t wanted = 0;
  for (const auto& [name, member] : run().members) {
    if (!is_tray(*member) || is_failed(*member)) continue;
    ++wanted;
    if (!run().nvlink.contains(name))
      return refusal{fault::NVLINK_LINK_COUNT, "the NVLinks to be read from both sides"};
  }
  auto problem = BUSBAR_MUTANT(fabric_assumed)
                     ? std::nullopt
                     : fabric_not_proven(rack().spec(), run().members, run().nvlink);
  if (problem.has_value()) {
    if (run().nvlink_again_ns == core::never_ns) run().nvlink_again_ns = now_.monotonic_ns + reread_ns;
    return problem;
  }
  run().nvlink_asked = false;
  tell("fabric_proved", fmt::format("NVLinks read from both sides of {} trays", wanted));
  return std::nullopt;
}

const journal::Suite* engine::suite() const {
  const auto found = rack().spec().suites().find("rack");
  return found == rack().spec().suites().end() ? nullptr : &found->second;
}

void engine::start_suite() {
  journal::Rack& changed = change();
  changed.set_generation(changed.generation() + 1);
  journal::SuiteResult& result = *changed.mutable_suite();
  result.Clear();
  result.set_run_id(fmt::format("{}/rack/{}", changed.name(), changed.generation()));
  result.set_suite(suite()->name());
  result.set_verdict(journal::SuiteResult::RUNNING);
  for (const auto& tray : of_kind(run().members, journal::COMPUTE_TRAY)) {
    if (!is_failed(*tray) && tray->step() >= journal::VALIDATED) result.add_members(tray->name());
  }
  run().test = 0;
  run().judging = false;
  tell("suite_started", fmt::format("suite {} as run {} declared for {} trays", result.suite(),
                                    result.run_id(), result.members_size()));
  start_test();
}

void engine::start_test() {
  const journal::SuiteResult& result = rack().suite();
  if (run().test >= static_cast<std::size_t>(suite()->tests_size())) {
    run().judging = true;
    run().test_running = false;
    run().test_deadline_ns = core::never_ns;
    act(judge_rack_suite{result.run_id(), {result.members().begin(), result.members().end()}});
    return;
  }
  const journal::SuiteTest& test = suite()->tests(static_cast<int>(run().test));
  constexpr std::int64_t grace_ns = 60'000'000'000;
  run().test_running = true;
  run().test_deadline_ns = now_.monotonic_ns +
                           3 * (test.duration().seconds() * 1'000'000'000 + test.duration().nanos()) +
                           grace_ns;
  run().test_waits.clear();
  const std::uint32_t gpus = rack().spec().sku().compute_tray().gpus().count();
  std::uint32_t rank = 0;
  const auto size = static_cast<std::uint32_t>(result.members_size()) * gpus;
  for (const std::string& member : result.members()) {
    run().test_waits.insert(member);
    act(run_rack_test{member, result.run_id(), test, rank, size});
    rank += gpus;
  }
}

// The run is over for us; a later bring-up declares another.
void engine::stop_suite() {
  run().test_running = false;
  run().judging = false;
  run().test_waits.clear();
  run().test_deadline_ns = core::never_ns;
  run().nvlink_asked = false;
  run().nvlink_again_ns = core::never_ns;
  run().deadline_ns = core::never_ns;
}

void engine::end_test() {
  ++run().test;
  start_test();
}

// Nothing when the suite has passed or no gate asks for it.
std::optional<refusal> engine::drive_suite() {
  journal::Rack& changed = state_.rack;
  if (!is_gate("rack")) {
    if (changed.gates().contains("rack") && changed.gates().at("rack") == "NOT_REQUIRED") return std::nullopt;
    (*change().mutable_gates())["rack"] = "NOT_REQUIRED";
    change().mutable_suite()->set_verdict(journal::SuiteResult::NOT_REQUIRED);
    return std::nullopt;
  }
  const auto verdict = changed.suite().verdict();
  if (verdict == journal::SuiteResult::PASS) return std::nullopt;
  if (suite() == nullptr) {
    fail(fault::SUITE_INCOMPLETE, "the baseline names no rack suite, and the gate rack is required");
    return refusal{fault::SUITE_INCOMPLETE, "a rack suite"};
  }
  if (!run().test_running && !run().judging) {
    for (const auto& tray : of_kind(run().members, journal::COMPUTE_TRAY)) {
      if (is_failed(*tray) || tray->step() < journal::VALIDATED || tray->boot().agent_connected()) continue;
      return refusal{fault::SUITE_INCOMPLETE, fmt::format("the agent of {} to come back", tray->name())};
    }
    start_suite();
  }
  if (run().test_running && now_.monotonic_ns >= run().test_deadline_ns)
    end_test();  // what is missing, the judge names
  return refusal{
      fault::SUITE_INCOMPLETE,
      run().judging ? std::string("the judgement of the rack suite")
                    : fmt::format("the rack suite: {}", suite()->tests(static_cast<int>(run().test)).name())};
}

void engine::take_suite_agent(const validation::agent_event& event) {
  if (!run().test_running) return;
  using kind = validation::agent_event::kind;
  const bool ended = event.what == kind::test_done && event.test_done.run_id() == rack().suite().run_id() &&
                     event.test_done.test() == suite()->tests(static_cast<int>(run().test)).name();
  if (!ended && event.what != kind::lost) return;
  run().test_waits.erase(event.member);
  if (run().test_waits.empty()) end_test();
}

void engine::take_suite_result(const journal::SuiteResult& result) {
  if (!run().judging || result.run_id() != rack().suite().run_id()) return;
  run().judging = false;
  journal::Rack& changed = change();
  const bool whole = result.expected() > 0 && result.results() >= result.expected() &&
                     std::is_permutation(result.members().begin(), result.members().end(),
                                         changed.suite().members().begin(), changed.suite().members().end());
  *changed.mutable_suite() = result;
  const bool passed =
      (result.verdict() == journal::SuiteResult::PASS && whole) || BUSBAR_MUTANT(rack_suite_always_passes) ||
      (BUSBAR_MUTANT(seventeen_rows_of_eighteen) && result.verdict() == journal::SuiteResult::INCOMPLETE);
  (*changed.mutable_gates())["rack"] = passed ? "passed" : "failed";
  if (passed) changed.mutable_suite()->set_verdict(journal::SuiteResult::PASS);
  if (!passed && result.verdict() == journal::SuiteResult::PASS)
    changed.mutable_suite()->set_verdict(journal::SuiteResult::INCOMPLETE);
  journal::Event& told = tell(
      "suite_result",
      fmt::format("suite {}: {}, {} of {} results", result.suite(),
                  journal::SuiteResult::Verdict_Name(result.verdict()), result.results(), result.expected()),
      passed ? "info" : "error");
  (*told.mutable_details())["evidence"] = result.evidence();
  (*told.mutable_details())["run"] = result.run_id();
  if (passed) return;
  std::string what = "the rack suite has no complete result";
  if (result.failures_size() > 0) {
    const journal::MetricResult& worst = result.failures(0);
    what = fmt::format(
        "{} of {} on {} GPU {}: {}, limit {}", worst.metric(), worst.test(), worst.member(), worst.gpu(),
        worst.has_value() ? fmt::format("{} {}", worst.value(), worst.unit()) : "no value", worst.limit());
  }
  fail(result.verdict() == journal::SuiteResult::FAIL ? fault::SUITE_BELOW_LIMIT : fault::SUITE_INCOMPLETE,
       what);
}

}  // namespace busbar::rack
