#include "actors/node/node_actor.hpp"

#include <fmt/format.h>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <deque>

#include "actors/core/digest.hpp"
#include "actors/core/error_bridge.hpp"
#include "actors/core/log.hpp"
#include "actors/core/mutant.hpp"
#include "actors/node/device_calls.hpp"
#include "actors/node/telemetry_wish.hpp"

namespace busbar::node {
namespace {

using node_self = node_actor::stateful_pointer<struct node_shell>;

constexpr auto commit_retry = std::chrono::seconds(1);
constexpr auto lease_interval = std::chrono::seconds(2);
constexpr std::uint64_t judge_again = UINT64_MAX;  // in place of a timer's generation

struct node_shell {
  static inline const char* name = "node";

  node_dependencies with;
  node_state logic;
  std::deque<node_event_ptr> inbox;
  bool committing = false;
  std::optional<judge_suite> unjudged;  // whose evidence the journal did not take yet
  core::batch_ptr refused;              // a batch that the journal did not take yet
  std::vector<effect> effects_after;    // of the commit under way
  std::shared_ptr<const journal::Node> published;
  std::shared_ptr<devices::bmc> driver;
  bool telemetry = false;  // of this driver
  std::uint64_t timer = 0;
  std::int64_t timer_at_ns = core::never_ns;
  std::map<std::string, std::vector<agent::Measurement>> measured;
  std::string running_run;  // its lease is renewed while it runs

