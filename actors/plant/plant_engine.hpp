// The workings of plant_logic, shared by its files: plant_logic.cpp (who commands, leases, demands),
// plant_set_points.cpp (which set-points, and whether they are proven), plant_health.cpp (what is said of the
// CDU).
#pragma once

#include <string>
#include <string_view>

#include "actors/core/errors.hpp"
#include "actors/plant/plant_logic.hpp"

namespace busbar::plant {

// One of the two set-points: its durable row, its run, what is read of it.
struct channel {
  devices::cdu_value what;
  std::string_view word;  // supply, dp
  std::string_view unit;
  double tolerance;  // read within this is what was asked
  double dead_band;  // an automatic change smaller than this is not written
  std::int64_t least_pause_ns;
  journal::SetPoint& row;
  set_point_run& run;
  std::optional<double> read;
  double least, most;  // limits of the declaration
};

class plant_engine {
 public:
  plant_engine(cdu_state& state, core::instant now, cdu_step& out) : state_(state), now_(now), out_(out) {}
  void take(const cdu_event& event);

 private:
  // plant_logic.cpp
  void take_demand(const demand_heard& demand);
  void begin_override(const override_wanted& wanted);
  void end_override(std::string_view type, const std::string& why);
  void expire();
  void keep_demands();
  void end_operation(std::string_view state, std::string_view fault, const std::string& message);
  void set_mode();

  // plant_set_points.cpp
  channel supply();
  channel dp();
  void take_read(const cdu_read& read);
  void take_answer(const write_answered& answer);
  void adopt(channel of);
  void prove(channel of);
  void conclude(channel& of, std::string_view proof, const std::string& why);
  void decide();
  void move_supply(double dt_s);
  void move_dp(double dt_s);
  void write_if_due(channel of);
  void ask(channel& of, double value, std::string_view why);
  void finish_operation();
  bool may_write() const;

  // plant_health.cpp
  void judge();
  void judge_short();
  journal::Health judge_detectors();
  void set_condition(std::string_view type, journal::Health health, const std::string& message);

  journal::Cdu& change() {
    out_.durable = true;
    return state_.cdu;
  }
  const journal::Cdu& cdu() const { return state_.cdu; }
  const journal::CduSpec& spec() const { return state_.cdu.spec(); }
  cdu_run& run() { return state_.run; }
  bool fresh() const { return is_fresh(state_.run, now_); }
  journal::Event& tell(std::string_view type, std::string message, std::string_view severity = "info");
  void act(plant_effect wanted) { out_.effects.push_back(std::move(wanted)); }
  void wake_by(std::int64_t at_ns) { out_.wake_at_ns = std::min(out_.wake_at_ns, at_ns); }

  cdu_state& state_;
  core::instant now_;
  cdu_step& out_;
};

}  // namespace busbar::plant
