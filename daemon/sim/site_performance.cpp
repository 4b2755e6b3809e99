// What the simulated GPUs measure when a suite runs on them.
#include <algorithm>
#include <utility>

#include "daemon/sim/site_model.hpp"

namespace busbar::sim {

namespace {

constexpr instant pattern_step = std::chrono::milliseconds(250);

struct model_row {
  std::string_view probe;
  std::string_view metric;
  double value;   // of a healthy GPU
  double spread;  // standard deviation between GPUs, as a share
  bool slowed;    // slow_gpu lowers it
  std::string_view unit;
};

// Limits of the delivery note are these x 0.92.
constexpr model_row model[] = {
    {"memory_copy", "hbm_copy", 16304, 0.006, true, "GB/s"},
    {"host_device", "h2d", 196, 0.006, true, "GB/s"},
    {"matrix_burn", "tflops", 2750, 0.008, true, "TFLOP/s"},
    {"training", "loss_at_200", 1.92, 0.0, false, "1"},
    {"training", "steps_per_s", 41, 0.008, true, "1/s"},
    {"diagnostics", "ecc_uncorrected", 0, 0.0, false, "count"},
    {"collective", "busbw", 1740, 0.004, true, "GB/s"},
    {"collective", "wrong", 0, 0.0, false, "count"},
};

// What a GPU that computes rightly answers: whole-number arithmetic gives every engine the same text.
constexpr std::pair<std::string_view, std::string_view> texts[] = {{"result_hash", "c6330a1df9039cf7"},
                                                                   {"loss_curve", "72a2778065c2701c"}};

}  // namespace

absl::StatusOr<std::size_t> site_model::set_pattern(std::string_view pattern, std::string_view target,
                                                    instant now) {
  advance(now);
  const auto wanted = physics::load_pattern_named(pattern);
  if (!wanted && pattern != "none") {
    std::string known = "none";
    for (const physics::load_pattern each : physics::load_patterns()) {
      known += ", " + std::string(physics::name_of(each));
    }
    return absl::InvalidArgumentError("there is no load pattern " + std::string(pattern) + "; there are " +
                                      known);
  }
  std::size_t trays = 0;
  for (const rack_parts& rack : racks_) {
    for (compute_tray* const each : rack.compute) {
      const std::string& member = each->identity().member;
      if (member != target && member.substr(0, member.find('/')) != target && target != "all") {
        continue;
      }
      ++trays;
      patterns_.erase(each);
      each->set_load(0);
      if (wanted) {
        patterns_[each] = {*wanted, now};
      }
    }
  }
  if (trays == 0) {
    return absl::NotFoundError("there is no " + std::string(target) + "; a load goes on rNN, rNN/cNN or all");
  }
  refresh_power();
  if (!playing_ && !patterns_.empty()) {
    playing_ = true;
    play_patterns(now);
  }
  return trays;
}

// One seed a rack: what a job does, all its trays do at the same moment.
void site_model::play_patterns(instant now) {
  if (patterns_.empty()) {
    playing_ = false;
    return;
  }
  for (const auto& [host, what] : patterns_) {
    const double at_s = std::chrono::duration<double>(now - what.since).count();
    const std::uint64_t seed = options_.seed * 1000 + static_cast<std::uint64_t>(host->identity().rack);
    host->set_load(physics::load_share(what.pattern, at_s, seed));
  }
  refresh_power();
  agenda_.at(now + pattern_step, [this](instant when) { play_patterns(when); });
}

performance site_model::measure(const std::string& member, int gpu, std::string_view probe,
                                std::string_view metric, instant now) {
  advance(now);
  performance result;
  const compute_tray* const host = find_compute(member);
  if (host == nullptr || !host->host_running() || gpu < 0 || gpu >= sku_.gpus) {
    return result;
  }
  const std::string part = "gpu" + std::to_string(gpu);
  if (metric == "gpu_temperature") {
    result.value = gpu_c(*host, gpu);
    result.unit = "Cel";
    return result;
  }
  if (metric == "pcie_width") {
    const fault* const narrow = faults_.find_part(fault_kind::pcie_degraded, member, part, "nic0", now);
    result.value = narrow != nullptr ? narrow->severity : static_cast<double>(sku_.pcie_width);
    result.unit = "lanes";
    return result;
  }
  for (const auto& [name, text] : texts) {
    if (name == metric) {
      result.text = text;
      return result;
    }
  }
  if (metric == "ranks") {
    result.value = sku_.gpus * sku_.compute;
    result.unit = "count";
    return result;
  }
  for (const model_row& row : model) {
    if (row.metric != metric || row.probe != probe) {
      continue;
    }
    const std::uint64_t key = physics::hash_of(metric, physics::hash_of(member + part, options_.seed));
    double value = row.value * (1.0 + row.spread * std::clamp(physics::gaussian(key), -3.0, 3.0));
    const fault* const slow = faults_.find_part(fault_kind::slow_gpu, member, part, "gpu0", now);
    if (slow != nullptr && row.slowed) {
      value *= slow->severity;
    }
    result.value = value;
    result.unit = row.unit;
    return result;
  }
  return result;
}

}  // namespace busbar::sim
