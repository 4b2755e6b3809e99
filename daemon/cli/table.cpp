#include "daemon/cli/table.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include "actors/manifest/names.hpp"

namespace busbar::cli {
namespace {

using manifest::short_name;

row header_and(bool wide, row always, const row& more) {
  if (wide) always.insert(always.end(), more.begin(), more.end());
  return always;
}

std::string or_unknown(bool known, const std::string& text) {
  return known ? text : "unknown";
}

std::string health_word(v1::Health health) {
  return word(v1::Health_Name(health).substr(7));
}

std::string count_text(const v1::RackStatus& status, v1::MemberKind kind) {
  for (const auto& count : status.members()) {
    if (count.kind() != kind) continue;
    std::string text = fmt::format("{}/{}", count.production(), count.declared());
    if (count.failed() > 0) text += fmt::format(" ({} failed)", count.failed());
    return text;
  }
  return "";
}

row rack_row(const v1::Rack& rack, bool wide, wall_time now) {
  const auto& status = rack.status();
  return header_and(
      wide,
      {short_name(rack.name()), status.state().empty() ? "unknown" : status.state(),
       word(v1::RackStep::Value_Name(status.step())), count_text(status, v1::COMPUTE_TRAY),
       count_text(status, v1::SWITCH_TRAY), count_text(status, v1::POWER_SHELF),
       or_unknown(status.has_gpus(), std::to_string(status.gpus())), health_word(status.health()),
       age_text(status.step_entered_time(), status.has_step_entered_time(), now),
       reason_text(status.failure(), status.has_failure(), status.waits_for())},
      {rack.spec().sku(), rack.spec().baseline(), short_name(status.operation()), rack.uid()});
}

row member_row(const std::string& name, const v1::MemberSpec& spec, const v1::MemberStatus& status, bool wide,
               wall_time now) {
  const auto& identity = status.identity();
  const std::string step =
      status.emergency_off() ? "emergency_off" : word(v1::NodeStep::Value_Name(status.step()));
  return header_and(
      wide,
      {short_name(name), word(v1::MemberKind_Name(spec.kind())),
       status.has_failure() ? step + " (failed)" : step, health_word(status.health()),
       spec.kind() == v1::RACK_CONTROLLER ? "" : word(v1::Power::State_Name(status.power().observed())),
       age_text(status.step_entered_time(), status.has_step_entered_time(), now),
       reason_text(status.failure(), status.has_failure(), status.waits_for())},
      {identity.has_serial() ? identity.serial() : spec.serial(),
       identity.has_address() ? identity.address() : spec.address(), spec.bmc_mac(),
       short_name(status.operation())});
}

row detector_row(const v1::LeakDetector& detector, bool wide) {
  std::string verdict = word(v1::Detector::Verdict_Name(detector.verdict()));
  if (detector.latched()) verdict += " (latched)";
  std::string why = detector.detail();
  if (!detector.bypass().empty()) {
    verdict += " (bypassed)";
    why = fmt::format(
        "bypassed by {} until {}", detector.bypass(),
        detector.has_bypass_until()
            ? google::protobuf::util::TimeUtil::ToString(detector.bypass_until()).substr(0, 19) + "Z"
            : "an unknown time");
  }
  const std::string name = short_name(detector.name());
  return header_and(wide,
                    {detector.member(), name.substr(name.find('.') + 1), verdict,
                     detector.reaction().empty() ? "no local leak reaction" : detector.reaction(), why},
                    {name});
}

// What is read now, never what was read once: an old position is no position.
std::string percent_text(const v1::Reading& position) {
  return position.has_value() && position.quality() == v1::QUALITY_GOOD ? fmt::format("{:.1f}%", position.value()) : "unknown";
}

std::string condition_text(const google::protobuf::RepeatedPtrField<v1::Condition>& rows) {
  std::string text;
  for (const v1::Condition& row : rows) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", row.type(), row.message());
  return text;
}

row valve_row(const v1::Valve& valve, bool wide, wall_time now) {
  const v1::ValveStatus& status = valve.status();
  std::string held;
  if (status.has_lease()) {
    const std::int64_t left = google::protobuf::util::TimeUtil::TimestampToSeconds(status.lease().until()) -
                              std::chrono::system_clock::to_time_t(now);
    held = fmt::format("{} for {}s: {}", status.lease().holder(), std::max<std::int64_t>(0, left), status.lease().reason());
  }
  return header_and(wide,
                    {short_name(valve.name()), valve.spec().kind(), percent_text(status.position()),
                     status.has_commanded_percent() ? fmt::format("{:g}%", status.commanded_percent()) : "", status.proof(),
                     status.mode(), health_word(status.health()), held, condition_text(valve.conditions())},
                    {short_name(valve.spec().controller()), valve.spec().authority(), valve.spec().fail_position(),
                     short_name(status.operation())});
}

row pdu_row(const v1::Pdu& pdu, bool wide) {
  int on = 0;
  int off = 0;
  double watts = 0;
  bool all_measured = pdu.outlets_size() > 0;
  std::string outlets;
  for (const v1::Outlet& outlet : pdu.outlets()) {
    on += outlet.state() == v1::Outlet::ON ? 1 : 0;
    off += outlet.state() == v1::Outlet::OFF ? 1 : 0;
    const bool good = outlet.power().has_value() && outlet.power().quality() == v1::QUALITY_GOOD;
    all_measured = all_measured && good;
    if (good) watts += outlet.power().value();
    outlets += fmt::format("{}{}={}{}", outlets.empty() ? "" : " ", outlet.id(), word(v1::Outlet::State_Name(outlet.state())),
                           outlet.feeds().empty() ? "" : "(" + outlet.feeds() + ")");
  }
  const int unknown = pdu.outlets_size() - on - off;
  return header_and(wide,
                    {short_name(pdu.name()), pdu.dialect().empty() ? pdu.protocol() : pdu.dialect(),
                     fmt::format("{} on, {} off{}", on, off, unknown > 0 ? fmt::format(", {} unknown", unknown) : ""),
                     all_measured ? fmt::format("{:.0f}W", watts) : "unknown", health_word(pdu.health()),
                     condition_text(pdu.conditions())},
                    {pdu.address(), outlets});
}

std::string cdu_reading(const v1::CduStatus& status, std::string_view name) {
  for (const v1::NamedReading& one : status.readings()) {
    if (one.name() != name) continue;
    const bool good = one.reading().has_value() && one.reading().quality() == v1::QUALITY_GOOD;
    return good ? fmt::format("{:.1f}", one.reading().value()) : "unknown";
  }
  return "unknown";
}

row cdu_row(const v1::Cdu& cdu, bool wide) {
  const v1::CduStatus& status = cdu.status();
  std::vector<std::string> racks;
  for (const std::string& rack : cdu.racks()) racks.push_back(short_name(rack));
  const auto set = [](bool known, double value) { return known ? fmt::format("{:g}", value) : std::string("unknown"); };
  std::string pumps;
  for (const v1::Pump& pump : status.pumps()) {
    const bool good = pump.speed().has_value() && pump.speed().quality() == v1::QUALITY_GOOD;
    pumps += (pumps.empty() ? "" : " ") + (good ? fmt::format("{:.0f}%", pump.speed().value()) : std::string("unknown"));
  }
  const std::string why = status.waits_for().empty() ? condition_text(cdu.conditions()) : status.waits_for();
  const std::string held = !status.has_lease() ? ""
                                               : fmt::format("{} until {}", status.lease().holder(),
                                                             google::protobuf::util::TimeUtil::ToString(status.lease().until()).substr(0, 19));
  return header_and(wide,
                    {short_name(cdu.name()), status.mode(), health_word(status.health()), cdu_reading(status, "supply"),
                     set(status.has_supply_set_point_c(), status.supply_set_point_c()), cdu_reading(status, "dp"),
                     set(status.has_dp_set_point_kpa(), status.dp_set_point_kpa()), cdu_reading(status, "flow"), pumps,
                     fmt::format("{}", fmt::join(racks, " ")), why},
                    {cdu.protocol(), cdu.address(), held});
}

row endpoint_row(const v1::Endpoint& endpoint, bool wide) {
  return header_and(wide,
                    {short_name(endpoint.name()), word(v1::Endpoint::State_Name(endpoint.state())),
                     or_unknown(endpoint.has_mac(), endpoint.mac()), endpoint.member(), endpoint.expected(),
                     endpoint.seen()},
                    {endpoint.source(), or_unknown(endpoint.has_pin_sha256(), endpoint.pin_sha256())});
}

row operation_row(const v1::Operation& operation, bool wide, wall_time now) {
  const auto succeeded =
      std::count_if(operation.components().begin(), operation.components().end(),
                    [](const auto& c) { return c.state() == v1::ComponentResult::SUCCEEDED; });
  const std::string progress =
      operation.components().empty() ? "" : fmt::format("{}/{}", succeeded, operation.components_size());
  const std::string& fault = operation.error().fault();
  std::string message = operation.message();
  if (!fault.empty()) message = message.empty() ? fault : fault + ": " + message;
  return header_and(wide,
                    {short_name(operation.name()), operation.verb(), short_name(operation.target()),
                     word(v1::Operation::State_Name(operation.state())), progress,
                     age_text(operation.create_time(), operation.has_create_time(), now), message},
                    {operation.principal(), operation.reason(), operation.request_id()});
}

row event_row(const v1::Event& event, bool wide) {
  const std::string time =
      event.has_time() ? google::protobuf::util::TimeUtil::ToString(event.time()).substr(0, 19) + "Z" : "";
  const std::string text = event.fault().empty() ? event.message() : event.fault() + ": " + event.message();
  return header_and(wide, {time, short_name(event.object()), event.severity(), event.type(), text},
                    {item_name(event), event.principal(), short_name(event.operation())});
}

row daemon_row(const v1::DaemonStatus& status, bool wide, wall_time now) {
  const std::string state =
      status.degraded().empty() ? "serving" : fmt::format("degraded: {}", fmt::join(status.degraded(), "; "));
  return header_and(
      wide,
      {status.instance(), status.role(), status.version(), std::to_string(status.position().revision()),
       age_text(status.start_time(), status.has_start_time(), now), state},
      {status.position().journal_id()});
}

}  // namespace

row header_of(kind of, bool wide) {
  switch (of) {
    case kind::racks:
      return header_and(
          wide, {"NAME", "STATE", "STEP", "COMPUTE", "SWITCH", "SHELVES", "GPUS", "HEALTH", "IN STEP", "WHY"},
          {"SKU", "BASELINE", "OPERATION", "UID"});
    case kind::valves:
      return header_and(wide, {"NAME", "KIND", "POSITION", "TOLD", "PROOF", "MODE", "HEALTH", "HELD BY", "WHY"},
                        {"CONTROLLER", "AUTHORITY", "FAIL", "OPERATION"});
    case kind::pdus:
      return header_and(wide, {"NAME", "SPEAKS", "OUTLETS", "POWER", "HEALTH", "WHY"}, {"ADDRESS", "EACH"});
    case kind::cdus:
      return header_and(wide, {"NAME", "MODE", "HEALTH", "SUPPLY C", "SET", "DP KPA", "SET", "FLOW", "PUMPS", "RACKS", "WHY"},
                        {"SPEAKS", "ADDRESS", "HELD BY"});
    case kind::detectors:
      return header_and(wide, {"MEMBER", "DETECTOR", "VERDICT", "REACTION", "WHY"}, {"NAME"});
    case kind::nodes:
    case kind::shelves:
    case kind::controllers:
      return header_and(wide, {"NAME", "KIND", "STEP", "HEALTH", "POWER", "IN STEP", "WHY"},
                        {"SERIAL", "ADDRESS", "MAC", "OPERATION"});
    case kind::endpoints:
      return header_and(wide, {"NAME", "STATE", "MAC", "MEMBER", "EXPECTED", "SEEN"}, {"SOURCE", "PIN"});
    case kind::operations:
      return header_and(wide, {"NAME", "VERB", "TARGET", "STATE", "MEMBERS", "AGE", "MESSAGE"},
                        {"PRINCIPAL", "REASON", "REQUEST"});
    case kind::events:
      return header_and(wide, {"TIME", "OBJECT", "SEVERITY", "TYPE", "MESSAGE"},
                        {"REVISION", "PRINCIPAL", "OPERATION"});
    case kind::daemons:
      return header_and(wide, {"INSTANCE", "ROLE", "VERSION", "REVISION", "UP", "STATE"}, {"JOURNAL"});
  }
  return {};
}

row row_of(const google::protobuf::Message& item, bool wide, wall_time now) {
  if (const auto* rack = dynamic_cast<const v1::Rack*>(&item)) return rack_row(*rack, wide, now);
  if (const auto* node = dynamic_cast<const v1::Node*>(&item)) {
    return member_row(node->name(), node->spec(), node->status(), wide, now);
  }
  if (const auto* shelf = dynamic_cast<const v1::Shelf*>(&item)) {
    return member_row(shelf->name(), shelf->spec(), shelf->status(), wide, now);
  }
  if (const auto* detector = dynamic_cast<const v1::LeakDetector*>(&item))
    return detector_row(*detector, wide);
  if (const auto* valve = dynamic_cast<const v1::Valve*>(&item)) return valve_row(*valve, wide, now);
  if (const auto* pdu = dynamic_cast<const v1::Pdu*>(&item)) return pdu_row(*pdu, wide);
  if (const auto* cdu = dynamic_cast<const v1::Cdu*>(&item)) return cdu_row(*cdu, wide);
  if (const auto* endpoint = dynamic_cast<const v1::Endpoint*>(&item)) return endpoint_row(*endpoint, wide);
  if (const auto* operation = dynamic_cast<const v1::Operation*>(&item))
    return operation_row(*operation, wide, now);
  if (const auto* event = dynamic_cast<const v1::Event*>(&item)) return event_row(*event, wide);
  if (const auto* daemon = dynamic_cast<const v1::DaemonStatus*>(&item))
    return daemon_row(*daemon, wide, now);
  return {};
}

std::string aligned(const std::vector<row>& rows) {
  std::vector<std::size_t> widths;
  const auto cell = [](const std::string& text) -> std::string { return text.empty() ? "-" : text; };
  for (const row& line : rows) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], cell(line[i]).size());
  }
  std::string out;
  for (const row& line : rows) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      text += i + 1 == line.size() ? cell(line[i]) : fmt::format("{:<{}}", cell(line[i]), widths[i] + 2);
    }
    out += text + "\n";
  }
  return out;
}

