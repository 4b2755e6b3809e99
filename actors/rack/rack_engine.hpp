// The workings of rack_logic, shared by its three files: rack_logic.cpp (steps and operations),
// rack_permits.cpp (who may turn on, restart or go blind), rack_suite.cpp (fabric proof and rack suite).
#pragma once

#include <string>
#include <string_view>

#include "actors/rack/rack_logic.hpp"

namespace busbar::rack {

class engine {
 public:
  engine(rack_state& state, core::instant now, step_result& out) : state_(state), now_(now), out_(out) {}

  void take(const rack_event& event);

 private:
  // rack_logic.cpp
  void take_command(const rack_event& event);
  void take_observation(const rack_event& event);
  void advance();
  bool try_arrow();
  std::string what_it_waits_for();
  void enter_step(journal::RackStep step);
  void fail(core::fault code, const std::string& message);
  void begin_bringup_now(const begin_bringup& command);
  void cancel(const std::string& operation_id);
  void drive_shutdown();
  void stop_shutdown();
  void tell_goals();
  void report_rows();
  void finish_bringup();
  void finish_member_operations();
  void watch_conditions();
  void watch_record();        // this and the next four: rack_interlock.cpp
  void watch_shape();
  void take_record_answer(const record_answered& answer);
  void watch_latch_file();
  void acknowledge_lost_latches(const std::string& text);
  void show_why();
  void set_condition(std::string_view type, bool good, std::string_view message);
  void set_condition(std::string_view type, journal::Health health, std::string_view message);
  bool is_shown(std::string_view type) const;
  void check_deadline();
  journal::NodeStep wanted_goal(const journal::Node& member) const;
  bool is_bringing_up() const;
  bool is_gate(std::string_view gate) const;

  // rack_trips.cpp
  void watch_latches();
  void import_latches(std::vector<interlock::Latch> latches);
  void import_line(const interlock::Latch& line);
  void import_leak_or_reset(const interlock::Latch& line);
  void import_bypass(const interlock::Latch& line);
  void watch_trips();
  void tell_trip_to_members(const interlock::TripStatus& trip);
  void take_rack_trip(const interlock::TripStatus& trip);
  void end_suite_over(const interlock::TripStatus& trip);
  void show_bypasses();
  void watch_reach();
  void keep_rack_detectors();
  void keep_cdu_pin();

  // rack_plant.cpp
  void watch_plant();
  void show_while(std::string_view type, const std::string& why);

  // rack_permits.cpp
  void want(const permit_wanted& event);
  void release(const std::string& member);
  void release_held(const std::string& member);
  void grant_permits();
  void withdraw_permits();
  std::set<std::string> promised() const;
  void end_stale_blind_windows();
  std::optional<refusal> refuse(const std::string& member, node::permit_kind kind) const;
  std::optional<refusal> refuse_power(const journal::Node& member) const;
  std::optional<refusal> refuse_blind(const journal::Node& member) const;
  bool group_has_room();

  // rack_power_watch.cpp
  void watch_power();
  void watch_sight(const std::string& name, const journal::Node& member, power_watch& of);
  void take_power(const power_read& read);
  bool last_look_done();
  void take_up_lost();

  // rack_suite.cpp
  std::optional<refusal> prove_fabric();
  std::optional<refusal> drive_suite();
  void take_suite_agent(const validation::agent_event& event);
  void take_suite_result(const journal::SuiteResult& result);
  void start_suite();
  void start_test();
  void end_test();
  void stop_suite();
  const journal::Suite* suite() const;

  journal::Rack& change() {
    out_.durable = true;
    return state_.rack;
  }
  const journal::Rack& rack() const { return state_.rack; }
  rack_run& run() { return state_.run; }
  const rack_run& run() const { return state_.run; }
  journal::Event& tell(std::string_view type, std::string message, std::string_view severity = "info");
  void act(effect wanted) { out_.effects.push_back(std::move(wanted)); }
  void wake_by(std::int64_t at_ns) { out_.wake_at_ns = std::min(out_.wake_at_ns, at_ns); }

  rack_state& state_;
  core::instant now_;
  step_result& out_;
};

}  // namespace busbar::rack
