// An interlock for deterministic tests: no thread, no clock, answers inline. It behaves (a record accepted
// arms its devices with every detector dry) until a test says otherwise; each change is a heartbeat.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/rack/interlock_port.hpp"

namespace busbar::test {

class fake_interlock final : public rack::interlock_port {
 public:
  using verdict = interlock::DetectorReading::Verdict;

  explicit fake_interlock(std::string instance = "r01") {
    status_.set_instance(std::move(instance));
    status_.set_trips(interlock::Status::NOT_IMPLEMENTED);
    status_.set_reason("no arming record");
    status_.set_latch_file_ok(true);
  }

  void arm(const interlock::ArmingRecord& record, done reply) override {
    ++arm_calls;
    if (!arm_answer.ok()) return reply(arm_answer);
    if (record.generation() < status_.generation()) {
      return reply(absl::FailedPreconditionError("an older record than the one held"));
    }
    if (const auto lost = lost_by(record); !lost.empty()) {
      return reply(absl::FailedPreconditionError(lost + " would be removed: only at the operator's socket"));
    }
    records.push_back(record);
    status_.set_generation(record.generation());
    status_.set_armed_rack(true);
    status_.clear_reason();
    adopt(record);
    heartbeat();
    reply(absl::OkStatus());
  }

  void announce_blind_window(std::string device, std::chrono::milliseconds length, done reply) override {
    if (length > rack::blind_window_max) return reply(absl::InvalidArgumentError("longer than 10 minutes"));
    blind_windows.emplace_back(device, length);
    if (interlock::DeviceStatus* row = find(device)) {
      row->set_blind(length.count() > 0);
      row->set_blind_left_ms(static_cast<std::uint64_t>(length.count()));
      refresh(*row);
    }
    heartbeat();
    reply(absl::OkStatus());
  }

  void read_latches(std::uint64_t after,
                    std::function<void(absl::Status, std::vector<interlock::Latch>)> reply) override {
    std::vector<interlock::Latch> found;
    std::copy_if(latch_file.begin(), latch_file.end(), std::back_inserter(found),
                 [after](const interlock::Latch& latch) { return latch.number() > after; });
    reply(absl::OkStatus(), std::move(found));
  }

  std::shared_ptr<const rack::interlock_view> last() const override { return view_; }
  void observe(observer watcher) override { watcher_ = std::move(watcher); }

  // What a test does to it.
  void heartbeat() { publish(rack::interlock_life::alive, std::chrono::milliseconds(0)); }
  void die() { publish(rack::interlock_life::dead, rack::interlock_dead_after); }

  void set_detector(const std::string& device, const std::string& detector, verdict seen) {
    interlock::DeviceStatus* row = find(device);
    if (row == nullptr) return;
    for (auto& reading : *row->mutable_detectors()) {
      if (reading.name() == detector) reading.set_verdict(seen);
    }
    if (seen == interlock::DetectorReading::LEAK) latch(device, detector);
    refresh(*row);
    heartbeat();
  }

  void lose(const std::string& device, std::string reason) {
    lost_[device] = std::move(reason);
    if (interlock::DeviceStatus* row = find(device)) refresh(*row);
    heartbeat();
  }

  void latch(const std::string& device, const std::string& detector) {
    interlock::DeviceStatus* row = find(device);
    if (row == nullptr || row->latched()) return;
    interlock::Latch entry;
    entry.set_kind(interlock::Latch::LEAK_SEEN);
    entry.set_device(device);
    entry.set_detector(detector);
    write(entry);
    status_.set_last_latch_number(entry.number());
    *status_.add_latches() = entry;
    row->set_latched(true);
    refresh(*row);
    heartbeat();
  }

  // A trip opens: gates of its scope shut at once. What it does to the devices is the test's.
  std::uint64_t open_trip(const std::string& scope, interlock::Cause cause, const std::string& detail) {
    interlock::Latch entry;
    entry.set_kind(interlock::Latch::TRIP_OPENED);
    entry.set_device(scope);
    entry.set_cause(cause);
    entry.set_detail(detail);
    entry.set_trip(status_.last_record_number() + 1);
    write(entry);
    interlock::TripStatus& trip = *status_.add_open_trips();
    trip.set_number(entry.number());
    trip.set_scope(scope);
    trip.set_cause(cause);
    trip.set_detail(detail);
    trip.add_waits_for(scope + " off");
    *status_.add_latches() = entry;
    refresh_all();
    heartbeat();
    return entry.number();
  }

  // Every device was read in its final state.
  void close_trip(std::uint64_t number, const std::vector<std::string>& devices) {
    for (auto& trip : *status_.mutable_open_trips()) {
      if (trip.number() != number || trip.closed()) continue;
      interlock::Latch line;
      line.set_trip(number);
      line.set_cause(trip.cause());
      line.set_kind(interlock::Latch::STEP_DONE);
      for (const std::string& device : devices) {
        line.set_device(device);
        write(line);
      }
      line.set_kind(interlock::Latch::TRIP_CLOSED);
      line.set_device(trip.scope());
      write(line);
      trip.set_closed(true);
      trip.clear_waits_for();
    }
    heartbeat();
  }

  bool is_tripped(const std::string& scope) const {
    return std::any_of(status_.open_trips().begin(), status_.open_trips().end(),
                       [&scope](const auto& trip) { return trip.scope() == scope; });
  }

