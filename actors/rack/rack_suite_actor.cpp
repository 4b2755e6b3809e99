#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "actors/core/log.hpp"
#include "actors/node/device_calls.hpp"
#include "actors/rack/rack_members.hpp"
#include "actors/rack/rack_shell_actor.hpp"

namespace busbar::rack {
namespace {

constexpr auto lease_interval = std::chrono::seconds(2);

}  // namespace

// ---- interlock
// ----------------------------------------------------------------------------------------------------------------------

// One record at a time: what asks while one is under way rides in the next.
void rack_shell::arm(rack_self self, const std::string& joining) {
  arming.ask(joining);
  send_record(self);
}

void rack_shell::send_record(rack_self self) {
  if (!arming.begin()) return;
  const rack_actor me = self;
  const auto answer = [me](absl::Status status) {
    caf::anon_send(me, core::arm_atom_v,
                   arming_answer_ptr(std::make_shared<const absl::Status>(std::move(status))));
  };
  const auto view = with.interlock->last();
  if (view->life != interlock_life::alive) {
    return answer(absl::UnavailableError(fmt::format("the interlock is {}", name_of(view->life))));
  }
  arming_generation =
      std::max({arming_generation, armed_generation(logic.rack), view->status->generation()}) + 1;
  const auto password_of = [this](const journal::Node& tray) {
    const auto password = with.secrets->get(node::interlock_secret(tray));
    return password.ok() ? *password : std::string();
  };
  const journal::CoolingSpec& cdu = logic.rack.spec().manifest().cooling();
  const auto login =
      with.secrets->site_login(cdu.has_interlock_login() ? cdu.interlock_login() : cdu.login());
  const interlock::ArmingRecord record =
      arming_record(logic.rack, logic.run.members, arming.joining(), arming_generation, password_of,
                    login.ok() ? std::optional(*login) : std::nullopt);
  sent_shape = shape_of(record);
  with.interlock->arm(record, answer);
}

void rack_shell::record_answered(rack_self self, const absl::Status& status) {
  if (!status.ok())
    core::log_warning("arming_refused",
                      {{"object", logic.rack.name()}, {"why", std::string(status.message())}});
  take(self, rack::record_answered{status, arming_generation, std::move(sent_shape)});
  sent_shape.clear();
  for (const std::string& tray : arming.end()) tell_armed(self, tray, status);
  send_record(self);
}

void rack_shell::tell_armed(rack_self self, const std::string& tray, absl::Status status) {
  if (auto* to = member(tray)) self->send(*to, node::make_event(node::armed{std::move(status)}));
}

// ---- agents, suites
// ---------------------------------------------------------------------------------------------------------------

void rack_shell::hear_agent(rack_self self, const validation::agent_event& event) {
  using kind = validation::agent_event::kind;
  const std::string& run_id = logic.rack.suite().run_id();
  const bool ours_measured = event.what == kind::measurement && event.measurement.run_id() == run_id;
  const bool ours_done = event.what == kind::test_done && event.test_done.run_id() == run_id;
  if (ours_measured) {
    measured[event.member].push_back(event.measurement);
    return;
  }
  if (ours_done || event.what == kind::lost) take(self, agent_said{event});
  if (ours_done) return;
  if (auto* to = member(event.member)) self->send(*to, node::make_event(node::agent_news{event}));
}

void rack_shell::start_rack_test(rack_self self, const run_rack_test& wanted) {
  const journal::Suite& suite = logic.rack.spec().suites().at("rack");
  if (wanted.rank == 0 && wanted.test.name() == suite.tests(0).name()) measured.clear();
  agent::Run request = node::make_run(wanted.run_id, wanted.test);
  request.set_rank(wanted.rank);
  request.set_size(wanted.size);
  for (const std::string& peer : logic.rack.suite().members()) request.add_peers(peer);
  if (leased_run.empty()) self->delayed_send(self, lease_interval, core::tick_atom_v, std::uint64_t{0});
  leased_run = wanted.run_id;
  if (with.agents->run(wanted.member, request)) return;
  validation::agent_event lost;
  lost.member = wanted.member;
  lost.reason = "no agent of this member is connected";
  self->send(self, make_event(agent_said{lost}));
}

void rack_shell::judge(rack_self self, const judge_rack_suite& wanted) {
  leased_run.clear();
  // Always the SKU's limits, whatever an agent says of itself: a tray cannot choose what it is judged by.
  std::map<std::string, std::string> limits;
  for (const std::string& tray : wanted.members) limits[tray] = logic.rack.spec().sku().name();
  node::judged_suite verdict =
      with.judge(logic.rack.spec().suites().at("rack"), wanted.run_id, wanted.members,
                 logic.rack.spec().sku().compute_tray().gpus().count(), limits, measured);
  auto batch = std::make_shared<core::journal_batch>();
  batch->evidence.push_back(std::make_shared<const std::string>(verdict.evidence));
  verdict.result.set_evidence(core::evidence_name(verdict.evidence));
  self->request(with.journal, core::commit_timeout, core::commit_atom_v, core::batch_ptr(batch))
      .then([self, judged = verdict.result](
                const core::commit_ptr&) { self->state.take(self, suite_judged{judged}); },
            [self, wanted](const caf::error&) {
              self->state.unjudged = wanted;
              self->delayed_send(self, std::chrono::seconds(1), core::tick_atom_v, judge_again);
            });
}

}  // namespace busbar::rack
