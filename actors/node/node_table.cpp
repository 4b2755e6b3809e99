#include "actors/node/node_table.hpp"

#include <array>

#include "actors/node/node_phases.hpp"

namespace busbar::node {
namespace {

// One row an arrow; phases() joins the work. Deadline keys are the baseline's; the defaults hold where it
// names none.
struct row {
  journal::NodeStep from, to;
  std::string_view deadline_key;
  std::int64_t default_deadline_s;
  std::span<const phase> (*phases)();
};

constexpr std::array compute_rows{
    row{journal::DECLARED, journal::DISCOVERED, "discovered", 600, discover_phases},
    row{journal::DISCOVERED, journal::IDENTIFIED, "identified", 120, identify_phases},
    row{journal::IDENTIFIED, journal::CREDENTIALED, "credentialed", 120, credential_phases},
    row{journal::CREDENTIALED, journal::STAGED, "staged", 1200, stage_compute_phases},
    row{journal::STAGED, journal::INSPECTED, "inspected", 600, inspect_phases},
    row{journal::INSPECTED, journal::FIRMWARE_CURRENT, "firmware", 10800, firmware_phases},
    row{journal::FIRMWARE_CURRENT, journal::CONFIGURED, "configured", 1800, configure_phases},
    row{journal::CONFIGURED, journal::VALIDATED, "validated", 1800, validate_phases},
    row{journal::VALIDATED, journal::READY, "ready", 600, pass_phases},
    row{journal::READY, journal::PRODUCTION, "production", 600, pass_phases},
};

constexpr auto rows_of(std::span<const phase> (*stage)(), std::string_view stage_key) {
  auto rows = compute_rows;
  for (row& r : rows) {
    if (r.to == journal::STAGED) {
      r.phases = stage;
      r.deadline_key = stage_key;
    }
  }
  return rows;
}

constexpr auto switch_rows = rows_of(stage_switch_phases, "staged");
constexpr auto shelf_rows = rows_of(stage_shelf_phases, "shelf_on");
constexpr auto controller_rows = rows_of(pass_phases, "staged");  // fed from the grid side: nothing is turned on

template <std::size_t N>
constexpr bool has_no_gap(const std::array<row, N>& rows) {
  if (rows.front().from != journal::DECLARED || rows.back().to != journal::PRODUCTION) return false;
  for (std::size_t i = 0; i < N; ++i) {
    if (rows[i].to != rows[i].from + 1 || rows[i].default_deadline_s <= 0)
      return false;
    if (i > 0 && rows[i].from != rows[i - 1].to) return false;
  }
  return true;
}
static_assert(has_no_gap(compute_rows) && has_no_gap(switch_rows) && has_no_gap(shelf_rows) &&
                  has_no_gap(controller_rows),
              "every step has one arrow out, with work and a deadline");

template <std::size_t N>
std::array<arrow, N> joined(const std::array<row, N>& rows) {
  std::array<arrow, N> arrows{};
  for (std::size_t i = 0; i < N; ++i) {
    arrows[i] = {rows[i].from, rows[i].to, rows[i].deadline_key, rows[i].default_deadline_s,
                 rows[i].phases()};
  }
  return arrows;
}

}  // namespace

std::span<const arrow> arrows_of(journal::MemberKind kind) {
  static const auto compute = joined(compute_rows);
  static const auto switches = joined(switch_rows);
  static const auto shelves = joined(shelf_rows);
  static const auto controllers = joined(controller_rows);
  if (kind == journal::SWITCH_TRAY) return switches;
  if (kind == journal::POWER_SHELF) return shelves;
  if (kind == journal::RACK_CONTROLLER) return controllers;
  return compute;
}

}  // namespace busbar::node
