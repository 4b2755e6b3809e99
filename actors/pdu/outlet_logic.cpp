#include "actors/pdu/outlet_logic.hpp"

#include <fmt/format.h>

#include <limits>

namespace busbar::pdu {
namespace {

using devices::outlet_act;
using devices::outlet_state;
using effects = std::vector<outlet_effect>;

std::string text_of(const devices::outlet_facts& facts) {
  std::string text(devices::name_of(facts.state));
  if (!facts.raw_state.empty()) text += fmt::format(" ({})", facts.raw_state);
  if (facts.current_a.has_value()) text += fmt::format(", {:.2f} A", *facts.current_a);
  return text;
}

void finish(outlet_record& outlet, verdict how, std::string why, effects& out) {
  out.emplace_back(resolved{outlet.under_way->what.ticket, how, std::move(why)});
  outlet.under_way.reset();
}

bool reached(const outlet_record& outlet) {
  const outlet_state wanted = outlet.under_way->aim == outlet_act::on ? outlet_state::on : outlet_state::off;
  return state_of(outlet.seen, outlet.limits) == wanted;
}

void aim_at(outlet_record& outlet, outlet_act act, std::int64_t now_ns, effects& out) {
  auto& order = *outlet.under_way;
  order.aim = act;
  order.sent = true;
  order.resting = false;
  order.deadline_ns = now_ns + outlet.limits.verify_ns;
  order.next_ns = now_ns + outlet.limits.read_every_ns;
  out.emplace_back(ask{act});
}

void take(outlet_record& outlet, const commanded& event, std::int64_t now_ns, effects& out) {
  if (outlet.under_way.has_value()) {
    const auto& order = *outlet.under_way;
    out.emplace_back(
        refused{event.ticket, fmt::format("{}: {} asked for {} and it is under way; wait for its end",
                                          outlet.name, order.what.by, name_of(order.what.what))});
    return;
  }
  outlet.under_way = outlet_record::order();
  outlet.under_way->what = event;
  // The state is read first: what is there already is not switched, and a cycle of what is off is an on.
  outlet.under_way->deadline_ns = now_ns + outlet.limits.verify_ns;
  outlet.under_way->next_ns = now_ns + outlet.limits.read_every_ns;
  outlet.under_way->aim = event.what == wish::on ? outlet_act::on : outlet_act::off;
  out.emplace_back(read_now{});
}

void take(outlet_record& outlet, const asked& event, std::int64_t, effects& out) {
  if (!outlet.under_way.has_value() || event.status.ok()) return;
  // An answer that was lost leaves open whether the PDU obeys: the reading tells. A refusal does not.
  const bool lost = absl::IsDeadlineExceeded(event.status) || absl::IsUnavailable(event.status);
  outlet.under_way->last_trouble = std::string(event.status.message());
  if (!lost)
    finish(outlet, verdict::failed, fmt::format("{}: {}", outlet.name, outlet.under_way->last_trouble), out);
}

// The aim of the order is reached.
void advance(outlet_record& outlet, std::int64_t now_ns, effects& out) {
  auto& order = *outlet.under_way;
  if (order.what.what != wish::cycle || order.second_half) {
    finish(outlet, verdict::proven, text_of(outlet.seen), out);
    return;
  }
  order.second_half = true;
  order.resting = true;
  order.next_ns = now_ns + (order.sent ? outlet.limits.rest_ns : 0);
  order.deadline_ns = order.next_ns + outlet.limits.verify_ns;
}

void take(outlet_record& outlet, const read& event, std::int64_t now_ns, effects& out) {
  if (!event.status.ok()) {
    if (outlet.under_way.has_value()) outlet.under_way->last_trouble = std::string(event.status.message());
    return;
  }
  outlet.seen = event.facts;
  outlet.seen_at_ns = now_ns;
  if (!outlet.under_way.has_value() || outlet.under_way->resting) return;
  if (reached(outlet)) {
    advance(outlet, now_ns, out);
  } else if (!outlet.under_way->sent) {
    aim_at(outlet, outlet.under_way->aim, now_ns, out);
  }
}

void take(outlet_record& outlet, const wake&, std::int64_t now_ns, effects& out) {
  if (!outlet.under_way.has_value()) return;
  auto& order = *outlet.under_way;
  if (order.resting) {
    if (now_ns >= order.next_ns) aim_at(outlet, outlet_act::on, now_ns, out);
    return;
  }
  if (now_ns >= order.deadline_ns) {
    const bool known = outlet.seen_at_ns.has_value() &&
                       *outlet.seen_at_ns >= order.deadline_ns - outlet.limits.verify_ns &&
                       state_of(outlet.seen, outlet.limits) != outlet_state::unknown;
    const std::string seen = outlet.seen_at_ns.has_value() ? text_of(outlet.seen) : "never read";
    const std::string trouble =
        order.last_trouble.empty() ? "" : fmt::format("; last trouble: {}", order.last_trouble);
    finish(outlet, known ? verdict::failed : verdict::unproven,
           fmt::format("{}: {} was asked, seen {} s later: {}{}", outlet.name, devices::name_of(order.aim),
                       outlet.limits.verify_ns / 1'000'000'000, seen, trouble),
           out);
    return;
  }
  if (now_ns >= order.next_ns) {
    order.next_ns = now_ns + outlet.limits.read_every_ns;
    out.emplace_back(read_now{});
  }
}

}  // namespace

std::string_view name_of(wish what) {
  switch (what) {
    case wish::on:
      return "on";
    case wish::off:
      return "off";
    case wish::cycle:
      return "cycle";
  }
  return "on";
}

std::string_view name_of(verdict what) {
  switch (what) {
    case verdict::proven:
      return "proven";
    case verdict::unproven:
      return "unproven";
    case verdict::failed:
      return "failed";
  }
  return "unproven";
}

outlet_state state_of(const devices::outlet_facts& facts, const outlet_limits& limits) {
  const bool flows = facts.current_a.has_value() && *facts.current_a > limits.dead_current_a;
  return facts.state == outlet_state::off && flows ? outlet_state::on : facts.state;
}

std::vector<outlet_effect> step(outlet_record& outlet, const outlet_event& event, std::int64_t now_ns) {
  effects out;
  std::visit([&outlet, now_ns, &out](const auto& one) { take(outlet, one, now_ns, out); }, event);
  return out;
}

std::int64_t next_wake_ns(const outlet_record& outlet) {
  if (!outlet.under_way.has_value()) return std::numeric_limits<std::int64_t>::max();
  return std::min(outlet.under_way->next_ns, outlet.under_way->deadline_ns);
}

}  // namespace busbar::pdu
