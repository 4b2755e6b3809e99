#include "daemon/sim/physics/rack_model.hpp"

#include <algorithm>
#include <cmath>

#include "daemon/sim/physics/fluid.hpp"

namespace busbar::sim::physics {

namespace {
constexpr int hose_cells = 4;
constexpr int tray_cells = 2;
constexpr double leakage_per_k = 0.003;  // of a die's power, above 60 C
constexpr double leakage_from_c = 60.0;
constexpr double compute_heat_share = 0.94;
constexpr int compute_trays = 18;
constexpr int all_trays = 27;
constexpr double die_spread = 0.05;
constexpr double shedding_from_c = 65.0;
constexpr double shedding_kw_per_k = 0.01;  // of a tray

double mass_of(double seconds, double lpm, double celsius) {
  return seconds * mass_flow_kg_per_s(lpm, celsius);
}

// 18 compute trays carry 94 % of the heat, 9 switch trays the rest; fewer trays share alike.
double heat_share_of(int tray, int trays) {
  if (trays != all_trays) return 1.0 / trays;
  return tray < compute_trays ? compute_heat_share / compute_trays
                              : (1.0 - compute_heat_share) / (all_trays - compute_trays);
}
}  // namespace

rack_model::rack_model(const plant_design& plant, std::uint64_t seed)
    : valve(plant.rack_actuator, 0.5),
      isolation{actuator(plant.isolation_actuator, 1.0), actuator(plant.isolation_actuator, 1.0)},
      flow_sensor(plant.flow, plant.rack_rated_lpm, mix(seed + 1)),
      inlet_sensor(plant.temperature, plant.start_c, mix(seed + 2)),
      return_sensor(plant.temperature, plant.start_c, mix(seed + 3)),
      noise(mix(seed + 4)),
      plant_(plant),
      supply_(mass_of(plant.hose_s, plant.rack_rated_lpm, plant.start_c), hose_cells, plant.start_c),
      return_(mass_of(plant.hose_s, plant.rack_rated_lpm, plant.start_c), hose_cells, plant.start_c) {
  if (!plant.trays.empty()) {
    for (const tray_design& each : plant.trays) {
      tray_model tray{
          .flow_share = each.rated_lpm / plant.rack_rated_lpm,
          .coolant =
              cell_row(mass_of(plant.tray_s, each.rated_lpm, plant.start_c), tray_cells, plant.start_c),
          .dies = std::vector<die_on_plate>(static_cast<std::size_t>(each.dies), die_on_plate(plant.start_c)),
          .spread = std::vector<double>(static_cast<std::size_t>(each.dies), 1.0),
          .told = true,
          .die_kw = std::vector<double>(static_cast<std::size_t>(each.dies), 0.0)};
      trays.push_back(std::move(tray));
    }
    return;
  }
  for (int number = 0; number < plant.trays_per_rack; ++number) {
    const double share = heat_share_of(number, plant.trays_per_rack);
    tray_model tray{.heat_share = share,
                    .flow_share = share,
                    .alike = plant.rack_dies * share / plant.dies_per_tray,
                    .coolant = cell_row(mass_of(plant.tray_s, plant.rack_rated_lpm * share, plant.start_c),
                                        tray_cells, plant.start_c)};
    for (int die = 0; die < plant.dies_per_tray; ++die) {
      tray.dies.emplace_back(plant.start_c);
      const double drawn = gaussian(mix(seed + 1000 + static_cast<std::uint64_t>(number * 64 + die)));
      tray.spread.push_back(plant.dies_per_tray == 1 ? 1.0 : 1.0 + die_spread * std::clamp(drawn, -2.0, 2.0));
    }
    trays.push_back(std::move(tray));
  }
}

double rack_model::tray_flow_lpm(std::size_t tray) const {
  return flow_lpm * trays[tray].flow_share * trays[tray].opening / open_share();
}

double rack_model::open_share() const {
  double sum = 0;
  for (const tray_model& tray : trays) sum += tray.flow_share * tray.opening;
  return std::max(sum, 1e-3);
}

resistance rack_model::branch(double viscosity_factor, double density) const {
  // Trays of one shape in parallel: at a given drop each passes its share, so the rack's curve is the base
  // curve stretched in flow.
  const double stretch = plant_.rack_rated_lpm * open_share();
  const double smooth = plant_.rack_pipe_kpa * plant_.turbulent_share * viscosity_factor;
  const double square = plant_.rack_pipe_kpa * (1.0 - plant_.turbulent_share);
  double valves = plant_.rack_valve.square_kpa_per_lpm2(valve.position(), density);
  if (plant_.isolation) {
    for (const actuator& each : isolation)
      valves += plant_.isolation_valve.square_kpa_per_lpm2(each.position(), density);
  }
  return {smooth / std::pow(stretch, 1.75), square / (stretch * stretch) + valves};
}

double rack_model::advance_tray(tray_model& tray, double dt_s, double kg_per_s, double inlet_kj_per_kg,
                                double inlet_c, heat_books& books) {
  const double electric =
      tray.heat_share * plant_.rack_kw * (plant_.idle_share + (1.0 - plant_.idle_share) * load);
  const double through_dies = tray.told ? 0.0 : electric * plant_.die_share;
  const double per_die =
      tray.told ? 0.0 : through_dies / (tray.alike * static_cast<double>(tray.dies.size()));
  const double coolant_c = 0.5 * (inlet_c + tray.coolant.outlet_c());
  const double rated = mass_flow_kg_per_s(plant_.rack_rated_lpm * tray.flow_share, plant_.start_c);
  double direct = tray.told ? tray.direct_kw : electric - through_dies;
  double drawn = direct;
  for (std::size_t index = 0; index < tray.dies.size(); ++index) {
    die_design path = plant_.die;
    path.plate_film_k_per_kw *= tray.spread[index];
    const double leakage = leakage_per_k * std::max(0.0, tray.dies[index].die_c() - leakage_from_c);
    const double kw = tray.told ? tray.die_kw[index] : per_die * (1.0 + std::min(leakage, 0.3));
    drawn += kw * tray.alike;
    direct += tray.alike * tray.dies[index].advance(path, dt_s, kw, coolant_c, kg_per_s / rated);
  }
  books.in += drawn * dt_s;
  kw_ += drawn;
  if (tray.told && tray.coolant.outlet_c() > shedding_from_c) {
    // Hot metal without flow warms the hall too: what is on standby does not heat up without end.
    const double shed = shedding_kw_per_k * (tray.coolant.outlet_c() - shedding_from_c);
    books.out += shed * dt_s;
    direct -= shed;
  }
  return tray.coolant.advance(dt_s, kg_per_s, inlet_kj_per_kg, direct);
}

double rack_model::advance(double dt_s, double inlet_kj_per_kg, double kg_per_s, heat_books& books) {
  const double entering = supply_.advance(dt_s, kg_per_s, inlet_kj_per_kg, 0);
  const double entering_c = temperature_of_enthalpy(entering);
  const double all = open_share();
  kw_ = 0;
  double mixed = 0;
  for (tray_model& tray : trays) {
    const double share = tray.flow_share * tray.opening / all;
    mixed += share * advance_tray(tray, dt_s, kg_per_s * share, entering, entering_c, books);
  }
  removed_kw_ = kg_per_s * (mixed - entering);
  return return_.advance(dt_s, kg_per_s, mixed, 0);
}

void rack_model::sense(double dt_s) {
  flow_sensor.advance(dt_s, flow_lpm);
  inlet_sensor.advance(dt_s, supply_.outlet_c());
  return_sensor.advance(dt_s, return_.outlet_c());
}

double rack_model::stored_kj() const {
  double sum = supply_.stored_kj() + return_.stored_kj();
  for (const tray_model& tray : trays) {
    sum += tray.coolant.stored_kj();
    for (std::size_t index = 0; index < tray.dies.size(); ++index)
      sum += tray.alike * tray.dies[index].stored_kj(plant_.die);
  }
  return sum;
}

double rack_model::coolant_l() const {
  double sum = supply_.volume_l() + return_.volume_l();
  for (const tray_model& tray : trays) sum += tray.coolant.volume_l();
  return sum;
}

double rack_model::hottest_die_c() const {
  double hottest = -273.15;
  for (const tray_model& tray : trays) {
    for (const die_on_plate& die : tray.dies) hottest = std::max(hottest, die.die_c());
  }
  return hottest;
}

}  // namespace busbar::sim::physics
