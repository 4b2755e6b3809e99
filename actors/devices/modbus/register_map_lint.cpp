// What is wrong with a register map. The rules are those defects that public maps really have: an address
// used twice, one name for two things, a product that overflows its register, a leak read every three
// minutes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "actors/devices/modbus/register_map.hpp"

namespace busbar::devices::modbus {
namespace {

constexpr std::int64_t slowest_fast_ms = 200;

struct unit_hint {
  std::string_view part;  // of the name
  std::array<std::string_view, 4> units;
};
// A name that says one quantity and a unit that says another.
constexpr std::array unit_hints{
    unit_hint{"current", {"A", "mA", "", ""}},    unit_hint{"voltage", {"V", "mV", "", ""}},
    unit_hint{"flow", {"L/min", "m3/h", "", ""}}, unit_hint{"pressure", {"kPa", "bar", "Pa", ""}},
    unit_hint{"temperature", {"C", "K", "", ""}}, unit_hint{"power", {"W", "kW", "VA", ""}},
};

class linter {
 public:
  explicit linter(const register_map& map) : map_(map) {}

  std::vector<std::string> run() {
    if (map_.points.empty()) found_.push_back("no points");
    if (map_.fast_ms <= 0 || map_.fast_ms > slowest_fast_ms) {
      found_.push_back(fmt::format("fast_ms is {}: 1 to {}", map_.fast_ms, slowest_fast_ms));
    }
    if (map_.normal_ms < map_.fast_ms || map_.slow_ms < map_.normal_ms) {
      found_.push_back("poll periods do not rise from fast to normal to slow");
    }
    for (const map_point& one : map_.points) check_point(one);
    check_names();
    check_overlaps();
    return std::move(found_);
  }

 private:
  void say(const map_point& one, std::string_view text) {
    found_.push_back(fmt::format("{} at {}: {}", one.name, one.address, std::string(text)));
  }

  void check_point(const map_point& one) {
    if (one.address + std::uint32_t{one.words()} > 0x10000) say(one, "reaches past register 65535");
    if (one.scale == 0 || !std::isfinite(one.scale) || !std::isfinite(one.offset))
      say(one, "scale or offset is no number");
    if (one.leak && one.polled != poll_class::fast) say(one, "tells a leak and is not polled fast");
    if (one.sticky && one.polled == poll_class::slow) say(one, "is latched and is not read at connect");
    if (one.writable && one.table == register_table::input) say(one, "is writable in the input table");
    if (one.writable && one.type != value_type::flags && (!one.min || !one.max))
      say(one, "is writable without limits");
    if (one.min && one.max && *one.min > *one.max) say(one, "min is above max");
    if (one.type == value_type::flags && one.bits.empty()) say(one, "is of type flags and names no bit");
    if (one.type != value_type::flags && !one.bits.empty()) say(one, "names bits and is not of type flags");
    check_bits(one);
    check_ceiling(one);
    check_unit(one);
  }

  void check_bits(const map_point& one) {
    std::map<unsigned, int> seen;
    for (const auto& [bit, name] : one.bits) {
      if (bit > 15) say(one, fmt::format("bit {} of 16", bit));
      if (++seen[bit] == 2) say(one, fmt::format("bit {} has two names", bit));
    }
  }

  void check_ceiling(const map_point& one) {
    if (!one.max || one.type == value_type::f32 || one.type == value_type::flags) return;
    const double most = one.type == value_type::u16   ? 65535
                        : one.type == value_type::s16 ? 32767
                        : one.type == value_type::u32 ? 4294967295.0
                                                      : 2147483647.0;
    const double ceiling = one.offset + std::abs(one.scale) * most;
    if (*one.max > ceiling)
      say(one, fmt::format("can show at most {} {}, and {} is possible", ceiling, one.unit, *one.max));
  }

  void check_unit(const map_point& one) {
    if (one.type == value_type::flags) return;
    if (one.unit.empty()) say(one, "has no unit (\"1\" for a plain number)");
    for (const unit_hint& hint : unit_hints) {
      const bool ends =
          one.name.size() >= hint.part.size() &&
          one.name.compare(one.name.size() - hint.part.size(), hint.part.size(), hint.part) == 0;
      if (ends && std::find(hint.units.begin(), hint.units.end(), one.unit) == hint.units.end()) {
        say(one, fmt::format("is called {} and has the unit {}", std::string(hint.part), one.unit));
      }
    }
  }

  void check_names() {
    std::map<std::string, std::uint16_t> seen;
    for (const map_point& one : map_.points) {
      const auto [at, fresh] = seen.emplace(one.name, one.address);
      if (!fresh) say(one, fmt::format("the name stands at {} too", at->second));
    }
  }

  void check_overlaps() {
    std::map<std::pair<register_table, std::uint32_t>, const map_point*> taken;
    for (const map_point& one : map_.points) {
      for (std::uint32_t at = one.address; at < one.address + std::uint32_t{one.words()}; ++at) {
        const auto [found, fresh] = taken.emplace(std::pair(one.table, at), &one);
        if (fresh) continue;
        const map_point& other = *found->second;
        say(one, fmt::format("shares register {} with {}{}", at, other.name,
                             other.scale != one.scale ? ", with another scale" : ""));
        break;
      }
    }
  }

  const register_map& map_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> lint(const register_map& map) {
  return linter(map).run();
}

}  // namespace busbar::devices::modbus
