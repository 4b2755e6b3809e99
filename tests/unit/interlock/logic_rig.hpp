// The interlock's decisions with the disk they are written to, on a virtual clock.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "daemon/interlock/interlock_logic.hpp"
#include "tests/unit/interlock/records.hpp"

namespace busbar::interlock::test {

template <class T>
std::vector<T> all_of(const std::vector<effect>& effects) {
  std::vector<T> found;
  for (const effect& each : effects) {
    if (const T* one = std::get_if<T>(&each)) found.push_back(*one);
  }
  return found;
}

inline std::map<std::string, reading> all(verdict seen) {
  std::map<std::string, reading> readings;
  for (const std::string& name : four_detectors) readings[name] = {seen, "as told"};
  return readings;
}

inline constexpr std::int64_t bypass_longest_s = 8 * 3600;

// One interlock and the disk it writes to.
class bench : public ::testing::Test {
 protected:
  bench() { interlock_.rack = "r01"; }

  // Runs step() and answers the disk's effects at once, as the program does.
  std::vector<effect> feed(const event& what) {
    std::vector<effect> effects = step(interlock_, what, now_ms_);
    std::vector<effect> more;
    for (const effect& each : effects) {
      if (const auto* store = std::get_if<store_record>(&each)) {
        more = feed(record_stored{store->request, store->record, disk_});
      }
      if (const auto* write = std::get_if<write_latch>(&each)) {
        if (disk_.ok()) {
          file_.push_back(write->latch);
          file_.back().set_durable(true);
        }
        more = feed(latch_written{write->latch.number(), disk_});
      }
    }
    effects.insert(effects.end(), more.begin(), more.end());
    return effects;
  }

  absl::Status answer_to(const event& what) {
    const auto answers = all_of<answer>(feed(what));
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? absl::UnknownError("no answer") : answers.front().status;
  }

  void arm() {
    ASSERT_TRUE(answer_to(record_offered{1, make_record(1), false, {}}).ok());
    for (const char* name : {"r01/c01", "r01/c02", "r01/c03"}) {
      feed(device_online{name});
      feed(detectors_read{name, all(DetectorReading::DRY), 20});
    }
  }

  void read(const std::string& device, std::map<std::string, reading> readings) {
    feed(detectors_read{device, std::move(readings), 20});
  }

  DeviceStatus row(const std::string& name) const {
    return device_status(interlock_, interlock_.devices.at(name), now_ms_);
  }

  absl::Status reset(const std::string& device, const std::string& reason = "mended the hose") {
    return answer_to(reset_asked{9, device, reason, "uid 0", 1});
  }

  // The tray is read off, which closes its trip, and dry for longer than a reset asks for.
  void go_off_and_dry(const std::string& device) {
    feed(power_read{device, power_seen::off});
    read(device, all(DetectorReading::DRY));
    now_ms_ += 61'000;
    read(device, all(DetectorReading::DRY));
  }

  // Without the lines of the trip, which trip_logic_test looks at.
  std::vector<Latch> latch_lines() const {
    std::vector<Latch> found;
    for (const Latch& each : file_) {
      if (each.kind() == Latch::LEAK_SEEN || each.kind() == Latch::RESET) found.push_back(each);
    }
    return found;
  }

  state restarted() const {
    state fresh;
    fresh.rack = "r01";
    std::ignore = step(fresh, loaded{interlock_.record, {}, file_, {}}, now_ms_);
    return fresh;
  }

  state interlock_;
  std::int64_t now_ms_ = 1'000'000;
  absl::Status disk_ = absl::OkStatus();
  std::vector<Latch> file_;
};

}  // namespace busbar::interlock::test
