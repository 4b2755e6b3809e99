#include "actors/devices/redfish/telemetry_points.hpp"

#include <algorithm>
#include <utility>

#include "actors/devices/redfish/json.hpp"

namespace busbar::devices::redfish {
namespace {

constexpr std::size_t most_points = 8'192;  // of one device; a compute tray has about 400
constexpr std::int64_t second_ns = 1'000'000'000;
constexpr std::int64_t least_patience_ns = 4 * second_ns;
constexpr std::int64_t most_patience_ns = 1'200 * second_ns;
constexpr std::int64_t first_patience_ns = 35 * second_ns;

}  // namespace

static std::int64_t patience_of(std::int64_t interval_ns) {
  if (interval_ns == 0) return first_patience_ns;
  return std::clamp(interval_ns * 7 / 2, least_patience_ns, most_patience_ns);
}

std::int64_t point_group::patience_ns() const {
  return patience_of(interval_ns);
}

std::int64_t point_group::stream_patience_ns() const {
  return patience_of(streamed_interval_ns);
}

void point_group::came(std::int64_t now_ns) {
  if (last_ns != 0) interval_ns = std::max<std::int64_t>(now_ns - last_ns, 1);
  last_ns = now_ns;
  owed = false;
}

telemetry_points::telemetry_points(std::string member, std::shared_ptr<core::reading_board> board)
    : member_(std::move(member)), board_(std::move(board)) {}

// A report has its rows in the same order each time: the hint is nearly always right, and then one comparison
// of texts is all that a row costs.
point_group::row* telemetry_points::row_of(point_group& in, std::size_t hint, const std::string& property,
                                           std::string_view unit, std::string_view source) {
  if (hint < in.rows_.size() && in.rows_[hint].property == property) return &in.rows_[hint];
  if (const auto found = in.by_property_.find(property); found != in.by_property_.end()) {
    return &in.rows_[found->second];
  }
  if (known_ >= most_points) {
    ++figures_.too_many;
    return nullptr;
  }
  const auto named = name_point(property);
  if (!named.has_value()) return nullptr;
  ++known_;
  point_group::row made;
  made.property = property;
  made.form = named->form;
  made.at = board_->place_of(member_ + "/" + named->name, named->unit.empty() ? unit : named->unit, source);
  in.by_property_.emplace(property, in.rows_.size());
  return &in.rows_.emplace_back(std::move(made));
}

// Rows of one report mostly carry the same time.
std::int64_t telemetry_points::time_of(const std::string& timestamp) {
  if (timestamp != last_timestamp_) {
    last_timestamp_ = timestamp;
    last_time_ns_ = parse_time(timestamp).value_or(0);
  }
  return last_time_ns_;
}

void telemetry_points::take(point_group& into, const metric_report& report, std::string_view source,
                            const core::instant& now) {
  into.came(now.monotonic_ns);
  if (const auto sequence = parse_number(report.sequence()); sequence && *sequence >= 0 && *sequence < 9e15) {
    const auto number = static_cast<std::uint64_t>(*sequence);
    if (into.sequence_ != 0 && number > into.sequence_ + 1) ++figures_.gaps;
    into.sequence_ = number;
  }
  batch_.clear();
  for (std::size_t i = 0; i < report.size(); ++i) {
    const metric_row& given = report[i];
    const std::string& property = given.property.empty() ? given.id : given.property;
    auto* const row = row_of(into, i, property, {}, source);
    if (row == nullptr) {
      if (property.empty()) ++figures_.bad_points;
      continue;
    }
    placed one{row->at, core::reading_quality::bad, std::nullopt, time_of(given.timestamp)};
    if (given.value == metric_row::form::number && row->form == value_form::number) one.value = given.number;
    if (given.value == metric_row::form::text) {
      one.value = row->form == value_form::link ? link_value(given.text) : parse_number(given.text);
    }
    if (one.value.has_value()) {
      one.quality = given.stale ? core::reading_quality::stale : core::reading_quality::good;
    } else {
      ++figures_.bad_points;
    }
    if (row->last_ns == 0) reported_by_.emplace(row->at, &into);
    row->last_ns = now.monotonic_ns;
    row->stale = false;
    batch_.push_back(one);
  }
  figures_.points += batch_.size();
  board_->put(batch_, now.wall_ns);
}

void telemetry_points::take(point_group& into, const point_batch& sensors, const core::instant& now) {
  batch_.clear();
  for (const named_point& given : sensors.points) {
    auto* const row =
        row_of(into, into.rows_.size(), given.name + "#/Reading", given.reading.unit, given.name);
    if (row == nullptr) continue;
    row->last_ns = now.monotonic_ns;
    row->stale = false;
    const auto reporter = reported_by_.find(row->at);
    if (reporter != reported_by_.end() &&
        now.monotonic_ns - reporter->second->last_ns <= reporter->second->patience_ns()) {
      continue;  // a report brings it, newer
    }
    placed one{row->at, core::reading_quality::bad, given.reading.value, given.reading.source_time_ns};
    if (given.reading.quality == point_quality::good && one.value) one.quality = core::reading_quality::good;
    if (one.quality == core::reading_quality::bad) one.value.reset();
    batch_.push_back(one);
  }
  figures_.points += batch_.size();
  figures_.bad_points += sensors.bad;
  board_->put(batch_, now.wall_ns);
}

void telemetry_points::mark_silent(const core::instant& now) {
  std::vector<core::reading_board::place> silent;
  for (auto& [id, one] : groups_) {
    const std::int64_t oldest = now.monotonic_ns - one.patience_ns();
    for (point_group::row& row : one.rows_) {
      if (row.stale || row.last_ns >= oldest) continue;
      row.stale = true;
      const auto reporter = reported_by_.find(row.at);
      const bool brought_by_another =
          reporter != reported_by_.end() && reporter->second != &one &&
          now.monotonic_ns - reporter->second->last_ns <= reporter->second->patience_ns();
      if (!brought_by_another) silent.push_back(row.at);
    }
  }
  if (!silent.empty()) board_->mark_stale(silent);
}

void telemetry_points::mark_all_stale() {
  std::vector<core::reading_board::place> all;
  for (auto& [id, one] : groups_) {
    for (point_group::row& row : one.rows_) {
      row.stale = true;
      all.push_back(row.at);
    }
  }
  if (!all.empty()) board_->mark_stale(all);
}

}  // namespace busbar::devices::redfish
