#include "actors/rack/rack_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "actors/core/mutant.hpp"
#include "actors/node/node_logic.hpp"

namespace busbar::rack {

using core::fault;

namespace {

bool in_band(const devices::cooling_facts& facts, const journal::CoolingSpec& limits) {
  if (!facts.flow_lpm.has_value() || !facts.dp_kpa.has_value()) return BUSBAR_MUTANT(unknown_flow_is_enough);
  if (!std::isfinite(*facts.flow_lpm) || !std::isfinite(*facts.dp_kpa)) return BUSBAR_MUTANT(nan_passes);
  return *facts.flow_lpm >= limits.flow_min_lpm() && *facts.dp_kpa >= limits.dp_min_kpa() &&
         *facts.dp_kpa <= limits.dp_max_kpa();
}

// Where a reading stands to its limits: words that stay the same while nothing changes. The readings themselves
// are telemetry, and every text of a wait is a commit.
std::string flow_words(const std::optional<double>& flow_lpm, const journal::CoolingSpec& limits) {
  if (!flow_lpm.has_value() || !std::isfinite(*flow_lpm)) return "flow unknown";
  return fmt::format("flow {} {:.0f} l/min", *flow_lpm < limits.flow_min_lpm() ? "below" : "at least",
                     limits.flow_min_lpm());
}

std::string pressure_words(const std::optional<double>& dp_kpa, const journal::CoolingSpec& limits) {
  if (!dp_kpa.has_value() || !std::isfinite(*dp_kpa)) return "pressure unknown";
  const char* const where = *dp_kpa < limits.dp_min_kpa() ? "below"
                            : *dp_kpa > limits.dp_max_kpa() ? "above"
                                                            : "within";
  return fmt::format("pressure {} {:.0f} to {:.0f} kPa", where, limits.dp_min_kpa(), limits.dp_max_kpa());
}

bool is_stale(const cooling_state& state, core::instant now) {
  return !state.facts.has_value() || now.monotonic_ns - state.read_at_ns > cooling_stale_ns;
}

}  // namespace

void take_cooling(cooling_state& state, const journal::CoolingSpec& limits,
                  const absl::StatusOr<devices::cooling_facts>& read, core::instant now) {
  if (!read.ok()) {
    state.last_error = read.status();
    if (is_stale(state, now)) state.in_band_since_ns = core::never_ns;
    return;
  }
  const bool gap = state.facts.has_value() && now.monotonic_ns - state.read_at_ns > cooling_stale_ns;
  state.last_error = absl::OkStatus();
  state.facts = *read;
  state.read_at_ns = now.monotonic_ns;
  if (!in_band(*read, limits)) {
    state.in_band_since_ns = core::never_ns;
  } else if (state.in_band_since_ns == core::never_ns || gap) {
    state.in_band_since_ns = now.monotonic_ns;
  }
}

std::optional<refusal> flow_not_proven(const cooling_state& state, const journal::CoolingSpec& limits,
                                       core::instant now) {
  if (BUSBAR_MUTANT(flow_not_asked)) return std::nullopt;
  if (is_stale(state, now)) {
    return refusal{fault::POWER_FLOW_NOT_PROVEN,
                   fmt::format("the CDU {} was not read{}{}", limits.cdu(), state.last_error.ok() ? "" : ": ",
                               std::string(state.last_error.message()))};
  }
  if (!in_band(*state.facts, limits)) {
    return refusal{fault::POWER_FLOW_NOT_PROVEN,
                   fmt::format("{}, {}", flow_words(state.facts->flow_lpm, limits),
                               pressure_words(state.facts->dp_kpa, limits))};
  }
  if (state.in_band_since_ns == core::never_ns ||
      (now.monotonic_ns - state.in_band_since_ns < flow_soak_ns && !BUSBAR_MUTANT(flow_soak_skipped))) {
    return refusal{fault::POWER_FLOW_NOT_PROVEN, "flow and pressure are in band, not yet for 10 s"};
  }
  return std::nullopt;
}

std::optional<refusal> rack_detectors_not_dry(const cooling_state& state, core::instant now) {
  if (is_stale(state, now))
    return refusal{fault::POWER_DETECTOR_UNKNOWN, "the rack's rope and pan detectors were not read"};
  if (state.facts->detectors.empty()) {
    return refusal{fault::POWER_DETECTOR_UNKNOWN, "the CDU shows no leak detector for this rack"};
  }
  for (const devices::detector_facts& row : state.facts->detectors) {
    if (row.verdict == journal::Detector::DRY) continue;
    const bool leak = row.verdict == journal::Detector::LEAK;
    if (!leak && BUSBAR_MUTANT(rack_detector_unknown_read_as_dry)) continue;
    return refusal{leak ? fault::POWER_LEAK_LATCHED : fault::POWER_DETECTOR_UNKNOWN,
                   fmt::format("rack detector {} is {}: {}", row.name, leak ? "wet" : "not known to be dry",
                               row.detail)};
  }
  return std::nullopt;
}

std::string step_word(journal::RackStep step) {
  if (step == journal::RACK_PRODUCTION) return "production";
  std::string word = journal::RackStep_Name(step);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

bool is_failed(const journal::Node& node) {
  return node.has_failure();
}

bool is_off(const journal::Node& node) {
  if (!node::is_switched(node)) return true;
  if (node::is_tripped(node) && node.power().observed() == journal::POWER_UNKNOWN) return false;
  return node.step() < journal::STAGED && node.power().observed() != journal::POWER_ON &&
         node.power().wanted() != journal::POWER_ON;
}

bool is_tray(const journal::Node& node) {
  return node.spec().kind() == journal::COMPUTE_TRAY || node.spec().kind() == journal::SWITCH_TRAY;
}

const interlock::TripStatus* open_trip(const interlock_view* heard, std::string_view scope) {
  if (heard == nullptr || heard->status == nullptr) return nullptr;
  const auto& trips = heard->status->open_trips();
  const auto found = std::find_if(trips.begin(), trips.end(),
                                  [scope](const interlock::TripStatus& trip) { return trip.scope() == scope; });
  return found == trips.end() ? nullptr : &*found;
}

const interlock::TripStatus* trip_over(const interlock_view* heard, std::string_view rack,
                                       std::string_view member) {
  const interlock::TripStatus* const of_rack = open_trip(heard, rack);
  return of_rack != nullptr ? of_rack : open_trip(heard, member);
}

std::string_view words_of(interlock::Cause cause) {
  if (cause == interlock::LEAK) return "leak";
  if (cause == interlock::NO_FLOW) return "no flow";
  if (cause == interlock::OVER_TEMPERATURE) return "over-temperature";
  if (cause == interlock::OVER_PRESSURE) return "over-pressure";
  if (cause == interlock::EMERGENCY_STOP) return "emergency stop";
  if (cause == interlock::REQUESTED) return "requested by busbard";
  return "unknown cause";
}

std::string trip_words(const interlock::TripStatus& trip) {
  return fmt::format("trip {} of {} ({}): {}", trip.number(), trip.scope(), words_of(trip.cause()), trip.detail());
}

std::vector<std::shared_ptr<const journal::Node>> of_kind(const member_map& members,
                                                          journal::MemberKind kind) {
  std::vector<std::shared_ptr<const journal::Node>> found;
  for (const auto& [name, node] : members) {
    if (node->spec().kind() == kind) found.push_back(node);
  }
  return found;
}

std::uint32_t count_not_failed(const member_map& members, journal::MemberKind kind) {
  const auto found = of_kind(members, kind);
  return static_cast<std::uint32_t>(
      std::count_if(found.begin(), found.end(), [](const auto& node) { return !is_failed(*node); }));
}

std::string ceiling_of(const journal::RackSpec& spec, const member_map& members) {
  const journal::RackSku& sku = spec.sku().rack();
  const std::uint32_t compute = count_not_failed(members, journal::COMPUTE_TRAY);
  if (count_not_failed(members, journal::SWITCH_TRAY) < sku.switch_() || compute < sku.compute_min())
    return "cordoned";
  const bool all_shelves = count_not_failed(members, journal::POWER_SHELF) >= sku.shelf();
  const bool all_valves = count_not_failed(members, journal::RACK_CONTROLLER) ==
                          of_kind(members, journal::RACK_CONTROLLER).size();
  return compute >= sku.compute() && all_shelves && all_valves ? "production" : "degraded";
}

namespace {

// "2 of 8 shelves credentialed"; failed members are left out unless they are all needed.
std::string progress(const member_map& members, journal::MemberKind kind, std::string_view plural,
                     journal::NodeStep step, std::string_view word, bool count_failed) {
  std::size_t there = 0, wanted = 0;
  for (const auto& node : of_kind(members, kind)) {
    if (!count_failed && is_failed(*node)) continue;
    ++wanted;
    if (node->step() >= step) ++there;
  }
  return there >= wanted ? std::string() : fmt::format("{} of {} {} {}", there, wanted, plural, word);
}

std::string first_of(std::string first, std::string second) {
  return first.empty() ? second : first;
}

std::string powered_wait(const member_map& members) {
  std::size_t on = 0, wanted = 0;
  for (const auto& [name, node] : members) {
    if (!is_tray(*node) || is_failed(*node)) continue;
    ++wanted;
    if (node->power().observed() == journal::POWER_ON && node->step() >= journal::STAGED) ++on;
  }
  return on >= wanted ? std::string() : fmt::format("{} of {} trays powered on and staged", on, wanted);
}

}  // namespace

std::string members_wait(journal::RackStep from, const journal::RackSpec& spec, const member_map& members) {
  static_cast<void>(spec);
  if (from == journal::PLANNED) {
    return progress(members, journal::POWER_SHELF, "shelves", journal::CREDENTIALED, "credentialed", true);
  }
  if (from == journal::STANDBY) {
    return first_of(
        progress(members, journal::RACK_CONTROLLER, "rack controllers", journal::CREDENTIALED, "credentialed", true),
        first_of(progress(members, journal::SWITCH_TRAY, "switch trays", journal::CREDENTIALED, "credentialed", true),
                 progress(members, journal::COMPUTE_TRAY, "compute trays", journal::CREDENTIALED, "credentialed",
                          false)));
  }
  if (from == journal::COOLED) return powered_wait(members);
  if (from == journal::POWERED) {
    return first_of(
        progress(members, journal::SWITCH_TRAY, "switch trays", journal::CONFIGURED, "configured", true),
        progress(members, journal::COMPUTE_TRAY, "compute trays", journal::CONFIGURED, "configured", false));
  }
  if (from == journal::NVLINK_READY) {
    return progress(members, journal::COMPUTE_TRAY, "compute trays", journal::VALIDATED, "validated", false);
  }
  return {};
}

journal::NodeStep goal_of(journal::RackStep step, const journal::Rack& rack, const journal::Node& member) {
  if (!node::is_switched(member)) {  // it needs no shelf, and is not turned on
    if (step <= journal::PLANNED) return std::max(member.step(), journal::CREDENTIALED);
    return step >= journal::RACK_PRODUCTION ? journal::PRODUCTION : std::max(member.step(), journal::READY);
  }
  const bool shelf = member.spec().kind() == journal::POWER_SHELF;
  if (step <= journal::PLANNED) return shelf ? journal::CREDENTIALED : journal::DECLARED;
  if (shelf) return step >= journal::RACK_PRODUCTION ? journal::PRODUCTION : journal::READY;
  if (step <= journal::INGESTED) return journal::CREDENTIALED;
  if (step <= journal::POWERED) return journal::CONFIGURED;
  if (step <= journal::NODE_VALIDATED) return journal::VALIDATED;
  if (member.spec().kind() == journal::COMPUTE_TRAY && rack.suite().verdict() == journal::SuiteResult::PASS &&
      !BUSBAR_MUTANT(member_outside_the_run_admitted)) {
    const auto& ran = rack.suite().members();
    if (std::find(ran.begin(), ran.end(), member.name()) == ran.end()) return journal::VALIDATED;
  }
  return step >= journal::RACK_PRODUCTION ? journal::PRODUCTION : journal::READY;
}

std::optional<refusal> over_budget(const journal::RackSpec& spec, const member_map& members,
                                   const std::set<std::string>& promised, const journal::Node& next) {
  const auto peak_kw = [](const journal::Node& node) {
    return node.spec().kind() == journal::COMPUTE_TRAY ? compute_tray_peak_kw : switch_tray_peak_kw;
  };
  const auto may_draw = [](const journal::Node& node) {
    const auto seen = node.power().observed();
    return node.power().wanted() == journal::POWER_ON || seen == journal::POWER_ON ||
           seen == journal::POWERING_ON;
  };
  double drawn_kw = peak_kw(next), given_kw = 0;
  for (const auto& [name, node] : members) {
    if (node->spec().kind() == journal::POWER_SHELF) {
      if (node->power().observed() == journal::POWER_ON) {
        given_kw += spec.sku().power_shelf().psus() * spec.sku().power_shelf().psu_watts() / 1000.0;
      }
    } else if (is_tray(*node) && name != next.name() && (may_draw(*node) || promised.contains(name))) {
      drawn_kw += peak_kw(*node);
    }
  }
  const double limit_kw = spec.manifest().power().rack_limit_kw();
  if (limit_kw > 0 && drawn_kw > limit_kw) {
    return refusal{
        fault::POWER_OVER_BUDGET,
        fmt::format("{:.1f} kW with this tray, the rack's limit is {:.1f} kW", drawn_kw, limit_kw)};
  }
  if (drawn_kw > given_kw) {
    return refusal{
        fault::POWER_OVER_BUDGET,
        fmt::format("{:.1f} kW with this tray, the shelves that are on give {:.1f} kW", drawn_kw, given_kw)};
  }
  return std::nullopt;
}

namespace {

std::optional<refusal> gpu_side_not_proven(const journal::RackSpec& spec, const std::string& name,
                                           const devices::nvlink_facts& facts, std::uint64_t& links) {
  const journal::PartSpec& gpus = spec.sku().compute_tray().gpus();
  if (facts.links_up.size() != gpus.count()) {
    return refusal{fault::NVLINK_LINK_COUNT, fmt::format("{} shows links of {} GPUs, the SKU has {}", name,
                                                         facts.links_up.size(), gpus.count())};
  }
  for (const auto& [gpu, up] : facts.links_up) {
    if (up != gpus.nvlinks()) {
      return refusal{fault::NVLINK_LINK_COUNT,
                     fmt::format("{} {}: {} links up, the SKU has {}", name, gpu, up, gpus.nvlinks())};
    }
    links += up;
  }
  return std::nullopt;
}

}  // namespace

std::optional<refusal> fabric_not_proven(const journal::RackSpec& spec, const member_map& members,
                                         const std::map<std::string, devices::nvlink_facts>& read) {
  std::set<std::string> primaries, cliques, partitions;
  std::uint64_t gpu_links = 0, switch_ports = 0;
  for (const auto& [name, node] : members) {
    if (!is_tray(*node) || is_failed(*node)) continue;
    const auto found = read.find(name);
    if (found == read.end() || !found->second.complete) {
      return refusal{fault::NVLINK_LINK_COUNT, fmt::format("the NVLinks of {} were not read", name)};
    }
    const devices::nvlink_facts& facts = found->second;
    if (!facts.clique_id.has_value())
      return refusal{fault::NVLINK_PARTITION, fmt::format("{} shows no clique id", name)};
    cliques.insert(*facts.clique_id);
    if (facts.partition.has_value()) partitions.insert(*facts.partition);
    if (node->spec().kind() == journal::COMPUTE_TRAY) {
      if (auto problem = gpu_side_not_proven(spec, name, facts, gpu_links)) return problem;
      continue;
    }
    if (!facts.fabric_primary.has_value())
      return refusal{fault::NVLINK_PRIMARY, fmt::format("{} does not say whether it is primary", name)};
    if (*facts.fabric_primary) primaries.insert(name);
    for (const auto& [asic, up] : facts.links_up) switch_ports += up;
  }
  if (primaries.size() != 1) {
    return refusal{fault::NVLINK_PRIMARY,
                   fmt::format("{} fabric primaries, there must be one", primaries.size())};
  }
  if (cliques.size() != 1 || partitions.size() > 1) {
    return refusal{fault::NVLINK_PARTITION, fmt::format("{} clique ids and {} partitions, there must be one",
                                                        cliques.size(), partitions.size())};
  }
  // The host of a tray that failed may be on, with links that count on the switch side alone.
  const journal::PartSpec& gpus = spec.sku().compute_tray().gpus();
  const std::uint64_t failed =
      of_kind(members, journal::COMPUTE_TRAY).size() - count_not_failed(members, journal::COMPUTE_TRAY);
  const std::uint64_t most = gpu_links + failed * gpus.count() * gpus.nvlinks();
  if (switch_ports < gpu_links || switch_ports > most) {
    return refusal{
        fault::NVLINK_LINK_COUNT,
        fmt::format("{} links up on the GPU side, {} ports up on the switch side", gpu_links, switch_ports)};
  }
  return std::nullopt;
}

}  // namespace busbar::rack
