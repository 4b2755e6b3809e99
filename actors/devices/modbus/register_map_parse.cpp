// JSON into a register map, strictly.
#include <absl/status/statusor.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "actors/devices/modbus/register_map.hpp"
#include "actors/devices/redfish/json.hpp"
#include "actors/devices/strict_json.hpp"

namespace busbar::devices::modbus {
namespace {

using redfish::json_view;

constexpr std::array types{named{"u16", value_type::u16}, named{"s16", value_type::s16},
                           named{"u32", value_type::u32}, named{"s32", value_type::s32},
                           named{"f32", value_type::f32}, named{"flags", value_type::flags}};
constexpr std::array orders{named{"ABCD", word_order::abcd}, named{"CDAB", word_order::cdab},
                            named{"BADC", word_order::badc}, named{"DCBA", word_order::dcba}};
constexpr std::array classes{named{"fast", poll_class::fast}, named{"normal", poll_class::normal},
                             named{"slow", poll_class::slow}, named{"once", poll_class::once}};
constexpr std::array tables{named{"holding", register_table::holding}, named{"input", register_table::input}};

void read_bits(strict_json& in, json_view from, const std::string& path, map_point& to) {
  for (const auto& [key, value] : from.entries()) {
    const auto bit = redfish::parse_number(key);
    const auto name = value.text();
    if (!bit.has_value() || *bit < 0 || *bit > 15 || *bit != static_cast<unsigned>(*bit) ||
        !name.has_value()) {
      in.wrong(path + "." + key, "a bit from 0 to 15 and its name are wanted");
      continue;
    }
    to.bits.emplace_back(static_cast<unsigned>(*bit), *name);
  }
  std::sort(to.bits.begin(), to.bits.end());
}

map_point read_point(strict_json& in, json_view from, const std::string& path) {
  map_point to;
  in.only(from, path,
          {"name", "table", "address", "type", "order", "scale", "offset", "unit", "poll", "min", "max",
           "writable", "leak", "sticky", "absent", "bits"});
  in.text(from["name"], path + ".name", to.name, true);
  in.one_of(from["table"], path + ".table", tables, to.table);
  in.whole(from["address"], path + ".address", 0, 65535, to.address, true);
  in.one_of(from["type"], path + ".type", types, to.type);
  in.one_of(from["order"], path + ".order", orders, to.order);
  in.number(from["scale"], path + ".scale", to.scale);
  in.number(from["offset"], path + ".offset", to.offset);
  in.text(from["unit"], path + ".unit", to.unit, false);
  in.one_of(from["poll"], path + ".poll", classes, to.polled);
  in.number(from["min"], path + ".min", to.min);
  in.number(from["max"], path + ".max", to.max);
  in.truth(from["writable"], path + ".writable", to.writable);
  in.truth(from["leak"], path + ".leak", to.leak);
  in.truth(from["sticky"], path + ".sticky", to.sticky);
  for (const json_view one : from["absent"].items()) {
    std::uint32_t raw = 0;
    in.whole(one, path + ".absent", 0, 4294967295LL, raw, true);
    to.absent.push_back(raw);
  }
  read_bits(in, from["bits"], path + ".bits", to);
  return to;
}

}  // namespace

absl::StatusOr<register_map> parse_register_map(std::string_view json, std::string_view source) {
  strict_json in(source);
  const auto document = redfish::json_document::parse(json);
  if (!document.has_value()) {
    return absl::InvalidArgumentError(fmt::format("{}: is no JSON", std::string(source)));
  }
  const json_view root = document->root();
  if (!root.is_object())
    return absl::InvalidArgumentError(fmt::format("{}: an object is wanted", std::string(source)));
  register_map map;
  in.only(root, "", {"name", "about", "unit", "fast_ms", "normal_ms", "slow_ms", "points"});
  in.text(root["name"], "name", map.name, true);
  in.whole(root["unit"], "unit", 0, 255, map.unit, false);
  in.whole(root["fast_ms"], "fast_ms", 10, 3'600'000, map.fast_ms, false);
  in.whole(root["normal_ms"], "normal_ms", 10, 3'600'000, map.normal_ms, false);
  in.whole(root["slow_ms"], "slow_ms", 10, 3'600'000, map.slow_ms, false);
  if (!root["points"].is_array()) in.wrong("points", "a list is wanted");
  std::size_t at = 0;
  for (const json_view one : root["points"].items()) {
    map.points.push_back(read_point(in, one, fmt::format("points[{}]", at++)));
  }
  if (const absl::Status wrong = in.status(); !wrong.ok()) return wrong;
  return map;
}

}  // namespace busbar::devices::modbus
