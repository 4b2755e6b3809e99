#include "tests/sim/plant_scenarios.hpp"

#include <fmt/format.h>
#include <caf/send.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/core/journal_actor.hpp"
#include "actors/core/operations_actor.hpp"

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;

journal::PlantSpec usual_plant() {
  journal::PlantSpec plant;
  plant.set_plant("plant1");
  plant.set_site("lab");
  journal::CduSpec& cdu = *plant.add_cdus();
  cdu.set_name("cdu01");
  cdu.set_protocol("redfish");
  cdu.set_address("10.0.0.9:443");
  cdu.set_authority("device");
  for (const char* rack : {"r01", "r02"}) {
    journal::FedRack& row = *cdu.add_racks();
    row.set_rack(rack);
    row.set_rated_lpm(120);
  }
  cdu.set_supply_c(40);
  cdu.set_supply_min_c(20);
  cdu.set_supply_max_c(45);
  cdu.set_dp_kpa(60);
  cdu.set_dp_min_kpa(20);
  cdu.set_dp_max_kpa(120);
  plant.set_digest("of the test");
  return plant;
}

class kept_result final : public core::command_answer {
 public:
  void finish(absl::StatusOr<core::command_result> result) const override {
    if (!kept->has_value()) *kept = std::move(result);
  }
  std::shared_ptr<std::optional<absl::StatusOr<core::command_result>>> kept =
      std::make_shared<std::optional<absl::StatusOr<core::command_result>>>();
};

class kept_view final : public plant::demand_answer {
 public:
  explicit kept_view(std::optional<plant::plant_view>& to) : to_(to) {}
  void finish(absl::StatusOr<plant::plant_view> view) const override {
    if (view.ok()) to_ = *std::move(view);
  }

 private:
  std::optional<plant::plant_view>& to_;
};

}  // namespace

// One life's way to the CDU: once it is shut, nothing calls back and nothing reaches the unit.
class plant_world::door final : public devices::cdu {
 public:
  door(plant_world& world, std::shared_ptr<bool> alive) : world_(world), alive_(std::move(alive)) {}
  void read(devices::answer<devices::cdu_facts> reply) override {
    later([this, reply] {
      world_.unit.read([this, reply](absl::StatusOr<devices::cdu_facts> facts) {
        later([reply, facts] { reply(facts); });
      });
    });
  }
  void write(devices::cdu_value what, double value, devices::done reply) override {
    later([this, what, value, reply] {
      world_.wrote(what, value);
      world_.unit.write(what, value, [this, reply](const absl::Status& status) {
        later([reply, status] { reply(status); });
      });
    });
  }

 private:
  void later(std::function<void()> call) {
    const auto delay = std::chrono::milliseconds(5 + world_.sim.choose(60));
    world_.sim.devices().after(delay, [alive = alive_, call = std::move(call)] {
      if (*alive) call();
    });
  }
  plant_world& world_;
  const std::shared_ptr<bool> alive_;
};

class plant_world::doors final : public devices::cdu_factory {
 public:
  explicit doors(plant_world& world) : world_(world) {}
  absl::StatusOr<std::shared_ptr<devices::cdu>> make(const std::string&, const std::string&,
                                                     const std::string&, devices::credentials) override {
    return std::make_shared<door>(world_, world_.alive_);
  }

 private:
  plant_world& world_;
};

plant_world::plant_world(simulation& simulation_) : sim(simulation_) {
  unit.truth.connectors = {{"r01", 120, 60, 40, 52, {}}, {"r02", 120, 60, 40, 52, {}}};
  sim.add_invariant("plant", [this] { return look(); });
  start();
}

plant_world::~plant_world() {
  end_life();
}

void plant_world::start() {
  ++lives_;
  *disk_.now = now();
  alive_ = std::make_shared<bool>(true);
  const auto clock = [this] { return now(); };
  journal_ = core::spawn_journal(sim.actors(), {disk_.log, disk_.hub}, {}, false);
  operations_ = core::spawn_operations(sim.actors(), {journal_, disk_.hub, clock}, {});
  plant::plant_dependencies with;
  with.journal = journal_;
  with.operations = operations_;
  with.hub = disk_.hub;
  with.drivers = std::make_shared<doors>(*this);
  with.login_of = [](const journal::FactoryLogin&) { return devices::credentials{}; };
  with.board = std::make_shared<core::reading_board>();
  with.clock = clock;
  with.new_uuid = [] { return std::string("0badc0de-0000-4000-8000-100000000001"); };
  with.instance = "plant1";
  plant_ = plant::spawn_plant(sim.actors(), with);
  caf::anon_send(operations_, core::bind_atom_v, caf::actor_cast<caf::strong_actor_ptr>(plant_));
  beat();
}

