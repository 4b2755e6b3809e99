// From announcements (lease files, configured ranges) to members: which BMC answers where, and what does not
// fit. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/errors.hpp"
#include "busbar/journal/spec.pb.h"
#include "busbar/journal/state.pb.h"

namespace busbar::discovery {

struct announcement {
  std::string mac;      // lower case; empty when only the address is known
  std::string address;  // dotted IPv4
  std::string source;   // "lease:leases"
};

// dnsmasq's lease file: expiry, MAC, address, name, client id. A line that does not parse is skipped and
// counted.
std::vector<announcement> parse_leases(std::string_view text, std::string_view source,
                                       std::size_t* skipped = nullptr);

// "127.18.1.0/24:8443"
struct range {
  std::uint32_t network = 0, mask = 0;
  std::uint16_t port = 443;
  bool contains(std::string_view address) const;
};
std::vector<range> parse_ranges(const journal::Discovery& from);

struct sighting {
  std::string slot;
  std::string address;  // host:port
  std::string source;
};

struct conflict {
  std::string slot;
  core::fault fault;
  std::string message, expected, seen;
};

struct sightings {
  std::vector<sighting> members;
  std::vector<conflict> conflicts;
  std::vector<journal::Endpoint> endpoints;  // every announcement in this rack's ranges, matched or not
};

// The MAC selects the row, else a fixed address at which no other MAC is announced. No row: unmatched, and no
// password for it.
sightings match(const journal::Manifest& manifest, const std::vector<announcement>& announced);

}  // namespace busbar::discovery
