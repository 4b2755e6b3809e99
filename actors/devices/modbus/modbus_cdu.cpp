#include "actors/devices/modbus/modbus_cdu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

namespace busbar::devices::modbus {
namespace {

constexpr std::chrono::milliseconds read_deadline{2'000};
constexpr std::chrono::milliseconds write_deadline{3'000};

// What a point is, by its name in the map; makers call the same thing differently.
struct meaning {
  std::string_view name;
  std::optional<double> cdu_facts::*field;
};
constexpr std::array meanings{
    meaning{"supply_temperature", &cdu_facts::supply_c},
    meaning{"outlet_temperature", &cdu_facts::supply_c},
    meaning{"return_temperature", &cdu_facts::return_c},
    meaning{"inlet_temperature", &cdu_facts::return_c},
    meaning{"supply_flow", &cdu_facts::flow_lpm},
    meaning{"flow", &cdu_facts::flow_lpm},
    meaning{"differential_pressure", &cdu_facts::dp_kpa},
    meaning{"system_pressure", &cdu_facts::system_kpa},
    meaning{"inlet_pressure", &cdu_facts::system_kpa},
    meaning{"return_pressure", &cdu_facts::system_kpa},
    meaning{"reservoir_level", &cdu_facts::level_percent},
    meaning{"level", &cdu_facts::level_percent},
    meaning{"facility_supply_temperature", &cdu_facts::facility_supply_c},
    meaning{"facility_return_temperature", &cdu_facts::facility_return_c},
    meaning{"facility_flow", &cdu_facts::facility_flow_lpm},
    meaning{"facility_valve_position", &cdu_facts::facility_valve_percent},
    meaning{"air_temperature", &cdu_facts::air_c},
    meaning{"air_humidity", &cdu_facts::humidity_percent},
    meaning{"room_temperature", &cdu_facts::air_c},
    meaning{"room_humidity", &cdu_facts::humidity_percent},
    meaning{"override_timeout", &cdu_facts::watchdog_s},
};

// What is written for a command: a value each; of duties, every register that the map has.
struct command_point {
  cdu_value what;
  std::string_view name;
};
constexpr std::array command_points{
    command_point{cdu_value::supply_set_point, "supply_temperature_set"},
    command_point{cdu_value::supply_set_point, "outlet_target"},
    command_point{cdu_value::dp_set_point, "differential_pressure_set"},
    command_point{cdu_value::pump_duty, "pump_1_duty"},
    command_point{cdu_value::pump_duty, "pump_2_duty"},
    command_point{cdu_value::pump_duty, "pump_3_duty"},
    command_point{cdu_value::pump_duty, "pump_4_duty"},
    command_point{cdu_value::valve_duty, "facility_valve_duty"},
    command_point{cdu_value::own_control, "override_mask"},  // which duties are taken: none is 0
};

std::vector<const map_point*> points_for(const register_map& map, cdu_value what) {
  std::vector<const map_point*> found;
  for (const command_point& row : command_points) {
    const map_point* const point = row.what == what ? map.find(row.name) : nullptr;
    if (point != nullptr && point->writable) found.push_back(point);
  }
  return found;
}

std::optional<double> value_of(const point_batch& points, std::string_view name) {
  for (const named_point& one : points.points) {
    if (one.name == name && one.reading.quality == point_quality::good) return one.reading.value;
  }
  return std::nullopt;
}

set_point_facts set_point_of(const register_map& map, const point_batch& points, cdu_value what) {
  const auto found = points_for(map, what);
  if (found.empty()) return {};
  return {value_of(points, found.front()->name), found.front()->min, found.front()->max, true};
}

// Of each consumer that has registers of its own: r01_flow beside r01_supply_temperature.
void take_connector_points(const register_map& map, const point_batch& points, cdu_facts& facts) {
  constexpr std::string_view suffix = "_flow";
  for (const map_point& one : map.points) {
    if (!one.name.ends_with(suffix)) continue;
    const std::string id = one.name.substr(0, one.name.size() - suffix.size());
    const bool consumer = id != "facility" && map.find(id + "_supply_temperature") != nullptr;
    if (!consumer) continue;
    connector_facts row;
    row.id = id;
    row.flow_lpm = value_of(points, one.name);
    row.supply_c = value_of(points, id + "_supply_temperature");
    row.return_c = value_of(points, id + "_return_temperature");
    // A map has registers for all that the unit could feed: those that say nothing feed nobody.
    if (row.flow_lpm || row.supply_c || row.return_c) facts.connectors.push_back(std::move(row));
  }
}

// pump_1_speed in percent; a speed in rpm says only whether it turns. The one duty of all goes with each.
void take_pumps(const register_map& map, const point_batch& points, cdu_facts& facts) {
  constexpr std::string_view prefix = "pump_", suffix = "_speed";
  for (const map_point& one : map.points) {
    const std::string_view name = one.name;
    if (!name.starts_with(prefix) || !name.ends_with(suffix)) continue;
    pump_facts pump;
    pump.id = std::string(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
    const auto speed = value_of(points, name);
    if (speed) pump.running = *speed > 0.5;
    pump.speed_percent = one.unit == "%" ? speed : value_of(points, "pump_duty");
    facts.pumps.push_back(std::move(pump));
  }
}

// Each bit of a leak register is a detector. A bit called *_fault, or one of its name among
// leak_detector_faults, says that it cannot be trusted.
void take_detectors(const register_map& map, const point_batch& points, cdu_facts& facts) {
  for (const map_point& one : map.points) {
    if (!one.leak) continue;
    for (const auto& [bit, name] : one.bits) {
      if (name.ends_with("_fault")) continue;
      detector_facts row;
      row.name = name;
      const auto wet = value_of(points, one.name + "." + name);
      auto faulty = value_of(points, fmt::format("{}.{}_fault", one.name, name));
      if (!faulty) faulty = value_of(points, "leak_detector_faults." + name);
      const bool judged = map.find("leak_detector_faults") == nullptr || faulty.has_value();
      const bool known = wet.has_value() && judged && faulty.value_or(0) == 0;
      row.verdict = !known      ? journal::Detector::UNKNOWN
                    : *wet != 0 ? journal::Detector::LEAK
                                : journal::Detector::DRY;
      row.detail = fmt::format("{} bit {} is {}{}", one.name, bit, wet ? fmt::format("{}", *wet) : "not read",
                               faulty.value_or(0) != 0 ? ", its sensor faulty" : "");
      facts.detectors.push_back(std::move(row));
    }
  }
}

// What gathers the classes of one poll; on the loop's thread.
struct poll {
  point_batch all;
  std::size_t open = 0, answered = 0;
  absl::Status failure;
};

struct gathered_writes {
  std::size_t open = 0;
  absl::Status failure;
};

class modbus_cdu final : public cdu {
 public:
  modbus_cdu(std::shared_ptr<link> wire, register_map map, map_device::clock_ns clock)
      : device_(std::make_shared<map_device>(std::move(wire), std::move(map), std::move(clock))) {}

  void read(answer<cdu_facts> reply) override {
    auto one = std::make_shared<poll>();
    one->open = 3;
    for (const poll_class polled : {poll_class::fast, poll_class::normal, poll_class::slow}) {
      device_->read(
          polled, read_deadline, [one, device = device_, reply](absl::StatusOr<point_batch> points) {
            if (points.ok() && !points->points.empty()) {
              ++one->answered;
              std::move(points->points.begin(), points->points.end(), std::back_inserter(one->all.points));
            }
            if (!points.ok()) one->failure = points.status();
            if (--one->open != 0) return;
            if (one->answered == 0) {
              reply(one->failure.ok()
                        ? absl::NotFoundError(device->map().name + ": its map has no point to read")
                        : one->failure);
              return;
            }
            reply(cdu_facts_of(device->map(), one->all));
          });
    }
  }

  void write(cdu_value what, double value, done reply) override {
    const auto points = points_for(device_->map(), what);
    if (points.empty()) {
      reply(absl::UnimplementedError(
          fmt::format("{} has no register for its {}", device_->map().name, name_of(what))));
      return;
    }
    const double written = what == cdu_value::own_control ? 0.0 : value;
    auto left = std::make_shared<gathered_writes>();
    left->open = points.size();
    for (const map_point* const point : points) {
      device_->write(point->name, written, write_deadline, [left, reply](const absl::Status& status) {
        if (!status.ok()) left->failure = status;
        if (--left->open == 0) reply(left->failure);
      });
    }
  }

 private:
  const std::shared_ptr<map_device> device_;
};

}  // namespace

cdu_facts cdu_facts_of(const register_map& map, const point_batch& points) {
  cdu_facts facts;
  facts.source = map.name;
  for (const meaning& row : meanings) {
    if (map.find(row.name) == nullptr || (facts.*row.field).has_value()) continue;
    facts.*row.field = value_of(points, row.name);
  }
  if (map.find("differential_pressure") == nullptr) {
    const auto out = value_of(points, "outlet_pressure");
    const auto in = value_of(points, "inlet_pressure");
    if (out && in) facts.dp_kpa = *out - *in;
  }
  facts.supply_set_point = set_point_of(map, points, cdu_value::supply_set_point);
  facts.dp_set_point = set_point_of(map, points, cdu_value::dp_set_point);
  if (const auto taken = value_of(points, "override_mask")) facts.own_control = *taken == 0;
  take_connector_points(map, points, facts);
  take_pumps(map, points, facts);
  take_detectors(map, points, facts);
  // No register says how it does as a whole: its alarms do, where it has any.
  for (const named_point& one : points.points) {
    const bool alarm = one.name.starts_with("status_alarm.") || one.name.starts_with("alarms.");
    if (!alarm || one.reading.quality != point_quality::good) continue;
    if (facts.health.empty()) facts.health = "OK";
    if (one.reading.value.value_or(0) != 0) facts.health = "Critical";
  }
  take_connectors(facts);
  return facts;
}

std::shared_ptr<cdu> make_modbus_cdu(std::shared_ptr<link> wire, register_map map,
                                     map_device::clock_ns clock) {
  return std::make_shared<modbus_cdu>(std::move(wire), std::move(map), std::move(clock));
}

}  // namespace busbar::devices::modbus
