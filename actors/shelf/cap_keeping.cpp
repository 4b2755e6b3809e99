#include "actors/shelf/cap_keeping.hpp"

#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "actors/core/errors.hpp"

namespace busbar::shelf {
namespace {

using core::fault;
using core::make_fault;

constexpr std::int64_t unread_after_ns = 5'000'000'000;   // a shelf that was read and is no more
constexpr std::int64_t prove_within_ns = 30'000'000'000;  // an operator's limit is read back
constexpr double dead_share = 0.02;                       // of a shelf's rating: it delivers nothing
constexpr double loaded_share = 0.05;                     // the others' mean above this: it ought to deliver
constexpr std::int64_t longest_lease_s = 7 * 24 * 3600;

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stopped == text.data() + text.size() && std::isfinite(value)
             ? std::optional(value)
             : std::nullopt;
}

std::optional<double> number_in(const core::command& what, const std::string& key) {
  const auto found = what.arguments.find(key);
  return found == what.arguments.end() ? std::nullopt : number(found->second);
}

// The lowest of what is asked for this tray; nothing: nobody asks.
std::optional<double> asked_for(const caps_keeper& kept, const std::string& tray) {
  std::optional<double> least;
  for (const auto& [target, cap] : kept.asked) {
    if (target != tray && target != kept.setting.rack) continue;
    least = std::min(least.value_or(cap.gpu_w), cap.gpu_w);
  }
  return least;
}

class caps {
 public:
  caps(caps_keeper& kept, core::instant now, caps_step& out) : kept_(kept), now_(now), out_(out) {}

  void on(const sight_taken& what);
  void on(const cap_commanded& what);

 private:
  void follow_trays(const cap_sight& seen);
  void lapse();
  void take_limits(const cap_sight& seen);
  void take_supply(const cap_sight& seen);
  void take_power(const cap_sight& seen);
  void feed(const cap_event& event);
  void judge(const std::string& type, bool holds, const std::string& message);
  void judge_capped();
  void settle(const cap_sight& seen);
  void end(operator_cap& cap, const std::string& target, const std::string& state, std::string_view code,
           const std::string& message);
  journal::Event& tell(std::string_view type, const std::string& message);

