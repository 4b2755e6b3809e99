// The truth table of one leak detector.
//
//   state of the detector   what it says        raw value       verdict
//   Absent, Disabled, ...   anything            anything        UNKNOWN
//   working                 anything            wet             LEAK      (wetness is believed whoever shows
//   it) working                 OK                  dry             DRY working                 OK not
//   offered     DRY       (switch trays have no raw value) working                 OK unreadable      UNKNOWN
//   working                 Critical            dry             UNKNOWN   (it contradicts itself: sensor
//   fault) working                 Critical            none, unread    LEAK working                 Warning,
//   no word    not wet         UNKNOWN working                 another word        not dry         LEAK if
//   its Health is Critical, else UNKNOWN
//
// working: State Enabled, or Degraded (a detector that reports wet may call itself so). An unreadable body is
// UNKNOWN before it comes here, and an empty list of detectors gives no row at all: neither is dry.
#include "actors/devices/redfish/decode.hpp"

namespace busbar::devices::redfish {

raw_leak decode_raw_leak(json_view sensor) {
  const reading_facts reading = decode_sensor(sensor);
  if (reading.quality != reading_quality::good || !reading.lower_critical) return raw_leak::unreadable;
  return *reading.value < *reading.lower_critical ? raw_leak::wet : raw_leak::dry;
}

namespace {

std::string_view name_of(raw_leak raw) {
  switch (raw) {
    case raw_leak::not_offered:
      return "none offered";
    case raw_leak::unreadable:
      return "unreadable";
    case raw_leak::dry:
      return "dry";
    case raw_leak::wet:
      return "wet";
  }
  return "?";
}

journal::Detector::Verdict verdict_of(const std::string& word, const status_words& status, raw_leak raw) {
  using verdict = journal::Detector;
  if (status.state != "Enabled" && status.state != "Degraded") return verdict::UNKNOWN;
  if (raw == raw_leak::wet) return verdict::LEAK;
  const bool says_leak = word == "Critical" || (!word.empty() && word != "OK" && word != "Warning" &&
                                                status.health == "Critical" && status.works());
  if (says_leak) return raw == raw_leak::dry ? verdict::UNKNOWN : verdict::LEAK;
  const bool says_dry = word == "OK" && status.works() && (status.health == "OK" || status.health.empty());
  if (says_dry && (raw == raw_leak::dry || raw == raw_leak::not_offered)) return verdict::DRY;
  return verdict::UNKNOWN;
}

}  // namespace

detector_facts judge_detector(json_view detector, raw_leak raw) {
  detector_facts facts;
  facts.name = detector["Id"].text().value_or("");
  const std::string word = detector["DetectorState"].text().value_or("");
  const status_words status = decode_status(detector);
  facts.verdict = verdict_of(word, status, raw);
  facts.detail = "DetectorState " + (word.empty() ? "not given" : word) + ", State " +
                 (status.state.empty() ? "not given" : status.state) + ", Health " +
                 (status.health.empty() ? "not given" : status.health) + ", raw value " +
                 std::string(name_of(raw));
  if (facts.verdict == journal::Detector::UNKNOWN && word == "Critical" && raw == raw_leak::dry) {
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
