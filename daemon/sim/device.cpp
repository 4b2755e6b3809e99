#include "daemon/sim/device.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

constexpr std::string_view root = "/redfish/v1";
constexpr auto noise_tick = std::chrono::milliseconds(100);

// Path without query, fragment and trailing slash.
std::string normal_path(std::string_view target) {
  std::string path(target.substr(0, target.find_first_of("?#")));
  while (path.size() > 1 && path.back() == '/') {
    path.pop_back();
  }
  return path;
}

std::string_view query_of(std::string_view target) {
  const std::size_t mark = target.find('?');
  return mark == std::string_view::npos ? std::string_view() : target.substr(mark + 1);
}

bool is_open(const http_request& request, const std::string& path) {
  if (request.method == "GET" || request.method == "HEAD") {
    return path == root || path == "/redfish" || path == "/redfish/v1/odata" ||
           path == "/redfish/v1/$metadata";
  }
  return request.method == "POST" && (path == "/redfish/v1/SessionService/Sessions" ||
                                      path == "/redfish/v1/SessionService/Sessions/Members");
}

std::string entity_tag(std::string_view body) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "\"%016llX\"",
                static_cast<unsigned long long>(physics::hash_of(body, 0)));
  return text.data();
}

std::optional<std::string> after(const std::string& path, std::string_view prefix) {
  if (!path.starts_with(prefix) || path.find('/', prefix.size()) != std::string::npos) {
    return std::nullopt;
  }
  return path.substr(prefix.size());
}

json collection(std::string_view path, std::string_view type, std::string_view name,
                const std::vector<std::string>& ids) {
  json members = json::array();
  for (const std::string& id : ids) {
    members.push_back({{"@odata.id", std::string(path) + "/" + id}});
  }
  return {{"@odata.id", path},
          {"@odata.type", "#" + std::string(type) + "." + std::string(type)},
          {"Name", name},
          {"Members", members},
          {"Members@odata.count", ids.size()}};
}

template <class Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& each : map) {
    keys.push_back(each.first);
  }
  return keys;
}

void make_strings_of_readings(json& body) {
  for (auto& [key, each] : body.items()) {
    if (each.is_structured()) {
      make_strings_of_readings(each);
    } else if (key == "Reading" && each.is_number()) {
      each = each.dump();
    }
  }
}

void make_words_unknown(json& body) {
  for (auto& [key, each] : body.items()) {
    if (each.is_structured()) {
      make_words_unknown(each);
    } else if (each.is_string() && (key == "DetectorState" || key == "Health" || key == "PowerState")) {
      each = key == "PowerState" ? "Hibernating" : "Peculiar";
    }
  }
}

}  // namespace

std::optional<int> as_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return number;
}

std::optional<int> number_in(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  return digit == std::string_view::npos ? std::nullopt : as_number(text.substr(digit));
}

device::device(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
               bool starts_old, const std::string& factory_password)
    : identity_(std::move(identity)),
      around_(around),
      tree_(std::move(tree)),
      access_(physics::hash_of(identity_.member, around.seed()), around.timings().lockout,
              around.timings().session_timeout),
      firmware_(*tree_, starts_old),
      factory_password_(factory_password) {
  access_.accounts()[std::string(factory_user)] = {factory_password, "Administrator", false, 0, instant{0}};
  if (identity_.kind == device_kind::power_shelf || identity_.kind == device_kind::cdu ||
      identity_.kind == device_kind::rack_controller || identity_.kind == device_kind::rack_pdu) {
    standby_power_ = true;  // fed from the grid side
    bmc_alive_ = true;
  }
}

const fault* device::find_fault(fault_kind kind, instant now) const {
  return around_.faults().find(kind, identity_.member, now);
}

const fault* device::find_fault(fault_kind kind, std::string_view part, std::string_view first,
                                instant now) const {
  return around_.faults().find_part(kind, identity_.member, part, first, now);
}