  void take(node_self self, const node_event_ptr& event);
  void pump(node_self self);
  void step_one(node_self self, const node_event& event);
  void commit(node_self self, core::batch_ptr batch);
  void committed(node_self self);
  void run(node_self self, const effect& wanted);
  void call_device(node_self self, const call& wanted);
  void follow_telemetry();
  void judge(node_self self, const judge_suite& wanted);
  void start_test(node_self self, const run_test& wanted);
  void set_timer(node_self self, std::int64_t at_ns);
  void tell_rack(node_self self, rack::rack_event event);
  core::batch_ptr make_batch(step_result& result);
};

void node_shell::tell_rack(node_self self, rack::rack_event event) {
  self->send(with.rack, rack::make_event(std::move(event)));
}

void node_shell::take(node_self self, const node_event_ptr& event) {
  if (const auto* news = std::get_if<agent_news>(event.get())) {
    using kind = validation::agent_event::kind;
    if (news->event.what == kind::measurement) {
      if (news->event.measurement.run_id() == logic.node.suite().run_id())
        measured[logic.node.name()].push_back(news->event.measurement);
      return;
    }
    if (news->event.what == kind::progress) return;
    if (news->event.what == kind::test_done) running_run.clear();
  }
  if (std::holds_alternative<unlock_logins>(*event) && driver != nullptr) driver->forget_wrong_logins();
  inbox.push_back(event);
  pump(self);
}

void node_shell::pump(node_self self) {
  while (!committing && !inbox.empty()) {
    const node_event_ptr event = inbox.front();
    inbox.pop_front();
    step_one(self, *event);
    follow_telemetry();
  }
}

core::batch_ptr node_shell::make_batch(step_result& result) {
  auto batch = std::make_shared<core::journal_batch>();
  for (const std::string& secret : result.secrets_to_make) {
    auto sealed = with.secrets->make(secret);
    if (!sealed.ok()) {
      core::log_error("secret_not_made",
                      {{"object", logic.node.name()}, {"why", std::string(sealed.status().message())}});
    } else if (sealed->has_value()) {
      batch->secrets.push_back(**sealed);
    }
  }
  published = std::make_shared<const journal::Node>(logic.node);
  batch->put(published);
  batch->events = std::move(result.events);
  batch->intents_opened = std::move(result.intents_opened);
  batch->intents_closed = std::move(result.intents_closed);
  return batch;
}

void node_shell::step_one(node_self self, const node_event& event) {
  step_result result = step(logic, event, with.clock());
  effects_after = std::move(result.effects);
  set_timer(self, result.wake_at_ns);
  if (!result.durable) {
    const std::vector<effect> effects = std::move(effects_after);
    for (const effect& wanted : effects) run(self, wanted);
    return;
  }
  if (BUSBAR_MUTANT(acted_before_durable)) {
    for (const effect& wanted : effects_after) run(self, wanted);
    effects_after.clear();
  }
  commit(self, make_batch(result));
}

void node_shell::commit(node_self self, core::batch_ptr batch) {
  committing = true;
  refused = batch;
  self->request(with.journal, core::commit_timeout, core::commit_atom_v, batch)
      .then([self](const core::commit_ptr&) { self->state.committed(self); },
            [self](const caf::error& why) {
              core::log_warning("commit_refused",
                                {{"object", self->state.logic.node.name()}, {"why", caf::to_string(why)}});
              const std::uint64_t generation = ++self->state.timer;
              self->delayed_send(self, commit_retry, core::tick_atom_v, generation);
            });
}

void node_shell::committed(node_self self) {
  committing = false;
  refused.reset();
  tell_rack(self, rack::member_changed{published});
  const std::vector<effect> effects = std::move(effects_after);
  effects_after.clear();
  for (const effect& wanted : effects) run(self, wanted);
  set_timer(self, timer_at_ns);
  pump(self);
}

void node_shell::set_timer(node_self self, std::int64_t at_ns) {
  timer_at_ns = at_ns;
  const std::uint64_t generation = ++timer;
  if (at_ns == core::never_ns) return;
  const auto wait = std::chrono::nanoseconds(std::max<std::int64_t>(0, at_ns - with.clock().monotonic_ns));
  self->delayed_send(self, wait, core::tick_atom_v, generation);
}

void node_shell::follow_telemetry() {
  const bool wanted = driver != nullptr && with.board != nullptr && wants_telemetry(logic.node);
  if (wanted == telemetry) return;
  telemetry = wanted;
  if (!wanted) return driver->stop_telemetry();
  driver->start_telemetry({logic.node.name(), fast_reports(*logic.spec, logic.node.spec().kind()), with.board, with.clock});
}

void node_shell::call_device(node_self self, const call& wanted) {
  if (wanted.op == call_op::bind) {
    if (std::exchange(telemetry, false)) driver->stop_telemetry();  // others may hold the old driver for a while
    driver = with.drivers->make_bmc(wanted.text, logic.node.spec().kind());
    self->send(with.rack, rack::make_news(rack::driver_bound{logic.node.name(), driver}));
    const bool pinned = !wanted.names.empty() && !wanted.names.front().empty();
    if (pinned && !BUSBAR_MUTANT(changed_certificate_accepted)) driver->pin(wanted.names.front());
    std::map<std::string, int> wrong_logins;
    for (const auto& [user, count] : wanted.values) wrong_logins[user] = std::stoi(count);
    if (!BUSBAR_MUTANT(login_storm)) driver->count_wrong_logins(std::move(wrong_logins));
    const node_actor owner = self;
    driver->on_session([owner](devices::session_facts session) {
      caf::anon_send(owner, make_event(session_opened{std::move(session.uri)}));
    });
    return;
  }
  const node_actor me = self;
  const std::uint64_t id = wanted.id;
  device_context context{with.secrets, with.agents, with.run_blocking, with.site_dir,
                         logic.spec,   published,   logic.rack_uid,    with.clock};
  start_device_call(driver, std::move(context), wanted, [me, id](absl::Status status, call_facts facts) {
    caf::anon_send(me, make_event(call_done{id, std::move(status), std::move(facts)}));
  });
}

void node_shell::start_test(node_self self, const run_test& wanted) {
  if (wanted.test.name() == logic.spec->suites().at("node").tests(0).name()) measured.clear();
  const agent::Run request = make_run(wanted.run_id, wanted.test);
  running_run = wanted.run_id;
  if (with.agents->run(logic.node.name(), request)) {
    self->delayed_send(self, lease_interval, core::tick_atom_v, std::uint64_t{0});
    return;
  }
  validation::agent_event lost;
  lost.member = logic.node.name();
  lost.reason = "no agent of this member is connected";
  self->send(self, make_event(agent_news{lost}));
}

void node_shell::judge(node_self self, const judge_suite& wanted) {
  judged_suite verdict = with.judge(logic.spec->suites().at("node"), wanted.run_id, {logic.node.name()},
                                    logic.spec->sku().compute_tray().gpus().count(),
                                    {{logic.node.name(), logic.spec->sku().name()}}, measured);
  auto batch = std::make_shared<core::journal_batch>();
  batch->evidence.push_back(std::make_shared<const std::string>(verdict.evidence));
  verdict.result.set_evidence(core::evidence_name(verdict.evidence));
  const node_event_ptr judged = make_event(suite_judged{verdict.result});
  self->request(with.journal, core::commit_timeout, core::commit_atom_v, core::batch_ptr(batch))
      .then([self, judged](const core::commit_ptr&) { self->state.take(self, judged); },
            [self, wanted](const caf::error&) {
              self->state.unjudged = wanted;
              self->delayed_send(self, commit_retry, core::tick_atom_v, judge_again);
            });
}

void node_shell::run(node_self self, const effect& wanted) {
  const std::string& me = logic.node.name();
  if (const auto* device = std::get_if<call>(&wanted)) {
    call_device(self, *device);
  } else if (const auto* permit = std::get_if<want_permit>(&wanted)) {
    tell_rack(self, rack::permit_wanted{me, permit->kind});
  } else if (std::holds_alternative<release_permit>(wanted)) {
    tell_rack(self, rack::permit_released{me});
  } else if (std::holds_alternative<arm_interlock>(wanted)) {
    self->send(with.rack, core::arm_atom_v, me);
  } else if (const auto* test = std::get_if<run_test>(&wanted)) {
    start_test(self, *test);
  } else if (const auto* stop = std::get_if<cancel_run>(&wanted)) {
    running_run.clear();
    with.agents->cancel(me, stop->run_id);
  } else if (const auto* verdict = std::get_if<judge_suite>(&wanted)) {
    judge(self, *verdict);
  } else if (const auto* fabric = std::get_if<report_nvlink>(&wanted)) {
    tell_rack(self, rack::nvlink_read{me, fabric->facts});
  } else if (const auto* power = std::get_if<report_power>(&wanted)) {
    tell_rack(self, rack::power_read{me, power->known, power->seen});
  }
}

void on_tick(node_self self, std::uint64_t generation) {
  node_shell& shell = self->state;
  if (generation == 0) {  // lease of the run
    if (shell.running_run.empty()) return;
    shell.with.agents->renew_lease(shell.logic.node.name(), shell.running_run);
    self->delayed_send(self, lease_interval, core::tick_atom_v, std::uint64_t{0});
    return;
  }
  if (generation == judge_again) {  // the journal refused the evidence
    if (const auto wanted = std::exchange(shell.unjudged, std::nullopt)) shell.judge(self, *wanted);
    return;
  }
  if (generation != shell.timer) return;
  if (shell.refused != nullptr) {
    shell.commit(self, shell.refused);
    return;
  }
  shell.take(self, make_event(wake{}));
}

node_actor::behavior_type node_behavior(node_self self, node_dependencies dependencies,
                                        std::shared_ptr<node_state> initial) {
  self->state.with = std::move(dependencies);
  self->state.logic = std::move(*initial);
  self->state.published = std::make_shared<const journal::Node>(self->state.logic.node);
  self->monitor(self->state.with.rack);
  self->set_down_handler([self](const caf::down_msg&) { self->quit(); });  // no member without its rack
  self->send(self, make_event(wake{}));
  return {
      [self](const node_event_ptr& event) { self->state.take(self, event); },
      [self](core::status_atom) {
        core::actor_status status;
        status.ok = self->state.refused == nullptr;
        status.detail = status.ok ? "" : "a commit is not taken yet";
        return status;
      },
      [self](core::tick_atom, std::uint64_t generation) { on_tick(self, generation); },
  };
}

}  // namespace

node_actor spawn_node(caf::actor_system& system, node_dependencies dependencies, node_state initial) {
  return system.spawn(node_behavior, std::move(dependencies),
                      std::make_shared<node_state>(std::move(initial)));
}

}  // namespace busbar::node
