#include "daemon/sim/physics/cooling_plant.hpp"

#include <algorithm>
#include <cmath>

#include "daemon/sim/physics/fluid.hpp"
#include "daemon/sim/physics/rack_model.hpp"

namespace busbar::sim::physics {

namespace {
constexpr double hydraulic_step_s = 0.01;
constexpr int hydraulic_per_thermal = 10;
constexpr double thermal_step_s = hydraulic_step_s * hydraulic_per_thermal;
constexpr double atmosphere_kpa = 101.3;
constexpr double purge_s = 1200.0;
constexpr double head_tolerance_kpa = 1e-4;
constexpr double first_bracket_kpa = 0.05;
constexpr int cdu_cells = 3;

double facility_square(const plant_design& plant) {
  return plant.facility_pipe_kpa / (plant.exchanger.facility_rated_lpm * plant.exchanger.facility_rated_lpm);
}
}  // namespace

struct cooling_plant::parts {
  explicit parts(plant_design wanted);

  void move(double dt_s);
  void solve();
  double racks_flow(double dp_kpa);
  double pumps_flow(double head_kpa) const;
  double own_drop(double lpm) const;
  suction inlet() const;
  void solve_facility();
  void warm(double dt_s);
  void sense(double dt_s);
  double stored_kj() const;
  double coolant_l() const;
  double pumps_shaft_kw() const;

