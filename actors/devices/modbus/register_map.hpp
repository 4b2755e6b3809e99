// A device's registers as data: what stands where, in which type and unit, how often it is read. A map is a
// JSON file; the linter says what is wrong with one before a device is asked.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/devices/modbus/frame.hpp"
#include "actors/devices/points.hpp"

namespace busbar::devices::modbus {

enum class value_type : std::uint8_t { u16, s16, u32, s32, f32, flags };
// Of the two words of a 32-bit value, bytes in the order of the wire; A is the most significant.
enum class word_order : std::uint8_t { abcd, cdab, badc, dcba };
// fast: safety and what loops control by, at most 200 ms apart. once: at connect, for latched ("sticky")
// bits.
enum class poll_class : std::uint8_t { fast, normal, slow, once };
enum class register_table : std::uint8_t { holding, input };

struct map_point {
  std::string name;
  register_table table = register_table::holding;
  std::uint16_t address = 0;  // on the wire, from 0
  value_type type = value_type::u16;
  word_order order = word_order::abcd;
  double scale = 1;  // value = offset + scale x raw
  double offset = 0;
  std::string unit;
  poll_class polled = poll_class::normal;
  std::optional<double> min, max;  // of the value; outside: quality bad, a write is refused
  bool writable = false;
  bool leak = false;                                   // a leak is told by it
  bool sticky = false;                                 // holds until cleared
  std::vector<std::uint32_t> absent;                   // raw values that mean "no reading"
  std::vector<std::pair<unsigned, std::string>> bits;  // of flags

  std::uint16_t words() const;
};

struct register_map {
  std::string name;
  std::uint8_t unit = 1;
  std::int64_t fast_ms = 200, normal_ms = 1000, slow_ms = 10'000;
  std::vector<map_point> points;

  const map_point* find(std::string_view name) const;
};

// Unknown keys, wrong types and missing fields, all at once; `source` names the file in each.
absl::StatusOr<register_map> parse_register_map(std::string_view json, std::string_view source);

// What is wrong or doubtful in a map, one line each; empty: nothing.
std::vector<std::string> lint(const register_map& map);

// Reads that cover all points of a class, neighbours in one request.
std::vector<request> plan_reads(const register_map& map, poll_class polled);
// The points that lie wholly within the words of a read. A raw value that means "absent", is no finite number
// or lies outside its limits has quality bad and no value. A flags point gives one point a bit, named
// "point.bit".
point_batch decode(const register_map& map, const request& asked, const std::vector<std::uint16_t>& words,
                   std::int64_t received_ns);
// INVALID_ARGUMENT: not writable, not finite, or outside the limits, which it names.
absl::StatusOr<request> encode_write(const register_map& map, std::string_view point, double value);
// Whether a value read back is what was written: within half a step of the register.
bool reads_back(const map_point& point, double written, double read);

// The maps that come with Busbar, by name; nullopt: no such map.
std::optional<std::string_view> shipped_map(std::string_view name);
std::vector<std::string_view> shipped_maps();

}  // namespace busbar::devices::modbus
