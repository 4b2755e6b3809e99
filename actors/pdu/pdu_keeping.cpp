#include "actors/pdu/pdu_keeping.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "actors/core/errors.hpp"

namespace busbar::pdu {
namespace {

using core::fault;
using core::make_fault;

std::string argument(const core::command& what, const std::string& key) {
  const auto found = what.arguments.find(key);
  return found == what.arguments.end() ? std::string() : found->second;
}

std::optional<wish> wish_named(std::string_view word) {
  for (const wish each : {wish::on, wish::off, wish::cycle}) {
    if (name_of(each) == word) return each;
  }
  return std::nullopt;
}

journal::Outlet::State to_state(devices::outlet_state state) {
  if (state == devices::outlet_state::on) return journal::Outlet::ON;
  return state == devices::outlet_state::off ? journal::Outlet::OFF : journal::Outlet::UNKNOWN;
}

journal::Outlet* row_of(journal::Pdu& record, const std::string& id) {
  auto& rows = *record.mutable_outlets();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&id](const journal::Outlet& row) { return row.id() == id; });
  return found == rows.end() ? nullptr : &*found;
}

class keeping {
 public:
  keeping(keeper& kept, core::instant now, keeping_step& out) : kept_(kept), now_(now), out_(out) {}

  void on(const tick&) {}
  void on(const outlets_read& what);
  void on(const outlet_answered& what);
  void on(const operation_began& what);
  void finish();

 private:
  journal::Pdu& change() {
    out_.durable = true;
    return kept_.record;
  }
  void feed(outlet_record& outlet, const outlet_event& what);
  void resolve(const outlet_record& outlet, const resolved& how);
  void take_facts(outlet_record& outlet, const devices::outlet_facts& facts);
  void close_intent(const std::string& outlet);
  void wake_outlets();
  void judge_reach();
  void take_up_again(outlet_record& outlet);
  journal::Event& tell(std::string_view type, const std::string& message, std::string_view severity = "info");
  std::string id_of(const outlet_record& outlet) const {
    return outlet.name.substr(kept_.record.name().size() + 1);
  }

  keeper& kept_;
  const core::instant now_;
  keeping_step& out_;
};

journal::Event& keeping::tell(std::string_view type, const std::string& message, std::string_view severity) {
  out_.durable = true;
  journal::Event& row = out_.events.emplace_back();
  row.set_object(kept_.record.name());
  row.set_kind("pdu");
  row.set_type(std::string(type));
  row.set_severity(std::string(severity));
  row.set_message(message);
  row.mutable_principal()->set_name("daemon");
  row.mutable_principal()->set_role("system");
  return row;
}

void keeping::close_intent(const std::string& outlet) {
  auto& intents = *kept_.record.mutable_intents();
  for (int i = intents.size() - 1; i >= 0; --i) {
    if (intents[i].arguments().at("outlet") != outlet) continue;
    out_.durable = true;
    out_.intents_closed.push_back(intents[i].id());
    intents.DeleteSubrange(i, 1);
  }
}

void keeping::resolve(const outlet_record& outlet, const resolved& how) {
  const std::string id = id_of(outlet);
  close_intent(id);
  journal::Outlet* const row = row_of(change(), id);
  if (row != nullptr) {
    row->set_proof(std::string(name_of(how.how)));
    row->set_message(how.why);
  }
  tell("outlet_" + std::string(name_of(how.how)), fmt::format("outlet {}: {}", id, how.why),
       how.how == verdict::proven ? "info" : "warning");
  auto ticket = kept_.tickets.extract(how.ticket);
  if (ticket.empty() || ticket.mapped().empty()) return;
  const std::string& operation = ticket.mapped();
  const bool good = how.how == verdict::proven;
  const std::string code(good                           ? std::string_view()
                         : how.how == verdict::unproven ? core::name_of(fault::OUTLET_UNPROVEN)
                                                        : core::name_of(fault::OUTLET_NOT_SWITCHED));
  const std::string state = good ? "SUCCEEDED" : "FAILED";
  out_.effects.emplace_back(core::component_update{operation, kept_.record.name(), state, {}, code, how.why});
  out_.effects.emplace_back(core::operation_end{operation, state, code, how.why});
}

