// MetricReports, read in one pass without a tree: 10,000 of these rows come each second from one rack. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace busbar::devices::redfish {

// One row of MetricValues. The texts are the report's own until the next one is read into it.
struct metric_row {
  enum class form { missing, text, number, other };  // other: null, true, an object...
  std::string property;                              // MetricProperty; empty: it named none
  std::string id;                                    // MetricId
  std::string text;                                  // MetricValue as it stood there
  double number = 0;                                 // form::number
  form value = form::missing;
  std::string timestamp;
  bool stale = false;  // the device says so itself
};

// Kept and read into again: rows keep their memory.
class metric_report {
 public:
  // False: no report (no JSON, too deep, no MetricValues, another kind of event).
  bool read(std::string_view body);

  const std::string& uri() const { return uri_; }            // "@odata.id"; may be empty
  const std::string& id() const { return id_; }              // Id; may be empty
  const std::string& sequence() const { return sequence_; }  // ReportSequence
  std::size_t size() const { return count_; }
  const metric_row& operator[](std::size_t at) const { return rows_[at]; }

 private:
  friend class metric_report_sax;
  std::string uri_;
  std::string id_;
  std::string sequence_;
  std::vector<metric_row> rows_;
  std::size_t count_ = 0;
  bool found_ = false;
};

}  // namespace busbar::devices::redfish