double device::noisy(double value, double deviation, std::string_view point, instant now) const {
  const auto tick = static_cast<std::uint64_t>(now / noise_tick);
  const std::uint64_t key =
      physics::hash_of(point, physics::hash_of(identity_.member, around_.seed() ^ tick));
  return std::round((value + deviation * physics::gaussian(key)) * 1e4) / 1e4;
}

http_reply device::handle(const http_request& request, instant now, request_note& note) {
  const std::string path = normal_path(request.target);
  ++requests_;
  if (const fault* const broken = find_fault(fault_kind::error_5xx, now);
      broken != nullptr && path.find(broken->value) != std::string::npos &&
      physics::uniform(physics::hash_of(identity_.member, around_.seed() + requests_)) < broken->severity) {
    return error_reply(500, "InternalError", "The request failed due to an internal service error.");
  }
  access who = access_.authenticate(request, now);
  note.user = who.user;
  if (!is_open(request, path)) {
    if (who.what != access::verdict::allowed) {
      return error_reply(401, "NoValidSession",
                         "There is no valid session established with the implementation.");
    }
    const bool own_account = path == "/redfish/v1/AccountService/Accounts/" + who.user;
    if (who.must_change && !own_account && request.method != "DELETE") {
      return error_reply(403, "PasswordChangeRequired",
                         "The password must be changed at " + path + " first.");
    }
  }
  http_reply reply = route(request, path, query_of(request.target), who, now, note);
  spoil(reply, path, now);
  return reply;
}

void device::spoil(http_reply& reply, const std::string& path, instant now) const {
  if (reply.status != 200 || reply.body.empty()) {
    return;
  }
  const auto hit = [this, &path, now](fault_kind kind, std::string_view filter) {
    const fault* const each = find_fault(kind, now);
    return each != nullptr && path.find(each->value.empty() ? filter : each->value) != std::string::npos;
  };
  if (hit(fault_kind::string_for_number, "") || hit(fault_kind::unknown_enum, "LeakDetectors")) {
    json body = json::parse(reply.body, nullptr, false);
    if (body.is_object()) {
      if (hit(fault_kind::string_for_number, "")) {
        make_strings_of_readings(body);
      }
      if (hit(fault_kind::unknown_enum, "LeakDetectors")) {
        make_words_unknown(body);
      }
      reply.body = body.dump(1);
    }
  }
  if (hit(fault_kind::half_page, "/Processors")) {
    reply.body.resize(reply.body.size() / 2);
  }
}

http_reply device::route(const http_request& request, const std::string& path, std::string_view query,
                         const access& who, instant now, request_note& note) {
  if (request.method == "GET" || request.method == "HEAD") {
    http_reply reply = get(path, query, now);
    if (reply.status == 200 && !reply.event_stream) {
      const std::string tag = entity_tag(reply.body);
      reply.headers["ETag"] = tag;
      const auto known = request.headers.find("if-none-match");
      if (known != request.headers.end() && known->second == tag) {
        return empty_reply(304);
      }
    }
    return reply;
  }
  if (request.method == "POST") {
    return do_post(request, path, who, now, note);
  }
  if (request.method == "DELETE") {
    return do_delete(path, who, note);
  }
  if (request.method == "PATCH") {
    const json body = json::parse(request.body, nullptr, false);
    return body.is_object() ? do_patch(path, body, who, now, note) : malformed();
  }
  return not_allowed();
}

