#include "actors/devices/points.hpp"

#include <charconv>
#include <chrono>
#include <utility>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/decode.hpp"
#include "actors/devices/redfish/json.hpp"
#include "actors/devices/redfish/metric_report.hpp"

namespace busbar::devices {

using redfish::json_document;
using redfish::json_view;

std::string_view name_of(point_quality quality) {
  switch (quality) {
    case point_quality::good:
      return "good";
    case point_quality::bad:
      return "bad";
    case point_quality::stale:
      return "stale";
  }
  return "?";
}

void point_table::apply(const point_batch& batch) {
  for (const named_point& one : batch.points) {
    point& row = points_[one.name];
    std::string unit = one.reading.unit.empty() ? std::move(row.unit) : one.reading.unit;
    row = one.reading;
    row.unit = std::move(unit);
  }
}

void point_table::mark_stale(std::int64_t before_ns) {
  for (auto& [name, row] : points_) {
    if (row.received_ns < before_ns && row.quality == point_quality::good) row.quality = point_quality::stale;
  }
}

const point* point_table::find(std::string_view name) const {
  const auto found = points_.find(name);
  return found == points_.end() ? nullptr : &found->second;
}

namespace {

// Strict digits at a place of the text.
std::optional<int> digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return std::nullopt;
  int value = 0;
  const char* const begin = text.data() + at;
  const auto [end, error] = std::from_chars(begin, begin + count, value);
  return error == std::errc() && end == begin + count && value >= 0 ? std::optional<int>(value)
                                                                    : std::nullopt;
}

struct fraction {
  std::int64_t ns = 0;
  std::size_t end = 0;
};

fraction fraction_at(std::string_view text, std::size_t at) {
  fraction result{0, at};
  if (at >= text.size() || text[at] != '.') return result;
  std::int64_t unit = 100'000'000;
  for (result.end = at + 1; result.end < text.size() && text[result.end] >= '0' && text[result.end] <= '9';
       ++result.end) {
    result.ns += (text[result.end] - '0') * unit;
    unit /= 10;
  }
  return result;
}

// Offset from UTC in minutes: Z, +02:00; nullopt for anything else.
std::optional<int> offset_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return std::nullopt;
  if (text[at] == 'Z') return at + 1 == text.size() ? std::optional<int>(0) : std::nullopt;
  if ((text[at] != '+' && text[at] != '-') || text.size() != at + 6 || text[at + 3] != ':')
    return std::nullopt;
  const auto hours = digits(text, at + 1, 2);
  const auto minutes = digits(text, at + 4, 2);
  if (!hours || !minutes) return std::nullopt;
  return (text[at] == '-' ? -1 : 1) * (*hours * 60 + *minutes);
}

void add(point_batch& batch, named_point one) {
  if (one.reading.quality != point_quality::good) ++batch.bad;
  batch.points.push_back(std::move(one));
}

}  // namespace

std::optional<std::int64_t> parse_time(std::string_view text) {
  const auto year = digits(text, 0, 4);
  const auto month = digits(text, 5, 2);
  const auto day = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2);
  const auto minute = digits(text, 14, 2);
  const auto second = digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second || *year < 2000 || *year > 2200)
    return std::nullopt;
  if (text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  const fraction part = fraction_at(text, 19);
  const auto offset = offset_at(text, part.end);
  if (!date.ok() || !offset || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const auto whole = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(*hour) +
                     std::chrono::minutes(*minute - *offset) + std::chrono::seconds(*second);
  return std::chrono::nanoseconds(whole).count() + part.ns;
}

absl::StatusOr<point_batch> decode_metric_report(std::string_view body, std::string_view uri,
                                                 std::int64_t received_ns) {
  redfish::metric_report report;
  if (!report.read(body)) {
    return core::make_fault(core::fault::BMC_BAD_DATA, std::string(uri) + " is no metric report");
  }
  point_batch batch;
  for (std::size_t i = 0; i < report.size(); ++i) {
    const redfish::metric_row& row = report[i];
    if (row.property.empty() && row.id.empty()) {
      ++batch.bad;
      continue;
    }
    named_point one;
    one.name = row.property.empty() ? row.id : row.property;
    one.reading.received_ns = received_ns;
    one.reading.source = std::string(uri);
    if (row.value == redfish::metric_row::form::number) one.reading.value = row.number;
    if (row.value == redfish::metric_row::form::text) one.reading.value = redfish::parse_number(row.text);
    if (!one.reading.value) one.reading.raw = row.text.substr(0, 60);
    one.reading.source_time_ns = parse_time(row.timestamp).value_or(0);
    one.reading.quality = !one.reading.value ? point_quality::bad
                          : row.stale        ? point_quality::stale
                                             : point_quality::good;
    add(batch, std::move(one));
  }
  return batch;
}

absl::StatusOr<point_batch> decode_sensor_points(std::string_view body, std::string_view uri,
                                                 std::int64_t received_ns) {
  const auto document = json_document::parse(body);
  if (!document || !document->root().is_object()) {
    return core::make_fault(core::fault::BMC_BAD_DATA, std::string(uri) + " is no sensor");
  }
  std::vector<json_view> sensors = document->root()["Members"].items();
  const bool single = document->root()["Members"].missing();
  if (single) sensors.push_back(document->root());
  point_batch batch;
  for (const json_view& sensor : sensors) {
    if (!single && sensor.size() <= 1) continue;  // only a link: its body comes by itself
    const redfish::reading_facts facts = redfish::decode_sensor(sensor);
    named_point one;
    one.name = single ? std::string(uri) : sensor.link().value_or("");
    if (one.name.empty()) {
      ++batch.bad;
      continue;
    }
    const bool good = facts.quality == redfish::reading_quality::good;
    one.reading.value = good ? facts.value : std::nullopt;
    one.reading.unit = facts.unit;
    one.reading.quality = good ? point_quality::good : point_quality::bad;
    one.reading.raw = facts.raw;
    one.reading.received_ns = received_ns;
    one.reading.source = std::string(uri);
    const auto time = sensor["ReadingTime"].text();
    one.reading.source_time_ns = time ? parse_time(*time).value_or(0) : 0;
    add(batch, std::move(one));
  }
  return batch;
}

}  // namespace busbar::devices
