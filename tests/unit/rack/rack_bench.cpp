#include "tests/unit/rack/rack_bench.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace busbar::rack::test {

using journal::MemberKind;

std::string slot(char kind, unsigned number) {
  return fmt::format("r01/{}{:02}", kind, number);
}

namespace {

void fill_spec(journal::RackSpec& spec) {
  journal::Manifest& manifest = *spec.mutable_manifest();
  manifest.set_rack("r01");
  manifest.add_gates("node");
  manifest.add_gates("rack");
  manifest.mutable_cooling()->set_cdu("cdu01");
  manifest.mutable_cooling()->set_flow_min_lpm(120);
  manifest.mutable_cooling()->set_dp_min_kpa(20);
  manifest.mutable_cooling()->set_dp_max_kpa(120);
  manifest.mutable_power()->set_inrush_limit_a(900);
  manifest.mutable_power()->set_inrush_per_tray_a(120);
  manifest.mutable_power()->mutable_group_interval()->set_nanos(200'000'000);
  manifest.mutable_power()->set_rack_limit_kw(230);
  journal::RackSku& rack = *spec.mutable_sku()->mutable_rack();
  rack.set_compute(18);
  rack.set_compute_min(16);
  rack.set_switch_(9);
  rack.set_shelf(8);
  spec.mutable_sku()->mutable_compute_tray()->mutable_gpus()->set_count(4);
  spec.mutable_sku()->mutable_compute_tray()->mutable_gpus()->set_nvlinks(18);
  spec.mutable_sku()->mutable_power_shelf()->set_psus(6);
  spec.mutable_sku()->mutable_power_shelf()->set_psu_watts(5500);
  journal::Suite& suite = (*spec.mutable_suites())["rack"];
  suite.set_name("rack-quick");
  for (const char* name : {"all_reduce", "all_to_all"}) {
    suite.add_tests()->set_name(name);
    suite.mutable_tests(suite.tests_size() - 1)->mutable_duration()->set_seconds(1);
  }
}

std::shared_ptr<const journal::Node> member(const std::string& name, MemberKind kind) {
  auto node = std::make_shared<journal::Node>();
  node->set_name(name);
  node->mutable_spec()->set_kind(kind);
  node->mutable_spec()->set_slot(name.substr(4));
  node->set_step(journal::DECLARED);
  node->set_goal(journal::DECLARED);
  return node;
}

}  // namespace

rack_bench::rack_bench(unsigned compute) {
  state.rack.set_name("r01");
  state.rack.set_uid("0a1b2c3d-0000-4000-8000-000000000001");
  state.rack.set_step(journal::PLANNED);
  state.rack.set_goal(journal::PLANNED);
  fill_spec(spec());
  const auto add = [this](char letter, unsigned count, MemberKind kind) {
    for (unsigned i = 1; i <= count; ++i) state.run.members[slot(letter, i)] = member(slot(letter, i), kind);
  };
  add('c', compute, journal::COMPUTE_TRAY);
  add('s', 9, journal::SWITCH_TRAY);
  add('p', 8, journal::POWER_SHELF);
}

void rack_bench::add_controller() {
  state.run.members[slot('m', 1)] = member(slot('m', 1), journal::RACK_CONTROLLER);
  for (const char* const name : {"supply", "return"}) {
    journal::ValveSpec& valve = *spec().mutable_manifest()->add_valves();
    valve.set_name(name);
    valve.set_kind("isolation");
    valve.set_member("m01");
    valve.mutable_stroke()->set_seconds(5);
  }
}

void rack_bench::give(const rack_event& event) {
  step_result result = step(state, event, now);
  durable = result.durable;
  wake_at_ns = result.wake_at_ns;
  effects.insert(effects.end(), result.effects.begin(), result.effects.end());
  events.insert(events.end(), result.events.begin(), result.events.end());
  for (const effect& one : result.effects) {
    const auto* look = std::get_if<look_power>(&one);
    if (look == nullptr || !answers_looks) continue;
    give(power_read{look->member, true, node(look->member).power().observed()});
  }
}

void rack_bench::wake_when_due() {
  if (wake_at_ns == core::never_ns) return;
  wait_ns(std::max<std::int64_t>(0, wake_at_ns - now.monotonic_ns));
  give(wake{});
}

void rack_bench::change(const std::string& name, const std::function<void(journal::Node&)>& how) {
  auto changed = std::make_shared<journal::Node>(node(name));
  how(*changed);
  give(member_changed{changed});
}

void rack_bench::change_all(MemberKind kind, const std::function<void(journal::Node&)>& how) {
  for (const auto& one : of_kind(state.run.members, kind)) {
    if (!is_failed(*one)) change(one->name(), how);
  }
}

void rack_bench::raise_all(journal::NodeStep step) {
  for (const auto kind : {journal::SWITCH_TRAY, journal::COMPUTE_TRAY}) {
    change_all(kind, [step](journal::Node& node) {
      node.set_step(step);
      if (step < journal::STAGED) return;
      node.mutable_power()->set_observed(journal::POWER_ON);
      node.mutable_power()->set_wanted(journal::POWER_ON);
      node.mutable_boot()->set_agent_connected(node.spec().kind() == journal::COMPUTE_TRAY);
    });
  }
}

void rack_bench::break_member(const std::string& name, core::fault why) {
  change(name, [why](journal::Node& node) {
    node.mutable_failure()->set_fault(std::string(core::name_of(why)));
    node.mutable_failure()->set_step(static_cast<journal::NodeStep>(node.step() + 1));
  });
}