  // As a person does: only a trip that is done. The latches of the rack's own sensors go with it.
  bool reset_trip(const std::string& scope) {
    auto* trips = status_.mutable_open_trips();
    const auto is_done = [&scope](const auto& trip) { return trip.scope() == scope && trip.closed(); };
    if (std::none_of(trips->begin(), trips->end(), is_done)) return false;
    trips->erase(std::remove_if(trips->begin(), trips->end(), is_done), trips->end());
    auto* open = status_.mutable_latches();
    const auto goes = [&scope](const auto& latch) {
      const bool of_rack = scope.find('/') == std::string::npos && latch.device().find('/') == std::string::npos;
      return latch.device() == scope || of_rack;
    };
    open->erase(std::remove_if(open->begin(), open->end(), goes), open->end());
    for (auto& row : *status_.mutable_devices()) {
      if (row.name().find('/') == std::string::npos) row.set_latched(false);
    }
    interlock::Latch line;
    line.set_kind(interlock::Latch::RESET);
    line.set_device(scope);
    line.set_principal("uid 0");
    line.set_detail("mended");
    write(line);
    status_.set_last_latch_number(line.number());
    refresh_all();
    heartbeat();
    return true;
  }

  // A tray of the record held that is not in this one.
  std::string lost_by(const interlock::ArmingRecord& record) const {
    if (records.empty()) return {};
    for (const auto& held : records.back().devices()) {
      const auto same = [&held](const interlock::ArmedDevice& one) { return one.name() == held.name(); };
      if (std::none_of(record.devices().begin(), record.devices().end(), same)) return held.name();
    }
    return {};
  }

  // Its state folder is put back to what it was after that many records; 0: to before the first.
  void put_back(std::size_t record_count) {
    records.resize(record_count);
    const interlock::ArmingRecord record = records.empty() ? interlock::ArmingRecord() : records.back();
    status_.set_generation(record.generation());
    status_.set_armed_rack(!records.empty());
    status_.set_reason(records.empty() ? "no arming record" : "");
    adopt(record);
    heartbeat();
  }

  // As a person does at the operator's socket: only with dry detectors.
  bool reset(const std::string& device) {
    interlock::DeviceStatus* row = find(device);
    if (row == nullptr || !dry(*row)) return false;
    auto* open = status_.mutable_latches();
    open->erase(std::remove_if(open->begin(), open->end(),
                               [&device](const interlock::Latch& each) { return each.device() == device; }),
                open->end());
    row->set_latched(false);
    refresh(*row);
    heartbeat();
    return true;
  }

  absl::Status arm_answer = absl::OkStatus();
  int arm_calls = 0;
  std::vector<interlock::ArmingRecord> records;
  std::vector<std::pair<std::string, std::chrono::milliseconds>> blind_windows;
  std::vector<interlock::Latch> latch_file;

 private:
  static bool dry(const interlock::DeviceStatus& row) {
    return !row.detectors().empty() &&
           std::all_of(row.detectors().begin(), row.detectors().end(),
                       [](const auto& each) { return each.verdict() == interlock::DetectorReading::DRY; });
  }

  interlock::DeviceStatus* find(const std::string& device) {
    for (auto& row : *status_.mutable_devices()) {
      if (row.name() == device) return &row;
    }
    return nullptr;
  }

  void write(interlock::Latch& line) {
    line.set_number(status_.last_record_number() + 1);
    line.set_durable(true);
    status_.set_last_record_number(line.number());
    latch_file.push_back(line);
  }

  void refresh_all() {
    for (auto& row : *status_.mutable_devices()) refresh(row);
  }

  void adopt(const interlock::ArmingRecord& record) {
    auto old = status_.devices();
    status_.clear_devices();
    for (const interlock::ArmedDevice& device : record.devices()) {
      const auto known = std::find_if(old.begin(), old.end(),
                                      [&](const auto& each) { return each.name() == device.name(); });
      interlock::DeviceStatus* row = status_.add_devices();
      if (known != old.end()) *row = *known;
      row->set_name(device.name());
      row->set_age_ms(0);
      row->set_poll_ms(250);
      if (known == old.end()) {
        for (const std::string& name : device.detectors()) {
          auto* reading = row->add_detectors();
          reading->set_name(name);
          reading->set_verdict(interlock::DetectorReading::DRY);
        }
      }
      refresh(*row);
    }
  }

  void refresh(interlock::DeviceStatus& row) const {
    const auto lost = lost_.find(row.name());
    const bool unknown = std::any_of(row.detectors().begin(), row.detectors().end(), [](const auto& each) {
      return each.verdict() == interlock::DetectorReading::UNKNOWN;
    });
    row.set_armed(lost == lost_.end() && !row.blind() && !unknown);
    row.set_reason(lost != lost_.end() ? lost->second
                   : row.blind()       ? "blind window"
                   : unknown           ? "a detector is unknown"
                                       : "");
    const bool tripped = is_tripped(row.name()) || is_tripped(status_.instance());
    row.set_gate_open(row.armed() && dry(row) && !row.latched() && !tripped);
  }

  void publish(rack::interlock_life life, std::chrono::milliseconds age) {
    status_.set_sequence(status_.sequence() + 1);
    auto view = std::make_shared<rack::interlock_view>();
    view->life = life;
    view->age = age;
    view->status = std::make_shared<const interlock::Status>(status_);
    view_ = std::move(view);
    if (watcher_) watcher_(view_);
  }

  interlock::Status status_;
  std::map<std::string, std::string> lost_;
  std::shared_ptr<const rack::interlock_view> view_ = std::make_shared<const rack::interlock_view>();
  observer watcher_;
};

}  // namespace busbar::test
