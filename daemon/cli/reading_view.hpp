// Readings for people: a row a point, and the live picture of a rack's cooling. Pure: the caller says what
// time it is.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "busbar/v1/busbar.pb.h"
#include "daemon/cli/table.hpp"

namespace busbar::cli {

// "21.5 Cel", "125.4 kW"; "unknown" where there is no value. Words for a reading that is not good stand
// behind it.
std::string value_text(const v1::Reading& reading);
std::string quality_word(v1::Quality quality);

row point_header();
row point_row(const v1::Point& point, wall_time now);
std::string sample_text(const v1::ReadHistoryResponse& history, const std::string& name);

// Heights 1..8 between least and most of what is there; a gap stays blank. The newest is on the right.
std::string sparkline(const std::deque<std::optional<double>>& values, std::size_t width);

// Power, flow, temperatures and pressure of one rack, its valves, and the pumps of the CDUs: a line each,
// with what they were in the last seconds.
class cooling_view {
 public:
  explicit cooling_view(std::string rack);  // racks/r01

  void apply(const v1::WatchReadingsResponse& news);
  // Takes the present values into the pictures; once a second.
  void sample();
  std::vector<std::string> lines(std::size_t rows, std::size_t columns) const;
  // Where there is no terminal: one line with all of it.
  std::string line(wall_time now) const;

 private:
  struct series {
    std::string label;
    v1::Reading now;
    bool seen = false;
    std::deque<std::optional<double>> past;
  };
  series* series_of(const std::string& name);

  std::string rack_;
  std::vector<std::pair<std::string, series>> fixed_;  // by the point's name, in the order they are shown
  std::map<std::string, series> valves_;
  std::map<std::string, series> pumps_;
};

}  // namespace busbar::cli
