#include "daemon/sim/tray.hpp"

#include <algorithm>
#include <utility>

#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

constexpr double dry_volts = 1.733;
constexpr double wet_volts = 1.21;
constexpr double volts_deviation = 0.002;

const char* power_word(host_phase phase) {
  switch (phase) {
    case host_phase::off:
      return "Off";
    case host_phase::starting:
      return "PoweringOn";
    case host_phase::booting:
      return "On";
    case host_phase::running:
      return "On";
    case host_phase::stopping:
      return "PoweringOff";
  }
  return "Off";
}

const char* progress_word(host_phase phase) {
  switch (phase) {
    case host_phase::off:
      return "None";
    case host_phase::starting:
      return "PrimaryProcessorInitializationStarted";
    case host_phase::booting:
      return "OSBootStarted";
    case host_phase::running:
      return "OSRunning";
    case host_phase::stopping:
      return "None";
  }
  return "None";
}

bool is_off(host_phase phase) {
  return phase == host_phase::off;
}

// JSON as it is; a text that is none is that word.
json given(const std::string& text, const char* otherwise) {
  json value = json::parse(text.empty() ? std::string(otherwise) : text, nullptr, false);
  return value.is_discarded() ? json(text.empty() ? std::string(otherwise) : text) : value;
}

// c: Chassis_0_LeakDetector_0_ColdPlate -> 0_ColdPlate; s: leakage1 as it is.
std::string short_name(const std::string& id) {
  static constexpr std::string_view prefix = "Chassis_0_LeakDetector_";
  return id.starts_with(prefix) ? id.substr(prefix.size()) : id;
}

}  // namespace

tray::tray(device_identity identity, environment& around, std::shared_ptr<const resource_tree> tree,
           bool starts_old, const std::string& factory_password, std::vector<std::string> detectors,
           std::string system_path, std::string detectors_path)
    : device(std::move(identity), around, std::move(tree), starts_old, factory_password),
      detectors_(std::move(detectors)),
      system_path_(std::move(system_path)),
      detectors_path_(std::move(detectors_path)) {
  for (const std::string& each : detectors_) {
    reactions_[each] = "None";
  }
}

bool tray::wet(std::string_view detector, instant now) const {
  const fault* const burst = find_fault(fault_kind::burst, detector, detectors_.front(), now);
  return find_fault(fault_kind::leak, detector, detectors_.front(), now) != nullptr ||
         (burst != nullptr && now >= burst->from + wetting_delay);
}

// The detector's own word; a detector_fault contradicts its voltage and says so by State Degraded.
std::string tray::detector_word(std::string_view detector, instant now) const {
  return wet(detector, now) ||
                 find_fault(fault_kind::detector_fault, detector, detectors_.front(), now) != nullptr
             ? "Critical"
             : "OK";
}

json tray::value(const value_name& name, instant now) const {
  const std::string_view first = name.arguments.empty() ? std::string_view() : name.arguments.front();
  if (name.name == "power_state") {
    return power_word(phase_);
  }
  if (name.name == "boot_progress") {
    return progress_word(phase_);
  }
  if (name.name == "boot_progress_time" || name.name == "last_reset") {
    return around().wall(phase_since_);
  }
  if (name.name == "reset_types") {
    return reset_types(now);
  }
  if (name.name == "detector_state") {
    const fault* const said = find_fault(fault_kind::detector_word, first, detectors_.front(), now);
    return said == nullptr ? json(detector_word(first, now)) : given(said->value, "Critical");
  }
  if (name.name == "detector_health") {
    return detector_word(first, now);
  }
  if (name.name == "detector_status") {
    if (const fault* const shown = find_fault(fault_kind::detector_state, first, detectors_.front(), now)) {
      return shown->value.empty() ? "Absent" : shown->value;
    }
    const bool broken = find_fault(fault_kind::detector_fault, first, detectors_.front(), now) != nullptr;
    return broken ? "Degraded" : "Enabled";
  }
  if (name.name == "volts") {
    if (const fault* const shown = find_fault(fault_kind::detector_volts, first, detectors_.front(), now)) {
      return shown->value.empty() ? json(shown->severity) : given(shown->value, "");
    }
    const fault* const leak = find_fault(fault_kind::leak, first, detectors_.front(), now);
    const double wet_shows = leak != nullptr ? leak->severity : wet_volts;
    return noisy(wet(first, now) ? wet_shows : dry_volts, volts_deviation, first, now);
  }
  if (name.name == "reaction") {
    const auto found = reactions_.find(first);
    return found == reactions_.end() ? json(nullptr) : json(found->second);
  }
  if (name.name == "leak_health") {
    return std::any_of(detectors_.begin(), detectors_.end(),
                       [this, now](const std::string& each) { return wet(each, now); })
               ? "Critical"
               : "OK";
  }
  if (faulty(fault_kind::sensor, now) && (name.name == "inlet" || name.name == "outlet")) {
    return nullptr;
  }
  if (name.name == "inlet") {
    return noisy(around().inlet_c(*this), 0.05, "inlet", now);
  }
  if (name.name == "outlet") {
    return noisy(around().outlet_c(*this), 0.05, "outlet", now);
  }
  if (name.name == "tray_power") {
    return noisy(1000.0 * power_kw(), 2.0, "power", now);
  }
  return device::value(name, now);
}

