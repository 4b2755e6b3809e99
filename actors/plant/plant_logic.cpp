#include "actors/plant/plant_logic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "actors/core/mutant.hpp"
#include "actors/plant/plant_engine.hpp"

namespace busbar::plant {

using core::fault;

namespace {

const journal::FedRack* fed_rack(const journal::CduSpec& spec, std::string_view rack) {
  const auto found = std::find_if(spec.racks().begin(), spec.racks().end(),
                                  [rack](const journal::FedRack& row) { return row.rack() == rack; });
  return found == spec.racks().end() ? nullptr : &*found;
}

const rack_need* live_need(const cdu_run& run, const std::string& rack, core::instant now) {
  const auto found = run.needs.find(rack);
  return found == run.needs.end() || found->second.until_ns <= now.monotonic_ns ? nullptr : &found->second;
}

// "2026-11-30 22:24:13 UTC" without a calendar: the wall clock is for people, and seconds from now say it
// better.
std::string left_of(std::int64_t until_wall_ns, const journal::Lease& lease) {
  return fmt::format("{} ({}), until wall time {} s", lease.holder(),
                     lease.reason().empty() ? "no reason given" : lease.reason(), until_wall_ns / ns_per_s);
}

absl::Status outside(std::string_view cdu, std::string_view word, std::string_view unit, double value,
                     double least, double most, std::string_view whose) {
  if (std::isfinite(value) && value >= least && value <= most) return absl::OkStatus();
  return core::make_fault(fault::SETPOINT_LIMIT,
                          fmt::format("{}: {} {} {} is not within {} to {} {} ({}); nothing was done", cdu,
                                      word, value, unit, least, most, unit, whose));
}

}  // namespace

bool is_fresh(const cdu_run& run, core::instant now) {
  return run.facts.has_value() && now.monotonic_ns - run.read_at_ns <= cdu_stale_ns;
}

// Silence of a rack's daemon does not say that the rack is off: it is then taken to need all.
double counted_flow_lpm(const cdu_state& state, const journal::FedRack& rack, core::instant now) {
  const rack_need* const need = live_need(state.run, rack.rack(), now);
  if (need != nullptr && need->flow_lpm.has_value()) return *need->flow_lpm;
  return BUSBAR_MUTANT(plant_silent_rack_needs_nothing) ? 0.0 : rack.rated_lpm();
}

// ---- what is stored and what is declared
cdu_state restore(journal::Cdu stored, core::instant now) {
  cdu_state state;
  state.cdu = std::move(stored);
  if (state.cdu.has_lease()) {
    const std::int64_t left =
        std::clamp<std::int64_t>(state.cdu.lease().until_wall_ns() - now.wall_ns, 0, longest_override_ns);
    state.run.lease_until_ns = now.monotonic_ns + left;
  }
  // Racks say again what they need; until they do, or their last lease is over, the last word counts.
  for (const journal::Demand& row : state.cdu.demands()) {
    if (!row.live()) continue;
    rack_need need;
    need.flow_lpm = row.flow_lpm();
    need.heat_kw = row.heat_kw();
    need.heard_ns = now.monotonic_ns;
    need.until_ns = now.monotonic_ns + usual_demand_ns;
    state.run.needs[row.rack()] = need;
  }
  return state;
}

journal::Cdu declare(const journal::CduSpec& spec, const journal::Cdu* known, const std::string& uid) {
  journal::Cdu cdu = known != nullptr ? *known : journal::Cdu();
  cdu.set_name(spec.name());
  if (cdu.uid().empty()) cdu.set_uid(uid);
  if (cdu.spec().SerializeAsString() != spec.SerializeAsString()) cdu.set_generation(cdu.generation() + 1);
  *cdu.mutable_spec() = spec;
  if (cdu.mode().empty()) cdu.set_mode("device");
  for (int i = cdu.demands_size() - 1; i >= 0; --i) {
    if (fed_rack(spec, cdu.demands(i).rack()) == nullptr) cdu.mutable_demands()->DeleteSubrange(i, 1);
  }
  return cdu;
}

// ---- who may command
absl::Status refuse_override(const cdu_state& state, const override_wanted& wanted) {
  const journal::Cdu& cdu = state.cdu;
  const journal::CduSpec& spec = cdu.spec();
  if (!wanted.supply_c && !wanted.dp_kpa)
    return absl::InvalidArgumentError("neither a supply temperature nor a pressure is given");
  if (wanted.lease_ns <= 0 || wanted.lease_ns > longest_override_ns) {
    return core::make_fault(
        fault::SETPOINT_LIMIT,
        fmt::format("{}: a lease of {} s is not within 1 s to {} s; nothing was done", cdu.name(),
                    wanted.lease_ns / ns_per_s, longest_override_ns / ns_per_s));
  }
  if (spec.authority() == "bms") {
    return absl::FailedPreconditionError(
        fmt::format("{} is commanded by the BMS (authority: bms); Busbar writes nothing to it", cdu.name()));
  }
  if (cdu.has_lease() && cdu.lease().holder() != wanted.holder) {
    return core::make_fault(fault::LEASE_HELD,
                            fmt::format("{} is held by {}; nothing was done", cdu.name(),
                                        left_of(cdu.lease().until_wall_ns(), cdu.lease())));
  }
  if (wanted.supply_c) {
    if (auto wrong = outside(cdu.name(), "supply", "C", *wanted.supply_c, spec.supply_min_c(),
                             spec.supply_max_c(), "supply_limits_c of its declaration");
        !wrong.ok())
      return wrong;
    if (state.run.dew.floor_c.has_value() && *wanted.supply_c < state.run.floor.floor_c) {
      const char* const why = state.run.floor.dew_point_c ? "the dew point of the room's air with its margin"
                                                          : "the floor while the room's air is not known";
      return core::make_fault(fault::SETPOINT_LIMIT,
                              fmt::format("{}: supply {} C is below {:.1f} C, {}; nothing was done",
                                          cdu.name(), *wanted.supply_c, state.run.floor.floor_c, why));
    }
  }
  if (!wanted.dp_kpa) return absl::OkStatus();
  return outside(cdu.name(), "pressure", "kPa", *wanted.dp_kpa, spec.dp_min_kpa(), spec.dp_max_kpa(),
                 "dp_limits_kpa of its declaration");
}

absl::Status refuse_release(const cdu_state& state, const std::string& holder) {
  const journal::Cdu& cdu = state.cdu;
  if (!cdu.has_lease())
    return absl::FailedPreconditionError(
        fmt::format("{} is held by nobody: there is nothing to release", cdu.name()));
  if (cdu.lease().holder() == holder) return absl::OkStatus();
  return core::make_fault(fault::LEASE_HELD,
                          fmt::format("{} is held by {}; only its holder releases it, else it lapses",
                                      cdu.name(), left_of(cdu.lease().until_wall_ns(), cdu.lease())));
}

// ---- the engine
journal::Event& plant_engine::tell(std::string_view type, std::string message, std::string_view severity) {
  out_.durable = true;
  journal::Event& event = out_.events.emplace_back();
  event.set_object(cdu().name());
  event.set_kind("cdu");
  event.set_type(std::string(type));
  event.set_severity(std::string(severity));
  event.set_message(std::move(message));
  event.set_operation_id(cdu().operation_id());
  return event;
}

void plant_engine::end_operation(std::string_view state, std::string_view fault, const std::string& message) {
  const std::string id = cdu().operation_id();
  if (id.empty()) return;
  act(core::component_update{id, cdu().name(), std::string(state), {}, std::string(fault), message});
  act(core::operation_end{id, std::string(state), std::string(fault), message});
  change().clear_operation_id();
}

void plant_engine::begin_override(const override_wanted& wanted) {
  if (const absl::Status refused = refuse_override(state_, wanted); !refused.ok()) {  // another was faster
    const auto code = core::fault_of(refused);
    const std::string name(code ? core::name_of(*code) : std::string_view());
    const std::string why(refused.message());
    act(core::component_update{wanted.operation_id, cdu().name(), "FAILED", {}, name, why});
    return act(core::operation_end{wanted.operation_id, "FAILED", name, why});
  }
  end_operation("CANCELLED", {}, "its holder asked anew");
  journal::Cdu& changed = change();
  changed.set_operation_id(wanted.operation_id);
  changed.set_mode("manual");
  journal::Lease& lease = *changed.mutable_lease();
  lease.set_holder(wanted.holder);
  lease.set_reason(wanted.reason);
  lease.set_until_wall_ns(now_.wall_ns + wanted.lease_ns);
  run().lease_until_ns = now_.monotonic_ns + wanted.lease_ns;
  tell("override_begun", fmt::format("{} holds it for {} s: {}", wanted.holder, wanted.lease_ns / ns_per_s,
                                     wanted.reason.empty() ? "no reason given" : wanted.reason));
  const auto take = [this](channel of, const std::optional<double>& value) {
    if (value) ask(of, *value, "an operator's override");
  };
  take(supply(), wanted.supply_c);
  take(dp(), wanted.dp_kpa);
}

void plant_engine::end_override(std::string_view type, const std::string& why) {
  const std::string holder = cdu().lease().holder();
  tell(type, fmt::format("{}'s override {}; the set-points move on from where they are", holder, why));
  journal::Cdu& changed = change();
  changed.clear_lease();
  run().lease_until_ns = core::never_ns;
  // No bump: the automatic set-points begin at what is in force.
  for (channel of : {supply(), dp()})
    of.run.target = of.row.has_asked() ? std::optional(of.row.asked()) : of.read;
  run().supervisor = {};
  run().pressure = {};
}

void plant_engine::expire() {
  if (cdu().has_lease() && now_.monotonic_ns >= run().lease_until_ns &&
      !BUSBAR_MUTANT(plant_lease_never_lapses)) {
    end_operation("CANCELLED", {}, "the lease lapsed first");
    end_override("override_lapsed", "lapsed");
  }
  if (cdu().has_lease() && run().lease_until_ns > now_.monotonic_ns) wake_by(run().lease_until_ns);
  for (const auto& [rack, need] : run().needs) {
    if (need.until_ns > now_.monotonic_ns) wake_by(need.until_ns);
  }
}

void plant_engine::take_demand(const demand_heard& demand) {
  if (fed_rack(spec(), demand.rack) == nullptr) return;
  rack_need& need = run().needs[demand.rack];
  const auto sane = [](const std::optional<double>& value) {
    return value.has_value() && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
  };
  need.flow_lpm = sane(demand.flow_lpm);
  need.heat_kw = sane(demand.heat_kw);
  need.valve_percent = sane(demand.valve_percent);
  need.short_of_flow = demand.short_of_flow;
  need.heard_ns = now_.monotonic_ns;
  need.until_ns = now_.monotonic_ns + std::clamp<std::int64_t>(demand.lease_ns, ns_per_s, longest_demand_ns);
}

// Beginnings and lapses at once; how much, when it has moved far, and then not more often than every 10 s.
void plant_engine::keep_demands() {
  constexpr std::int64_t pause_ns = 10 * ns_per_s;
  const bool paused =
      run().demands_written_ns != INT64_MIN && now_.monotonic_ns - run().demands_written_ns < pause_ns;
  for (const journal::FedRack& rack : spec().racks()) {
    const rack_need* const need = live_need(run(), rack.rack(), now_);
    const auto rows = cdu().demands();
    const auto known = std::find_if(rows.begin(), rows.end(),
                                    [&rack](const auto& row) { return row.rack() == rack.rack(); });
    const bool was_live = known != rows.end() && known->live();
    const double flow = need != nullptr ? need->flow_lpm.value_or(rack.rated_lpm()) : rack.rated_lpm();
    const bool far =
        known == rows.end() || std::abs(known->flow_lpm() - flow) > std::max(10.0, 0.1 * rack.rated_lpm());
    if (need == nullptr ? !was_live : was_live && (!far || paused)) continue;
    journal::Demand row;
    row.set_rack(rack.rack());
    row.set_live(need != nullptr);
    row.set_flow_lpm(flow);
    if (need != nullptr) row.set_heat_kw(need->heat_kw.value_or(0));
    row.set_until_wall_ns(need == nullptr ? 0 : now_.wall_ns + need->until_ns - now_.monotonic_ns);
    journal::Cdu& changed = change();
    if (known == rows.end()) {
      *changed.add_demands() = row;
    } else {
      *changed.mutable_demands(static_cast<int>(known - rows.begin())) = row;
    }
    run().demands_written_ns = now_.monotonic_ns;
    if (need == nullptr) {
      tell("demand_lapsed",
           fmt::format("{} is not heard any more; it counts with its rated {} L/min", rack.rack(),
                       rack.rated_lpm()),
           "warning");
    } else if (!was_live) {
      tell("demand_begun", fmt::format("{} asks for {:.0f} L/min", rack.rack(), flow));
    }
  }
}

void plant_engine::set_mode() {
  std::string mode = "automatic", waits;
  if (spec().authority() == "bms") {
    mode = "device";
    waits = "nobody: the BMS commands it";
  } else if (!fresh()) {
    mode = "device";
    waits = run().last_error.empty() ? "a reading of the CDU" : "the CDU to answer: " + run().last_error;
  } else if (cdu().has_lease()) {
    mode = "manual";
  }
  for (const channel& of : {supply(), dp()}) {
    if (of.row.proof() == "waiting" && waits.empty())
      waits = fmt::format("the CDU to be read at {} {} {}", of.word, of.row.asked(), of.unit);
  }
  if (cdu().mode() != mode) {
    tell("mode_changed", fmt::format("{} -> {}", cdu().mode().empty() ? "unknown" : cdu().mode(), mode));
    change().set_mode(mode);
  }
  if (cdu().waits_for() != waits) change().set_waits_for(waits);
}

void plant_engine::take(const cdu_event& event) {
  if (run().began_ns == core::never_ns) run().began_ns = now_.monotonic_ns;
  if (const auto* read = std::get_if<cdu_read>(&event)) take_read(*read);
  if (const auto* answer = std::get_if<write_answered>(&event)) take_answer(*answer);
  if (const auto* demand = std::get_if<demand_heard>(&event)) take_demand(*demand);
  if (const auto* wanted = std::get_if<override_wanted>(&event)) begin_override(*wanted);
  if (const auto* released = std::get_if<override_released>(&event)) {
    end_operation("CANCELLED", {}, "released");
    if (cdu().has_lease()) end_override("override_released", "was released");
    change().set_operation_id(released->operation_id);
    end_operation("SUCCEEDED", {}, "released; the set-points move on by themselves");
  }
  if (const auto* cancelled = std::get_if<operation_cancelled>(&event);
      cancelled != nullptr && !cdu().operation_id().empty() &&
      cdu().operation_id() == cancelled->operation_id) {
    end_operation("CANCELLED", {}, "cancelled; the override ends with it");
    if (cdu().has_lease()) end_override("override_released", "was cancelled");
  }
  expire();
  prove(supply());
  prove(dp());
  finish_operation();
  if (std::holds_alternative<cdu_read>(event)) decide();
  keep_demands();
  set_mode();
  judge();
}

cdu_step step(cdu_state& state, const cdu_event& event, core::instant now) {
  cdu_step out;
  plant_engine(state, now, out).take(event);
  return out;
}

}  // namespace busbar::plant