void keeping::feed(outlet_record& outlet, const outlet_event& what) {
  for (const outlet_effect& each : step(outlet, what, now_.monotonic_ns)) {
    if (const auto* act = std::get_if<ask>(&each)) {
      out_.effects.emplace_back(ask_outlet{id_of(outlet), act->act});
    } else if (std::holds_alternative<read_now>(each)) {
      kept_.next_read_ns = now_.monotonic_ns;
    } else if (const auto* how = std::get_if<resolved>(&each)) {
      resolve(outlet, *how);
    }
  }
}

void keeping::take_facts(outlet_record& outlet, const devices::outlet_facts& facts) {
  feed(outlet, read{absl::OkStatus(), facts});
  const std::string id = id_of(outlet);
  journal::Outlet* const row = row_of(kept_.record, id);
  if (row == nullptr) return;
  const auto state = to_state(state_of(facts, outlet.limits));
  const bool same = row->state() == state && row->label() == facts.name;
  if (same) return;
  if (row->state() != state && row->observed_wall_ns() != 0)
    tell("outlet_read",
         fmt::format("outlet {} is read {}{}", id, devices::name_of(state_of(facts, outlet.limits)),
                     facts.raw_state.empty() ? "" : " (" + facts.raw_state + ")"));
  out_.durable = true;
  row->set_state(state);
  row->set_label(facts.name);
  row->set_observed_wall_ns(now_.wall_ns);
}

void keeping::on(const outlets_read& what) {
  if (!what.outlets.ok()) {
    kept_.trouble = std::string(what.outlets.status().message());
    for (auto& [id, outlet] : kept_.outlets) feed(outlet, read{what.outlets.status(), {}});
    return;
  }
  kept_.trouble.clear();
  kept_.read_at_ns = now_.monotonic_ns;
  for (const devices::outlet_facts& facts : *what.outlets) {
    const auto found = kept_.outlets.find(facts.id);
    if (found != kept_.outlets.end()) take_facts(found->second, facts);
  }
  for (auto& [id, outlet] : kept_.outlets) {
    const bool shown = std::any_of(what.outlets->begin(), what.outlets->end(),
                                   [&id = id](const devices::outlet_facts& facts) { return facts.id == id; });
    if (!shown) feed(outlet, read{absl::NotFoundError("the PDU shows no such outlet"), {}});
    take_up_again(outlet);
  }
}

// An intent of the life before: what was wished is looked at, not done blindly again.
void keeping::take_up_again(outlet_record& outlet) {
  if (outlet.under_way.has_value()) return;
  const std::string id = id_of(outlet);
  for (const journal::Intent& open : kept_.record.intents()) {
    if (open.arguments().at("outlet") != id) continue;
    const std::uint64_t ticket = kept_.next_ticket++;
    kept_.tickets[ticket] = open.operation_id();
    const wish wanted = wish_named(open.arguments().at("wish")).value_or(wish::off);
    const bool is_on = state_of(outlet.seen, outlet.limits) == devices::outlet_state::on;
    if (wanted == wish::cycle && (is_on || !outlet.seen_at_ns)) {
      return resolve(outlet,
                     resolved{ticket, verdict::unproven,
                              "the daemon ended in the middle of a cycle; it is read on, whether it was off "
                              "is not known"});
    }
    return feed(outlet,
                commanded{wanted == wish::cycle ? wish::on : wanted, "a command before the restart", ticket});
  }
}

void keeping::on(const outlet_answered& what) {
  const auto found = kept_.outlets.find(what.outlet);
  if (found != kept_.outlets.end()) feed(found->second, asked{what.status});
}