void plant_world::end_life() {
  *alive_ = false;
  plant_ = nullptr;
  operations_ = nullptr;
  journal_ = nullptr;
  if (const std::size_t left = sim.stop_all(); left != 0)
    broken_ = fmt::format("{} actors outlived the daemon", left);
}

void plant_world::crash() {
  sim.note(fmt::format("crash of life {}", lives_));
  end_life();
  disk_.restart();
  start();
}

// The CDU's own controller and the racks, which live whether the daemon does or not.
void plant_world::beat() {
  sim.devices().after(1s, [this, life = lives_] {
    if (life != lives_) return;
    unit.pass(1000ms);
    for (const auto& [rack, flow] : asking) {
      auto wanted = std::make_shared<plant::demand>();
      wanted->rack = rack;
      wanted->flow_lpm = flow;
      wanted->heat_kw = 100;
      caf::anon_send(plant_, core::observe_atom_v, plant::demand_ptr(std::move(wanted)),
                     plant::demand_answer_ptr(std::make_shared<const kept_view>(heard)));
    }
    beat();
  });
}

// As a write reaches the unit: its intent stands in the journal, and it is no jump.
void plant_world::wrote(devices::cdu_value what, double value) {
  const auto stored = cdu();
  const bool supply = what == devices::cdu_value::supply_set_point;
  const std::string verb = supply ? "set_supply" : "set_dp";
  const bool intended =
      stored != nullptr &&
      std::any_of(stored->intents().begin(), stored->intents().end(), [&](const auto& one) {
        return one.verb() == verb && one.arguments().at("value") == fmt::format("{}", value);
      });
  if (!intended) broken_ = fmt::format("{} {} was written without an open intent", verb, value);
  const auto& spec = usual_plant().cdus(0);
  const double least = supply ? spec.supply_min_c() : spec.dp_min_kpa(),
               most = supply ? spec.supply_max_c() : spec.dp_max_kpa();
  if (value < least || value > most) broken_ = fmt::format("{} {} is outside its limits", verb, value);
  const auto& before = supply ? unit.truth.supply_set_point.value : unit.truth.dp_set_point.value;
  const bool by_hand = stored != nullptr && stored->has_lease();
  if (supply && !by_hand && before && std::abs(value - *before) > 0.35)
    broken_ = fmt::format("the supply set-point jumps from {} to {}", *before, value);
}

std::optional<std::string> plant_world::look() {
  if (broken_) return broken_;
  const auto stored = cdu();
  if (stored == nullptr) return std::nullopt;
  if (stored->supply().proof() == "proven" &&
      std::abs(stored->supply().asked() - *unit.truth.supply_set_point.value) > 0.11) {
    return fmt::format("supply {} C is shown as proven, the CDU holds {}", stored->supply().asked(),
                       *unit.truth.supply_set_point.value);
  }
  constexpr std::int64_t late_ns = 3'000'000'000;
  if (stored->has_lease() && sim.wall_ns() > stored->lease().until_wall_ns() + late_ns)
    return "a lease outlives its time";
  return std::nullopt;
}

std::optional<std::string> plant_world::run(const std::string& verb, const std::string& target,
                                            std::map<std::string, std::string> arguments,
                                            const std::string& who) {
  auto command = std::make_shared<core::command>();
  command->verb = verb;
  command->target = target;
  command->arguments = std::move(arguments);
  command->request_id = fmt::format("request-{}", ++next_request_);
  command->request_digest = std::string(32, 'd');
  command->principal.set_name(who);
  command->reason = "a scenario";
  if (verb == "plant_apply") command->plant = std::make_shared<const journal::PlantSpec>(usual_plant());
  ended_.clear();
  std::uint64_t asked_in_life = 0;
  auto answer = std::make_shared<const kept_result>();
  const auto outcome = sim.run([this, command, answer, asked_in_life]() mutable {
    const bool again =
        answer->kept->has_value() && !(*answer->kept)->ok() && absl::IsUnavailable((*answer->kept)->status());
    if (asked_in_life != lives_ || again) {  // first, lost with the daemon, or asked while it began
      asked_in_life = lives_;
      answer = std::make_shared<const kept_result>();
      caf::anon_send(operations_, core::command_atom_v, core::command_ptr(command), core::answer_ptr(answer));
      return false;
    }
    if (!answer->kept->has_value()) return false;
    const auto& result = **answer->kept;
    if (!result.ok()) {
      ended_ = "REFUSED: " + std::string(result.status().message());
      return true;
    }
    const auto operation = disk_.hub->read()->operation(result->operation_id);
    if (operation == nullptr || operation->state() == "RUNNING") return false;
    ended_ = operation->state();
    return true;
  });
  return outcome.failure();
}

