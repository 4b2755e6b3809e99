// A rack's trips on a virtual clock: three compute trays, a switch tray, two shelves, two valves, a CDU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/interlock/trip_logic.hpp"
#include "tests/unit/interlock/records.hpp"

namespace busbar::interlock::test {

inline ArmingRecord trip_record(unsigned stroke_ms = 5'000, int confirm_ms = 0) {
  ArmingRecord record = make_record(1);
  const auto add = [&record](const std::string& name, const char* kind,
                             const std::vector<std::string>& detectors) {
    ArmedDevice device = make_device(name, detectors);
    device.set_kind(kind);
    *record.add_devices() = device;
  };
  add("r01/s01", "switch_tray", {"leakage1"});
  add("r01/p01", "power_shelf", {});
  add("r01/p02", "power_shelf", {});
  add("r01/m01", "rack_controller", {});
  add("cdu01", "cdu", {"r01_rope", "r01_pan"});
  for (const char* name : {"supply", "return"}) {
    Valve* valve = record.mutable_devices(6)->add_valves();
    valve->set_name(name);
    valve->set_stroke_ms(stroke_ms);
  }
  record.add_order("r01/s01");
  record.mutable_devices(7)->set_connector("r01");
  record.mutable_coolant()->set_flow_min_lpm(50);
  record.mutable_coolant()->set_supply_max_c(50);
  record.mutable_coolant()->set_pressure_max_kpa(500);
  for (ArmedDevice& device : *record.mutable_devices()) {
    for (const std::string& detector : device.detectors()) {
      if (confirm_ms == 0) break;
      Confirm* row = device.add_confirm();
      row->set_detector(detector);
      row->set_confirm_ms(confirm_ms);
    }
  }
  return record;
}

class trip_rig : public ::testing::Test {
 protected:
  trip_rig() { restart_rig(); }

  void restart_rig() {
    of_ = {};
    sent_.clear();
    lines_.clear();
    alarms_.clear();
    asked_.clear();
    reads_.clear();
    feed(plan_changed{plan_of(trip_record())});
    for (const target_state& each : of_.targets) feed(reach_changed{each.what.device, true});
  }
  void use_stroke_ms(unsigned stroke_ms) { feed(plan_changed{plan_of(trip_record(stroke_ms))}); }
  void use_confirm_ms(int confirm_ms) { feed(plan_changed{plan_of(trip_record(5'000, confirm_ms))}); }

  void feed(const trip_event& what) {
    bool commands_over = false;
    for (const trip_effect& each : step(of_, what, now_ns_)) {
      if (const auto* order = std::get_if<command>(&each)) {
        EXPECT_FALSE(commands_over) << "a command stands behind something else";
        sent_.push_back(*order);
        continue;
      }
      commands_over = true;
      if (const auto* line = std::get_if<note>(&each)) {
        lines_.push_back(line->line);
        lines_.back().set_wall_time_ns(wall_ns_);
      }
      if (const auto* text = std::get_if<tell>(&each); text != nullptr && text->alarm)
        alarms_.push_back(text->text);
      if (const auto* again = std::get_if<read_detectors>(&each)) asked_.push_back(again->device);
      if (const auto* back = std::get_if<read_back>(&each)) reads_.push_back(back->device);
    }
  }
  // Ticks as the program does: at each time that step() asked for.
  void run_ms(std::int64_t ms) {
    const std::int64_t end = now_ns_ + ms * ms_in_ns;
    for (auto due = next_due_ns(of_); due && *due <= end; due = next_due_ns(of_)) {
      now_ns_ = std::max(now_ns_, *due);
      feed(tick{});
    }
    now_ns_ = end;
    feed(tick{});
  }

  void read(const std::string& device, const std::string& detector, DetectorReading::Verdict seen) {
    feed(sensors_read{device, {{detector, {seen, "as told"}}}});
  }
  void wet(const std::string& device, const std::string& detector = "0_Manifold") {
    read(device, detector, DetectorReading::LEAK);
  }
  void off(const std::string& device) { feed(power_read{device, power_seen::off}); }
  void closed(const std::string& key) { feed(valve_read{key, 0.5}); }
  void coolant(const coolant_read& values) { feed(values); }

  std::vector<std::string> commanded() const {
    std::vector<std::string> keys;
    for (const command& each : sent_) keys.push_back(each.key);
    return keys;
  }
  int count(const std::string& key) const {
    return static_cast<int>(
        std::count_if(sent_.begin(), sent_.end(), [&key](const command& each) { return each.key == key; }));
  }
  int reads_of(const std::string& device) const {
    return static_cast<int>(std::count(reads_.begin(), reads_.end(), device));
  }
  std::vector<Latch::Kind> kinds() const {
    std::vector<Latch::Kind> found;
    for (const Latch& each : lines_) found.push_back(each.kind());
    return found;
  }

  trips of_;
  std::int64_t now_ns_ = 1'000 * s_in_ns;
  std::int64_t wall_ns_ = 1'700'000'000 * s_in_ns;
  std::vector<command> sent_;
  std::vector<Latch> lines_;
  std::vector<std::string> alarms_;
  std::vector<std::string> asked_;
  std::vector<std::string> reads_;
};

}  // namespace busbar::interlock::test
