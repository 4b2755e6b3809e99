// The rack's valves and PDUs: started under it, handed their commands, told what they need of the rest.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "actors/core/error_bridge.hpp"
#include "actors/core/log.hpp"
#include "actors/rack/rack_shell_actor.hpp"

namespace busbar::rack {
namespace {

std::string why_shut(const journal::Valve& valve) {
  return fmt::format("valve {} is told {:g} %: its hosts have no liquid", valve.name(),
                     valve.has_commanded_percent() ? valve.commanded_percent() : valve.proven_percent());
}

}  // namespace

// The caps begin anew with each spec: limits and trays are its own, and what is capped is read.
void rack_shell::start_caps(rack_self self) {
  if (with.board == nullptr || !logic.rack.has_spec()) return;
  const rack_actor me = self;
  shelf::cap_dependencies to_caps;
  to_caps.journal = with.journal;
  to_caps.operations = with.operations;
  to_caps.hub = with.hub;
  to_caps.board = with.board;
  to_caps.clock = with.clock;
  to_caps.tell = [me](const shelf::condition_judged& judged) {
    caf::anon_send(me, make_event(power_judged{judged.type, judged.holds, judged.message}));
  };
  to_caps.setting = shelf::setting_of(logic.rack.spec());
  kit.caps = shelf::spawn_caps(self->system(), std::move(to_caps));
  end_with(self, kit.caps);
  self->monitor(kit.caps);
}

void rack_shell::start_equipment(rack_self self) {
  start_caps(self);
  const auto state = with.hub->read();
  const std::string& rack = logic.rack.name();
  const rack_actor me = self;
  for (const auto& [valve_name, stored] : *state->valves) {
    if (kit.valves.contains(valve_name)) continue;
    const std::string controller = rack + "/" + stored.object->spec().member();
    valve::valve_dependencies to_valve;
    to_valve.journal = with.journal;
    to_valve.operations = with.operations;
    to_valve.board = with.board;
    to_valve.clock = with.clock;
    to_valve.look = [hub = with.hub, interlock = with.interlock, rack] {
      return surroundings_of(rack, *hub->read(), interlock->last().get());
    };
    to_valve.tell = [me](std::shared_ptr<const journal::Valve> valve) {
      caf::anon_send(me, make_news(valve_changed{std::move(valve)}));
    };
    to_valve.want_session = [me, controller] { caf::anon_send(me, make_news(session_wanted{controller})); };
    const auto child = valve::spawn_valve(self->system(), std::move(to_valve), *stored.object);
    end_with(self, child);
    self->monitor(child);
    kit.valves.emplace(valve_name, child);
    kit.generations[valve_name] = stored.object->generation();
    if (valve::shuts_off(*stored.object)) logic.run.shut_valves[valve_name] = why_shut(*stored.object);
    bind_valve(self, valve_name, stored.object->spec());
  }
  for (const auto& [pdu_name, stored] : *state->pdus) {
    if (kit.pdus.contains(pdu_name)) continue;
    pdu::pdu_dependencies to_pdu;
    to_pdu.journal = with.journal;
    to_pdu.operations = with.operations;
    to_pdu.board = with.board;
    to_pdu.clock = with.clock;
    to_pdu.needs = [hub = with.hub, rack, strip = pdu_name](const std::string& outlet) {
      return what_needs(rack, *hub->read(), strip, outlet);
    };
    auto bank = make_bank(stored.object->spec());
    if (bank.ok())
      to_pdu.bank = *std::move(bank);
    else
      to_pdu.no_bank = std::string(bank.status().message());
    const auto child = pdu::spawn_pdu(self->system(), std::move(to_pdu), *stored.object);
    end_with(self, child);
    self->monitor(child);
    kit.pdus.emplace(pdu_name, child);
    kit.generations[pdu_name] = stored.object->generation();
  }
}

absl::StatusOr<std::shared_ptr<devices::outlet_bank>> rack_shell::make_bank(const journal::PduSpec& spec) {
  if (with.outlets == nullptr) return absl::FailedPreconditionError("this daemon has no drivers for PDUs");
  auto login = with.secrets->site_login(spec.login());
  if (!login.ok()) return login.status();
  auto bank = with.outlets->make_outlets(spec, *std::move(login));
  if (!bank.ok())
    core::log_error("pdu_not_bound",
                    {{"object", spec.name()}, {"why", std::string(bank.status().message())}});
  return bank;
}

// What `state` has no more, or has otherwise, ends; the rest goes on.
void rack_shell::stop_equipment(rack_self self, const core::snapshot& state) {
  kit.drivers.clear();
  if (kit.caps != nullptr) self->send_exit(kit.caps, caf::exit_reason::user_shutdown);
  kit.caps = nullptr;
  const auto end = [this, self](auto& actors, const auto& stored) {
    for (auto it = actors.begin(); it != actors.end();) {
      const auto held = stored.find(it->first);
      if (held != stored.end() && held->second.object->generation() == kit.generations[it->first]) {
        ++it;
        continue;
      }
      self->send_exit(it->second, caf::exit_reason::user_shutdown);
      kit.generations.erase(it->first);
      logic.run.shut_valves.erase(it->first);
      it = actors.erase(it);
    }
  };
  end(kit.valves, *state.valves);
  end(kit.pdus, *state.pdus);
}

// The valve speaks through its controller's driver, which is the node's: one session, one budget.
void rack_shell::bind_valve(rack_self self, const std::string& valve_name, const journal::ValveSpec& spec) {
  const auto driver = kit.drivers.find(logic.rack.name() + "/" + spec.member());
  const auto valve = kit.valves.find(valve_name);
  if (driver == kit.drivers.end() || valve == kit.valves.end()) return;
  auto bound = std::make_shared<valve::bound_port>();
  bound->port = driver->second->valve(spec.connector().empty() ? spec.name() : spec.connector());
  self->send(valve->second, valve::bound_port_ptr(std::move(bound)));
}

void rack_shell::hear_equipment(rack_self self, const equipment_news& news) {
  if (const auto* bound = std::get_if<driver_bound>(&news)) {
    kit.drivers[bound->member] = bound->driver;
    if (kit.caps != nullptr) {
      auto told = std::make_shared<shelf::bound_driver>(shelf::bound_driver{bound->member, bound->driver});
      self->send(kit.caps, shelf::bound_driver_ptr(std::move(told)));
    }
    for (const auto& [valve_name, stored] : *with.hub->read()->valves) {
      if (logic.rack.name() + "/" + stored.object->spec().member() == bound->member)
        bind_valve(self, valve_name, stored.object->spec());
    }
  } else if (const auto* wanted = std::get_if<session_wanted>(&news)) {
    // A look at its power is what opens a session where none is open, and asks nothing else of it.
    if (auto* to = member(wanted->member)) self->send(*to, node::make_event(node::look_at_power{}));
  } else if (const auto* changed = std::get_if<valve_changed>(&news)) {
    const journal::Valve& valve = *changed->valve;
    if (!kit.valves.contains(valve.name())) return;
    if (valve::shuts_off(valve)) {
      logic.run.shut_valves[valve.name()] = why_shut(valve);
    } else {
      logic.run.shut_valves.erase(valve.name());
    }
    take(self, wake{});
  }
}

void rack_shell::tell_flow(rack_self self, const devices::cooling_facts& facts) {
  for (const auto& [valve_name, valve] : kit.valves)
    self->send(valve, valve::make_event(valve::rack_flow{facts.flow_lpm, facts.dp_kpa}));
}

caf::result<core::command_result_ptr> rack_shell::submit_equipment(rack_self self,
                                                                   const core::command_ptr& what,
                                                                   const std::string& operation) {
  if (what->verb == "power_cap") {
    if (kit.caps != nullptr) return self->delegate(kit.caps, core::submit_atom_v, what, operation);
    return core::to_caf(
        absl::FailedPreconditionError("this rack has no manifest, or no readings to cap it by"));
  }
  if (const auto pdu = kit.pdus.find(what->target); pdu != kit.pdus.end())
    return self->delegate(pdu->second, core::submit_atom_v, what, operation);
  const auto valve = kit.valves.find(what->target);
  if (valve == kit.valves.end()) {
    return core::make_fault_error(
        core::fault::UNKNOWN_TARGET,
        fmt::format("{}: the rack's manifest has no such valve or PDU", what->target));
  }
  const auto stored = with.hub->read()->valve(what->target);
  if (stored == nullptr || !may_shut(*what, *stored))
    return self->delegate(valve->second, core::submit_atom_v, what, operation);
  // Who was promised power may be on its way to take it; who asks from now on is told that the valve shuts.
  // The valve's own word, when it has decided, takes the place of this.
  std::vector<std::string> promised;
  for (const auto& [host, held] : logic.run.held) {
    const auto host_member = logic.run.members.find(host);
    const bool is_shelf =
        host_member != logic.run.members.end() && host_member->second->spec().kind() == journal::POWER_SHELF;
    if (!is_shelf && held.kind != node::permit_kind::blind_window && held.lease != nullptr &&
        held.lease->holds())
      promised.push_back(host);
  }
  if (!promised.empty()) {
    return core::make_fault_error(
        core::fault::COOLING_NEEDED,
        fmt::format("valve {} not put there: these hosts are being turned on: {}; wait, or "
                    "cancel what turns them on (busbar ops)",
                    what->target, fmt::join(promised, ", ")));
  }
  logic.run.shut_valves[what->target] = fmt::format("valve {} is asked to shut", what->target);
  auto promise = self->make_response_promise<core::command_result_ptr>();
  self->request(valve->second, core::submit_timeout, core::submit_atom_v, what, operation)
      .then([promise](const core::command_result_ptr& answer) mutable { promise.deliver(answer); },
            [self, promise, target = what->target](const caf::error& why) mutable {
              const auto now_is = self->state.with.hub->read()->valve(target);
              if (now_is == nullptr || !valve::shuts_off(*now_is))
                self->state.logic.run.shut_valves.erase(target);
              promise.deliver(why);
            });
  return promise;
}

bool rack_shell::resume_equipment(rack_self self, const core::operation_ptr& operation) {
  if (operation->verb() == "power_cap" && kit.caps != nullptr) {
    self->send(kit.caps, core::resume_atom_v, operation);
    return true;
  }
  const auto pdu = kit.pdus.find(operation->target());
  const auto valve = kit.valves.find(operation->target());
  if (pdu != kit.pdus.end()) {
    self->send(pdu->second, core::resume_atom_v, operation);
  } else if (valve != kit.valves.end()) {
    self->send(valve->second, core::resume_atom_v, operation);
  } else {
    return false;
  }
  return true;
}

void rack_shell::cancel_equipment(rack_self self, const std::string& operation) {
  if (operation.empty()) return;
  for (const auto& [valve_name, valve] : kit.valves) self->send(valve, core::cancel_atom_v, operation);
}

}  // namespace busbar::rack