std::optional<std::string> plant_world::pass(std::chrono::seconds time) {
  const auto end = sim.now() + time;
  sim.devices().after(time, [] {});
  return sim.run([this, end] { return sim.now() >= end; }).failure();
}

std::optional<std::string> in_a_plant(simulation& sim, const plant_story& story) {
  sim.limits.fault_per_mille = 0;
  plant_world world(sim);
  world.asking = {{"r01", 120}, {"r02", 120}};
  auto what = world.run("plant_apply", "plant1");
  if (!what && world.ended() != "SUCCEEDED") what = "the declaration was not applied: " + world.ended();
  return what ? what : story(world);
}

// ---- stories
std::optional<std::string> restarts_on_the_way(plant_world& world) {
  world.unit.truth.supply_set_point.value = 33;
  for (std::uint64_t i = 0; i < 3; ++i) {
    if (auto what = world.pass(std::chrono::seconds(20 + world.sim.choose(60)))) return what;
    world.crash();
  }
  if (auto what = world.pass(600s)) return what;
  if (std::abs(*world.unit.truth.supply_set_point.value - 40) > 0.11)
    return fmt::format("the supply set-point is {}, not 40", *world.unit.truth.supply_set_point.value);
  return std::nullopt;
}

std::optional<std::string> override_that_is_not_taken(plant_world& world) {
  if (auto what = world.pass(5s)) return what;
  world.unit.how.ignores = true;
  if (auto what = world.run("cdu_set", "cdu01", {{"supply_c", "38"}, {"lease_s", "120"}})) return what;
  if (world.ended() != "FAILED") return "an override that the CDU did not take ended as " + world.ended();
  world.unit.how.ignores = false;
  if (auto what = world.pass(60s)) return what;
  return world.cdu()->supply().proof() == "proven" ? std::nullopt
                                                   : std::optional<std::string>("it was not tried again");
}

std::optional<std::string> override_that_lapses(plant_world& world) {
  if (auto what = world.pass(5s)) return what;
  if (auto what = world.run("cdu_set", "cdu01", {{"supply_c", "36"}, {"lease_s", "30"}})) return what;
  if (world.ended() != "SUCCEEDED") return "an override ended as " + world.ended();
  if (auto what = world.run("cdu_set", "cdu01", {{"supply_c", "37"}}, "uid:2")) return what;
  if (!world.ended().starts_with("REFUSED")) return "two operators on one CDU: " + world.ended();
  if (world.sim.choose(2) == 0) world.crash();
  if (auto what = world.pass(60s)) return what;
  return world.cdu()->has_lease() ? std::optional<std::string>("the lease is still there") : std::nullopt;
}

std::optional<std::string> a_rack_falls_silent(plant_world& world) {
  world.asking = {{"r01", 60}, {"r02", 60}};
  world.unit.truth.connectors = {{"r01", 62, 20, 40, 52, {}}, {"r02", 62, 20, 40, 52, {}}};
  if (auto what = world.pass(240s)) return what;
  if (*world.unit.truth.dp_set_point.value > 30)
    return fmt::format("pressure {} kPa for two racks that ask for little",
                       *world.unit.truth.dp_set_point.value);
  world.asking.erase("r02");
  if (world.sim.choose(2) == 0) world.crash();
  if (auto what = world.pass(60s)) return what;
  if (*world.unit.truth.dp_set_point.value < 55)
    return fmt::format("pressure {} kPa though a rack is not heard", *world.unit.truth.dp_set_point.value);
  return std::nullopt;
}

std::optional<std::string> any_day_of_a_plant(plant_world& world) {
  switch (world.sim.seed() % 4) {
    case 0:
      return restarts_on_the_way(world);
    case 1:
      return override_that_is_not_taken(world);
    case 2:
      return override_that_lapses(world);
    default:
      return a_rack_falls_silent(world);
  }
}

}  // namespace busbar::test_support
