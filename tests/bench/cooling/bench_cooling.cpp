// Figures of the cooling loops: each the worst of 20 plants drawn +-20 % around the nominal one, with the
// nominal plant's gains. Everything runs on a virtual clock in one process. bench_cooling [--raw DIR]
// [--quick]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/cooling/cooling_runs.hpp"

namespace busbar::bench {
namespace {

struct arguments {
  std::string raw;
  bool quick = false;  // without the 24 h runs
};

arguments parse(int argc, char** argv) {
  arguments given;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick") given.quick = true;
    if (word == "--raw" && i + 1 < argc) given.raw = argv[++i];
  }
  return given;
}

// Every run's rows, as they are: tests/bench/recompute.py derives the figures from nothing else.
class raw_rows {
 public:
  explicit raw_rows(const std::string& directory) {
    if (directory.empty()) return;
    std::filesystem::create_directories(directory);
    file_.open(directory + "/cooling.csv");
    file_ << "plant,run,at_s,supply_error_c,dp_kpa,dp_set_kpa,flow_share,pump_kw,hottest_c\n";
  }
  void keep(int plant, std::string_view run, const cooling_rows& rows) {
    if (!file_.is_open()) return;
    for (const cooling_row& row : rows) {
      file_ << fmt::format("{},{},{:.1f},{:.4f},{:.4f},{:.4f},{:.6f},{:.5f},{:.3f}\n", plant, run, row.at_s,
                           row.supply_error_c, row.dp_kpa, row.dp_set_kpa, row.flow_share, row.pump_kw,
                           row.hottest_c);
    }
  }

 private:
  std::ofstream file_;
};

struct figures {
  double steady = 0;
  double dp = 0;
  double overshoot = 0;
  double settle = 0;
  double recovery = 0;
  double dip = 0;
  double swing = 0;
  double saved = 1;
  double hotter = 0;  // difference of the hottest dies of the two days, K
  double valve_closes = 0;
  double coldest = 0;  // after load fell away, below the set-point
  double down_settle = 0;
};

figures measure(int plant, raw_rows& raw, bool days) {
  figures of;
  for (const double load : {0.2, 0.5, 0.9}) {
    const cooling_rows rows = run_steady(plant, load);
    of.steady = std::max(of.steady, steady_c(rows));
    of.dp = std::max(of.dp, steady_dp_kpa(rows));
    raw.keep(plant, fmt::format("steady_{:.0f}", 100 * load), rows);
  }
  const cooling_rows up = run_step(plant, 0.1, 1.0);
  of.overshoot = overshoot_c(up);
  of.settle = settle_s(up, 0.5);
  raw.keep(plant, "step_up", up);
  const cooling_rows down = run_step(plant, 1.0, 0.1);
  of.down_settle = settle_s(down, 0.5);
  for (const cooling_row& row : down) of.coldest = std::min(of.coldest, row.supply_error_c);
  raw.keep(plant, "step_down", down);
  const cooling_rows lost = run_pump_loss(plant);
  of.recovery = pump_recovery_s(lost);
  of.dip = pump_dip(lost);
  raw.keep(plant, "pump_loss", lost);
  const cooling_rows closes = run_valve_closes(plant);
  for (const cooling_row& row : closes)
    of.valve_closes = std::max(of.valve_closes, std::abs(row.dp_kpa / row.dp_set_kpa - 1.0));
  raw.keep(plant, "valve_closes", closes);
  const cooling_rows sticks = run_stiction(plant);
  of.swing = stiction_swing(sticks);
  raw.keep(plant, "stiction", sticks);
  if (!days) return of;
  const day_rows day = run_day(plant);
  of.saved = energy_saved(day);
  of.hotter = hottest_c(day.controlled) - hottest_c(day.constant);
  raw.keep(plant, "day_controlled", day.controlled);
  raw.keep(plant, "day_constant", day.constant);
  return of;
}

void print_row(std::string_view name, const figures& of) {
  fmt::print(
      "{:>8}{:>9.2f}{:>8.2f}{:>11.2f}{:>9.0f}{:>10.1f}{:>6.2f}{:>8.4f}{:>8.3f}{:>8.2f}{:>9.2f}{:>9.2f}{:>8."
      "0f}\n",
      name, of.steady, of.dp, of.overshoot, of.settle, of.recovery, of.dip, of.swing, of.saved, of.hotter,
      of.valve_closes, of.coldest, of.down_settle);
}

void worsen(figures& worst, const figures& of) {
  for (double figures::*each :
       {&figures::steady, &figures::dp, &figures::overshoot, &figures::settle, &figures::recovery,
        &figures::dip, &figures::swing, &figures::valve_closes, &figures::down_settle}) {
    worst.*each = std::max(worst.*each, of.*each);
  }
  worst.saved = std::min(worst.saved, of.saved);
  worst.coldest = std::min(worst.coldest, of.coldest);
  if (std::abs(of.hotter) > std::abs(worst.hotter)) worst.hotter = of.hotter;
}

int run(const arguments& given) {
  raw_rows raw(given.raw);
  fmt::print("{:>8}{:>9}{:>8}{:>11}{:>9}{:>10}{:>6}{:>8}{:>8}{:>8}{:>9}{:>9}{:>8}\n", "plant", "steady", "dp",
             "overshoot", "settle", "recovery", "dip", "swing", "saved", "die +-", "closes", "coldest",
             "down s");
  figures worst;
  for (int plant = 0; plant <= plants_drawn; ++plant) {
    const figures of = measure(plant, raw, !given.quick);
    print_row(plant == 0 ? "nominal" : std::to_string(plant), of);
    std::fflush(stdout);
    if (plant > 0) worsen(worst, of);
  }
  print_row("worst", worst);
  fmt::print(
      "{{\"steady_c\":{:.2f},\"overshoot_c\":{:.2f},\"settle_s\":{:.0f},\"dp_kpa\":{:.2f},\"pump_recovery_"
      "s\":{:.1f},"
      "\"stiction_swing\":{:.4f}",
      worst.steady, worst.overshoot, worst.settle, worst.dp, worst.recovery, worst.swing);
  if (!given.quick) fmt::print(",\"pump_energy_saved\":{:.3f}", worst.saved);
  fmt::print("}}\n");
  return 0;
}

}  // namespace
}  // namespace busbar::bench

int main(int argc, char** argv) {
  return busbar::bench::run(busbar::bench::parse(argc, argv));
}