  plant_design design;
  std::vector<rack_model> racks;
  std::vector<pump> pumps;
  actuator facility_valve;
  filter strainer;
  expansion_vessel vessel;
  leak hole{leak_design{}};
  cell_row hot;
  cell_row cold;
  double facility_c;
  double void_fraction = 0;
  double flow_lpm = 0;
  double dp_kpa = 0;
  double head_kpa = 0;
  double facility_lpm = 0;
  double exchanged = 0;
  double elapsed_s = 0;
  long ticks = 0;
  bool unsettled = true;
  double first_volume_l = 0;
  double first_stored_kj = 0;
  heat_books books;
  sensor supply, back, flow, dp, system, facility_in, facility_flow;
  stream noise;
};

cooling_plant::parts::parts(plant_design wanted)
    : design(wanted),
      facility_valve(wanted.facility_actuator, 0.5),
      strainer(wanted.filter),
      vessel(wanted.vessel),
      hot(wanted.cdu_hold_s * mass_flow_kg_per_s(wanted.cdu_rated_lpm, wanted.start_c), cdu_cells,
          wanted.start_c),
      cold(wanted.cdu_hold_s * mass_flow_kg_per_s(wanted.cdu_rated_lpm, wanted.start_c), cdu_cells,
           wanted.start_c),
      facility_c(wanted.facility_c),
      supply(wanted.temperature, wanted.start_c, mix(wanted.seed + 11)),
      back(wanted.temperature, wanted.start_c, mix(wanted.seed + 12)),
      flow(wanted.flow, wanted.cdu_rated_lpm, mix(wanted.seed + 13)),
      dp(wanted.pressure, 0, mix(wanted.seed + 14)),
      system(wanted.pressure, wanted.vessel.fill_kpa, mix(wanted.seed + 15)),
      facility_in(wanted.temperature, wanted.facility_c, mix(wanted.seed + 16)),
      facility_flow(wanted.flow, 0, mix(wanted.seed + 17)),
      noise(mix(wanted.seed + 18)) {
  for (int number = 0; number < wanted.racks; ++number) {
    racks.emplace_back(wanted, mix(wanted.seed * 131 + static_cast<std::uint64_t>(number)));
  }
  for (int number = 0; number < wanted.pumps; ++number) pumps.emplace_back(wanted.pump, 0.6);
  first_volume_l = coolant_l();
  first_stored_kj = stored_kj();
  solve();
  solve_facility();
}

double cooling_plant::parts::stored_kj() const {
  double sum = hot.stored_kj() + cold.stored_kj();
  for (const rack_model& rack : racks) sum += rack.stored_kj();
  return sum;
}

double cooling_plant::parts::coolant_l() const {
  double sum = hot.volume_l() + cold.volume_l();
  for (const rack_model& rack : racks) sum += rack.coolant_l();
  return sum;
}

suction cooling_plant::parts::inlet() const {
  return {vessel.pressure_kpa(), cold.outlet_c(), void_fraction};
}

double cooling_plant::parts::racks_flow(double at_kpa) {
  const double celsius = cold.outlet_c();
  const double viscosity = std::sqrt(std::sqrt(viscosity_mpa_s(celsius) / viscosity_mpa_s(40.0)));
  const double density = density_kg_per_m3(celsius);
  double sum = 0;
  for (rack_model& rack : racks) {
    rack.flow_lpm = rack.branch(viscosity, density).flow_lpm(at_kpa, rack.flow_lpm);
    sum += rack.flow_lpm;
  }
  return sum;
}

double cooling_plant::parts::pumps_flow(double against_kpa) const {
  double sum = 0;
  for (const pump& each : pumps) sum += each.flow_lpm(against_kpa, inlet());
  return sum;
}

double cooling_plant::parts::own_drop(double lpm) const {
  const double share = lpm / design.cdu_rated_lpm;
  return design.cdu_kpa * share * share + strainer.kpa_per_lpm2() * lpm * lpm;
}

void cooling_plant::parts::solve() {
  // The header pressure at which racks take what pumps give. Taking grows with it and giving falls: one root;
  // regula falsi (Illinois) from the bracket of nothing to shutoff.
  double most = 0;
  for (const pump& each : pumps) most = std::max(most, each.shutoff_kpa(inlet()));
  const auto off = [this](double at) {
    const double taken = racks_flow(at);
    return taken - pumps_flow(at + own_drop(taken));
  };
  // The last solution is a good guess: a narrow bracket around it, widened until it holds the root.
  double width = first_bracket_kpa;
  double low = std::clamp(dp_kpa - width, 0.0, most);
  double high = std::clamp(dp_kpa + width, 0.0, most);
  double off_low = off(low);
  double off_high = off(high);
  while (off_low > 0 && low > 0) {
    high = low;
    off_high = off_low;
    low = std::max(0.0, low - (width *= 4.0));
    off_low = off(low);
  }
  while (off_high < 0 && high < most) {
    low = high;
    off_low = off_high;
    high = std::min(most, high + (width *= 4.0));
    off_high = off(high);
  }
  double at = dp_kpa;
  int side = 0;
  for (int round = 0; round < 60 && high - low > head_tolerance_kpa; ++round) {
    at = off_high == off_low ? 0.5 * (low + high) : (low * off_high - high * off_low) / (off_high - off_low);
    const double here = off(at);
    if (std::abs(here) < 1e-6) break;
    if (here < 0) {
      low = at;
      off_low = here;
      if (side == -1) off_high *= 0.5;
      side = -1;
    } else {
      high = at;
      off_high = here;
      if (side == 1) off_low *= 0.5;
      side = 1;
    }
  }
  dp_kpa = at;
  flow_lpm = racks_flow(dp_kpa);
  head_kpa = dp_kpa + own_drop(flow_lpm);
}

void cooling_plant::parts::solve_facility() {
  const double valve =
      design.facility_valve.square_kpa_per_lpm2(facility_valve.position(), water_density_kg_per_m3);
  facility_lpm = std::sqrt(design.facility_kpa / (valve + facility_square(design)));
}

double cooling_plant::parts::pumps_shaft_kw() const {
  double sum = 0;
  for (const pump& each : pumps) sum += each.shaft_kw(each.flow_lpm(head_kpa, inlet()), head_kpa);
  return sum;
}

void cooling_plant::parts::warm(double dt_s) {
  const double cold_end = cold.outlet_kj_per_kg();
  double mixed = 0;
  double kg_per_s = 0;
  for (rack_model& rack : racks) {
    const double mass = mass_flow_kg_per_s(rack.flow_lpm, rack.supply_end_c()) * (1.0 - void_fraction);
    mixed += mass * rack.advance(dt_s, cold_end, mass, books);
    kg_per_s += mass;
  }
  const double entering = kg_per_s > 0 ? mixed / kg_per_s : hot.outlet_kj_per_kg();
  const double shaft = pumps_shaft_kw();
  books.in += shaft * dt_s;
  const double hot_end = hot.advance(dt_s, kg_per_s, entering, shaft);
  exchanged = exchanged_kw(design.exchanger, flow_lpm * (1.0 - void_fraction),
                           temperature_of_enthalpy(hot_end), facility_lpm, facility_c);
  if (kg_per_s > 0) {
    books.out += exchanged * dt_s;
    cold.advance(dt_s, kg_per_s, hot_end - exchanged / kg_per_s, 0);
  } else {
    exchanged = 0;
  }
}

void cooling_plant::parts::sense(double dt_s) {
  supply.advance(dt_s, cold.outlet_c());
  back.advance(dt_s, hot.outlet_c());
  flow.advance(dt_s, flow_lpm);
  dp.advance(dt_s, dp_kpa);
  system.advance(dt_s, vessel.pressure_kpa());
  facility_in.advance(dt_s, facility_c);
  facility_flow.advance(dt_s, facility_lpm);
  for (rack_model& rack : racks) rack.sense(dt_s);
}

void cooling_plant::parts::move(double dt_s) {
  double moved = 0;
  for (rack_model& rack : racks) {
    const double before = rack.valve.position();
    rack.valve.advance(dt_s);
    moved += std::abs(rack.valve.position() - before);
    for (actuator& each : rack.isolation) {
      const double stood = each.position();
      each.advance(dt_s);
      moved += std::abs(each.position() - stood);
    }
  }
  for (pump& each : pumps) {
    const double before = each.speed();
    each.advance(dt_s);
    moved += std::abs(each.speed() - before);
  }
  const double before = facility_valve.position();
  facility_valve.advance(dt_s);
  if (facility_valve.position() != before) solve_facility();
  // Temperatures and clogging change viscosity and drops slowly: once a thermal step is enough for those.
  if (moved > 0 || unsettled || ticks % hydraulic_per_thermal == 0) solve();
  unsettled = false;
  if (++ticks % hydraulic_per_thermal != 0) return;
  strainer.advance(thermal_step_s);
  void_fraction *= std::exp(-thermal_step_s / purge_s);
  vessel.expand_to(coolant_l() - first_volume_l);
  const double gauge = vessel.pressure_kpa() - atmosphere_kpa;
  vessel.lose(hole.advance(thermal_step_s, gauge + dp_kpa, gauge, density_kg_per_m3(cold.outlet_c())));
  warm(thermal_step_s);
  sense(thermal_step_s);
}

cooling_plant::cooling_plant(plant_design wanted) : parts_(std::make_unique<parts>(wanted)) {}
cooling_plant::~cooling_plant() = default;
cooling_plant::cooling_plant(cooling_plant&&) noexcept = default;
cooling_plant& cooling_plant::operator=(cooling_plant&&) noexcept = default;

void cooling_plant::set_load(std::size_t rack, double share) {
  parts_->racks[rack].load = std::clamp(share, 0.0, 1.0);
}
void cooling_plant::set_rack_valve(std::size_t rack, double opening) {
  parts_->racks[rack].valve.command(opening);
}
void cooling_plant::set_isolation_valve(std::size_t rack, rack_valve which, double opening) {
  valve_of(rack, which).command(opening);
}
void cooling_plant::set_tray_heat(std::size_t rack, std::size_t tray, double direct_kw,
                                  const std::vector<double>& die_kw) {
  tray_model& of = parts_->racks[rack].trays[tray];
  of.direct_kw = direct_kw;
  std::copy_n(die_kw.begin(), std::min(die_kw.size(), of.die_kw.size()), of.die_kw.begin());
}
void cooling_plant::set_facility_valve(double opening) {
  parts_->facility_valve.command(opening);
}
void cooling_plant::set_pump_speed(std::size_t pump, double speed) {
  parts_->pumps[pump].command(speed);
}

void cooling_plant::place(double rack_opening, double facility_valve, double pump_speed) {
  for (rack_model& rack : parts_->racks) rack.valve = actuator(parts_->design.rack_actuator, rack_opening);
  parts_->facility_valve = actuator(parts_->design.facility_actuator, facility_valve);
  for (pump& each : parts_->pumps) each = pump(parts_->design.pump, pump_speed);
  parts_->solve();
  parts_->solve_facility();
}

void cooling_plant::fail_pump(std::size_t pump) {
  parts_->pumps[pump].fail();
}
void cooling_plant::restore_pump(std::size_t pump) {
  parts_->pumps[pump].restore();
}
void cooling_plant::jam_rack_valve(std::size_t rack, bool stuck) {
  parts_->racks[rack].valve.jam(stuck);
}
actuator& cooling_plant::valve_of(std::size_t rack, rack_valve which) {
  rack_model& of = parts_->racks[rack];
  parts_->unsettled = true;
  return which == rack_valve::flow ? of.valve : of.isolation[which == rack_valve::supply ? 0 : 1];
}
const actuator& cooling_plant::valve_of(std::size_t rack, rack_valve which) const {
  const rack_model& of = parts_->racks[rack];
  return which == rack_valve::flow ? of.valve : of.isolation[which == rack_valve::supply ? 0 : 1];
}
void cooling_plant::clog_filter_to(double factor) {
  parts_->strainer.clog_to(factor);
}
void cooling_plant::set_leak_area(double area_mm2) {
  parts_->hole.open_to(area_mm2);
}
void cooling_plant::refill() {
  parts_->vessel.refill();
}
void cooling_plant::set_facility_kpa(double kpa) {
  parts_->design.facility_kpa = kpa;
  parts_->solve_facility();
}
void cooling_plant::clog_filter(double e_fold_s) {
  parts_->strainer.clog_over(e_fold_s);
}
void cooling_plant::trap_air(double void_fraction) {
  parts_->void_fraction = std::clamp(void_fraction, 0.0, 0.4);
}
void cooling_plant::open_leak(leak_design hole) {
  parts_->hole = leak(hole);
}
void cooling_plant::set_facility_c(double celsius) {
  parts_->facility_c = celsius;
}

void cooling_plant::fault(plant_sensor which, sensor_fault kind, double amount) {
  switch (which) {
    case plant_sensor::supply:
      return parts_->supply.fault(kind, amount);
    case plant_sensor::return_:
      return parts_->back.fault(kind, amount);
    case plant_sensor::flow:
      return parts_->flow.fault(kind, amount);
    case plant_sensor::dp:
      return parts_->dp.fault(kind, amount);
    case plant_sensor::system:
      return parts_->system.fault(kind, amount);
    case plant_sensor::facility_c:
      return parts_->facility_in.fault(kind, amount);
    case plant_sensor::facility_flow:
      return parts_->facility_flow.fault(kind, amount);
  }
}

void cooling_plant::fault(std::size_t rack, rack_sensor which, sensor_fault kind, double amount) {
  rack_model& broken = parts_->racks[rack];
  if (which == rack_sensor::flow) broken.flow_sensor.fault(kind, amount);
  if (which == rack_sensor::inlet) broken.inlet_sensor.fault(kind, amount);
  if (which == rack_sensor::return_) broken.return_sensor.fault(kind, amount);
}

void cooling_plant::obstruct_tray(std::size_t rack, std::size_t tray, double share) {
  parts_->racks[rack].trays[tray].opening = std::clamp(share, 0.0, 1.0);
  parts_->unsettled = true;
}

void cooling_plant::advance(double dt_s) {
  const double until = parts_->elapsed_s + dt_s;
  while (static_cast<double>(parts_->ticks + 1) * hydraulic_step_s <= until + 1e-9)
    parts_->move(hydraulic_step_s);
  parts_->elapsed_s = until;
}

double cooling_plant::elapsed_s() const {
  return parts_->elapsed_s;
}
const plant_design& cooling_plant::design() const {
  return parts_->design;
}

double cooling_plant::heat_balance_error() const {
  const heat_books& books = parts_->books;
  if (books.in <= 0) return 0.0;
  return std::abs(books.in - books.out - (parts_->stored_kj() - parts_->first_stored_kj)) / books.in;
}

plant_truth cooling_plant::truth() const {
  const parts& now = *parts_;
  plant_truth truth;
  truth.supply_c = now.cold.outlet_c();
  truth.return_c = now.hot.outlet_c();
  truth.flow_lpm = now.flow_lpm;
  truth.dp_kpa = now.dp_kpa;
  truth.system_kpa = now.vessel.pressure_kpa();
  truth.vessel_level = now.vessel.level();
  truth.facility_flow_lpm = now.facility_lpm;
  const double facility = now.facility_lpm / litres_per_minute_per_m3_s * water_density_kg_per_m3 *
                          water_heat_capacity_kj_per_kg_k;
  truth.facility_return_c = now.facility_c + (facility > 0 ? now.exchanged / facility : 0.0);
  truth.facility_valve = now.facility_valve.position();
  truth.exchanged_kw = now.exchanged;
  truth.filter_kpa = now.strainer.kpa_per_lpm2() * now.flow_lpm * now.flow_lpm;
  truth.void_fraction = now.void_fraction;
  truth.leak_ml_per_min = now.hole.flow_ml_per_min();
  truth.leak_detector_wet = now.hole.detector_wet();
  for (const pump& each : now.pumps) {
    truth.pump_kw += each.electric_kw(each.flow_lpm(now.head_kpa, now.inlet()), now.head_kpa);
    truth.pump_speed.push_back(each.speed());
  }
  return truth;
}

rack_truth cooling_plant::rack(std::size_t index) const {
  const rack_model& rack = parts_->racks[index];
  return {.kw = rack.kw(),
          .flow_lpm = rack.flow_lpm,
          .inlet_c = rack.supply_end_c(),
          .return_c = rack.return_end_c(),
          .valve = rack.valve.position(),
          .removed_kw = rack.removed_kw(),
          .hottest_die_c = rack.hottest_die_c(),
          .supply_valve = rack.isolation[0].position(),
          .return_valve = rack.isolation[1].position()};
}

tray_truth cooling_plant::tray(std::size_t rack, std::size_t tray) const {
  const rack_model& of = parts_->racks[rack];
  return {of.tray_flow_lpm(tray), of.trays[tray].coolant.outlet_c()};
}

double cooling_plant::die_c(std::size_t rack, std::size_t tray, std::size_t die) const {
  return parts_->racks[rack].trays[tray].dies[die].die_c();
}

bool cooling_plant::valves_move() const {
  return std::any_of(parts_->racks.begin(), parts_->racks.end(), [](const rack_model& rack) {
    return rack.valve.moving() || rack.isolation[0].moving() || rack.isolation[1].moving();
  });
}

plant_shown cooling_plant::sample() {
  parts& now = *parts_;
  const double position_noise = now.design.position_noise;
  const double air_noise =
      now.void_fraction > 0.01 ? 1.0 + 2.0 * now.void_fraction * now.noise.gaussian() : 1.0;
  plant_shown shown;
  shown.supply_c = now.supply.sample();
  shown.return_c = now.back.sample();
  shown.flow_lpm = now.flow.sample() * air_noise;
  shown.dp_kpa = now.dp.sample();
  shown.system_kpa = now.system.sample();
  shown.vessel_level = now.vessel.level() + position_noise * now.noise.gaussian();
  shown.facility_c = now.facility_in.sample();
  shown.facility_flow_lpm = now.facility_flow.sample();
  shown.facility_valve = now.facility_valve.position() + position_noise * now.noise.gaussian();
  for (const pump& each : now.pumps) shown.pump_speed.push_back(each.speed());
  for (rack_model& rack : now.racks) {
    shown.racks.push_back({.kw = rack.kw() * (1.0 + 0.005 * rack.noise.gaussian()),
                           .flow_lpm = rack.flow_sensor.sample(),
                           .inlet_c = rack.inlet_sensor.sample(),
                           .return_c = rack.return_sensor.sample(),
                           .valve = rack.valve.position() + position_noise * rack.noise.gaussian()});
  }
  return shown;
}

}  // namespace busbar::sim::physics
