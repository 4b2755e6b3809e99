// Leak detectors: bodies to facts. What they mean stands in leak_table.cpp. An unreadable body is UNKNOWN
// before it comes here, and an empty list of detectors gives no row at all: neither is dry.
#include "actors/devices/redfish/decode.hpp"
#include "actors/devices/redfish/leak_table.hpp"

namespace busbar::devices::redfish {

// Outside the range that the sensor gives for itself, or not above zero volts, is a broken or shorted rope.
raw_leak decode_raw_leak(json_view sensor) {
  const reading_facts reading = decode_sensor(sensor);
  if (reading.quality != reading_quality::good || !reading.lower_critical) return raw_leak::unreadable;
  const auto least = sensor["ReadingRangeMin"].number();
  const auto most = sensor["ReadingRangeMax"].number();
  const bool outside =
      *reading.value <= 0 || (least && *reading.value < *least) || (most && *reading.value > *most);
  if (outside) return raw_leak::faulty;
  return *reading.value < *reading.lower_critical ? raw_leak::wet : raw_leak::dry;
}

detector_facts judge_detector(json_view detector, raw_leak raw, std::string_view quirks) {
  detector_facts facts;
  facts.name = detector["Id"].text().value_or("");
  const std::string word = detector["DetectorState"].text().value_or("");
  const status_words status = decode_status(detector);
  // A profile that nobody knows judges nothing: UNKNOWN.
  const leak_table* const table = find_leak_table(quirks);
  facts.verdict = table == nullptr ? journal::Detector::UNKNOWN : judge_leak(*table, word, status, raw);
  facts.detail = "DetectorState " + (word.empty() ? "not given" : word) + ", State " +
                 (status.state.empty() ? "not given" : status.state) + ", Health " +
                 (status.health.empty() ? "not given" : status.health) + ", raw value " +
                 std::string(raw == raw_leak::not_offered ? "none offered" : name_of(raw));
  if (facts.verdict == journal::Detector::UNKNOWN && word == "Critical" &&
      (raw == raw_leak::dry || raw == raw_leak::faulty)) {
    facts.detail += ": it contradicts itself (sensor fault)";
  }
  facts.reaction = detector["CriticalReactionType"].text();
  return facts;
}

std::string short_detector_name(std::string_view id, std::string_view owner) {
  const std::string longer = std::string(owner) + "_LeakDetector_";
  if (id.starts_with(longer) && id.size() > longer.size()) return std::string(id.substr(longer.size()));
  const std::string group = std::string(owner) + "_";
  if (!owner.empty() && id.starts_with(group) && id.size() > group.size())
    return std::string(id.substr(group.size()));
  return std::string(id);
}

}  // namespace busbar::devices::redfish
