#include "daemon/cli/reading_view.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "actors/manifest/names.hpp"

namespace busbar::cli {
namespace {

using google::protobuf::util::TimeUtil;

constexpr std::size_t most_past = 600;
constexpr std::size_t label_width = 20;
constexpr std::size_t value_width = 16;
constexpr std::size_t least_picture = 8;

// "racks/r01/nodes/c07/gpu0/power" -> "r01/c07/gpu0/power": what people type.
std::string shown_name(const std::string& name) {
  if (name.starts_with("cdus/")) return name.substr(5);
  if (!name.starts_with("racks/")) return name;
  std::string text = name.substr(6);
  for (const char* collection : {"/nodes/", "/shelves/", "/controllers/"}) {
    const auto at = text.find(collection);
    if (at != std::string::npos && text.find('/') == at)
      return text.substr(0, at) + text.substr(at + std::string(collection).size() - 1);
  }
  return text;
}

std::string number_text(double value) {
  if (value != 0 && (std::fabs(value) < 0.001 || std::fabs(value) >= 1e7))
    return fmt::format("{:.3g}", value);
  std::string text = fmt::format("{:.3f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string time_text(const google::protobuf::Timestamp& time) {
  return TimeUtil::ToString(time).substr(0, 19) + "Z";
}

}  // namespace

std::string quality_word(v1::Quality quality) {
  if (quality == v1::QUALITY_GOOD) return "good";
  if (quality == v1::QUALITY_STALE) return "stale";
  return quality == v1::QUALITY_BAD ? "bad" : "unknown";
}

std::string value_text(const v1::Reading& reading) {
  if (!reading.has_value()) return reading.quality() == v1::QUALITY_BAD ? "bad" : "unknown";
  double value = reading.value();
  std::string unit = reading.unit();
  if (unit == "W" && std::fabs(value) >= 10'000) {
    value /= 1'000;
    unit = "kW";
  }
  if (unit == "1") unit.clear();
  std::string text = number_text(value);
  if (!unit.empty()) text += (unit == "%" ? "" : " ") + unit;
  if (reading.quality() != v1::QUALITY_GOOD) text += " (" + quality_word(reading.quality()) + ")";
  return text;
}

row point_header() {
  return {"NAME", "VALUE", "QUALITY", "AGE", "SOURCE"};
}

row point_row(const v1::Point& point, wall_time now) {
  v1::Reading plain = point.reading();
  if (plain.has_value()) plain.set_quality(v1::QUALITY_GOOD);  // said in a column of its own
  return {shown_name(point.name()), value_text(plain), quality_word(point.reading().quality()),
          age_text(point.reading().received_time(), point.reading().has_received_time(), now),
          point.reading().source()};
}

std::string sample_text(const v1::ReadHistoryResponse& history, const std::string& name) {
  std::vector<row> rows;
  const bool steps = std::any_of(history.samples().begin(), history.samples().end(),
                                 [](const v1::HistorySample& one) { return one.has_least(); });
  rows.push_back(steps ? row{"TIME", "MEAN", "LEAST", "MOST"} : row{"TIME", "VALUE"});
  const auto text = [&history](bool known, double value) {
    if (!known) return std::string("unknown");
    v1::Reading one;
    one.set_value(value);
    one.set_unit(history.unit());
    one.set_quality(v1::QUALITY_GOOD);
    return value_text(one);
  };
  std::deque<std::optional<double>> values;
  for (const v1::HistorySample& one : history.samples()) {
    rows.push_back({time_text(one.time()), text(one.has_value(), one.value())});
    if (steps) {
      rows.back().push_back(text(one.has_least(), one.least()));
      rows.back().push_back(text(one.has_most(), one.most()));
    }
    values.push_back(one.has_value() ? std::optional(one.value()) : std::nullopt);
  }
  return fmt::format("{}  {}\n{}", shown_name(name), sparkline(values, 60), aligned(rows));
}

std::string sparkline(const std::deque<std::optional<double>>& values, std::size_t width) {
  constexpr std::array<const char*, 8> heights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t from = values.size() > width ? values.size() - width : 0;
  std::optional<double> least;
  std::optional<double> most;
  for (std::size_t i = from; i < values.size(); ++i) {
    if (!values[i]) continue;
    least = std::min(least.value_or(*values[i]), *values[i]);
    most = std::max(most.value_or(*values[i]), *values[i]);
  }
  // What only trembles is drawn flat, in the middle.
  const double span = least ? *most - *least : 0;
  const bool flat = !least || span <= 1e-3 * std::max(std::fabs(*most), std::fabs(*least)) || span == 0;
  std::string text;
  for (std::size_t i = from; i < values.size(); ++i) {
    if (!values[i]) {
      text += ' ';
      continue;
    }
    const double place = flat ? 0.4 : (*values[i] - *least) / span;
    text += heights[std::min<std::size_t>(7, static_cast<std::size_t>(place * 8))];
  }
  return text;
}

cooling_view::cooling_view(std::string rack) : rack_(std::move(rack)) {
  for (const auto& [point, label] :
       {std::pair{"power", "power"}, std::pair{"flow", "flow"}, std::pair{"supply_temperature", "supply"},
        std::pair{"return_temperature", "return"}, std::pair{"dp", "dp"}}) {
    series made;
    made.label = label;
    fixed_.emplace_back(rack_ + "/" + point, std::move(made));
  }
}

cooling_view::series* cooling_view::series_of(const std::string& name) {
  for (auto& [point, one] : fixed_) {
    if (point == name) return &one;
  }
  const std::string valves = rack_ + "/valves/";
  constexpr std::string_view position = "/position";
  if (name.starts_with(valves) && name.ends_with(position)) {
    series& one = valves_[name];
    one.label = "valve " + name.substr(valves.size(), name.size() - valves.size() - position.size());
    return &one;
  }
  constexpr std::string_view speed = "/speed";
  if (name.starts_with("cdus/") && name.find("/pump") != std::string::npos && name.ends_with(speed)) {
    series& one = pumps_[name];
    one.label = name.substr(5, name.size() - 5 - speed.size());
    std::replace(one.label.begin(), one.label.end(), '/', ' ');
    return &one;
  }
  return nullptr;
}

void cooling_view::apply(const v1::WatchReadingsResponse& news) {
  for (const v1::Point& point : news.points()) {
    series* const of = series_of(point.name());
    if (of == nullptr) continue;
    of->now = point.reading();
    of->seen = true;
  }
}

void cooling_view::sample() {
  const auto take = [](series& one) {
    const bool known = one.now.has_value() && one.now.quality() == v1::QUALITY_GOOD;
    one.past.push_back(known ? std::optional(one.now.value()) : std::nullopt);
    if (one.past.size() > most_past) one.past.pop_front();
  };
  for (auto& [name, one] : fixed_) take(one);
  for (auto& [name, one] : valves_) take(one);
  for (auto& [name, one] : pumps_) take(one);
}

std::vector<std::string> cooling_view::lines(std::size_t rows, std::size_t columns) const {
  std::vector<std::string> out;
  const std::size_t before = label_width + value_width + 4;
  const std::size_t width = columns > before + least_picture ? columns - before : least_picture;
  const auto add = [&out, width](const series& one) {
    out.push_back(fmt::format("  {:<{}}  {:>{}}  {}", one.label, label_width - 2, value_text(one.now),
                              value_width - 2, sparkline(one.past, width)));
  };
  out.push_back(manifest::short_name(rack_));
  for (const auto& [name, one] : fixed_) add(one);
  for (const auto& [name, one] : valves_) add(one);
  for (const auto& [name, one] : pumps_) add(one);
  if (rows > 0 && out.size() > rows) {
    const std::size_t hidden = out.size() - rows + 1;
    out.resize(rows - 1);
    out.push_back(fmt::format("  ... and {} more rows", hidden));
  }
  return out;
}

std::string cooling_view::line(wall_time now) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count();
  std::string text = time_text(TimeUtil::SecondsToTimestamp(seconds)) + " " + manifest::short_name(rack_);
  const auto add = [&text](const series& one) {
    text += fmt::format("  {} {}", one.label, value_text(one.now));
  };
  for (const auto& [name, one] : fixed_) add(one);
  for (const auto& [name, one] : valves_) add(one);
  for (const auto& [name, one] : pumps_) add(one);
  return text;
}

}  // namespace busbar::cli
