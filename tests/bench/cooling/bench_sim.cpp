// Figures of the simulator's physics: how much faster than real time eight whole racks run in one process on
// one core, loops at 1 Hz included and wire faces not, and how well the heat balance closes. bench_sim [--raw
// DIR] [--seconds S]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/sim/physics/fluid.hpp"
#include "daemon/sim/physics/load_pattern.hpp"
#include "tests/bench/cooling/cooling_rig.hpp"

namespace busbar::bench {
namespace {

using sim::physics::load_pattern;
constexpr load_pattern patterns[] = {load_pattern::training, load_pattern::inference, load_pattern::agentic,
                                     load_pattern::idle_full_idle};
constexpr int racks_each = 4;

struct arguments {
  std::string raw;
  double seconds = 1800;
};

arguments parse(int argc, char** argv) {
  arguments given;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--seconds" && i + 1 < argc) given.seconds = std::max(60.0, std::atof(argv[++i]));
    if (word == "--raw" && i + 1 < argc) given.raw = argv[++i];
  }
  return given;
}

sim::physics::plant_design whole_racks() {
  sim::physics::plant_design design;
  design.racks = racks_each;
  design.trays_per_rack = 27;
  design.dies_per_tray = 4;
  return design;
}

// What an outsider would compute at rest from power, flow and temperatures of one rack, and of the
// exchanger's two sides.
double balance_at_rest(cooling_rig& rig) {
  rig.set_load(0.7);
  rig.run(900);
  double worst = 0;
  for (std::size_t index = 0; index < racks_each; ++index) {
    double kw = 0;
    double carried = 0;
    for (int second = 0; second < 300; ++second) {
      rig.step();
      const auto rack = rig.plant.rack(index);
      const double mean_c = 0.5 * (rack.inlet_c + rack.return_c);
      kw += rack.kw;
      carried += sim::physics::mass_flow_kg_per_s(rack.flow_lpm, rack.inlet_c) *
                 sim::physics::heat_capacity_kj_per_kg_k(mean_c) * (rack.return_c - rack.inlet_c);
    }
    worst = std::max(worst, std::abs(carried / kw - 1.0));
  }
  return worst;
}

int run(const arguments& given) {
  std::vector<cooling_rig> cdus;
  for (int cdu = 0; cdu < 2; ++cdu) cdus.emplace_back(whole_racks(), loop_gains{}, 0.5);
  std::ofstream raw;
  if (!given.raw.empty()) {
    std::filesystem::create_directories(given.raw);
    raw.open(given.raw + "/sim.csv");
    raw << "what,plant_s,value\n";
  }
  double cpu_s = 0;
  double worst_balance = 0;
  constexpr double slice_s = 60;
  for (double at = 0; at < given.seconds; at += slice_s) {
    const auto begin = std::chrono::steady_clock::now();
    for (int second = 0; second < static_cast<int>(slice_s); ++second) {
      for (cooling_rig& cdu : cdus) {
        for (std::size_t rack = 0; rack < racks_each; ++rack) {
          cdu.set_load(rack, sim::physics::load_share(patterns[rack], at + second, rack + 1));
        }
        cdu.step();
      }
    }
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    cpu_s += took;
    if (raw.is_open()) raw << fmt::format("slice_wall_s,{:.0f},{:.6f}\n", slice_s, took);
    for (const cooling_rig& cdu : cdus) {
      worst_balance = std::max(worst_balance, cdu.plant.heat_balance_error());
      if (raw.is_open())
        raw << fmt::format("balance,{:.0f},{:.3e}\n", at + slice_s, cdu.plant.heat_balance_error());
    }
  }
  const double at_rest = balance_at_rest(cdus.front());
  if (raw.is_open()) raw << fmt::format("balance,{:.0f},{:.3e}\n", given.seconds, at_rest);
  const double speed = given.seconds / cpu_s;
  fmt::print("{:<64}{:>12.0f}\n", "plant seconds a second: 8 racks, 27 trays, 108 dies each, 2 CDUs", speed);
  fmt::print("{:<64}{:>12.2e}\n", "heat balance while everything moves, worst", worst_balance);
  fmt::print("{:<64}{:>12.2e}\n", "power against flow x rise at rest, worst rack", at_rest);
  fmt::print("{{\"speed_8_racks\":{:.1f},\"heat_balance_error\":{:.6f}}}\n", speed,
             std::max(worst_balance, at_rest));
  return 0;
}

}  // namespace
}  // namespace busbar::bench

int main(int argc, char** argv) {
  return busbar::bench::run(busbar::bench::parse(argc, argv));
}
