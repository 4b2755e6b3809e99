// The truth table of a leak detector, as data: what it says of itself, how it is, what its raw value is ->
// dry, leak or unknown. A table a quirk profile; busbard's driver and the interlock read the same ones.
//
// The first row that matches decides; what matches none is UNKNOWN. Broken or absent is UNKNOWN, never dry
// and never a leak. A detector that is stuck wet with good status says what a leak says: it is one.
#pragma once

#include <span>
#include <string_view>

#include "actors/devices/redfish/decode.hpp"

namespace busbar::devices::redfish {

// One or more words of a column, parted by '|'; "*" is any, "" is none given.
struct leak_row {
  std::string_view word;    // DetectorState
  std::string_view state;   // Status.State
  std::string_view health;  // Status.Health
  std::string_view raw;     // none | unreadable | faulty | dry | wet
  journal::Detector::Verdict verdict;
};

struct leak_table {
  std::string_view profile;
  std::string_view about;
  std::span<const leak_row> rows;
};

std::span<const leak_table> leak_tables();
// "" is "standard"; null: there is no such profile.
const leak_table* find_leak_table(std::string_view profile);

journal::Detector::Verdict judge_leak(const leak_table& table, std::string_view word,
                                      const status_words& status, raw_leak raw);
std::string_view name_of(raw_leak raw);

}  // namespace busbar::devices::redfish
