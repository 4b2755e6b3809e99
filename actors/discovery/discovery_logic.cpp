#include "actors/discovery/discovery_logic.hpp"

#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>

#include "actors/core/mutant.hpp"

namespace busbar::discovery {
namespace {

std::optional<std::uint32_t> parse_ipv4(std::string_view text) {
  std::uint32_t value = 0;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (int i = 0; i < 4; ++i) {
    unsigned octet = 256;
    const auto [next, error] = std::from_chars(at, end, octet);
    if (error != std::errc() || octet > 255) return std::nullopt;
    value = value << 8 | octet;
    at = next;
    if (i < 3 && (at == end || *at++ != '.')) return std::nullopt;
  }
  return at == end ? std::optional(value) : std::nullopt;
}

bool is_mac(std::string_view text) {
  if (text.size() != 17) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool separator = i % 3 == 2;
    if (separator ? text[i] != ':' : std::isxdigit(static_cast<unsigned char>(text[i])) == 0) return false;
  }
  return true;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::uint16_t port_of(const std::vector<range>& ranges, std::string_view address) {
  const auto found =
      std::find_if(ranges.begin(), ranges.end(), [address](const range& r) { return r.contains(address); });
  return found == ranges.end() ? 443 : found->port;
}

journal::Endpoint endpoint_of(const journal::Manifest& manifest, const announcement& seen,
                              std::string_view state, std::string_view slot) {
  journal::Endpoint endpoint;
  endpoint.set_name(fmt::format("{}/endpoints/{}", manifest.rack(), seen.address));
  endpoint.set_address(seen.address);
  endpoint.set_mac(seen.mac);
  endpoint.set_source(seen.source);
  endpoint.set_state(std::string(state));
  endpoint.set_seen(seen.mac);
  endpoint.set_member(std::string(slot));
  return endpoint;
}

const journal::Member* row_of(const journal::Manifest& manifest, const announcement& seen,
                              const std::multimap<std::string, const announcement*>& by_mac) {
  for (const journal::Member& member : manifest.members()) {
    if (!seen.mac.empty() && lower(member.bmc_mac()) == seen.mac) return &member;
  }
  for (const journal::Member& member : manifest.members()) {
    if (member.address() != seen.address) continue;
    const bool anonymous = seen.mac.empty() || member.bmc_mac().empty();
    const bool announced_elsewhere = by_mac.contains(lower(member.bmc_mac()));
    if ((anonymous && !announced_elsewhere) || BUSBAR_MUTANT(unmatched_bmc_admitted)) return &member;
  }
  return nullptr;
}

}  // namespace

std::vector<announcement> parse_leases(std::string_view text, std::string_view source, std::size_t* skipped) {
  std::vector<announcement> found;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    if (words.size() < 3 || !is_mac(words[1]) || !parse_ipv4(words[2]).has_value()) {
      if (skipped != nullptr) ++*skipped;
      continue;
    }
    found.push_back({lower(words[1]), words[2], std::string(source)});
  }
  return found;
}

bool range::contains(std::string_view address) const {
  const auto value = parse_ipv4(address);
  return value.has_value() && (*value & mask) == network;
}

std::vector<range> parse_ranges(const journal::Discovery& from) {
  std::vector<range> ranges;
  for (const std::string& text : from.ranges()) {
    const std::size_t slash = text.find('/'), colon = text.rfind(':');
    if (slash == std::string::npos) continue;
    const std::string bits_text =
        text.substr(slash + 1, colon == std::string::npos ? std::string::npos : colon - slash - 1);
    unsigned bits = 33, port = 443;
    std::from_chars(bits_text.data(), bits_text.data() + bits_text.size(), bits);
    if (colon != std::string::npos) std::from_chars(text.data() + colon + 1, text.data() + text.size(), port);
    const auto network = parse_ipv4(std::string_view(text).substr(0, slash));
    if (!network.has_value() || bits > 32 || port > 65535) continue;
    range r;
    r.mask = bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits);
    r.network = *network & r.mask;
    r.port = static_cast<std::uint16_t>(port);
    ranges.push_back(r);
  }
  return ranges;
}

sightings match(const journal::Manifest& manifest, const std::vector<announcement>& announced) {
  const std::vector<range> ranges = parse_ranges(manifest.discovery());
  std::multimap<std::string, const announcement*> by_mac;
  for (const announcement& seen : announced) {
    if (!seen.mac.empty()) by_mac.emplace(seen.mac, &seen);
  }
  sightings out;
  std::map<std::string, bool> placed;  // slot -> has an announcement
  for (const announcement& seen : announced) {
    const bool ours = std::any_of(ranges.begin(), ranges.end(),
                                  [&seen](const range& r) { return r.contains(seen.address); });
    const journal::Member* const row = row_of(manifest, seen, by_mac);
    if (row == nullptr) {
      if (ours) out.endpoints.push_back(endpoint_of(manifest, seen, "unmatched", ""));
      continue;
    }
    const auto [first, last] = by_mac.equal_range(seen.mac);
    const auto other = std::find_if(
        first, last, [&seen](const auto& entry) { return entry.second->address != seen.address; });
    if (!seen.mac.empty() && other != last) {
      journal::Endpoint endpoint = endpoint_of(manifest, seen, "duplicate", row->slot());
      endpoint.set_expected("one address");
      out.endpoints.push_back(endpoint);
      if (!placed[row->slot()]) {
        out.conflicts.push_back({row->slot(), core::fault::IDENTITY_DUPLICATE,
                                 "the same BMC is announced at two addresses", "one address",
                                 fmt::format("{} and {}", seen.address, other->second->address)});
      }
      placed[row->slot()] = true;
      continue;
    }
    placed[row->slot()] = true;
    out.endpoints.push_back(endpoint_of(manifest, seen, "matched", row->slot()));
    out.members.push_back(
        {row->slot(), fmt::format("{}:{}", seen.address, port_of(ranges, seen.address)), seen.source});
  }
  // A fixed address that nobody announces is tried as it is.
  for (const journal::Member& member : manifest.members()) {
    const bool taken = std::any_of(announced.begin(), announced.end(), [&member](const announcement& seen) {
      return seen.address == member.address();
    });
    if (member.address().empty() || taken || placed[member.slot()]) continue;
    out.members.push_back({member.slot(),
                           fmt::format("{}:{}", member.address(), port_of(ranges, member.address())),
                           "manifest"});
  }
  return out;
}

}  // namespace busbar::discovery