void rack_bench::cool(std::optional<double> flow_lpm, std::optional<double> dp_kpa) {
  devices::cooling_facts facts;
  facts.flow_lpm = flow_lpm;
  facts.dp_kpa = dp_kpa;
  facts.detectors = {{"rope", journal::Detector::DRY, "", std::nullopt},
                     {"pan", journal::Detector::DRY, "", std::nullopt}};
  give(cooling_read{facts});
}

void rack_bench::soak() {
  for (int second = 0; second <= 11; ++second) {
    cool();
    wait_ns(1'000'000'000);
  }
  cool();
}

void rack_bench::arm(const std::function<void(interlock::Status&)>& how) {
  auto status = std::make_shared<interlock::Status>();
  status->set_armed_rack(true);
  for (const auto& [name, one] : state.run.members) {
    if (!is_tray(*one)) continue;
    interlock::DeviceStatus& row = *status->add_devices();
    row.set_name(name);
    row.set_armed(true);
    row.set_gate_open(true);
    interlock::DetectorReading& reading = *row.add_detectors();
    reading.set_name("0_ColdPlate");
    reading.set_verdict(interlock::DetectorReading::DRY);
  }
  if (how) how(*status);
  auto view = std::make_shared<interlock_view>();
  view->life = interlock_life::alive;
  view->status = status;
  give(interlock_heard{view});
}

void rack_bench::answer_fabric() {
  std::uint32_t links = 0;
  for (const auto& tray : of_kind(state.run.members, journal::COMPUTE_TRAY)) {
    if (is_failed(*tray)) continue;
    devices::nvlink_facts facts;
    for (int gpu = 0; gpu < 4; ++gpu) facts.links_up[fmt::format("GPU_{}", gpu)] = 18;
    links += 72;
    facts.clique_id = "1";
    if (!fabric.contains(tray->name())) fabric[tray->name()] = facts;
  }
  for (const auto& tray : of_kind(state.run.members, journal::SWITCH_TRAY)) {
    devices::nvlink_facts facts;
    facts.links_up["NVSwitch_0"] = links / 9;
    facts.fabric_primary = tray->name() == slot('s', 1);
    facts.clique_id = "1";
    facts.partition = "default";
    if (!fabric.contains(tray->name())) fabric[tray->name()] = facts;
  }
  for (const auto& [name, facts] : fabric) give(nvlink_read{name, facts});
}

void rack_bench::finish_tests(unsigned members_silent) {
  for (int turn = 0; turn < 2 && state.run.test_running; ++turn) {
    const auto waiting = state.run.test_waits;
    const std::string test = spec().suites().at("rack").tests(static_cast<int>(state.run.test)).name();
    unsigned silent = members_silent;
    for (const std::string& name : waiting) {
      if (silent > 0) {
        --silent;
        continue;
      }
      validation::agent_event done;
      done.what = validation::agent_event::kind::test_done;
      done.member = name;
      done.test_done.set_run_id(state.rack.suite().run_id());
      done.test_done.set_test(test);
      give(agent_said{done});
    }
    if (members_silent > 0) wake_when_due();
  }
}

void rack_bench::judged(journal::SuiteResult::Verdict verdict) {
  journal::SuiteResult result = state.rack.suite();
  result.set_verdict(verdict);
  result.set_expected(static_cast<std::uint32_t>(result.members_size()));
  result.set_results(result.expected());
  give(suite_judged{result});
}

void rack_bench::reach(journal::RackStep step) {
  bring_up();
  if (step == journal::PLANNED) return;
  arm();
  cool();
  change_all(journal::POWER_SHELF, [](journal::Node& node) {
    node.set_step(journal::READY);
    node.mutable_power()->set_observed(journal::POWER_ON);
  });
  change_all(journal::RACK_CONTROLLER, [](journal::Node& node) { node.set_step(journal::READY); });
  if (step >= journal::INGESTED) raise_all(journal::CREDENTIALED);
  if (step >= journal::COOLED) soak();
  if (step >= journal::POWERED) raise_all(journal::STAGED);
  if (step >= journal::NVLINK_READY) {
    raise_all(journal::CONFIGURED);
    answer_fabric();
  }
  if (step >= journal::NODE_VALIDATED) raise_all(journal::VALIDATED);
  if (step >= journal::RACK_VALIDATED) {
    finish_tests();
    judged(journal::SuiteResult::PASS);
  }
}

journal::NodeStep rack_bench::goal(const std::string& name) const {
  const auto found = state.run.told.find(name);
  return found == state.run.told.end() ? journal::NODE_STEP_UNSPECIFIED : found->second.goal;
}

std::string rack_bench::operation_state() const {
  for (const auto& end : effects_of<core::operation_end>()) {
    if (end.operation_id == "operations/1") return end.state;
  }
  return {};
}

const node::permit_answer* rack_bench::last_answer(const std::string& name) const {
  for (auto it = effects.rbegin(); it != effects.rend(); ++it) {
    const auto* answer = std::get_if<answer_permit>(&*it);
    if (answer != nullptr && answer->member == name) return &answer->answer;
  }
  return nullptr;
}

std::vector<std::string> rack_bench::granted() const {
  std::vector<std::string> names;
  for (const auto& answer : effects_of<answer_permit>()) {
    if (answer.answer.granted) names.push_back(answer.member);
  }
  return names;
}

bool rack_bench::told(std::string_view type, std::string_view words) const {
  return std::any_of(events.begin(), events.end(), [type, words](const journal::Event& event) {
    return event.type() == type && event.message().find(words) != std::string::npos;
  });
}

std::size_t rack_bench::count_told(std::string_view type) const {
  return static_cast<std::size_t>(std::count_if(
      events.begin(), events.end(), [type](const journal::Event& event) { return event.type() == type; }));
}

}  // namespace busbar::rack::test