void keeping::on(const operation_began& what) {
  const std::string id = argument(what.what, "outlet");
  const std::string word = argument(what.what, "wish");
  const auto found = kept_.outlets.find(id);
  if (found == kept_.outlets.end()) return;
  journal::Pdu& record = change();
  journal::Intent& intent = *record.add_intents();
  intent.set_id(fmt::format("{}/{}/{}", record.name(), id, record.next_intent()));
  record.set_next_intent(record.next_intent() + 1);
  intent.set_object(record.name());
  intent.set_verb("outlet_switch");
  (*intent.mutable_arguments())["outlet"] = id;
  (*intent.mutable_arguments())["wish"] = word;
  intent.set_operation_id(what.operation_id);
  out_.intents_opened.push_back(intent);
  if (journal::Outlet* const row = row_of(record, id)) {
    row->set_wanted(word);
    row->set_proof("waiting");
    row->clear_message();
  }
  journal::Event& told = tell(
      "outlet_commanded",
      fmt::format("outlet {}: {} asks for {}: {}", id, what.what.principal.name(), word, what.what.reason));
  *told.mutable_principal() = what.what.principal;
  told.set_operation_id(what.operation_id);
  const std::uint64_t ticket = kept_.next_ticket++;
  kept_.tickets[ticket] = what.operation_id;
  feed(found->second, commanded{*wish_named(word), what.what.principal.name(), ticket});
}

// Not read for a while: no outlet is known any more, and that is shown.
void keeping::judge_reach() {
  const std::int64_t since_ns = std::max(kept_.read_at_ns, kept_.began_ns);
  const bool silent = now_.monotonic_ns - since_ns > unread_after_ns;
  const bool read_once = kept_.read_at_ns > INT64_MIN / 2;
  auto& rows = *kept_.record.mutable_conditions();
  const bool shown = !rows.empty();
  if (silent && !shown) {
    const std::string why = kept_.trouble.empty() ? "it does not answer" : kept_.trouble;
    journal::Condition& row = *change().add_conditions();
    row.set_type(std::string(core::name_of(fault::PDU_UNREACHABLE)));
    row.set_message(why);
    row.set_health(journal::HEALTH_UNKNOWN);
    row.set_since_wall_ns(now_.wall_ns);
    for (journal::Outlet& outlet : *kept_.record.mutable_outlets())
      outlet.set_state(journal::Outlet::UNKNOWN);
    tell("condition_set", why, "warning").set_fault(std::string(core::name_of(fault::PDU_UNREACHABLE)));
  } else if (!silent && shown && read_once && kept_.trouble.empty()) {
    change().clear_conditions();
    tell("condition_cleared", "the PDU is read again");
  }
  const bool known = read_once && !silent;
  const journal::Health health = known ? journal::HEALTH_GOOD : journal::HEALTH_UNKNOWN;
  if (kept_.record.health() != health && (known || silent)) change().set_health(health);
}

void keeping::wake_outlets() {
  for (auto& [id, outlet] : kept_.outlets) {
    if (next_wake_ns(outlet) <= now_.monotonic_ns) feed(outlet, wake{});
  }
}

void keeping::finish() {
  wake_outlets();
  judge_reach();
  if (kept_.next_read_ns <= now_.monotonic_ns) {
    kept_.next_read_ns = now_.monotonic_ns + rest_interval_ns;
    out_.effects.emplace_back(read_bank{});
  }
  out_.wake_at_ns = kept_.next_read_ns;
  for (const auto& [id, outlet] : kept_.outlets)
    out_.wake_at_ns = std::min(out_.wake_at_ns, next_wake_ns(outlet));
}

}  // namespace

