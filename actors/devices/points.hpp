// The readings of one device: a flat table, replaced point by point in batches. A reading is never journaled.
// A point whose text is no number keeps its text and has no value; nothing here turns into zero.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace busbar::devices {

enum class point_quality { good, bad, stale };
std::string_view name_of(point_quality quality);

struct point {
  std::optional<double> value;
  std::string unit;  // empty: the device gave none; never compared with a limit then
  point_quality quality = point_quality::bad;
  std::string raw;                  // what stood there, when there is no value
  std::int64_t source_time_ns = 0;  // as the device stamped it; 0: it gave no time
  std::int64_t received_ns = 0;     // when its batch came
  std::string source;               // URI of the report or sensor that gave it
};

struct named_point {
  std::string name;  // URI of the sensor (or property) it is about
  point reading;
};

// The parsed form of one report or of one list of sensors.
struct point_batch {
  std::vector<named_point> points;
  std::size_t bad = 0;
};

class point_table {
 public:
  // Points of the batch replace those of the same name; a unit already known is kept where the batch gives
  // none.
  void apply(const point_batch& batch);
  // Marks as stale what has not come since the given time.
  void mark_stale(std::int64_t before_ns);
  const point* find(std::string_view name) const;
  std::size_t size() const { return points_.size(); }
  const std::map<std::string, point, std::less<>>& points() const { return points_; }

 private:
  std::map<std::string, point, std::less<>> points_;
};

// Pure decoders. received_ns is the time of the batch. A body that is no report (no sensor) is a status.
absl::StatusOr<point_batch> decode_metric_report(std::string_view body, std::string_view uri,
                                                 std::int64_t received_ns);
absl::StatusOr<point_batch> decode_sensor_points(std::string_view body, std::string_view uri,
                                                 std::int64_t received_ns);
// "2025-01-06T22:56:02.131+00:00" -> nanoseconds since 1970; nullopt when it is no such time or lies before
// 2000 (a BMC whose clock was never set).
std::optional<std::int64_t> parse_time(std::string_view text);

}  // namespace busbar::devices