http_reply device::get(const std::string& path, std::string_view query, instant now) const {
  if (path == "/redfish") {
    return json_reply(200, {{"v1", "/redfish/v1/"}});
  }
  if (path == "/redfish/v1/odata") {
    return json_reply(200, {{"@odata.context", "/redfish/v1/$metadata"}, {"value", json::array()}});
  }
  if (path == "/redfish/v1/$metadata") {
    http_reply reply = empty_reply(200);
    reply.headers["Content-Type"] = "application/xml";
    reply.body =
        "<?xml version=\"1.0\"?><edmx:Edmx xmlns:edmx=\"http://docs.oasis-open.org/odata/ns/edmx\" "
        "Version=\"4.0\"/>";
    return reply;
  }
  if (path == "/redfish/v1/EventService/SSE") {
    http_reply reply = empty_reply(200);
    reply.headers["Content-Type"] = "text/event-stream";
    reply.event_stream = true;
    reply.reports = query.find("EventFormatType") != std::string_view::npos &&
                    query.find("MetricReport") != std::string_view::npos;
    return reply;
  }
  std::optional<json> body = body_of(path, now);
  if (!body) {
    return not_found(path);
  }
  if (query.find("$expand=") != std::string_view::npos) {
    expand_members(*body, now);
  } else if (query.find("$filter=") != std::string_view::npos ||
             query.find("$select=") != std::string_view::npos) {
    return error_reply(501, "QueryNotSupportedOnResource",
                       "Querying is not supported on the requested resource.");
  }
  return json_reply(200, *body);
}

void device::expand_members(json& body, instant now) const {
  const auto members = body.find("Members");
  if (members == body.end()) {
    return;
  }
  for (json& each : *members) {
    if (auto whole = body_of(each.at("@odata.id").get<std::string>(), now)) {
      each = std::move(*whole);
    }
  }
}

std::optional<json> device::body_of(const std::string& path, instant now) const {
  if (hidden(path, now)) {
    return std::nullopt;
  }
  if (auto body = dynamic_body(path, now)) {
    return body;
  }
  const json* const pattern = tree_->find(path);
  if (pattern == nullptr) {
    return std::nullopt;
  }
  json body = *pattern;
  fill(body, [this, now](const value_name& name) { return value(name, now); });
  if (const auto members = body.find("Members"); members != body.end()) {
    auto& list = members->get_ref<json::array_t&>();
    std::erase_if(list, [this, now](const json& each) {
      return hidden(each.at("@odata.id").get_ref<const std::string&>(), now);
    });
    body["Members@odata.count"] = list.size();
  }
  return body;
}

std::optional<json> device::dynamic_body(const std::string& path, instant now) const {
  if (path == "/redfish/v1/SessionService/Sessions") {
    return collection(path, "SessionCollection", "Session Collection", keys_of(access_.sessions()));
  }
  if (path == "/redfish/v1/AccountService/Accounts") {
    return collection(path, "ManagerAccountCollection", "Accounts Collection", keys_of(access_.accounts()));
  }
  if (path == "/redfish/v1/TaskService/Tasks") {
    std::vector<std::string> ids;
    for (const auto& [id, unused] : firmware_.tasks()) {
      if (firmware_.task(id) != nullptr) {
        ids.push_back(id);
      }
    }
    return collection(path, "TaskCollection", "Task Collection", ids);
  }
  if (const auto id = after(path, "/redfish/v1/SessionService/Sessions/")) {
    return session_body(*id);
  }
  if (const auto name = after(path, "/redfish/v1/AccountService/Accounts/")) {
    return account_body(*name, now);
  }
  if (const auto id = after(path, "/redfish/v1/TaskService/Tasks/")) {
    const update_task* const task = firmware_.task(*id);
    return task == nullptr ? std::nullopt
                           : std::optional(firmware_.task_body(*id, *task, now, around_.wall(task->started)));
  }
  return report_body(path, now);
}

std::optional<json> device::session_body(std::string_view id) const {
  const auto found = access_.sessions().find(std::string(id));
  if (found == access_.sessions().end()) {
    return std::nullopt;
  }
  return json{{"@odata.id", "/redfish/v1/SessionService/Sessions/" + found->first},
              {"@odata.type", "#Session.v1_7_1.Session"},
              {"Id", found->first},
              {"Name", "User Session"},
              {"Description", "Manager User Session"},
              {"UserName", found->second.user},
              {"ClientOriginIPAddress", found->second.peer}};
}