  caps_keeper& kept_;
  const core::instant now_;
  caps_step& out_;
};

journal::Event& caps::tell(std::string_view type, const std::string& message) {
  journal::Event& row = out_.events.emplace_back();
  row.set_object(kept_.setting.rack);
  row.set_kind("rack");
  row.set_type(std::string(type));
  row.set_severity("info");
  row.set_message(message);
  row.mutable_principal()->set_name("daemon");
  row.mutable_principal()->set_role("system");
  out_.durable = true;
  return row;
}

void caps::judge(const std::string& type, bool holds, const std::string& message) {
  const std::string now_is = holds ? message : std::string();
  const auto [shown, first] = kept_.shown.try_emplace(type);  // first: a life before may have shown it
  if (!first && shown->second == now_is) return;
  shown->second = now_is;
  out_.effects.emplace_back(condition_judged{type, holds, message});
}

void caps::feed(const cap_event& event) {
  for (const cap_effect& each : step(kept_.state, event, now_.monotonic_ns)) {
    if (const auto* set = std::get_if<set_cap>(&each)) {
      kept_.told_wall_ns[set->gpu] = now_.wall_ns;
      out_.effects.emplace_back(limit_tray{set->gpu, std::floor(set->watts / kept_.setting.gpus_per_tray)});
    }
    if (const auto* told = std::get_if<condition_changed>(&each)) {
      if (told->which == cap_condition::caps_not_enough)
        judge("POWER_CAP_SHORTFALL", told->holds,
              fmt::format("{:.0f} W above the limit at the lowest caps", told->shortfall_w));
    }
  }
}

// Trays that are on are the entries; their most is the device's, or what an operator asks for.
void caps::follow_trays(const cap_sight& seen) {
  std::erase_if(kept_.state.gpus, [&seen](const auto& row) {
    return std::none_of(seen.trays.begin(), seen.trays.end(),
                        [&row](const tray_sight& tray) { return tray.name == row.first; });
  });
  const cap_setting& setting = kept_.setting;
  for (const tray_sight& tray : seen.trays) {
    const auto [place, is_new] = kept_.state.gpus.try_emplace(tray.name);
    gpu_state& entry = place->second;
    const double most = std::clamp(asked_for(kept_, tray.name).value_or(setting.gpu_max_w), setting.gpu_min_w,
                                   setting.gpu_max_w);
    const double max_w = most * setting.gpus_per_tray;
    if (is_new) {
      entry.limits.name = tray.name;
      const auto priority = setting.priority.find(tray.name);
      entry.limits.priority = priority == setting.priority.end() ? 0 : priority->second;
      entry.limits.min_w = setting.gpu_min_w * setting.gpus_per_tray;
      // What it is told already, by the baseline or before a restart, is no wish to raise it.
      entry.limits.max_w = max_w;
      const double read_w = tray.limit_w.value_or(setting.gpu_max_w) * setting.gpus_per_tray;
      entry.wanted_w = std::clamp(read_w, entry.limits.min_w, max_w);
      if (read_w > max_w) feed(cap_read{tray.name, read_w});
    } else if (entry.limits.max_w != max_w) {
      const bool was_free = entry.wanted_w >= entry.limits.max_w;
      entry.limits.max_w = max_w;
      if (entry.wanted_w > max_w || (was_free && !kept_.state.capped)) {
        entry.wanted_w = max_w;
        entry.asked_at_ns = now_.monotonic_ns;
        kept_.told_wall_ns[tray.name] = now_.wall_ns;
        out_.effects.emplace_back(limit_tray{tray.name, most});
      }
    }
  }
}

void caps::lapse() {
  for (auto it = kept_.asked.begin(); it != kept_.asked.end();) {
    if (it->second.until_wall_ns > now_.wall_ns) {
      ++it;
      continue;
    }
    end(it->second, it->first, "FAILED", core::name_of(fault::DEADLINE),
        "the limit lapsed before it was read back");
    tell("power_cap_lapsed", fmt::format("the limit of {} on {} is over", it->second.holder, it->first));
    it = kept_.asked.erase(it);
  }
}

void caps::take_limits(const cap_sight& seen) {
  for (const tray_sight& tray : seen.trays) {
    const auto told = kept_.told_wall_ns.find(tray.name);
    const bool after = told == kept_.told_wall_ns.end() || tray.limit_wall_ns > told->second;
    if (!tray.limit_w.has_value())
      feed(cap_read{tray.name, std::nullopt});
    else if (after)
      feed(cap_read{tray.name, *tray.limit_w * kept_.setting.gpus_per_tray});
  }
}

// A shelf counts while it delivers. One that falls silent after it was read counts no more after a while; one
// that was never read in this life counts as its member was read.
void caps::take_supply(const cap_sight& seen) {
  double sum_w = 0;
  int delivering = 0;
  for (const shelf_sight& shelf : seen.shelves) {
    if (!shelf.output_w.has_value()) continue;
    sum_w += *shelf.output_w;
    ++delivering;
  }
  double usable_w = 0;
  std::string lost;
  for (const shelf_sight& shelf : seen.shelves) {
    std::int64_t& unread = kept_.unread_ns[shelf.name];
    if (shelf.output_w.has_value()) {
      kept_.ever_read[shelf.name] = true;
      unread = 0;
    } else if (unread == 0) {
      unread = now_.monotonic_ns;
    }
    if (!shelf.on) continue;
    const bool silent = !shelf.output_w.has_value() && kept_.ever_read[shelf.name] &&
                        now_.monotonic_ns - unread > unread_after_ns;
    const double others_w = delivering > 1 ? (sum_w - shelf.output_w.value_or(0)) / (delivering - 1) : 0;
    const bool dead = shelf.output_w.has_value() && *shelf.output_w < dead_share * kept_.setting.shelf_w &&
                      others_w > loaded_share * kept_.setting.shelf_w;
    if (!silent && !dead) usable_w += kept_.setting.shelf_w;
    if (silent || dead)
      lost += fmt::format("{}{} {}", lost.empty() ? "" : ", ", shelf.name,
                          dead ? "delivers nothing" : "is not read");
  }
  judge("SHELF_LOST", !lost.empty(), lost + fmt::format("; the others give {:.0f} kW", usable_w / 1000));
  feed(supply_changed{usable_w});
}

void caps::take_power(const cap_sight& seen) {
  double rack_w = 0;
  bool all = false;
  std::string silent;
  for (const shelf_sight& shelf : seen.shelves) {
    if (!shelf.on) continue;
    all = true;
    if (shelf.output_w.has_value())
      rack_w += *shelf.output_w;
    else
      silent += (silent.empty() ? "" : ", ") + shelf.name;
  }
  double gpus_w = 0;
  bool gpus_known = true;
  for (const tray_sight& tray : seen.trays) {
    gpus_known = gpus_known && tray.gpus_w.has_value();
    gpus_w += tray.gpus_w.value_or(0);
  }
  // Of half of the shelves no sum is made: too little is as wrong as nothing.
  const bool known = all && silent.empty();
  if (known) {
    feed(rack_measured{rack_w, gpus_known ? std::optional(gpus_w) : std::nullopt});
  } else {
    feed(tick{});
  }
  const bool stale = kept_.state.stale && !seen.trays.empty();
  judge("POWER_MEASUREMENT_STALE", stale, silent.empty() ? "no shelf is read" : "not read: " + silent);
}

void caps::judge_capped() {
  std::size_t limited = 0;
  double least_w = kept_.setting.gpu_max_w;
  for (const auto& [name, tray] : kept_.state.gpus) {
    const double gpu_w = tray.wanted_w / kept_.setting.gpus_per_tray;
    const bool ours = kept_.state.capped || asked_for(kept_, name).has_value();
    if (gpu_w >= kept_.setting.gpu_max_w || !ours) continue;
    ++limited;
    least_w = std::min(least_w, gpu_w);
  }
  std::string who;
  for (const auto& [target, cap] : kept_.asked)
    who += fmt::format("; {} asked for {:g} W on {}: {}", cap.holder, cap.gpu_w, target, cap.reason);
  // The words stay the same while caps only move: readings are not state.
  judge("POWER_CAPPED", limited > 0,
        fmt::format("{}{}",
                    kept_.state.capped ? fmt::format("to hold {:.0f} kW", kept_.state.limit_w() / 1000)
                                       : "for an operator",
                    who));
}

void caps::end(operator_cap& cap, const std::string& target, const std::string& state, std::string_view code,
               const std::string& message) {
  if (cap.operation.empty()) return;
  const std::string operation = std::exchange(cap.operation, {});
  out_.effects.emplace_back(core::component_update{operation, target, state, {}, std::string(code), message});
  out_.effects.emplace_back(core::operation_end{operation, state, std::string(code), message});
}

// An operator's limit is done when every tray it is for reads it, or less.
void caps::settle(const cap_sight& seen) {
  for (auto& [target, cap] : kept_.asked) {
    if (cap.operation.empty()) continue;
    std::string missing;
    for (const tray_sight& tray : seen.trays) {
      if (target != kept_.setting.rack && target != tray.name) continue;
      const auto told = kept_.told_wall_ns.find(tray.name);
      const bool fresh = told == kept_.told_wall_ns.end() || tray.limit_wall_ns > told->second;
      if (fresh && tray.limit_w.has_value() && *tray.limit_w <= cap.gpu_w + 1) continue;
      missing += fmt::format("{}{} reads {}", missing.empty() ? "" : ", ", tray.name,
                             tray.limit_w.has_value() ? fmt::format("{:g} W", *tray.limit_w) : "nothing");
    }
    if (missing.empty()) {
      end(cap, target, "SUCCEEDED", "", fmt::format("read back at {:g} W or less", cap.gpu_w));
      out_.durable = true;
    } else if (now_.monotonic_ns >= cap.deadline_ns) {
      end(cap, target, "FAILED", core::name_of(fault::DEADLINE), missing);
      out_.durable = true;
    }
  }
}

void caps::on(const sight_taken& what) {
  lapse();
  if (!kept_.setting.may_cap()) return;
  follow_trays(what.seen);
  take_limits(what.seen);
  take_power(what.seen);  // first: a rack that is measured is not capped for want of a measurement
  take_supply(what.seen);
  judge_capped();
  settle(what.seen);
}

void caps::on(const cap_commanded& what) {
  const std::string& target = what.what.target;
  const std::optional<double> gpu_w = number_in(what.what, "gpu_watts");
  const std::string& who = what.what.principal.name();
  if (!gpu_w) {
    if (const auto known = kept_.asked.find(target); known != kept_.asked.end())
      end(known->second, target, "CANCELLED", "", "the limit was taken back");
    kept_.asked.erase(target);
    *tell("power_cap_off", fmt::format("{} takes the limit of {} back: {}", who, target, what.what.reason))
         .mutable_principal() = what.what.principal;
    out_.effects.emplace_back(core::component_update{
        what.operation_id, target, "SUCCEEDED", {}, {}, "no operator's limit any more"});
    out_.effects.emplace_back(
        core::operation_end{what.operation_id, "SUCCEEDED", {}, "no operator's limit any more"});
    return;
  }
  operator_cap& cap = kept_.asked[target];
  end(cap, target, "CANCELLED", "", "another limit took its place");
  cap = operator_cap{
      *gpu_w, who, what.what.reason, INT64_MAX, what.operation_id, now_.monotonic_ns + prove_within_ns};
  if (const auto lease_s = number_in(what.what, "lease_s"))
    cap.until_wall_ns = now_.wall_ns + static_cast<std::int64_t>(*lease_s * 1e9);
  *tell("power_cap",
        fmt::format("{} limits the GPUs of {} to {:g} W: {}", who, target, *gpu_w, what.what.reason))
       .mutable_principal() = what.what.principal;
}

}  // namespace

