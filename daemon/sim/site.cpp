#include "daemon/sim/site.hpp"

#include <cmath>
#include <utility>

#include "daemon/sim/fault_target.hpp"
#include "daemon/sim/json.hpp"
#include "daemon/sim/site_model.hpp"

namespace busbar::sim {

namespace {
constexpr double median_service_s = 0.015;
constexpr double service_sigma =
    0.9898;  // ln(150 ms / 15 ms) / 2.3263: the 99th percentile is ten times the median
}  // namespace

absl::StatusOr<std::unique_ptr<site>> site::make(const site_options& options) {
  const auto timings = profile_named(options.profile);
  if (!timings.ok()) {
    return timings.status();
  }
  const auto sku = sku_named(options.sku);
  if (!sku.ok()) {
    return sku.status();
  }
  if (options.racks < 1 || options.racks > 199) {
    return absl::InvalidArgumentError("racks must be from 1 to 199: rack n answers on 127.18.n.x");
  }
  return std::unique_ptr<site>(std::make_unique<site_model>(options, *timings, *sku));
}

http_reply site_model::handle(const std::string& address, const http_request& request, instant now) {
  advance(now);
  const auto found = by_address_.find(address);
  if (found == by_address_.end() || !found->second->reachable()) {
    http_reply silent;
    silent.status = 0;
    return silent;
  }
  request_note note;
  http_reply reply = found->second->handle(request, now, note);
  if (hooks_.on_request) {
    journal_record record;
    record.number = ++requests_;
    record.received = request.received.count() == 0 ? now : request.received;
    record.answered = now;
    record.device = found->second->identity().member;
    record.address = address;
    record.peer = request.peer;
    record.method = request.method;
    record.path = request.target;
    record.user = note.user;
    record.status = reply.status;
    record.act = note.act;
    record.argument = note.argument;
    hooks_.on_request(record);
    reply.number = record.number;
  }
  return reply;
}

std::string to_json(const journal_record& record) {
  const json line = {{"number", record.number},
                     {"received_ns", record.received.count()},
                     {"answered_ns", record.answered.count()},
                     {"device", record.device},
                     {"address", record.address},
                     {"peer", record.peer},
                     {"method", record.method},
                     {"path", record.path},
                     {"user", record.user},
                     {"status", record.status},
                     {"act", record.act},
                     {"argument", record.argument}};
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool site_model::reachable(const std::string& address, instant now) {
  advance(now);
  const auto found = by_address_.find(address);
  return found != by_address_.end() && found->second->reachable();
}

std::vector<std::string> site_model::metric_reports(const std::string& address, instant now) {
  advance(now);
  std::vector<std::string> all;
  const auto found = by_address_.find(address);
  if (found == by_address_.end() || !found->second->reachable()) {
    return all;
  }
  for (const json& report : found->second->metric_reports(now)) {
    all.push_back(report.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  return all;
}

instant site_model::service_time(const std::string& address, instant now) {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) {
    return instant{0};
  }
  const device* const served = found->second;
  double seconds = median_service_s * std::exp(service_sigma * service_.at(served).gaussian());
  if (const fault* const slow = faults_.find(fault_kind::slow_bmc, served->identity().member, now)) {
    seconds *= slow->severity;
  }
  return std::chrono::duration_cast<instant>(std::chrono::duration<double>(seconds));
}

void site_model::advance(instant now) {
  while (true) {
    const auto next = agenda_.next();
    const bool due = next && *next <= now;
    const instant stop = due ? *next : now;
    if (now_ < stop) {
      move_physics(stop);  // a hot die may put something in before `stop`
    } else if (due) {
      const auto entry = agenda_.take(now);
      entry->second(std::max(entry->first, now_));
    } else {
      return;
    }
  }
}

absl::Status site_model::check_fault(const fault_request& request) const {
  const fault_text* const kind = fault_named(request.kind);
  if (kind == nullptr) {
    return absl::InvalidArgumentError("no fault of kind " + request.kind +
                                      "; busbar-sim fault kinds lists them");
  }
  const fault_place on = place_of(request.target);
  const absl::Status fits = check_fault_member(*kind, on);
  if (!fits.ok()) {
    return fits;
  }
  const device* const member = find_member(on.member);
  if (member == nullptr) {
    return absl::NotFoundError("there is no " + on.member);
  }
  return check_fault_target(
      *kind, on, sku_,
      {member->detectors(), member->firmware_components(), member->sensors(), member->outlets()});
}

absl::StatusOr<std::uint64_t> site_model::add_fault(const fault_request& request, instant now) {
  advance(now);
  const absl::Status fits = check_fault(request);
  if (!fits.ok()) {
    return fits;
  }
  const auto id = faults_.add(request, now);
  if (!id.ok()) {
    return id;
  }
  const fault added = faults_.all().back();
  agenda_.at(added.from, [this](instant when) { apply_faults(when); });
  if (added.kind == fault_kind::event_storm && added.severity > 0) {
    agenda_.at(added.from, [this, member = added.member](instant when) { blow(member, when); });
  }
  if (added.kind == fault_kind::burst) {
    agenda_.at(added.from + wetting_delay, [this](instant when) { apply_faults(when); });
  }
  if (added.until) {
    agenda_.at(*added.until, [this](instant when) { apply_faults(when); });
  }
  advance(now);
  return id;
}

std::size_t site_model::clear_faults(std::string_view kind, std::string_view target, instant now) {
  advance(now);
  const std::size_t cleared = faults_.clear(kind, target);
  apply_faults(now);
  return cleared;
}

std::vector<fault_row> site_model::faults(instant now) const {
  std::vector<fault_row> rows;
  for (const fault& each : faults_.all()) {
    rows.push_back({each, now >= each.from && (!each.until || now < *each.until)});
  }
  return rows;
}

std::optional<double> site_model::fault_severity(fault_kind kind, const std::string& member,
                                                 instant now) const {
  const fault* const found = faults_.find(kind, member, now);
  return found == nullptr ? std::nullopt : std::optional(found->severity);
}

bool site_model::fault_active(fault_kind kind, const std::string& member, instant now) const {
  return faults_.find(kind, member, now) != nullptr;
}

void site_model::apply_faults(instant now) {
  loop_.apply(faults_, now);
  for (const auto& each : devices_) {
    each->faults_changed(now);
  }
  refresh_power();
  if (hooks_.on_certificate_changed) {
    for (const auto& [address, unused] : by_address_) {
      hooks_.on_certificate_changed(address);
    }
  }
  if (hooks_.on_leases_changed) {
    hooks_.on_leases_changed();
  }
}

// One alarm of a storm, and the next.
void site_model::blow(const std::string& member, instant now) {
  const fault* const storm = faults_.find(fault_kind::event_storm, member, now);
  const device* const source = find_member(member);
  if (storm == nullptr || source == nullptr) {
    return;
  }
  if (source->reachable()) {
    event(*source, "ResourceEvent.1.4.ResourceErrorThresholdExceeded", "A correctable error was counted.",
          "/redfish/v1/Systems/System_0");
  }
  const auto pause = std::chrono::duration_cast<instant>(std::chrono::duration<double>(1 / storm->severity));
  agenda_.at(now + pause, [this, member](instant when) { blow(member, when); });
}

void site_model::event(const device& source, std::string message_id, std::string message,
                       std::string origin) {
  if (!hooks_.on_event) {
    return;
  }
  const std::string id = std::to_string(++events_);
  const json record = {{"EventType", "Event"},
                       {"EventId", id},
                       {"EventTimestamp", wall(now_)},
                       {"MessageId", std::move(message_id)},
                       {"Message", std::move(message)},
                       {"MessageArgs", json::array()},
                       {"MemberId", "0"},
                       {"Severity", "OK"},
                       {"OriginOfCondition", {{"@odata.id", std::move(origin)}}}};
  const json body = {{"@odata.type", "#Event.v1_11_0.Event"},
                     {"Id", id},
                     {"Name", "Event Log"},
                     {"Events", json::array({record})}};
  hooks_.on_event(source.identity().address, body.dump());
}

absl::StatusOr<std::string> site_model::truth(std::string_view path, instant now) {
  advance(now);
  json whole = {{"site",
                 {{"sku", sku_.name},
                  {"profile", timings_.name},
                  {"seed", options_.seed},
                  {"heat_imbalance", loop_.plant().heat_balance_error()},
                  {"requests", requests_}}},
                {"cdu01", cdu_->truth(now)}};
  for (std::size_t index = 0; index < racks_.size(); ++index) {
    json rack = {{"compute_on", 0}, {"switch_on", 0}, {"shelves_on", 0}};
    const auto add = [&rack, now](const device& each, const char* counter, bool counts) {
      const std::string& member = each.identity().member;
      rack[member.substr(member.find('/') + 1)] = each.truth(now);
      rack[counter] = rack[counter].get<int>() + (counts ? 1 : 0);
    };
    for (const compute_tray* const each : racks_[index].compute) {
      add(*each, "compute_on", each->host_running());
    }
    for (const switch_tray* const each : racks_[index].switches) {
      add(*each, "switch_on", each->host_running());
    }
    for (const power_shelf* const each : racks_[index].shelves) {
      add(*each, "shelves_on", each->output_on());
    }
    if (const device* const controller = find_member(racks().at(index) + "/m01")) {
      rack["m01"] = controller->truth(now);
      rack["valves"] = rack["m01"]["valves"];
    }
    for (const rack_pdu* const each : racks_[index].pdus) {
      const std::string name = each->identity().member.substr(each->identity().member.find('/') + 1);
      rack[name] = each->truth(now);
      rack["pdus"][name] = rack[name]["outlets"];
    }
    const int number = static_cast<int>(index) + 1;
    const rack_coolant flow = coolant(number);
    rack["flow_lpm"] = flow.flow_lpm;
    rack["return_c"] = flow.return_c;
    rack["power_kw"] = rack_power_w(number) / 1000.0;
    rack["fabric_active"] = fabric_active(number);
    whole[racks().at(index)] = std::move(rack);
  }
  const json* at = &whole;
  while (!path.empty()) {
    const std::string segment(path.substr(0, path.find('/')));
    path.remove_prefix(std::min(path.size(), segment.size() + 1));
    const auto next = at->is_object() ? at->find(segment) : at->end();
    if (!at->is_object() || next == at->end()) {
      return absl::NotFoundError("the simulator has no " + segment);
    }
    at = &*next;
  }
  return at->dump();
}

std::string site_model::save() const {
  json saved = {{"sku", sku_.name}, {"racks", options_.racks}, {"seed", options_.seed}};
  for (const auto& each : devices_) {
    saved["devices"][each->identity().member] = each->save();
  }
  return saved.dump(1);
}

absl::Status site_model::restore(const std::string& saved, instant now) {
  advance(now);
  const json data = json::parse(saved, nullptr, false);
  if (!data.is_object() || data.value("sku", "") != sku_.name || data.value("racks", 0) != options_.racks ||
      data.value("seed", std::uint64_t{0}) != options_.seed) {
    return absl::FailedPreconditionError("the saved site has another SKU, number of racks or seed");
  }
  for (const auto& each : devices_) {
    const auto kept = data.at("devices").find(each->identity().member);
    if (kept != data.at("devices").end()) {
      each->load(*kept);
    }
  }
  for (int rack = 1; rack <= options_.racks; ++rack) {
    feed_shelves(rack, now);
    feed_rack(rack, now);
    for (const compute_tray* const each : racks_[static_cast<std::size_t>(rack - 1)].compute) {
      if (each->host_running()) {
        host_booted(*each, each->boot_uri(), now);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace busbar::sim
