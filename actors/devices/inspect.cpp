#include "actors/devices/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "actors/devices/redfish/crawl.hpp"
#include "actors/devices/redfish/json.hpp"

namespace busbar::devices {
namespace {

using redfish::json_array;
using redfish::json_object;
using redfish::json_quote;

std::string_view word_of(inspect_health health) {
  switch (health) {
    case inspect_health::good:
      return "good";
    case inspect_health::bad:
      return "bad";
    case inspect_health::unknown:
      return "UNKNOWN";
  }
  return "UNKNOWN";
}

// Empty text is unknown, in both forms.
std::string or_null(const std::string& text) {
  return text.empty() ? "null" : json_quote(text);
}
std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

redfish::task<bool> walk(redfish::device_ptr on, inspect_options options,
                         std::shared_ptr<inspect_report> report) {
  if (options.login) {
    const absl::StatusOr<session_facts> session = co_await on->log_in(*options.login);
    if (!session.ok()) {
      // Refused is not unreachable: what can be read without a login is read.
      report->condition = std::string(session.status().message());
    }
  }
  const redfish::crawled_ptr all = co_await redfish::crawl(on, options.start, options.request_limit);
  const std::string refused = report->condition;
  *report = redfish::conclude(*all, options.start);
  if (report->condition.empty()) report->condition = refused;
  report->address = on->address();
  report->certificate_sha256 = on->pin();
  if (!on->session_uri().empty()) {
    redfish::request end;
    end.method = redfish::http_method::del;
    end.uri = on->session_uri();
    end.retry_login = false;
    const redfish::response ignored = co_await on->send(end);  // gone or deleted: we are leaving
    (void)ignored;
  }
  co_return true;
}

std::string part_json(const inspected_part& part) {
  return json_object({{"kind", json_quote(part.kind)},
                      {"id", json_quote(part.id)},
                      {"model", or_null(part.model)},
                      {"serial", or_null(part.serial)},
                      {"present", part.absent ? "false" : "true"},
                      {"health", json_quote(part.absent ? "absent" : word_of(part.health))},
                      {"watts", part.watts ? redfish::format_number(*part.watts) : "null"}});
}

std::string parts_json(const std::vector<inspected_part>& parts) {
  std::vector<std::string> rows;
  for (const inspected_part& part : parts) rows.push_back(part_json(part));
  return json_array(rows);
}

std::string readings_json(const inspected_readings& readings) {
  return json_object({{"listed", std::to_string(readings.listed)},
                      {"read", std::to_string(readings.read)},
                      {"noValue", std::to_string(readings.no_value)},
                      {"noBody", std::to_string(readings.no_body)}});
}

std::string texts_json(const std::vector<std::string>& texts) {
  std::vector<std::string> rows;
  for (const std::string& text : texts) rows.push_back(json_quote(text));
  return json_array(rows);
}

std::string readings_text(std::string_view name, const inspected_readings& readings) {
  if (readings.listed == 0) return fmt::format("{:<14}not shown\n", name);
  return fmt::format("{:<14}{} listed: {} read, {} without value, {} without body\n", name, readings.listed,
                     readings.read, readings.no_value, readings.no_body);
}

void add_lines(std::string& text, std::string_view title, const std::vector<std::string>& lines,
               std::size_t most) {
  if (lines.empty()) return;
  text += fmt::format("\n{} ({}):\n", title, lines.size());
  for (std::size_t i = 0; i < lines.size() && i < most; ++i) text += "  " + lines[i] + "\n";
  if (lines.size() > most) text += fmt::format("  and {} more (all in -o json)\n", lines.size() - most);
}

std::string parts_text(const std::vector<inspected_part>& parts, std::string_view kind) {
  std::size_t good = 0;
  std::size_t bad = 0;
  std::size_t absent = 0;
  std::size_t all = 0;
  for (const inspected_part& part : parts) {
    if (part.kind != kind) continue;
    ++all;
    if (part.absent) ++absent;
    if (!part.absent && part.health == inspect_health::good) ++good;
    if (!part.absent && part.health == inspect_health::bad) ++bad;
  }
  if (all == 0) return "";
  std::string text = fmt::format("{:<14}{} present: {} good, {} bad, {} UNKNOWN", kind, all - absent, good,
                                 bad, all - absent - good - bad);
  if (absent > 0) text += fmt::format("; {} absent", absent);
  return text + "\n";
}

}  // namespace

std::size_t inspect_report::count(std::string_view kind) const {
  return static_cast<std::size_t>(
      std::count_if(processors.begin(), processors.end(),
                    [kind](const inspected_part& part) { return part.kind == kind && !part.absent; }));
}

void inspect(std::string address, std::shared_ptr<redfish::http_transport> transport,
             std::shared_ptr<redfish::scheduler> loop, inspect_options options,
             std::function<void(inspect_report)> reply) {
  const auto on = std::make_shared<redfish::device>(std::move(address), std::move(transport), loop,
                                                    redfish::device_options{});
  on->set_pin(options.pin);
  const auto report = std::make_shared<inspect_report>();
  loop->post([on, options = std::move(options), report, reply = std::move(reply)] {
    redfish::start<bool>(walk(on, options, report), [on, report, reply](bool) {
      on->close();
      reply(std::move(*report));
    });
  });
}

int exit_code(const inspect_report& report) {
  if (!report.reachable) return 7;
  if (report.health == inspect_health::bad) return 1;
  return report.health == inspect_health::good ? 0 : 3;
}

std::string render_text(const inspect_report& report) {
  if (!report.reachable)
    return fmt::format("{} is unreachable: {}\n", report.address, report.unreachable_why);
  std::string text =
      fmt::format("{:<14}{}\n{:<14}{} {} (Redfish {})\n{:<14}{}\n", "address", report.address, "service",
                  or_unknown(report.vendor), report.product, or_unknown(report.redfish_version),
                  "certificate", or_unknown(report.certificate_sha256));
  text += fmt::format("{:<14}{}\n", "health", word_of(report.health));
  if (!report.condition.empty()) text += fmt::format("{:<14}{}\n", "condition", report.condition);
  text += fmt::format("{:<14}{}\n", "power", or_unknown(report.power));
  for (const inspected_system& one : report.systems) {
    text += fmt::format("{:<14}{}: model {}, serial {}, power {}, health {}\n", "system", one.id,
                        or_unknown(one.model), or_unknown(one.serial), or_unknown(one.power),
                        word_of(one.health));
  }
  if (report.systems.empty()) {
    text += fmt::format("{:<14}{}\n", "system",
                        report.systems_offered ? "unknown" : "none (this service has no computer system)");
  }
  for (const char* kind : {"cpu", "gpu", "fpga"}) text += parts_text(report.processors, kind);
  if (!report.gpu_source.empty()) text += fmt::format("{:<14}{}\n", "gpus seen in", report.gpu_source);
  text += parts_text(report.asics, "asic");
  text += parts_text(report.supplies, "psu");
  if (report.memory_gib)
    text += fmt::format("{:<14}{} GiB\n", "memory", redfish::format_number(*report.memory_gib));
  text += readings_text("sensors", report.sensors);
  if (report.temperatures.listed > 0) text += readings_text("temperatures", report.temperatures);
  if (report.blades > 0) text += fmt::format("{:<14}{}, {} on\n", "blades", report.blades, report.blades_on);
  if (report.outlets > 0) {
    text += fmt::format("{:<14}{}: {} on, {} UNKNOWN\n", "outlets", report.outlets, report.outlets_on,
                        report.outlets_unknown);
  }
  if (report.cdus > 0) text += fmt::format("{:<14}{}\n", "cdus", report.cdus);
  for (const inspected_detector& one : report.detectors) {
    text += fmt::format("{:<14}{}: {}{} ({})\n", "leak", one.id, one.verdict,
                        one.aggregate ? " (sums up others)" : "", one.detail);
  }
  if (report.detectors.empty())
    text += fmt::format("{:<14}no detector is shown, which is not \"no leak\"\n", "leak");
  for (const inspected_firmware& one : report.firmware) {
    text += fmt::format("{:<14}{} {}\n", "firmware", one.component, one.version.value_or("unknown"));
  }
  add_lines(text, "bad", report.bad, 40);
  add_lines(text, "unknown", report.unknown, 40);
  add_lines(text, "odd", report.oddities, 20);
  return text;
}

std::string render_json(const inspect_report& report) {
  std::vector<std::string> systems;
  for (const inspected_system& one : report.systems) {
    systems.push_back(json_object({{"id", json_quote(one.id)},
                                   {"model", or_null(one.model)},
                                   {"serial", or_null(one.serial)},
                                   {"power", or_null(one.power)},
                                   {"health", json_quote(word_of(one.health))}}));
  }
  std::vector<std::string> detectors;
  for (const inspected_detector& one : report.detectors) {
    detectors.push_back(json_object({{"id", json_quote(one.id)},
                                     {"verdict", json_quote(one.verdict)},
                                     {"detail", json_quote(one.detail)},
                                     {"aggregate", one.aggregate ? "true" : "false"}}));
  }
  std::vector<std::string> firmware;
  for (const inspected_firmware& one : report.firmware) {
    firmware.push_back(json_object({{"component", json_quote(one.component)},
                                    {"version", one.version ? json_quote(*one.version) : "null"}}));
  }
  return json_object({{"apiVersion", json_quote("busbar.v1")},
                      {"kind", json_quote("BmcInspection")},
                      {"address", json_quote(report.address)},
                      {"reachable", report.reachable ? "true" : "false"},
                      {"unreachableWhy", or_null(report.unreachable_why)},
                      {"health", json_quote(word_of(report.health))},
                      {"condition", or_null(report.condition)},
                      {"vendor", or_null(report.vendor)},
                      {"product", or_null(report.product)},
                      {"redfishVersion", or_null(report.redfish_version)},
                      {"uuid", or_null(report.uuid)},
                      {"certificateSha256", or_null(report.certificate_sha256)},
                      {"power", or_null(report.power)},
                      {"systems", json_array(systems)},
                      {"processors", parts_json(report.processors)},
                      {"processorsComplete", report.processors_complete ? "true" : "false"},
                      {"gpuSource", or_null(report.gpu_source)},
                      {"asics", parts_json(report.asics)},
                      {"supplies", parts_json(report.supplies)},
                      {"memoryGib", report.memory_gib ? redfish::format_number(*report.memory_gib) : "null"},
                      {"sensors", readings_json(report.sensors)},
                      {"temperatures", readings_json(report.temperatures)},
                      {"detectors", json_array(detectors)},
                      {"firmware", json_array(firmware)},
                      {"blades", json_object({{"present", std::to_string(report.blades)},
                                              {"on", std::to_string(report.blades_on)}})},
                      {"outlets", json_object({{"listed", std::to_string(report.outlets)},
                                               {"on", std::to_string(report.outlets_on)},
                                               {"unknown", std::to_string(report.outlets_unknown)}})},
                      {"pdus", std::to_string(report.pdus)},
                      {"cdus", std::to_string(report.cdus)},
                      {"shelves", std::to_string(report.shelves)},
                      {"bad", texts_json(report.bad)},
                      {"unknown", texts_json(report.unknown)},
                      {"oddities", texts_json(report.oddities)},
                      {"requests", std::to_string(report.requests)}});
}

}  // namespace busbar::devices
