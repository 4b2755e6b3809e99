#include "actors/devices/redfish/leak_table.hpp"

#include <algorithm>

namespace busbar::devices::redfish {

namespace {

using verdict = journal::Detector;

constexpr std::string_view working = "Enabled|Degraded";  // a detector that reports wet may call itself so

// In words: wetness of the raw value is believed of any working detector, whoever else shows it. A detector
// that says Critical beside a dry raw value, or beside one outside its range (a rope that broke or is short),
// is broken. Without a raw value to compare with, Critical is a leak.
constexpr leak_row standard_rows[] = {
    {"*", working, "*", "wet", verdict::LEAK},
    {"Critical", working, "*", "dry|faulty", verdict::UNKNOWN},
    {"Critical", working, "*", "none|unreadable", verdict::LEAK},
    {"OK", "Enabled", "OK|", "dry|none", verdict::DRY},
    {"Warning|OK|", "*", "*", "*", verdict::UNKNOWN},
    {"Critical", "*", "*", "*", verdict::UNKNOWN},
    // A word of no schema: its Health decides, as long as the detector calls itself whole.
    {"*", "Enabled", "Critical", "none|unreadable", verdict::LEAK},
};

// Detectors of two thresholds, whose Warning is the lower one: moisture where none should be.
constexpr leak_row warning_rows[] = {
    {"*", working, "*", "wet", verdict::LEAK},
    {"Critical|Warning", working, "*", "dry|faulty", verdict::UNKNOWN},
    {"Critical", working, "*", "none|unreadable", verdict::LEAK},
    {"Warning", "Enabled", "Warning|Critical", "none", verdict::LEAK},
    {"OK", "Enabled", "OK|", "dry|none", verdict::DRY},
};

// Detectors that give no DetectorState: Status alone speaks.
constexpr leak_row health_rows[] = {
    {"*", working, "*", "wet", verdict::LEAK},
    {"|Critical", working, "Critical", "none|unreadable", verdict::LEAK},
    {"|OK", "Enabled", "OK", "dry|none", verdict::DRY},
};

constexpr leak_table tables[] = {
    {"standard", "LeakDetector as its schema says", standard_rows},
    {"warning_is_leak", "Warning is the lower of two thresholds of moisture", warning_rows},
    {"health_only", "no DetectorState; Status.Health says it", health_rows},
};

bool matches(std::string_view pattern, std::string_view word) {
  if (pattern == "*") return true;
  for (;;) {
    const std::size_t bar = pattern.find('|');
    if (pattern.substr(0, bar) == word) return true;
    if (bar == std::string_view::npos) return false;
    pattern.remove_prefix(bar + 1);
  }
}

}  // namespace

std::span<const leak_table> leak_tables() {
  return tables;
}

const leak_table* find_leak_table(std::string_view profile) {
  if (profile.empty()) return &tables[0];
  const auto found = std::find_if(std::begin(tables), std::end(tables),
                                  [profile](const leak_table& each) { return each.profile == profile; });
  return found == std::end(tables) ? nullptr : found;
}

std::string_view name_of(raw_leak raw) {
  switch (raw) {
    case raw_leak::not_offered:
      return "none";
    case raw_leak::unreadable:
      return "unreadable";
    case raw_leak::faulty:
      return "faulty";
    case raw_leak::dry:
      return "dry";
    case raw_leak::wet:
      return "wet";
  }
  return "?";
}

journal::Detector::Verdict judge_leak(const leak_table& table, std::string_view word,
                                      const status_words& status, raw_leak raw) {
  for (const leak_row& row : table.rows) {
    if (matches(row.word, word) && matches(row.state, status.state) && matches(row.health, status.health) &&
        matches(row.raw, name_of(raw))) {
      return row.verdict;
    }
  }
  return verdict::UNKNOWN;
}

}  // namespace busbar::devices::redfish
