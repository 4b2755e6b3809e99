#include "actors/manifest/values.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace busbar::manifest {
namespace {

struct unit {
  std::string_view name;
  std::int64_t nanoseconds;
};
// Longest first where one name begins another.
constexpr auto units = std::to_array<unit>({{"ms", 1'000'000},
                                            {"us", 1'000},
                                            {"ns", 1},
                                            {"h", 3'600'000'000'000},
                                            {"m", 60'000'000'000},
                                            {"s", 1'000'000'000}});
constexpr double longest_duration_ns = 10'000.0 * 3.6e12;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

complaint one_of(std::string_view text, std::span<const std::string_view> allowed) {
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return std::nullopt;
  return fmt::format("one of: {}", fmt::join(allowed, ", "));
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && port > 0 && port < 65536;
}

bool is_ip(const std::string& text, int family) {
  std::array<unsigned char, sizeof(in6_addr)> parsed{};
  return inet_pton(family, text.c_str(), parsed.data()) == 1;
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  double total = 0;
  while (!text.empty()) {
    std::size_t digits = 0;
    while (digits < text.size() && (is_digit(text[digits]) || text[digits] == '.')) ++digits;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number);
    if (digits == 0 || error != std::errc{} || end != text.data() + digits) return std::nullopt;
    text.remove_prefix(digits);
    const auto found =
        std::find_if(units.begin(), units.end(), [text](const unit& u) { return text.starts_with(u.name); });
    if (found == units.end()) return std::nullopt;
    text.remove_prefix(found->name.size());
    total += number * static_cast<double>(found->nanoseconds);
    if (total > longest_duration_ns) return std::nullopt;
  }
  return std::chrono::nanoseconds(std::llround(total));
}

std::string duration_text(std::chrono::nanoseconds duration) {
  std::int64_t left = duration.count();
  if (left == 0) return "0s";
  std::string text;
  for (const std::string_view name : {"h", "m", "s", "ms", "us", "ns"}) {
    const auto found =
        std::find_if(units.begin(), units.end(), [name](const unit& u) { return u.name == name; });
    const std::int64_t count = left / found->nanoseconds;
    if (count != 0) text += fmt::format("{}{}", count, name);
    left -= count * found->nanoseconds;
  }
  return text;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

complaint check_not_empty(std::string_view text) {
  if (text.empty()) return "a text: it is empty";
  return std::nullopt;
}

complaint check_name(std::string_view text) {
  const bool good = !text.empty() && text.size() <= 63 && is_alnum(text.front()) &&
                    std::all_of(text.begin(), text.end(),
                                [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
  if (good) return std::nullopt;
  return "a name (letters, digits, '-', '_', '.'; at most 63)";
}

complaint check_word(std::string_view text) {
  const bool good = text.size() > 1 && text.size() <= 31 && std::all_of(text.begin(), text.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || c == '_' || c == '-';
                    });
  if (good) return std::nullopt;
  return "a word (two letters or more, a to z, '-', '_'; at most 31): names with digits are those of members";
}

complaint check_mac(std::string_view text) {
  bool good = text.size() == 17;
  bool all_zero = true;
  for (std::size_t i = 0; good && i < text.size(); ++i) {
    good = i % 3 == 2 ? text[i] == ':' : is_hex(text[i]);
    if (i % 3 != 2 && text[i] != '0') all_zero = false;
  }
  if (good && !all_zero) return std::nullopt;
  return "a MAC address (02:18:01:00:00:01)";
}

complaint check_address(std::string_view text) {
  const std::string copy(text);
  if (is_ip(copy, AF_INET) || is_ip(copy, AF_INET6)) return std::nullopt;
  const bool numeric = std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; });
  if (!numeric && !check_name(text)) return std::nullopt;
  return "an address (IPv4, IPv6 or host name)";
}

std::string host_of(std::string_view address) {
  std::string host = lower_case(address);
  if (host.starts_with('[')) {
    host = host.substr(1, std::min(host.find(']'), host.size()) - 1);
  } else if (host.find(':') == host.rfind(':')) {
    host = host.substr(0, host.find(':'));
  }
  in6_addr bytes{};
  char text[INET6_ADDRSTRLEN] = {};
  if (inet_pton(AF_INET6, host.c_str(), &bytes) == 1 &&
      inet_ntop(AF_INET6, &bytes, text, sizeof text) != nullptr)
    return text;
  return host;
}

complaint check_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && is_port(text.substr(colon + 1))) {
    std::string_view host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) {
      host = host.substr(1, host.size() - 2);
      if (is_ip(std::string(host), AF_INET6)) return std::nullopt;
    } else if (host.find(':') == std::string_view::npos && !check_address(host)) {
      return std::nullopt;
    }
  }
  return "an endpoint (host:port)";
}

complaint check_plant(std::string_view text) {
  if (text.starts_with("unix:/") && text.size() > 6) return std::nullopt;
  if (!check_endpoint(text)) return std::nullopt;
  return "where a plant is served (unix:/path or host:port)";
}

complaint check_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::size_t colon = text.rfind(':');
  if (slash != std::string_view::npos && colon != std::string_view::npos && slash < colon) {
    const std::string_view bits = text.substr(slash + 1, colon - slash - 1);
    unsigned prefix = 0;
    const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), prefix);
    const bool whole = error == std::errc{} && end == bits.data() + bits.size();
    // Wider than a /16 would be a scan of the site, not a range of BMCs.
    if (whole && prefix >= 16 && prefix <= 32 && is_ip(std::string(text.substr(0, slash)), AF_INET) &&
        is_port(text.substr(colon + 1))) {
      return std::nullopt;
    }
  }
  return "a range (IPv4/16..32:port, as 127.18.1.0/24:8443)";
}

