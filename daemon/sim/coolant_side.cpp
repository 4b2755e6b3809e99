#include "daemon/sim/coolant_side.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "daemon/sim/physics/fluid.hpp"

namespace busbar::sim {

namespace {

using physics::actuator;

constexpr double held_kpa = 60.0;     // pressure difference that the design is made for
constexpr double control_kpa = 18.0;  // of it across the open control valve
constexpr double isolation_kpa = 1.0;
constexpr double own_kpa = 33.0;  // exchanger and pipes of the CDU at full flow
constexpr double filter_kpa = 12.0;
constexpr double usual_speed = 0.62;
constexpr double supply_c = 32.0;
constexpr double facility_c = 26.0;
constexpr double facility_kpa = 150.0;
constexpr double facility_pipe_kpa = 40.0;
constexpr double atmosphere_kpa = 101.3;
constexpr double compute_lpm = 6.97;
constexpr double switch_lpm = 2.63;
constexpr double hot_c = 80.0;   // a die above it is watched
constexpr double warm_c = 50.0;  // the same while flow is poor
constexpr double poor_flow_share = 0.6;
constexpr double tick_s = 0.1;
constexpr double settling_s = 40.0;

// The Kv through which so much passes at such a drop.
double kv_of(double lpm, double drop_kpa, double density) {
  return 0.06 * lpm * std::sqrt(100.0 * density / 1000.0 / drop_kpa);
}

physics::plant_design design_of(const sku_data& sku, const profile& timings, int racks, std::uint64_t seed) {
  const double density = physics::density_kg_per_m3(supply_c);
  const double rack_lpm = sku.compute * compute_lpm + sku.switches * switch_lpm;
  const double all_lpm = rack_lpm * racks;
  physics::plant_design made;
  made.racks = racks;
  made.pumps = static_cast<int>(cdu_pumps);
  made.seed = seed;
  for (int tray = 0; tray < sku.compute; ++tray) made.trays.push_back({compute_lpm, sku.gpus});
  for (int tray = 0; tray < sku.switches; ++tray) made.trays.push_back({switch_lpm, 0});
  made.rack_rated_lpm = rack_lpm;
  // Viscosity at the supply temperature is above that at 40 C, where pipes are rated.
  const double thicker = std::pow(physics::viscosity_mpa_s(supply_c) / physics::viscosity_mpa_s(40.0), 0.25);
  made.rack_pipe_kpa = (held_kpa - control_kpa - 2.0 * isolation_kpa) /
                       (made.turbulent_share * thicker + 1.0 - made.turbulent_share);
  made.rack_valve.kv_max = kv_of(rack_lpm, control_kpa, density);
  const double stroke_s = std::chrono::duration<double>(timings.valve_stroke).count();
  made.rack_actuator = {stroke_s, 0.002, 0.004};
  made.isolation = true;
  made.isolation_valve.kv_max = kv_of(rack_lpm, isolation_kpa, density);
  made.isolation_actuator = {stroke_s, 0.0, 0.0};
  made.die = {0.05, 0.385, 10.0, 3.24, 11.8};
  made.cdu_kpa = own_kpa;
  made.cdu_rated_lpm = all_lpm;
  made.filter.clean_kpa_per_lpm2 = filter_kpa / (all_lpm * all_lpm);
  // One of the two pumps at 95 % gives full flow, two at the usual speed.
  made.pump.shutoff_kpa = 496.0;
  made.pump.droop_kpa_per_lpm2 = 85.7 * 4.0 / (all_lpm * all_lpm);
  made.pump.best_lpm = 0.5 * all_lpm / usual_speed;
  made.vessel.gas_l = 4.3;
  made.exchanger = {26.0 * all_lpm / 149.0, all_lpm, 1.1 * all_lpm, 0.0};
  made.facility_c = facility_c;
  made.facility_kpa = facility_kpa;
  made.facility_pipe_kpa = facility_pipe_kpa;
  made.facility_valve.kv_max = kv_of(1.1 * all_lpm, facility_kpa - facility_pipe_kpa, 996.0);
  made.facility_actuator = {15.0, 0.002, 0.004};
  made.temperature = {0.3, 0.03, 0.0};
  made.flow = {0.3, 0.05, 0.001};
  made.pressure = {0.3, 0.1, 0.0};
  made.position_noise = 0.0005;
  made.start_c = supply_c;
  return made;
}

cdu_nameplate plate_of(const physics::plant_design& made) {
  return {made.exchanger, made.facility_valve, made.facility_kpa, made.facility_pipe_kpa,
          made.pump.shutoff_kpa};
}

std::string rack_name(std::size_t index) {
  const std::size_t number = index + 1;
  return (number < 10 ? "r0" : "r") + std::to_string(number);
}

}  // namespace

std::string_view name_of(rack_valve which) {
  switch (which) {
    case rack_valve::supply:
      return "supply";
    case rack_valve::return_:
      return "return";
    case rack_valve::flow:
      return "flow";
  }
  return "flow";
}

coolant_side::coolant_side(const sku_data& sku, const profile& timings, int racks, std::uint64_t seed)
    : plant_(design_of(sku, timings, racks, seed)),
      controller_(cdu_pumps, plate_of(plant_.design()), usual_speed),
      racks_(racks) {
  plant_.place(1.0, 0.0, usual_speed);
  // At rest before anybody looks.
  const fault_book none;
  for (double at = 0; at < settling_s; at += tick_s) {
    plant_.advance(tick_s);
    tick(none, instant{0});
  }
}

void coolant_side::command(std::size_t rack, rack_valve which, double opening) {
  plant_.valve_of(rack, which).command(opening);
}

double coolant_side::commanded(std::size_t rack, rack_valve which) const {
  return plant_.valve_of(rack, which).commanded();
}

double coolant_side::position(std::size_t rack, rack_valve which) const {
  return plant_.valve_of(rack, which).position();
}

double coolant_side::shown_position(std::size_t rack, rack_valve which) const {
  const actuator& of = plant_.valve_of(rack, which);
  return liars_.contains({rack, which}) ? std::clamp(of.motor(), 0.0, 1.0) : of.position();
}

bool coolant_side::broken(const char* name) const {
  return spoiled_.contains(name);
}

void coolant_side::tick(const fault_book& faults, instant now) {
  for (const auto& [valve, rate] : creeps_) plant_.valve_of(valve.first, valve.second).creep(rate * tick_s);
  plant_.set_leak_area(leak_area());
  const physics::plant_truth truth = plant_.truth();
  if (truth.vessel_level < 0.02) plant_.trap_air(truth.void_fraction + 0.02 * tick_s);
  shown_ = plant_.sample();
  spoil_sensors(faults, now);
  // It controls by its own sensors, without their noise: with their lies.
  const cdu_inputs seen = {.dp_kpa = broken("dp") ? shown_.dp_kpa : truth.dp_kpa,
                           .supply_c = broken("supply") ? shown_.supply_c : truth.supply_c,
                           .hot_c = truth.return_c,
                           .flow_lpm = truth.flow_lpm,
                           .facility_c = plant_.design().facility_c,
                           .any_pump = working_ > 0};
  controller_.step(seen, tick_s, now);
  for (std::size_t pump = 0; pump < cdu_pumps; ++pump) {
    plant_.set_pump_speed(pump, controller_.pump_speed(pump));
  }
  plant_.set_facility_valve(controller_.facility_opening());
}

std::vector<std::string> coolant_side::sensor_names(int racks) {
  std::vector<std::string> names = {"supply", "return",          "flow",         "dp", "system_pressure",
                                    "level",  "facility_supply", "facility_flow"};
  for (std::size_t rack = 0; rack < static_cast<std::size_t>(racks); ++rack) {
    for (const char* const each : {"_flow", "_supply", "_return"}) names.push_back(rack_name(rack) + each);
  }
  return names;
}

double* coolant_side::sensor(const std::string& name) {
  const std::map<std::string_view, double*> own = {{"supply", &shown_.supply_c},
                                                   {"return", &shown_.return_c},
                                                   {"flow", &shown_.flow_lpm},
                                                   {"dp", &shown_.dp_kpa},
                                                   {"system_pressure", &shown_.system_kpa},
                                                   {"level", &shown_.vessel_level},
                                                   {"facility_supply", &shown_.facility_c},
                                                   {"facility_flow", &shown_.facility_flow_lpm}};
  if (const auto found = own.find(name); found != own.end()) return found->second;
  for (std::size_t rack = 0; rack < shown_.racks.size(); ++rack) {
    const std::string of = rack_name(rack);
    if (name == of + "_flow") return &shown_.racks[rack].flow_lpm;
    if (name == of + "_supply") return &shown_.racks[rack].inlet_c;
    if (name == of + "_return") return &shown_.racks[rack].return_c;
  }
  return nullptr;
}

void coolant_side::spoil_sensors(const fault_book& faults, instant now) {
  spoiled_.clear();
  if (faults.all().empty()) {
    frozen_.clear();
    return;
  }
  for (const std::string& name : sensor_names(racks_)) {
    double* const value = sensor(name);
    if (value == nullptr) continue;
    const auto on = [&faults, &name, now](fault_kind kind) {
      return faults.find_part(kind, "cdu01", name, "supply", now);
    };
    if (const fault* const moved = on(fault_kind::sensor_offset)) {
      *value += moved->severity;
      spoiled_.insert(name);
    }
    if (on(fault_kind::sensor_frozen) != nullptr) {
      *value = frozen_.emplace(name, *value).first->second;
      spoiled_.insert(name);
    } else {
      frozen_.erase(name);
    }
    if (on(fault_kind::sensor_dead) != nullptr) {
      *value = std::numeric_limits<double>::quiet_NaN();
      spoiled_.insert(name);
    }
  }
}

// A rack with both valves shut loses nothing but what is in it.
double coolant_side::leak_area() const {
  double sum = 0;
  for (const hole& each : holes_) {
    const auto rack = static_cast<std::size_t>(each.rack - 1);
    const bool shut =
        each.rack > 0 && position(rack, rack_valve::supply) <= 0 && position(rack, rack_valve::return_) <= 0;
    sum += shut ? 0.0 : each.area_mm2;
  }
  return sum;
}

void coolant_side::apply(const fault_book& faults, instant now) {
  double stopped = 0;
  double filter = 1.0;
  bool dry = false;
  holes_.clear();
  for (const fault& each : faults.all()) {
    if (now < each.from || (each.until && now >= *each.until)) continue;
    if (each.kind == fault_kind::pump) stopped = std::max(stopped, each.severity);
    if (each.kind == fault_kind::filter) filter = std::max(filter, each.severity);
    if (each.kind == fault_kind::facility_lost) dry = true;
    if (each.kind == fault_kind::air && airs_.insert(each.id).second) plant_.trap_air(each.severity);
    if (each.kind == fault_kind::weep || each.kind == fault_kind::burst) {
      const double ml_per_min = each.severity * (each.kind == fault_kind::burst ? 1000.0 : 1.0);
      const double gauge = plant_.truth().system_kpa - atmosphere_kpa + held_kpa;
      const int rack = number_of_rack(each.member);
      holes_.push_back({rack, physics::leak_area_mm2(ml_per_min, std::max(20.0, gauge),
                                                     physics::density_kg_per_m3(supply_c))});
    }
  }
  working_ = static_cast<std::size_t>(std::max(0.0, std::floor(static_cast<double>(cdu_pumps) - stopped)));
  for (std::size_t pump = 0; pump < cdu_pumps; ++pump) {
    pump < working_ ? plant_.restore_pump(pump) : plant_.fail_pump(pump);
  }
  plant_.clog_filter_to(filter);
  plant_.set_facility_kpa(dry ? 0.0 : facility_kpa);
  if (was_leaking_ && holes_.empty()) plant_.refill();  // who mends it tops it up
  was_leaking_ = !holes_.empty();
  apply_valves(faults, now);
}

void coolant_side::apply_valves(const fault_book& faults, instant now) {
  creeps_.clear();
  liars_.clear();
  for (std::size_t rack = 0; rack < static_cast<std::size_t>(racks_); ++rack) {
    const std::string member = rack_name(rack) + "/m01";
    for (const rack_valve which : {rack_valve::supply, rack_valve::return_, rack_valve::flow}) {
      const auto on = [&faults, &member, which, now](fault_kind kind) {
        return faults.find_part(kind, member, name_of(which), "flow", now);
      };
      actuator& of = plant_.valve_of(rack, which);
      const bool lies = on(fault_kind::valve_lies_closed) != nullptr;
      of.jam(lies || on(fault_kind::valve_stuck) != nullptr);
      if (lies) liars_.insert({rack, which});
      const fault* const sticky = on(fault_kind::valve_stiction);
      const double own = which == rack_valve::flow ? plant_.design().rack_actuator.stiction : 0.0;
      of.stick(sticky != nullptr ? sticky->severity / 100.0 : own);
      if (const fault* const creeping = on(fault_kind::valve_drift)) {
        creeps_[{rack, which}] = -creeping->severity / 100.0 / 60.0;
      }
    }
  }
}

bool coolant_side::restless() const {
  if (plant_.valves_move() || !holes_.empty() || !creeps_.empty()) return true;
  for (std::size_t rack = 0; rack < static_cast<std::size_t>(racks_); ++rack) {
    const physics::rack_truth truth = plant_.rack(rack);
    const bool poor = truth.flow_lpm < poor_flow_share * plant_.design().rack_rated_lpm;
    if (truth.hottest_die_c > (poor ? warm_c : hot_c)) return true;
  }
  return false;
}

}  // namespace busbar::sim
