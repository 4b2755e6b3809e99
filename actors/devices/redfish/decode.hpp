// From bodies to facts: pure functions that never throw and never turn what is missing, null, of a wrong type
// or of an unknown word into a value, into zero, healthy or dry.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/devices/bmc.hpp"
#include "actors/devices/redfish/json.hpp"

namespace busbar::devices::redfish {

// --- common
// -------------------------------------------------------------------------------------------------------------
// Status of a resource. Words are kept as they came.
struct status_words {
  std::string state;
  std::string health;
  bool works() const { return state == "Enabled"; }
  bool absent() const { return state == "Absent"; }
};
status_words decode_status(json_view resource);

std::string lower_case(std::string_view text);
// NA, N/A, empty, vendors' fillers: no identity of anything.
bool is_placeholder(std::string_view text);
// Text that names something; placeholders give none.
std::optional<std::string> identity_text(json_view value);

journal::PowerState decode_power_state(json_view resource);
// The action's target, and what it takes (inline AllowableValues; the ActionInfo's URI where values stand
// there).
struct action_facts {
  std::optional<std::string> target;
  std::vector<std::string> values;
  std::optional<std::string> info_uri;
};
action_facts decode_action(json_view resource, std::string_view name, std::string_view parameter);
std::vector<std::string> decode_action_info(json_view info, std::string_view parameter);

// OK with an identity is good; Warning and Critical are bad; all else is unknown.
journal::Health decode_health(const status_words& status, bool identified);

// --- sensors
// ------------------------------------------------------------------------------------------------------------
// A reading counts only while its sensor is Enabled (or says nothing of its state).
enum class reading_quality { good, no_value, bad_form, not_enabled };
struct reading_facts {
  reading_quality quality = reading_quality::no_value;
  std::optional<double> value;
  std::string unit;
  std::string type;
  std::string raw;  // what stood there, when it was no number
  std::optional<double> lower_critical;
  std::optional<double> upper_critical;
};
reading_facts decode_sensor(json_view sensor);
// {"Reading": 12.3} or a bare number; the connector's Status decides whether it counts.
std::optional<double> decode_excerpt(json_view value);

// --- leak detectors
// -----------------------------------------------------------------------------------------------------
enum class raw_leak { not_offered, unreadable, faulty, dry, wet };  // faulty: outside its own range, a break or a short
raw_leak decode_raw_leak(json_view sensor);
// By the truth table of a quirk profile (leak_table.hpp), empty = standard: one place, tested row by row.
detector_facts judge_detector(json_view detector, raw_leak raw, std::string_view quirks = {});
// "Chassis_0_LeakDetector_1_ColdPlate" -> "1_ColdPlate"; "r01_rope" of group r01 -> "rope"; others as they
// are.
std::string short_detector_name(std::string_view id, std::string_view owner);

// --- parts
// --------------------------------------------------------------------------------------------------------------
struct part_facts {
  journal::Part part;
  bool absent = false;     // an empty socket or bay
  std::string serial_key;  // what the part is counted by
};
// nullopt: not a part of a kind that is counted (or not known to be one).
std::optional<part_facts> decode_processor(json_view body);
part_facts decode_memory(json_view body);
part_facts decode_drive(json_view body);
part_facts decode_adapter(json_view body);
part_facts decode_switch_asic(json_view body);
part_facts decode_supply(json_view body);
std::optional<double> decode_supply_watts(json_view body);
std::optional<std::uint32_t> decode_port_gbps(json_view port);

// --- the rest
// -----------------------------------------------------------------------------------------------------------
std::optional<long long> decode_slot_ordinal(json_view chassis);
account_facts decode_account(json_view body, std::string uri);
boot_facts decode_boot(json_view body);
task_facts decode_task(json_view body, int http);
// Whether a task is an update of this component, by its payload or its messages; and when it began, as text
// that sorts.
bool task_is_for(json_view body, std::string_view component);
// Whether a task may be an update of any component: it names none of these, and is not said to be other work.
bool task_may_be_any_update(json_view body, const std::vector<std::string>& components);
// LinkStatus: true up, false not up, nullopt unknown.
std::optional<bool> decode_link_up(json_view port);

}  // namespace busbar::devices::redfish