std::vector<std::string> tray::reset_types(instant now) const {
  std::vector<std::string> types = {"On",           "ForceOff",  "GracefulShutdown", "GracefulRestart",
                                    "ForceRestart", "PowerCycle"};
  if (const fault* const missing = find_fault(fault_kind::reset_not_offered, now)) {
    std::erase(types, missing->value.empty() ? "On" : missing->value);
  }
  return types;
}

device::action_reply tray::post(const std::string& path, const json& body, instant now, request_note& note) {
  if (path != system_path_ + "/Actions/ComputerSystem.Reset") {
    return std::nullopt;
  }
  const auto type = body.find("ResetType");
  note.act = "reset";
  note.argument = type != body.end() && type->is_string() ? type->get<std::string>() : "";
  return reset(note.argument, now);
}

http_reply tray::reset(const std::string& type, instant now) {
  const auto offered = reset_types(now);
  if (std::find(offered.begin(), offered.end(), type) == offered.end()) {
    return error_reply(
        400, "ActionParameterNotSupported",
        "The parameter ResetType with the value '" + type + "' for the action is not supported.");
  }
  const bool off = is_off(phase_) || phase_ == host_phase::stopping;
  const bool wants_off = type == "ForceOff" || type == "GracefulShutdown";
  if ((type == "On" && !off) || (wants_off && is_off(phase_))) {
    return faulty(fault_kind::already_400, now)
               ? error_reply(400, "PropertyValueConflict",
                             "The host is in the requested power state already.")
               : empty_reply(204);
  }
  const profile& timings = around().timings();
  if (type == "On") {
    start(now, timings.host_on);
  } else if (type == "ForceOff") {
    const fault* const ignored = find_fault(fault_kind::off_ignored, now);
    const instant late =
        ignored == nullptr ? instant{0}
        : ignored->severity > 0
            ? std::chrono::duration_cast<instant>(std::chrono::duration<double>(ignored->severity))
            : timings.off_ignored;
    stop(now, timings.host_off + late, false);
  } else if (type == "GracefulShutdown") {
    stop(now, timings.graceful_off, false);
  } else if (off) {
    start(now, timings.host_on);  // a restart of a host that is off turns it on
  } else {
    stop(now, type == "GracefulRestart" ? timings.graceful_off : timings.host_off, true);
  }
  return empty_reply(204);
}

void tray::start(instant now, instant delay) {
  const std::uint64_t generation = ++generation_;
  phase_ = host_phase::starting;
  phase_since_ = now;
  around().power_changed(*this, now);
  around().schedule().at(now + delay, [this, generation](instant when) {
    if (generation != generation_) {
      return;
    }
    firmware().activate("host_restart");
    boot_uri_ = host_starts();
    phase_ = host_phase::booting;
    phase_since_ = when;
    around().power_changed(*this, when);
    const instant boot = identity().kind == device_kind::switch_tray ? around().timings().switch_boot
                                                                     : around().timings().host_boot;
    around().schedule().at(when + boot, [this, generation](instant booted) {
      if (generation != generation_) {
        return;
      }
      phase_ = host_phase::running;
      phase_since_ = booted;
      ++boots_;
      around().power_changed(*this, booted);
      around().event(*this, "ResourceEvent.1.4.ResourceStateChanged", "The host is running.", system_path_);
      around().host_booted(*this, boot_uri_, booted);
    });
  });
}