complaint check_site_path(std::string_view text) {
  bool good = !text.empty() && !text.starts_with('/');
  for (std::string_view rest = text; good && !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    good = rest.substr(0, slash) != "..";
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  if (good) return std::nullopt;
  return "a path inside the site folder (relative, without '..')";
}

complaint check_sha256(std::string_view text) {
  if (text.size() == 64 && std::all_of(text.begin(), text.end(), is_hex)) return std::nullopt;
  return "a SHA-256 (64 hex digits)";
}

complaint check_serial(std::string_view text) {
  const std::string lower = lower_case(text);
  for (const std::string_view placeholder : {"na", "n/a", "none", "null", "unknown", "tbd", "0"}) {
    if (lower == placeholder) return "a serial number but a placeholder: leave the key out instead";
  }
  return std::nullopt;
}

complaint check_url(std::string_view text) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (text.starts_with(scheme) && text.size() > scheme.size()) return std::nullopt;
  }
  return "a URL (https://...)";
}

complaint check_member_kind(std::string_view text) {
  static constexpr auto allowed =
      std::to_array<std::string_view>({"compute_tray", "switch_tray", "power_shelf", "rack_controller"});
  return one_of(text, allowed);
}

complaint check_valve_kind(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>({"isolation", "control"});
  return one_of(text, allowed);
}

complaint check_authority(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>({"busbar", "bms", "device"});
  return one_of(text, allowed);
}

complaint check_fail_position(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>({"hold", "open", "closed"});
  return one_of(text, allowed);
}

complaint check_cdu_protocol(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>({"redfish", "modbus"});
  return one_of(text, allowed);
}

complaint check_pdu_protocol(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>({"redfish", "snmp"});
  return one_of(text, allowed);
}

// The file names of actors/devices/snmp/dialects; a test holds the two together.
complaint check_pdu_dialect(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>(
      {"apc_rpdu", "apc_rpdu2", "cyberpower", "raritan_pdu2", "servertech_sentry3", "vertiv_geist"});
  return one_of(text, allowed);
}

complaint check_gate(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>({"node", "rack"});
  if (text == "fabric") return "possible here: the fabric gate needs a declared cluster";
  return one_of(text, allowed);
}

complaint check_activation(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>({"bmc_reset", "host_restart", "none"});
  return one_of(text, allowed);
}

complaint check_boot(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>({"UefiHttp", "Pxe"});
  return one_of(text, allowed);
}

complaint check_level(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>({"node", "rack"});
  return one_of(text, allowed);
}

complaint check_suite_members(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>({"all"});
  return one_of(text, allowed);
}

complaint check_deadline_name(std::string_view text) {
  static constexpr auto allowed = std::to_array<std::string_view>(
      {"discovered", "identified",     "credentialed", "graceful_off", "host_off",     "host_on",
       "staged",     "inspected",      "firmware_row", "firmware",     "configured",   "shelf_on",
       "standby",    "ingested",       "cooled",       "powered",      "nvlink_ready", "node_validated",
       "validated",  "rack_validated", "ready",        "production"});
  return one_of(text, allowed);
}

}  // namespace busbar::manifest
