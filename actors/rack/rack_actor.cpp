#include "actors/rack/rack_actor.hpp"

#include <utility>

#include "actors/core/log.hpp"
#include "actors/core/mutant.hpp"
#include "actors/rack/rack_readings.hpp"
#include "actors/rack/rack_shell_actor.hpp"

namespace busbar::rack {
namespace {

constexpr auto commit_retry = std::chrono::seconds(1);
constexpr auto cooling_interval = std::chrono::seconds(1);
constexpr auto lease_interval = std::chrono::seconds(2);

}  // namespace

void rack_shell::take(rack_self self, rack_event event) {
  if (const auto* heard = std::get_if<interlock_heard>(&event); heard != nullptr && heard->view != nullptr)
    withdraw_where_shut(logic.run, *heard->view);
  if (const auto* read = std::get_if<cooling_read>(&event); read != nullptr && with.board != nullptr)
    put_cooling(*with.board, with.instance, read->facts, with.clock().wall_ns);
  inbox.push_back(make_event(std::move(event)));
  pump(self);
}

void rack_shell::pump(rack_self self) {
  while (!committing && !inbox.empty()) {
    const rack_event_ptr event = inbox.front();
    inbox.pop_front();
    step_result result = step(logic, *event, with.clock());
    set_timer(self, result.wake_at_ns);
    if (!result.durable) {
      run_effects(self, std::move(result.effects));
      continue;
    }
    effects_after = std::move(result.effects);
    auto batch = std::make_shared<core::journal_batch>();
    batch->put(std::make_shared<const journal::Rack>(logic.rack));
    batch->events = std::move(result.events);
    commit(self, batch);
  }
}

void rack_shell::commit(rack_self self, core::batch_ptr batch) {
  committing = true;
  refused = batch;
  self->request(with.journal, core::commit_timeout, core::commit_atom_v, batch)
      .then([self](const core::commit_ptr&) { self->state.committed(self); },
            [self](const caf::error& why) {
              core::log_warning("commit_refused",
                                {{"object", self->state.logic.rack.name()}, {"why", caf::to_string(why)}});
              self->delayed_send(self, commit_retry, core::tick_atom_v, ++self->state.timer);
            });
}

void rack_shell::committed(rack_self self) {
  committing = false;
  refused.reset();
  std::vector<effect> wanted = std::move(effects_after);
  effects_after.clear();
  run_effects(self, std::move(wanted));
  set_timer(self, timer_at_ns);
  pump(self);
}

void rack_shell::run_effects(rack_self self, std::vector<effect> wanted) {
  for (const effect& one : wanted) run(self, one);
}

void rack_shell::set_timer(rack_self self, std::int64_t at_ns) {
  timer_at_ns = at_ns;
  const std::uint64_t generation = ++timer;
  if (at_ns == core::never_ns) return;
  const auto wait = std::chrono::nanoseconds(std::max<std::int64_t>(0, at_ns - with.clock().monotonic_ns));
  self->delayed_send(self, wait, core::tick_atom_v, generation);
}

void rack_shell::run(rack_self self, const effect& wanted) {
  if (const auto* told = std::get_if<tell_member>(&wanted)) {
    if (auto* to = member(told->member)) self->send(*to, node::make_event(told->view));
  } else if (const auto* permit = std::get_if<answer_permit>(&wanted)) {
    if (auto* to = member(permit->member)) self->send(*to, node::make_event(permit->answer));
  } else if (const auto* fabric = std::get_if<ask_nvlink>(&wanted)) {
    if (auto* to = member(fabric->member)) self->send(*to, node::make_event(node::read_nvlink_now{}));
  } else if (const auto* blind = std::get_if<announce_blind>(&wanted)) {
    const auto length =
        blind->begins ? std::chrono::milliseconds(blind_window_max) : std::chrono::milliseconds(0);
    with.interlock->announce_blind_window(blind->member, length, [tray = blind->member](absl::Status status) {
      if (!status.ok())
        core::log_warning("blind_window_not_announced",
                          {{"object", tray}, {"why", std::string(status.message())}});
    });
  } else if (const auto* look = std::get_if<look_power>(&wanted)) {
    if (auto* to = member(look->member))
      self->send(*to, node::make_event(node::look_at_power{look->tripped}));
  } else if (const auto* trip = std::get_if<tell_trip>(&wanted)) {
    if (auto* to = member(trip->member))
      self->send(*to, node::make_event(node::trip_held{trip->number, trip->text, trip->cuts_shelves}));
  } else if (const auto* off = std::get_if<tell_read_off>(&wanted)) {
    if (auto* to = member(off->member)) self->send(*to, node::make_event(node::interlock_read_off{off->text}));
  } else if (const auto* sight = std::get_if<tell_sight>(&wanted)) {
    if (auto* to = member(sight->member))
      self->send(*to, node::make_event(node::interlock_sight{sight->lost}));
  } else if (std::holds_alternative<arm_anew>(wanted)) {
    arm(self, "");
  } else if (const auto* latch = std::get_if<tell_latch>(&wanted)) {
    if (auto* to = member(latch->member))
      self->send(*to, node::make_event(node::leak_latch{latch->latched, latch->detail, latch->detector}));
  } else if (const auto* read = std::get_if<read_latches>(&wanted)) {
    const rack_actor me = self;
    with.interlock->read_latches(read->after, [me](absl::Status, std::vector<interlock::Latch> latches) {
      caf::anon_send(me, make_event(latches_read{std::move(
                             latches)}));  // a failed read gives none: asked again at the next heartbeat
    });
  } else if (const auto* test = std::get_if<run_rack_test>(&wanted)) {
    start_rack_test(self, *test);
  } else if (const auto* verdict = std::get_if<judge_rack_suite>(&wanted)) {
    judge(self, *verdict);
  } else if (const auto* row = std::get_if<core::component_update>(&wanted)) {
    self->send(with.operations,
               core::component_update_ptr(std::make_shared<const core::component_update>(*row)));
  } else if (const auto* end = std::get_if<core::operation_end>(&wanted);
             end != nullptr && !BUSBAR_MUTANT(operation_end_forgotten)) {
    self->send(with.operations, core::operation_end_ptr(std::make_shared<const core::operation_end>(*end)));
  }
}

// ---- members
// ---------------------------------------------------------------------------------------------------------------------

void rack_shell::start_members(rack_self self) {
  const auto spec = std::make_shared<const journal::RackSpec>(logic.rack.spec());
  node::node_dependencies to_node{with.journal, self,       with.drivers,      with.secrets, with.agents,
                                  with.judge,   with.clock, with.run_blocking, with.site_dir, with.board};
  for (const auto& [member_name, stored] : logic.run.members) {
    node::node_state initial;
    initial.node = *stored;
    initial.spec = spec;
    initial.rack_uid = logic.rack.uid();
    const node::node_actor child = node::spawn_node(self->system(), to_node, std::move(initial));
    self->monitor(child);
    end_with(self, child);
    nodes.emplace(member_name, child);
  }
  start_equipment(self);
  bind_spec(self);
}

void rack_shell::stop_members(rack_self self) {
  for (const auto& [member_name, actor] : nodes) self->send_exit(actor, caf::exit_reason::user_shutdown);
  nodes.clear();
  logic.run.told.clear();
}

void rack_shell::bind_spec(rack_self self) {
  const journal::CoolingSpec& spec = logic.rack.spec().manifest().cooling();
  auto login = with.secrets->site_login(spec.login());
  if (login.ok()) {
    cooling = with.drivers->make_cooling_source(spec.address(), *std::move(login));
    cooling->set_place({spec.connector(), {spec.detectors().begin(), spec.detectors().end()}});
    if (const auto pin = known_cdu_pin(logic.rack)) cooling->pin(*pin);
  } else {
    core::log_error("cdu_login_missing",
                    {{"object", logic.rack.name()}, {"why", std::string(login.status().message())}});
  }
  with.open_agent_gate(logic.rack.spec().manifest().agent_endpoint());
  self->send(scanner, discovery::spec_ptr(std::make_shared<const journal::RackSpec>(logic.rack.spec())));
}

void rack_shell::see(rack_self self, const discovery::sightings& seen) {
  const std::string& rack_name = logic.rack.name();
  for (const discovery::sighting& row : seen.members) {
    if (auto* to = member(rack_name + "/" + row.slot))
      self->send(*to, node::make_event(node::endpoint_seen{row.address, row.source}));
  }
  for (const discovery::conflict& row : seen.conflicts) {
    if (auto* to = member(rack_name + "/" + row.slot)) {
      self->send(*to,
                 node::make_event(node::endpoint_conflict{row.fault, row.message, row.expected, row.seen}));
    }
  }
  auto batch = std::make_shared<core::journal_batch>();
  std::map<std::string, std::string> now_seen;
  for (const journal::Endpoint& endpoint : seen.endpoints) {
    const std::string bytes = endpoint.SerializeAsString();
    now_seen[endpoint.name()] = bytes;
    if (endpoints[endpoint.name()] != bytes) batch->put(std::make_shared<const journal::Endpoint>(endpoint));
  }
  for (const auto& [gone, bytes] : endpoints) {
    if (!now_seen.contains(gone)) batch->erase(core::object_kind::endpoint, gone);
  }
  if (batch->empty()) return;
  self->request(with.journal, core::commit_timeout, core::commit_atom_v, core::batch_ptr(batch))
      .then([self, now_seen](const core::commit_ptr&) { self->state.endpoints = now_seen; },
            [](const caf::error&) {});  // the next scan tries again
}

// ---- timers
// ---------------------------------------------------------------------------------------------------------------------------

void rack_shell::poll_cooling(rack_self self) {
  self->delayed_send(self, cooling_interval, core::poll_atom_v);
  const auto view = with.interlock->last();
  const bool unarmed =
      view->life == interlock_life::alive && !view->status->armed_rack() && view->status->generation() == 0;
  if (unarmed && !first_arming && logic.rack.has_spec()) {
    first_arming = true;
    arm(self, "");
  }
  renew_demand(self);
  if (cooling == nullptr || cooling_asked) return;
  cooling_asked = true;
  const rack_actor me = self;
  cooling->read(logic.rack.name(), [me](absl::StatusOr<devices::cooling_facts> facts) {
    caf::anon_send(me, make_event(cooling_read{std::move(facts)}));
  });
}

// Each second anew: what is not renewed lapses at the plant.
void rack_shell::renew_demand(rack_self self) {
  const std::string& where = logic.rack.spec().manifest().cooling().plant();
  if (with.plant == nullptr) return;
  with.plant->connect(where);
  if (where.empty()) return;
  const rack_actor me = self;
  const auto wanted = plant::demand_for(demand_inputs_of(logic.rack, with.board.get()));
  with.plant->renew(wanted, [me](absl::StatusOr<plant::plant_view> view) {
    caf::anon_send(me, make_event(plant_heard{std::move(view)}));
  });
}

void rack_shell::tick(rack_self self, std::uint64_t generation) {
  if (generation == 0) {
    if (leased_run.empty()) return;
    for (const std::string& peer : logic.rack.suite().members()) with.agents->renew_lease(peer, leased_run);
    self->delayed_send(self, lease_interval, core::tick_atom_v, std::uint64_t{0});
    return;
  }
  if (generation == judge_again) {  // the journal refused the evidence
    if (const auto wanted = std::exchange(unjudged, std::nullopt)) judge(self, *wanted);
    return;
  }
  if (generation != timer) return;
  if (refused != nullptr) return commit(self, refused);
  take(self, wake{});
}

void rack_shell::cancel(rack_self self, const std::string& operation) {
  std::erase_if(looks, [&operation](const auto& look) {
    return !operation.empty() && look.second.operation == operation;  // a trust nobody waits for any more
  });
  cancel_equipment(self, operation);
  take(self, cancel_operation{operation});
}

namespace {

// What is stored becomes the state; members begin where they stood.
void restore(rack_self self) {
  rack_shell& shell = self->state;
  const auto stored = shell.with.hub->read();
  shell.logic.rack.set_name(shell.with.instance);
  if (const auto rack = stored->rack(shell.with.instance)) {
    shell.logic.rack = *rack;
    for (const auto& [name, entry] : *stored->nodes) {
      auto member = std::make_shared<journal::Node>(*entry.object);
      // Who was connected to the last life is not connected to this one until it comes back.
      if (member->has_boot()) member->mutable_boot()->set_agent_connected(shell.with.agents->connected(name));
      shell.logic.run.members[name] = std::move(member);
    }
    if (BUSBAR_MUTANT(latch_cleared_by_restart)) {
      for (auto& [name, member] : shell.logic.run.members) {
        auto forgetful = std::make_shared<journal::Node>(*member);
        forgetful->clear_leak_latched();
        member = std::move(forgetful);
      }
    }
    for (const auto& [name, entry] : *stored->endpoints)
      shell.endpoints[name] = entry.object->SerializeAsString();
    shell.start_members(self);
  }
}

rack_actor::behavior_type behavior(rack_self self, rack_dependencies dependencies) {
  rack_shell& shell = self->state;
  shell.with = std::move(dependencies);
  shell.scanner = discovery::spawn_discovery(
      self->system(), {self, shell.with.run_blocking, shell.with.read_file, shell.with.site_dir});
  end_with(self, shell.scanner);
  restore(self);
  // A member that dies is a bug: the rack ends with it and is started again from what is stored.
  self->set_down_handler([self](const caf::down_msg& down) {
    if (!down.reason || down.reason == caf::exit_reason::user_shutdown) return;
    core::log_error("member_died",
                    {{"object", self->state.logic.rack.name()}, {"why", caf::to_string(down.reason)}});
    self->quit(down.reason);
  });
  const rack_actor me = self;
  shell.with.interlock->observe([me](std::shared_ptr<const interlock_view> view) {
    caf::anon_send(me, make_event(interlock_heard{std::move(view)}));
  });
  self->send(self, core::poll_atom_v);
  self->send(self, make_event(wake{}));
  return {
      [self](core::submit_atom, const core::command_ptr& what, const std::string& operation) {
        return self->state.submit(self, what, operation);
      },
      [self](core::resume_atom, const core::operation_ptr& operation) {
        if (!self->state.resume_equipment(self, operation)) self->state.resume(self, *operation);
      },
      [self](core::cancel_atom, const std::string& operation) { self->state.cancel(self, operation); },
      [self](const rack_event_ptr& event) {
        if (const auto* read = std::get_if<cooling_read>(event.get())) {
          self->state.cooling_asked = false;
          if (read->facts.ok()) self->state.tell_flow(self, *read->facts);
        }
        if (const auto* shown = std::get_if<certificate_shown>(event.get()))
          return self->state.trust_or_refuse(self, *shown);
        self->state.take(self, *event);
      },
      [self](const agent_event_ptr& event) { self->state.hear_agent(self, *event); },
      [self](const equipment_ptr& news) { self->state.hear_equipment(self, *news); },
      [self](const sightings_ptr& seen) { self->state.see(self, *seen); },
      [self](core::arm_atom, const std::string& member) { self->state.arm(self, member); },
      [self](core::arm_atom, const arming_answer_ptr& status) { self->state.record_answered(self, *status); },
      [self](core::status_atom) {
        core::actor_status status;
        status.ok = self->state.refused == nullptr;
        return status;
      },
      [self](core::stop_atom) {
        self->state.stop_members(self);
        self->state.stop_equipment(self, core::snapshot());
        self->send_exit(self->state.scanner, caf::exit_reason::user_shutdown);
        self->quit();
      },
      [self](core::tick_atom, std::uint64_t generation) { self->state.tick(self, generation); },
      [self](core::poll_atom) { self->state.poll_cooling(self); },
  };
}

}  // namespace

rack_actor spawn_rack(caf::actor_system& system, rack_dependencies dependencies) {
  return system.spawn(behavior, std::move(dependencies));
}

}  // namespace busbar::rack