cap_setting setting_of(const journal::RackSpec& spec) {
  const journal::Manifest& manifest = spec.manifest();
  cap_setting made;
  made.rack = manifest.rack();
  made.rack_limit_w = 1000 * manifest.power().rack_limit_kw();
  made.gpu_min_w = manifest.power().gpu_cap_min_w();
  made.gpu_max_w = manifest.power().gpu_cap_max_w();
  made.shelf_w = spec.sku().power_shelf().psus() * spec.sku().power_shelf().psu_watts();
  made.gpus_per_tray = static_cast<int>(spec.sku().compute_tray().gpus().count());
  constexpr double tray_others_w = 900;  // CPUs, NICs, DPU
  constexpr double switch_w = 3000;
  for (const journal::Member& row : manifest.members()) {
    if (row.kind() == journal::COMPUTE_TRAY) made.others_w += tray_others_w;
    if (row.kind() == journal::SWITCH_TRAY) made.others_w += switch_w;
  }
  for (const auto& [slot, priority] : manifest.power().cap_priority())
    made.priority[manifest.rack() + "/" + slot] = priority;
  return made;
}

std::string stored_form(const caps_keeper& kept) {
  std::string text;
  for (const auto& [target, cap] : kept.asked) {
    std::string reason = cap.reason;
    std::replace_if(
        reason.begin(), reason.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
    text += fmt::format("{}\t{:g}\t{}\t{}\t{}\t{}\n", target, cap.gpu_w, cap.until_wall_ns, cap.holder,
                        cap.operation, reason);
  }
  return text;
}

caps_keeper begin_caps_keeping(cap_setting setting, const std::string& stored, core::instant now) {
  caps_keeper kept;
  cap_policy policy;
  policy.rack_limit_w = setting.rack_limit_w;
  policy.others_w = setting.others_w;
  policy.step_w = 10.0 * std::max(1, setting.gpus_per_tray);
  kept.state = begin_caps(policy, setting.rack_limit_w, {});
  kept.setting = std::move(setting);
  for (const absl::string_view line : absl::StrSplit(stored, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(line, '\t');
    if (parts.size() != 6) continue;
    const std::optional<double> gpu_w = number(parts[1]);
    std::int64_t until = 0;
    const auto [end, error] = std::from_chars(parts[2].data(), parts[2].data() + parts[2].size(), until);
    if (!gpu_w || error != std::errc()) continue;
    kept.asked[parts[0]] =
        operator_cap{*gpu_w, parts[3], parts[5], until, parts[4], now.monotonic_ns + prove_within_ns};
  }
  return kept;
}

absl::Status refuse(const caps_keeper& kept, const core::command& what, core::instant) {
  const cap_setting& setting = kept.setting;
  if (what.verb != "power_cap")
    return absl::InvalidArgumentError(fmt::format("caps do not know {}", what.verb));
  if (what.reason.empty() && !what.validate_only)
    return absl::InvalidArgumentError(fmt::format("{} of {} needs a reason", what.verb, what.target));
  if (!setting.may_cap()) {
    return absl::FailedPreconditionError(fmt::format(
        "rack {} has no caps: its manifest gives no power.gpu_cap_min_w and gpu_cap_max_w", setting.rack));
  }
  const auto lease_s = number_in(what, "lease_s");
  if (lease_s && (*lease_s <= 0 || *lease_s > static_cast<double>(longest_lease_s)))
    return absl::InvalidArgumentError("a lease is more than 0 and at most 7 days");
  if (!what.arguments.contains("gpu_watts")) {
    if (kept.asked.contains(what.target)) return absl::OkStatus();
    return absl::FailedPreconditionError(fmt::format("no operator's limit stands on {}", what.target));
  }
  const auto gpu_w = number_in(what, "gpu_watts");
  if (!gpu_w || *gpu_w < setting.gpu_min_w || *gpu_w > setting.gpu_max_w) {
    return make_fault(
        fault::SETPOINT_LIMIT,
        fmt::format("{} W is outside what the manifest allows a GPU: {:g} to {:g} W; ask within them",
                    what.arguments.at("gpu_watts"), setting.gpu_min_w, setting.gpu_max_w));
  }
  return absl::OkStatus();
}

std::string would_do(const caps_keeper& kept, const core::command& what) {
  const auto gpu_w = number_in(what, "gpu_watts");
  const std::size_t trays =
      what.target == kept.setting.rack ? kept.state.gpus.size() : kept.state.gpus.count(what.target);
  if (!gpu_w)
    return fmt::format(
        "valid; nothing was done. It would take the operator's limit of {} back: {} trays that are on",
        what.target, trays);
  return fmt::format("valid; nothing was done. It would limit {} GPUs in {} trays that are on to {:g} W each",
                     trays * static_cast<std::size_t>(kept.setting.gpus_per_tray), trays, *gpu_w);
}

caps_step step(caps_keeper& kept, const caps_event& event, core::instant now) {
  caps_step out;
  caps next(kept, now, out);
  std::visit([&next](const auto& each) { next.on(each); }, event);
  return out;
}

}  // namespace busbar::shelf
