// The points of one device: which report brings which, when it came last, and what of it has gone silent.
// Puts batches on the board; does no I/O and reads no clock. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/reading_board.hpp"
#include "actors/devices/points.hpp"
#include "actors/devices/redfish/metric_report.hpp"
#include "actors/devices/redfish/telemetry_names.hpp"

namespace busbar::devices::redfish {

struct telemetry_figures {
  std::uint64_t streamed_reports = 0;
  std::uint64_t polled_reports = 0;
  std::uint64_t points = 0;  // put on the board
  std::uint64_t bad_points = 0;
  std::uint64_t bad_reports = 0;  // that were no reports
  std::uint64_t gaps = 0;         // in the sequence of reports or events
  std::uint64_t too_many = 0;     // points beyond what one device may have
  std::uint64_t streams_opened = 0;
  std::uint64_t streams_lost = 0;
  std::uint64_t failed_polls = 0;
};

// One source of points: a report, or the sensors read one by one.
class point_group {
 public:
  std::int64_t last_ns = 0;      // monotonic; 0: nothing came yet
  std::int64_t interval_ns = 0;  // between the last two; 0: not known
  std::int64_t streamed_ns = 0;  // when it last came over the stream that is open now; 0: not over it
  std::int64_t streamed_interval_ns = 0;
  bool owed = false;  // that stream is lost: it is read at once

  // How long it may be silent: a few of its own intervals.
  std::int64_t patience_ns() const;
  // The same of the stream: what we read by ourselves in between does not count.
  std::int64_t stream_patience_ns() const;

 private:
  friend class telemetry_points;
  struct row {
    std::string property;
    core::reading_board::place at = 0;
    value_form form = value_form::number;
    std::int64_t last_ns = 0;
    bool stale = false;
  };
  void came(std::int64_t now_ns);

  std::vector<row> rows_;
  std::unordered_map<std::string, std::size_t> by_property_;
  std::uint64_t sequence_ = 0;
};

class telemetry_points {
 public:
  telemetry_points(std::string member, std::shared_ptr<core::reading_board> board);

  point_group& group(const std::string& id) { return groups_[id]; }
  std::map<std::string, point_group>& groups() { return groups_; }

  void take(point_group& into, const metric_report& report, std::string_view source,
            const core::instant& now);
  // Sensors that no living report brings.
  void take(point_group& into, const point_batch& sensors, const core::instant& now);
  // Marks what has not come for too long.
  void mark_silent(const core::instant& now);
  void mark_all_stale();

  telemetry_figures& figures() { return figures_; }
  const telemetry_figures& figures() const { return figures_; }

 private:
  using placed = core::reading_board::placed_reading;
  point_group::row* row_of(point_group& in, std::size_t hint, const std::string& property,
                           std::string_view unit, std::string_view source);
  std::int64_t time_of(const std::string& timestamp);

  const std::string member_;
  const std::shared_ptr<core::reading_board> board_;
  std::map<std::string, point_group> groups_;
  std::unordered_map<core::reading_board::place, const point_group*> reported_by_;
  std::size_t known_ = 0;
  std::vector<placed> batch_;  // kept for its memory
  std::string last_timestamp_;
  std::int64_t last_time_ns_ = 0;
  telemetry_figures figures_;
};

}  // namespace busbar::devices::redfish
