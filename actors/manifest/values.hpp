// The small texts of a spec: durations, addresses, names. Pure; a check answers nothing when the text is
// right, else what is wrong with it, in words that follow "is not".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace busbar::manifest {

using complaint = std::optional<std::string>;
using check = complaint (*)(std::string_view text);

// 10m, 120s, 200ms, 3h, 1h30m, 1.5s. Never negative; at most 10,000 h.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
// The shortest exact form: 90s, 1h30m, 200ms.
std::string duration_text(std::chrono::nanoseconds duration);

std::string lower_case(std::string_view text);

// Of an address or endpoint, the host in one spelling: without port or brackets, lower case, IPv6 shortened.
std::string host_of(std::string_view address);

complaint check_not_empty(std::string_view text);
complaint check_name(std::string_view text);  // rack, sku, suite ...: letters, digits, "-", "_", "."
complaint check_word(std::string_view text);  // a valve: letters only, so that r01/supply is told from r01/c07
complaint check_mac(std::string_view text);
complaint check_address(std::string_view text);    // IPv4, IPv6 or host name, no port
complaint check_endpoint(std::string_view text);   // host:port, [v6]:port
complaint check_plant(std::string_view text);      // unix:/path, host:port
complaint check_range(std::string_view text);      // 127.18.1.0/24:8443
complaint check_site_path(std::string_view text);  // relative, stays inside the site folder
complaint check_sha256(std::string_view text);
complaint check_serial(std::string_view text);  // no placeholder
complaint check_url(std::string_view text);
complaint check_member_kind(std::string_view text);
complaint check_valve_kind(std::string_view text);
complaint check_authority(std::string_view text);
complaint check_fail_position(std::string_view text);
complaint check_pdu_protocol(std::string_view text);
complaint check_cdu_protocol(std::string_view text);
complaint check_pdu_dialect(std::string_view text);
complaint check_gate(std::string_view text);
complaint check_activation(std::string_view text);
complaint check_boot(std::string_view text);
complaint check_level(std::string_view text);
complaint check_suite_members(std::string_view text);
complaint check_deadline_name(std::string_view text);

}  // namespace busbar::manifest
