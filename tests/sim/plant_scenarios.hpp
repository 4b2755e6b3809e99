// One plant's daemon on a virtual clock: the real actors over a fake CDU whose own controller goes on
// whatever happens to the daemon. crash() is kill -9: the store, the CDU and the racks stay. Every step is
// watched: nothing is written without its intent, nothing shown as proven that the CDU does not hold, no
// set-point jumps, no lease outlives its time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "actors/core/journal_interface.hpp"
#include "actors/core/operations_interface.hpp"
#include "actors/devices/cdu_fake.hpp"
#include "actors/plant/plant_actor.hpp"
#include "tests/support/explorer.hpp"
#include "tests/support/memory_journal.hpp"

namespace busbar::test_support {

class plant_world {
 public:
  explicit plant_world(simulation& sim);
  ~plant_world();
  plant_world(const plant_world&) = delete;
  plant_world& operator=(const plant_world&) = delete;

  // Until its operation has ended; its state, or REFUSED and why. Asked again after a crash that lost the
  // answer.
  std::optional<std::string> run(const std::string& verb, const std::string& target,
                                 std::map<std::string, std::string> arguments = {},
                                 const std::string& who = "uid:1");
  std::optional<std::string> pass(std::chrono::seconds time);
  void crash();
  const std::string& ended() const { return ended_; }
  std::shared_ptr<const journal::Cdu> cdu() const { return disk_.hub->read()->cdu("cdu01"); }

  simulation& sim;
  devices::cdu_fake unit;
  std::map<std::string, double> asking;    // by rack, L/min; a rack that is not here is silent
  std::optional<plant::plant_view> heard;  // what the racks were told last

 private:
  class door;
  class doors;
  void start();
  void end_life();
  void beat();
  void wrote(devices::cdu_value what, double value);
  std::optional<std::string> look();
  core::instant now() const { return {sim.now().time_since_epoch().count(), sim.wall_ns()}; }

  memory_journal disk_;
  std::shared_ptr<bool> alive_;  // of this life's door to the CDU
  core::journal_actor journal_;
  core::operations_actor operations_;
  plant::plant_actor plant_;
  std::uint64_t lives_ = 0, next_request_ = 0;
  std::string ended_;
  std::optional<std::string> broken_;
};

using plant_story = std::function<std::optional<std::string>(plant_world&)>;
// Runs a story in a fresh world with its declaration applied.
std::optional<std::string> in_a_plant(simulation& sim, const plant_story& story);

// Stories. Nothing: it holds.
std::optional<std::string> restarts_on_the_way(plant_world& world);
std::optional<std::string> override_that_is_not_taken(plant_world& world);
std::optional<std::string> override_that_lapses(plant_world& world);
std::optional<std::string> a_rack_falls_silent(plant_world& world);
std::optional<std::string> any_day_of_a_plant(plant_world& world);

}  // namespace busbar::test_support
