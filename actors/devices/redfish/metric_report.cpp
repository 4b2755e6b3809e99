#include "actors/devices/redfish/metric_report.hpp"

#include <nlohmann/json.hpp>

namespace busbar::devices::redfish {
namespace {

constexpr int depth_limit = 64;
constexpr std::size_t most_rows = 16'384;

}  // namespace

// Where it stands: 1 in the report, 2 in MetricValues, 3 in a row of it, deeper in what a row says beside its
// value.
class metric_report_sax {
 public:
  using text = nlohmann::json::string_t;

  explicit metric_report_sax(metric_report& into) : into_(into) {}

  bool null() { return scalar(); }
  bool boolean(bool value) {
    if (row_open_ && depth_ > 3 && key_ == "MetricValueStale") row().stale = value;
    return scalar();
  }
  bool number_integer(nlohmann::json::number_integer_t value) { return number(static_cast<double>(value)); }
  bool number_unsigned(nlohmann::json::number_unsigned_t value) { return number(static_cast<double>(value)); }
  bool number_float(nlohmann::json::number_float_t value, const text&) { return number(value); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // not in JSON text

  bool string(text& value) {
    if (in_row()) {
      metric_row& to = row();
      if (key_ == "MetricProperty") {
        to.property.swap(value);
      } else if (key_ == "MetricValue") {
        to.value = metric_row::form::text;
        to.text.swap(value);
      } else if (key_ == "Timestamp") {
        to.timestamp.swap(value);
      } else if (key_ == "MetricId") {
        to.id.swap(value);
      }
    } else if (depth_ == 1) {
      if (key_ == "@odata.id") into_.uri_.swap(value);
      if (key_ == "Id") into_.id_.swap(value);
      if (key_ == "ReportSequence") into_.sequence_.swap(value);
    }
    return true;
  }

  bool start_object(std::size_t) {
    if (in_row()) other();
    if (depth_ == 2 && in_rows_ && !begin_row()) return false;
    return ++depth_ <= depth_limit;
  }
  bool key(text& name) {
    key_.swap(name);
    return true;
  }
  bool end_object() {
    if (--depth_ == 2) row_open_ = false;
    return true;
  }
  bool start_array(std::size_t) {
    if (in_row()) other();
    if (depth_ == 1 && key_ == "MetricValues") {
      in_rows_ = true;
      into_.found_ = true;
      into_.count_ = 0;  // said twice: the last one counts
    }
    return ++depth_ <= depth_limit;
  }
  bool end_array() {
    if (--depth_ == 1) in_rows_ = false;
    return true;
  }
  bool parse_error(std::size_t, const text&, const nlohmann::json::exception&) { return false; }

 private:
  bool in_row() const { return row_open_ && depth_ == 3; }
  metric_row& row() { return into_.rows_[into_.count_ - 1]; }

  bool begin_row() {
    if (into_.count_ == most_rows) return false;
    row_open_ = true;
    if (into_.count_ == into_.rows_.size()) into_.rows_.emplace_back();
    metric_row& fresh = into_.rows_[into_.count_++];
    fresh.property.clear();
    fresh.id.clear();
    fresh.text.clear();
    fresh.timestamp.clear();
    fresh.value = metric_row::form::missing;
    fresh.stale = false;
    return true;
  }
  void other() {
    if (key_ != "MetricValue") return;
    row().value = metric_row::form::other;
    row().text.clear();
  }
  bool scalar() {
    if (in_row()) other();
    return true;
  }
  bool number(double value) {
    if (in_row() && key_ == "MetricValue") {
      row().value = metric_row::form::number;
      row().number = value;
    }
    return true;
  }

  metric_report& into_;
  int depth_ = 0;
  bool in_rows_ = false;   // inside MetricValues
  bool row_open_ = false;  // inside an object of it: the last of rows_
  text key_;
};

bool metric_report::read(std::string_view body) {
  uri_.clear();
  id_.clear();
  sequence_.clear();
  count_ = 0;
  found_ = false;
  metric_report_sax sax(*this);
  const bool whole = nlohmann::json::sax_parse(body, &sax);
  if (whole && found_) return true;
  count_ = 0;
  return false;
}

}  // namespace busbar::devices::redfish
