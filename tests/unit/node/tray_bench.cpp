#include "tests/unit/node/tray_bench.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>

#include "actors/core/digest.hpp"

namespace busbar::node::test {

using devices::reset_type;

class tray_bench::secrets final : public secret_source {
 public:
  explicit secrets(std::map<std::string, std::string>& vault) : vault_(vault) {}
  absl::StatusOr<std::string> get(const std::string& name) const override {
    const auto found = vault_.find(name);
    if (found == vault_.end()) return absl::NotFoundError(name);
    return found->second;
  }
  absl::StatusOr<std::optional<core::sealed_secret>> make(const std::string& name) override {
    if (!vault_.emplace(name, "made-" + name).second) return std::nullopt;
    return core::sealed_secret{name, "sealed"};
  }
  absl::StatusOr<devices::credentials> site_login(const journal::FactoryLogin& login) const override {
    return devices::credentials{login.user(), "factory"};
  }

 private:
  std::map<std::string, std::string>& vault_;
};

class tray_bench::agents final : public validation::agent_port {
 public:
  std::string issue_token(const std::string&, const std::string& serial) override {
    expected_serial = serial;
    return "token-" + std::to_string(++tokens);
  }
  void revoke(const std::string&) override {}
  bool run(const std::string&, const agent::Run&) override { return true; }
  bool cancel(const std::string&, const std::string&) override { return true; }
  bool renew_lease(const std::string&, const std::string&) override { return true; }
  bool connected(const std::string&) const override { return true; }
  int tokens = 0;
  std::string expected_serial;
};

namespace {

journal::PartSpec part_spec(std::uint32_t count) {
  journal::PartSpec spec;
  spec.set_count(count);
  return spec;
}

journal::Part part(std::string kind, int index) {
  journal::Part out;
  out.set_id(kind + "_" + std::to_string(index));
  out.set_serial("S-" + out.id());
  out.set_kind(std::move(kind));
  out.set_health(journal::HEALTH_GOOD);
  return out;
}

void add_suite(journal::RackSpec& spec) {
  journal::Suite& suite = (*spec.mutable_suites())["node"];
  suite.set_name("node-quick");
  for (const char* name : {"diag", "burn"}) {
    journal::SuiteTest& test = *suite.add_tests();
    test.set_name(name);
    test.mutable_duration()->set_seconds(1);
  }
}

void fill_spec(journal::RackSpec& spec) {
  spec.mutable_manifest()->set_rack("r01");
  spec.mutable_manifest()->set_agent_endpoint("127.18.1.250:7443");
  for (const char* kind : {"compute_tray", "switch_tray", "power_shelf"}) {
    (*spec.mutable_manifest()->mutable_factory_logins())[kind].set_user("root");
  }
  spec.mutable_baseline()->mutable_staging()->set_boot("UefiHttp");
  spec.mutable_baseline()->mutable_staging()->set_uri("https://images.site/staging-1.efi");
  journal::ComputeTraySku& compute = *spec.mutable_sku()->mutable_compute_tray();
  *compute.mutable_gpus() = part_spec(2);
  compute.add_leak_detectors("0_ColdPlate");
  compute.add_leak_detectors("0_Manifold");
  spec.mutable_sku()->mutable_switch_tray()->set_asics(1);
  spec.mutable_sku()->mutable_switch_tray()->add_leak_detectors("leakage1");
  spec.mutable_sku()->mutable_power_shelf()->set_psus(2);
  add_suite(spec);
}

std::string slot_of(journal::MemberKind kind) {
  if (kind == journal::SWITCH_TRAY) return "s01";
  return kind == journal::POWER_SHELF ? "p01" : "c07";
}

}  // namespace

absl::Status unreachable() {
  return core::make_fault(core::fault::BMC_UNREACHABLE, "no route to the BMC");
}

tray_bench::tray_bench(journal::MemberKind kind)
    : secrets_(std::make_shared<secrets>(vault)), agents_(std::make_shared<agents>()) {
  std::string pattern = (std::filesystem::temp_directory_path() / "tray_bench_XXXXXX").string();
  site_ = ::mkdtemp(pattern.data());
  fill_spec(spec);
  device->kind = kind;
  device->identity.slot = slot_of(kind);
  if (kind == journal::COMPUTE_TRAY) device->parts = {part("gpu", 0), part("gpu", 1)};
  if (kind == journal::SWITCH_TRAY) device->parts = {part("asic", 0)};
  if (kind == journal::POWER_SHELF) device->parts = {part("psu", 0), part("psu", 1)};
  all_detectors(journal::Detector::DRY);
  state.rack_uid = std::string(rack_uid);
  journal::Member& row = *state.node.mutable_spec();
  row.set_slot(slot_of(kind));
  row.set_kind(kind);
  row.set_bmc_mac("02:18:01:00:00:07");
  row.set_serial("SN1");
  state.node.set_name("r01/" + row.slot());
  judge = [this](const std::string& run_id) {
    journal::SuiteResult result;
    result.set_run_id(run_id);
    result.set_suite("node-quick");
    result.set_verdict(journal::SuiteResult::PASS);
    result.set_results(4);
    result.set_expected(4);
    result.add_members(state.node.name());
    result.set_evidence("sha256:00");
    return result;
  };
}

tray_bench::~tray_bench() {
  std::error_code ignored;
  std::filesystem::remove_all(site_, ignored);
}

void tray_bench::want_firmware(std::uint32_t order, const std::string& component, const std::string& version,
                               const std::string& activation) {
  const std::string bytes = component + " " + version + "\n";
  std::ofstream(site_ / component) << bytes;
  const char* const kind = device->kind == journal::COMPUTE_TRAY ? "compute_tray" : "switch_tray";
  journal::FirmwareRow& row = *(*spec.mutable_baseline()->mutable_firmware())[kind].add_rows();
  row.set_order(order);
  row.set_component(component);
  row.set_version(version);
  row.set_image(component);
  row.set_sha256(core::to_hex(core::sha256(bytes)));
  row.set_activation(activation);
}

journal::Detector::Verdict tray_bench::all_detectors(journal::Detector::Verdict verdict) {
  device->detectors.clear();
  if (device->kind == journal::COMPUTE_TRAY) {
    device->detectors = {{"0_ColdPlate", verdict, "as set", std::nullopt},
                         {"0_Manifold", verdict, "as set", std::nullopt}};
  } else if (device->kind == journal::SWITCH_TRAY) {
    device->detectors = {{"leakage1", verdict, "as set", std::nullopt}};
  }
  return verdict;
}

void tray_bench::start_at(journal::NodeStep step) {
  state.spec = std::make_shared<const journal::RackSpec>(spec);
  journal::Node& node = state.node;
  node.set_step(step);
  node.set_goal(step);
  node.mutable_identity()->set_address("127.18.1.7:8443");
  if (step >= journal::DISCOVERED) node.mutable_identity()->set_pin_sha256(device->certificate);
  if (step >= journal::IDENTIFIED) node.mutable_identity()->set_serial(device->identity.serial.value_or(""));
  if (step >= journal::CREDENTIALED) {
    for (const std::string& name : {own_secret(node), interlock_secret(node), breakglass_secret(node)})
      vault[name] = "made-" + name;
    device->accounts[own_account(rack_uid)] = {vault[own_secret(node)], "Administrator"};
    device->accounts[interlock_account(rack_uid)] = {vault[interlock_secret(node)], "Operator"};
    device->accounts["root"].password = vault[breakglass_secret(node)];
    journal::Access& access = *node.mutable_access();
    access.set_account(own_account(rack_uid));
    access.set_account_created(true);
    access.set_interlock_account_created(true);
    access.set_factory_password_changed(true);
    access.set_interlock_armed(true);
  }
  if (step >= journal::STAGED) {
    device->power = journal::POWER_ON;
    node.mutable_power()->set_observed(journal::POWER_ON);
    node.mutable_power()->set_wanted(journal::POWER_ON);
    if (device->kind == journal::COMPUTE_TRAY) hello();
  }
  stored = node;
}

void tray_bench::aim(journal::NodeStep goal) {
  goal_ = goal;
  give(rack_view{goal, "operations/1"});
}

void tray_bench::give(const node_event& event) {
  pending_.push_back(event);
}

void tray_bench::hello() {
  agent_up_ = true;
  validation::agent_event event;
  event.what = validation::agent_event::kind::hello;
  event.member = state.node.name();
  event.hello.set_boot_id("boot-" + std::to_string(boots_));
  event.hello.set_dmi_serial("SN1");
  pending_.emplace_back(agent_news{event});
}

void tray_bench::deliver(const node_event& event) {
  step_result result = step(state, event, now);
  const bool idle = !result.durable && result.effects.empty();
  if (std::holds_alternative<wake>(event) && idle && result.wake_at_ns <= now.monotonic_ns) ++spins;
  wake_at_ns = result.wake_at_ns;
  events.insert(events.end(), result.events.begin(), result.events.end());
  if (result.durable) {
    for (const std::string& name : result.secrets_to_make) (void)secrets_->make(name);
    stored = state.node;
    ++commits;
    if (commits == cut_at_ && cut_where_ == cut::before_effects) return crash();
  }
  for (const effect& wanted : result.effects) perform(wanted);
  if (result.durable && commits == cut_at_ && cut_where_ == cut::after_effects) crash();
}

void tray_bench::crash() {
  ++crashes;
  cut_where_ = cut::none;
  pending_.clear();
  driver_ = nullptr;
  state.node = stored;
  state.run = run_state{};
  pending_.emplace_back(wake{});
  if (goal_ != journal::NODE_STEP_UNSPECIFIED) pending_.emplace_back(rack_view{goal_, "operations/1"});
  if (device->kind == journal::COMPUTE_TRAY && device->power == journal::POWER_ON && agent_up_) hello();
}

void tray_bench::perform(const effect& wanted) {
  if (const auto* asked = std::get_if<call>(&wanted)) {
    perform_call(*asked);
  } else if (const auto* permit = std::get_if<want_permit>(&wanted)) {
    permits_asked.push_back(permit->kind);
    pending_.emplace_back(permit_answer{permit->kind, grants, grants ? "" : refusal_words,
                                        grants ? std::nullopt : refusal_fault,
                                        grants ? std::make_shared<permit_lease>() : nullptr});
  } else if (std::holds_alternative<release_permit>(wanted)) {
    ++releases;
  } else if (std::holds_alternative<arm_interlock>(wanted)) {
    pending_.emplace_back(armed{arming});
  } else if (const auto* test = std::get_if<run_test>(&wanted)) {
    tests_run.push_back(test->test.name());
    if (!tests_answer) return;
    validation::agent_event done;
    done.what = validation::agent_event::kind::test_done;
    done.test_done.set_run_id(test->run_id);
    done.test_done.set_test(test->test.name());
    pending_.emplace_back(agent_news{done});
  } else if (const auto* stop = std::get_if<cancel_run>(&wanted)) {
    runs_cancelled.push_back(stop->run_id);
  } else if (const auto* verdict = std::get_if<judge_suite>(&wanted)) {
    pending_.emplace_back(suite_judged{judge(verdict->run_id)});
  } else if (const auto* fabric = std::get_if<report_nvlink>(&wanted)) {
    nvlink = fabric->facts;
  } else if (const auto* power = std::get_if<report_power>(&wanted)) {
    looks.push_back(*power);
  }
}

void tray_bench::perform_call(const call& wanted) {
  calls.push_back(wanted);
  if (wanted.op == call_op::bind) {
    driver_ = std::make_shared<devices::fake_bmc>(device);
    if (!wanted.names.empty() && !wanted.names.front().empty()) driver_->pin(wanted.names.front());
    std::map<std::string, int> wrong_logins;
    for (const auto& [user, count] : wanted.values) wrong_logins[user] = std::stoi(count);
    driver_->count_wrong_logins(std::move(wrong_logins));
    return;
  }
  if (muted.contains(wanted.op)) return;
  if (const auto found = scripts.find(wanted.op); found != scripts.end()) {
    if (const auto said = found->second(wanted)) {
      pending_.emplace_back(call_done{wanted.id, said->status, said->facts});
      return;
    }
  }
  if (wanted.op == call_op::read_task && tasks_end) {
    if (const auto task = device->tasks.find(wanted.text); task != device->tasks.end()) {
      if (task->second.state == devices::task_state::running)
        staged_firmware_[task->second.component] = task->second.version;
      task->second.state = devices::task_state::completed;
    }
  }
  device_context context{secrets_,       agents_,    [](const std::function<void()>& work) { work(); },
                         site_.string(), state.spec, std::make_shared<const journal::Node>(stored),
                         state.rack_uid, [this] { return now; }};
  const std::size_t acts_before = device->acts.size();
  start_device_call(driver_, std::move(context), wanted,
                    [this, id = wanted.id](absl::Status status, call_facts facts) {
                      pending_.emplace_back(call_done{id, std::move(status), std::move(facts)});
                    });
  after_call(wanted, acts_before);
}

void tray_bench::after_call(const call& wanted, std::size_t acts_before) {
  if (device->acts.size() == acts_before) return;
  const std::string& act = device->acts.back();
  const bool boots = act == "reset On" || act == "reset ForceRestart" || act == "reset PowerCycle";
  if ((boots || act == "reset_manager") && activates) {
    for (const auto& [component, version] : staged_firmware_) device->firmware[component] = version;
    staged_firmware_.clear();
  }
  if (!boots || device->kind != journal::COMPUTE_TRAY) return;
  device->boot = {"Disabled", "None", ""};
  ++boots_;
  agent_up_ = false;
  if (agent_boots) hello();
  static_cast<void>(wanted);
}

bool tray_bench::run_until(const std::function<bool()>& done, int most_events) {
  for (int i = 0; i < most_events; ++i) {
    if (done()) return true;
    if (!pending_.empty()) {
      const node_event event = pending_.front();
      pending_.pop_front();
      deliver(event);
    } else if (wake_at_ns != core::never_ns) {
      const std::int64_t passed = std::max<std::int64_t>(0, wake_at_ns - now.monotonic_ns);
      now.monotonic_ns += passed;
      now.wall_ns += passed;
      deliver(wake{});
      if (spins > 1000) return false;
    } else {
      return done();
    }
  }
  return false;
}

bool tray_bench::reaches(journal::NodeStep step) {
  aim(step);
  return run_until([this, step] { return state.node.step() >= step || state.node.has_failure(); }) &&
         state.node.step() >= step && !state.node.has_failure();
}

bool tray_bench::fails() {
  return run_until([this] { return state.node.has_failure(); });
}

void tray_bench::heal(const node_event& event) {
  const auto retries = [this] {
    return std::count_if(events.begin(), events.end(),
                         [](const journal::Event& told) { return told.type() == "retried"; });
  };
  const auto before = retries();
  give(event);
  EXPECT_TRUE(run_until([&retries, before] { return retries() > before; }));
}

void tray_bench::settle() {
  run_until([] { return false; });
}

std::size_t tray_bench::calls_of(call_op op) const {
  return static_cast<std::size_t>(
      std::count_if(calls.begin(), calls.end(), [op](const call& one) { return one.op == op; }));
}

bool tray_bench::told(std::string_view type, std::string_view words) const {
  return std::any_of(events.begin(), events.end(), [type, words](const journal::Event& event) {
    return event.type() == type && event.message().find(words) != std::string::npos;
  });
}

void tray_bench::mute(call_op op) {
  muted.insert(op);
}

void tray_bench::refuse(call_op op, absl::Status status) {
  scripts[op] = [status](const call&) { return scripted_answer{status, std::monostate{}}; };
}

void tray_bench::refuse_once(call_op op, absl::Status status) {
  auto left = std::make_shared<int>(1);
  scripts[op] = [status, left](const call&) -> std::optional<scripted_answer> {
    if ((*left)-- <= 0) return std::nullopt;
    return scripted_answer{status, std::monostate{}};
  };
}

}  // namespace busbar::node::test