void tray::stop(instant now, instant delay, bool then_start) {
  const std::uint64_t generation = ++generation_;
  const bool shows = !faulty(fault_kind::off_ignored, now);
  if (shows) {
    phase_ = host_phase::stopping;
    phase_since_ = now;
    around().host_off(*this, now);
  }
  around().schedule().at(now + delay, [this, generation, then_start, shows](instant when) {
    if (generation != generation_) {
      return;
    }
    phase_ = host_phase::off;
    phase_since_ = when;
    around().power_changed(*this, when);
    if (!shows) {
      around().host_off(*this, when);
    }
    around().event(*this, "ResourceEvent.1.4.ResourceStateChanged", "The host is off.", system_path_);
    if (then_start) {
      start(when, around().timings().host_on);
    }
  });
}

void tray::trip(instant now, const std::string& why) {
  ++generation_;
  phase_ = host_phase::off;
  phase_since_ = now;
  around().power_changed(*this, now);
  around().host_off(*this, now);
  around().event(*this, "Environmental.1.0.TemperatureAboveUpperFatalThreshold", why, system_path_);
}

void tray::standby_lost(instant now) {
  ++generation_;
  const bool was_powered = host_powered();
  phase_ = host_phase::off;
  phase_since_ = now;
  if (was_powered) {
    around().host_off(*this, now);
  }
}

device::action_reply tray::patch(const std::string& path, const json& body, instant now, request_note& note) {
  if (!path.starts_with(detectors_path_ + "/") || tree().find(path) == nullptr) {
    return std::nullopt;
  }
  const auto reaction = reactions_.find(short_name(path.substr(detectors_path_.size() + 1)));
  const auto wanted = body.find("CriticalReactionType");
  if (reaction == reactions_.end() || wanted == body.end() || body.size() != 1) {
    return error_reply(400, "PropertyNotWritable", "Only CriticalReactionType of a detector is writable.");
  }
  if (faulty(fault_kind::config_read_only, now)) {
    return error_reply(400, "PropertyNotWritable",
                       "The property CriticalReactionType is a read only property.");
  }
  if (*wanted != "None" && *wanted != "ForceOff" && *wanted != "GracefulShutdown") {
    return error_reply(400, "PropertyValueNotInList",
                       "The value for CriticalReactionType is not in the list.");
  }
  note.act = "leak_reaction";
  reaction->second = wanted->get<std::string>();
  react_to_leaks(now);
  return empty_reply(204);
}

void tray::faults_changed(instant now) {
  device::faults_changed(now);
  react_to_leaks(now);
}

// The BMC's own reaction, with or without anybody watching.
void tray::react_to_leaks(instant now) {
  for (const std::string& each : detectors_) {
    if (!wet(each, now)) {
      announced_wet_.erase(each);
      continue;
    }
    if (!reachable()) {
      continue;
    }
    if (announced_wet_.insert(each).second) {
      around().event(*this, "Environmental.1.0.LeakDetectedCritical", "Leak at " + each + ".",
                     detectors_path_ + "/" + each);
    }
    const std::string& reaction = reactions_[each];
    if (reaction != "None" && host_powered() && phase_ != host_phase::stopping) {
      stop(now, reaction == "ForceOff" ? around().timings().host_off : around().timings().graceful_off,
           false);
    }
  }
}

json tray::truth(instant now) const {
  json result = device::truth(now);
  json leaks = json::object();
  for (const std::string& each : detectors_) {
    leaks[each] = wet(each, now) ? "wet" : "dry";
  }
  result["power"] = power_word(phase_);
  result["host"] = progress_word(phase_);
  result["boots"] = boots_;
  result["power_kw"] = power_kw();
  result["outlet_c"] = around().outlet_c(*this);
  result["detectors"] = leaks;
  result["leak_reactions"] = reactions_;
  return result;
}

json tray::save() const {
  json saved = device::save();
  saved["reactions"] = reactions_;
  saved["host_on"] = host_powered();
  saved["boot_uri"] = boot_uri_;
  return saved;
}

void tray::load(const json& saved) {
  device::load(saved);
  for (const auto& [detector, reaction] : saved.at("reactions").items()) {
    reactions_[detector] = reaction.get<std::string>();
  }
  if (saved.at("host_on") == true) {
    phase_ = host_phase::running;
    boot_uri_ = saved.at("boot_uri").get<std::string>();
  }
}

}  // namespace busbar::sim