std::optional<json> device::account_body(std::string_view name, instant now) const {
  const auto found = access_.accounts().find(std::string(name));
  if (found == access_.accounts().end()) {
    return std::nullopt;
  }
  const account& known = found->second;
  return json{{"@odata.id", "/redfish/v1/AccountService/Accounts/" + found->first},
              {"@odata.type", "#ManagerAccount.v1_12_0.ManagerAccount"},
              {"Id", found->first},
              {"Name", "User Account"},
              {"Description", "User Account"},
              {"UserName", found->first},
              {"Password", nullptr},
              {"RoleId", known.role},
              {"Enabled", true},
              {"Locked", known.locked_until > now},
              {"PasswordChangeRequired", known.must_change},
              {"AccountTypes", {"Redfish"}},
              {"Links", {{"Role", {{"@odata.id", "/redfish/v1/AccountService/Roles/" + known.role}}}}}};
}

std::optional<json> device::report_body(const std::string& path, instant now) const {
  static constexpr std::string_view reports = "/redfish/v1/TelemetryService/MetricReports";
  static constexpr std::string_view definitions = "/redfish/v1/TelemetryService/MetricReportDefinitions";
  if (tree_->reports().empty()) {
    return std::nullopt;
  }
  if (path == reports || path == definitions) {
    return path == reports
               ? collection(path, "MetricReportCollection", "Metric Reports", keys_of(tree_->reports()))
               : collection(path, "MetricReportDefinitionCollection", "Metric Report Definitions",
                            keys_of(tree_->reports()));
  }
  const auto defined = after(path, std::string(definitions) + "/");
  const auto name = defined ? defined : after(path, std::string(reports) + "/");
  const auto report = name ? tree_->reports().find(*name) : tree_->reports().end();
  if (report == tree_->reports().end()) {
    return std::nullopt;
  }
  if (defined) {
    return json{{"@odata.id", path},
                {"@odata.type", "#MetricReportDefinition.v1_4_5.MetricReportDefinition"},
                {"Id", *name},
                {"Name", *name},
                {"MetricReportDefinitionType", "Periodic"},
                {"MetricReport", {{"@odata.id", std::string(reports) + "/" + *name}}},
                {"Schedule", {{"RecurrenceInterval", "PT1S"}}},
                {"Status", {{"State", "Enabled"}}}};
  }
  return metric_report(path, *name, report->second, now);
}

std::vector<json> device::metric_reports(instant now) const {
  std::vector<json> all;
  for (const auto& [name, rows] : tree_->reports()) {
    all.push_back(metric_report("/redfish/v1/TelemetryService/MetricReports/" + name, name, rows, now));
  }
  return all;
}

json device::metric_report(const std::string& path, const std::string& name,
                           const std::vector<report_row>& rows, instant now) const {
  static constexpr std::string_view definitions = "/redfish/v1/TelemetryService/MetricReportDefinitions";
  const std::string stamp = around_.wall(now);
  json values = json::array();
  for (const report_row& row : rows) {
    const json reading = value(parse_value_name(row.value), now);
    if (!reading.is_null() && !hidden(row.property.substr(0, row.property.find('#')), now)) {
      values.push_back({{"MetricProperty", row.property},
                        {"Timestamp", stamp},
                        {"MetricValue", reading.is_string() ? reading.get<std::string>() : reading.dump()}});
    }
  }
  points_reported_ += values.size();
  return json{{"@odata.id", path},
              {"@odata.type", "#MetricReport.v1_4_2.MetricReport"},
              {"Id", name},
              {"Name", name},
              {"ReportSequence", std::to_string(now / std::chrono::seconds(1))},
              {"Timestamp", stamp},
              {"MetricValues", std::move(values)},
              {"MetricReportDefinition", {{"@odata.id", std::string(definitions) + "/" + name}}}};
}

}  // namespace busbar::sim