std::string table_text(kind of, const listing& all, bool wide, wall_time now) {
  std::vector<row> rows{header_of(of, wide)};
  for (const auto& item : all.items) rows.push_back(row_of(*item, wide, now));
  for (const unreachable_daemon& silent : all.unreachable) {
    row line(rows[0].size());
    line[0] = silent.daemon.instance;
    line[1] = "UNREACHABLE";
    line.back() = silent.message;
    rows.push_back(std::move(line));
  }
  return aligned(rows);
}

std::string word(std::string_view enum_name) {
  std::string text(enum_name);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text.ends_with("_unspecified") ? "unknown" : text;
}

std::string age_text(const google::protobuf::Timestamp& since, bool is_set, wall_time now) {
  if (!is_set) return "";
  const std::int64_t start = google::protobuf::util::TimeUtil::TimestampToSeconds(since);
  const std::int64_t seconds = std::max<std::int64_t>(0, std::chrono::system_clock::to_time_t(now) - start);
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds % 3600 / 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds % 86400 / 3600);
}

std::string reason_text(const v1::Failure& failure, bool failed, const std::string& waits_for) {
  if (!failed) return waits_for;
  std::string text = failure.fault();
  if (!failure.step().empty()) text += " at " + word(failure.step());
  if (!failure.message().empty()) text += ": " + failure.message();
  return text;
}

}  // namespace busbar::cli