void declare_outlets(journal::Pdu& pdu) {
  const journal::Pdu before = pdu;
  pdu.clear_outlets();
  for (const journal::OutletSpec& declared : pdu.spec().outlets()) {
    journal::Outlet& row = *pdu.add_outlets();
    for (const journal::Outlet& old : before.outlets()) {
      if (old.id() == declared.id()) row = old;
    }
    row.set_id(declared.id());
    row.set_feeds(declared.feeds());
    if (row.proof().empty()) row.set_proof("none");
  }
}

journal::Pdu declared_pdu(const std::string& rack, const journal::PduSpec& spec, std::string uid) {
  journal::Pdu made;
  made.set_name(rack + "/" + spec.name());
  made.set_uid(std::move(uid));
  *made.mutable_spec() = spec;
  made.set_generation(1);
  declare_outlets(made);
  return made;
}

keeper begin_keeping(journal::Pdu record, core::instant now) {
  keeper kept;
  for (const journal::Outlet& row : record.outlets()) {
    outlet_record& outlet = kept.outlets[row.id()];
    outlet.name = record.name() + "/" + row.id();
  }
  kept.record = std::move(record);
  kept.began_ns = now.monotonic_ns;
  kept.next_read_ns = now.monotonic_ns;
  return kept;
}

absl::Status refuse(const keeper& kept, const core::command& what, const dependants& needs) {
  if (what.verb != "outlet_switch")
    return absl::InvalidArgumentError(fmt::format("a PDU does not know {}", what.verb));
  const std::string id = argument(what, "outlet");
  const std::optional<wish> wanted = wish_named(argument(what, "wish"));
  if (!wanted)
    return absl::InvalidArgumentError(
        fmt::format("'{}' is no wish: on, off or cycle", argument(what, "wish")));
  if (what.reason.empty() && !what.validate_only)
    return absl::InvalidArgumentError(fmt::format("{} of {} needs a reason", what.verb, what.target));
  const auto found = kept.outlets.find(id);
  if (found == kept.outlets.end()) {
    std::vector<std::string> known;
    for (const auto& [name, outlet] : kept.outlets) known.push_back(name);
    return make_fault(
        fault::UNKNOWN_TARGET,
        fmt::format("{} has no outlet {} in the manifest, so what it feeds is not known; it has: {}",
                    kept.record.name(), id, fmt::join(known, ", ")));
  }
  if (found->second.under_way.has_value()) {
    return make_fault(
        fault::LEASE_HELD,
        fmt::format("{}: {} asked for {} and it is under way; wait for its end", found->second.name,
                    found->second.under_way->what.by, name_of(found->second.under_way->what.what)));
  }
  if (*wanted == wish::on) return absl::OkStatus();
  const std::vector<std::string> losing = needs(id);
  if (losing.empty()) return absl::OkStatus();
  return make_fault(
      fault::OUTLET_FEEDS_HOSTS,
      fmt::format("outlet {} not turned off: {} would lose power that {} needed, and no other feed is read "
                  "on; turn the hosts off first (busbar rack shutdown), or see the other feed on",
                  found->second.name, fmt::join(losing, ", "), losing.size() == 1 ? "is" : "are"));
}

std::string would_do(const keeper& kept, const core::command& what) {
  const std::string id = argument(what, "outlet");
  std::string feeds = "nothing declared";
  std::string state = "unknown";
  for (const journal::Outlet& row : kept.record.outlets()) {
    if (row.id() != id) continue;
    if (!row.feeds().empty()) feeds = row.feeds();
    state = row.state() == journal::Outlet::ON    ? "on"
            : row.state() == journal::Outlet::OFF ? "off"
                                                  : "unknown";
  }
  return fmt::format("valid; nothing was done. It would turn outlet {}/{} {} (now {}); it feeds {}",
                     kept.record.name(), id, argument(what, "wish"), state, feeds);
}

keeping_step step(keeper& kept, const keeping_event& what, core::instant now) {
  keeping_step out;
  keeping next(kept, now, out);
  std::visit([&next](const auto& each) { next.on(each); }, what);
  next.finish();
  return out;
}

}  // namespace busbar::pdu
