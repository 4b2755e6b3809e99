// The plant's wiring: what is built, from what, in which order, and how it ends. No interlock and no agents: a plant has neither.
#include <fmt/format.h>
#include <unistd.h>
#include <caf/scoped_actor.hpp>

#include <atomic>
#include <csignal>
#include <mutex>
#include <utility>

#include "actors/core/journal_actor.hpp"
#include "actors/core/log.hpp"
#include "actors/core/operations_actor.hpp"
#include "actors/core/supervisor_actor.hpp"
#include "actors/plant/plant_actor.hpp"
#include "daemon/busbard/readings_keeper.hpp"
#include "daemon/busbard/wiring_cdus.hpp"
#include "daemon/busbard/wiring_secrets.hpp"
#include "daemon/busbard/wiring_store.hpp"

namespace busbar::daemon {
namespace {

// The plant actor of the moment: a restart by its supervisor replaces it.
class plant_slot {
 public:
  void set(plant::plant_actor now) {
    const std::lock_guard lock(mutex_);
    plant_ = std::move(now);
  }
  plant::plant_actor get() const {
    const std::lock_guard lock(mutex_);
    return plant_;
  }

 private:
  mutable std::mutex mutex_;
  plant::plant_actor plant_;
};

class wired_plant final : public rack_daemon {
 public:
  static absl::StatusOr<std::unique_ptr<rack_daemon>> build(const manifest::daemon_config& config, const wire_options& options);

  std::shared_ptr<core::snapshot_hub> hub() const override { return store_.hub(); }
  std::shared_ptr<const core::reading_board> board() const override { return board_; }
  std::shared_ptr<storage::history> history() const override { return history_; }
  core::event_source events() const override { return store_.events(); }
  void submit(std::shared_ptr<const core::command> what, core::answer_ptr answer) override {
    caf::anon_send(operations_, core::command_atom_v, std::move(what), std::move(answer));
  }
  std::function<void(plant::demand_ptr, plant::demand_answer_ptr)> demands() override {
    return [slot = plant_](plant::demand_ptr wanted, plant::demand_answer_ptr answer) {
      const plant::plant_actor now = slot->get();
      if (now == nullptr) return answer->finish(absl::UnavailableError("the plant is starting or stopping; ask again"));
      caf::anon_send(now, core::observe_atom_v, std::move(wanted), std::move(answer));
    };
  }
  std::vector<std::string> degraded() const override {
    const std::string why = store_.why_degraded();
    return why.empty() ? std::vector<std::string>() : std::vector{why};
  }
  std::string may_be_old() const override { return store_.may_be_old(); }
  bool failed() const override { return gone_->load() || store_.failed(); }
  bool round_trip(std::chrono::milliseconds limit) override;
  bool stop_operations(std::chrono::milliseconds limit) override;
  bool stop_devices(std::chrono::milliseconds limit) override;
  bool stop_store(std::chrono::milliseconds limit) override;

 private:
  void keep_readings(const manifest::daemon_config& config);
  void spawn_actors(const manifest::daemon_config& config);
  caf::expected<caf::actor> start_plant(const plant::plant_dependencies& with);

  // In order of building; the destructor takes them down in reverse.
  wired_store store_;
  std::shared_ptr<core::reading_board> board_ = std::make_shared<core::reading_board>();
  std::shared_ptr<storage::history> history_;
  std::unique_ptr<readings_keeper> keeper_;
  std::shared_ptr<plant_slot> plant_ = std::make_shared<plant_slot>();
  std::shared_ptr<devices::redfish::curl_transport> io_;
  std::unique_ptr<actor_config> actor_config_;
  std::unique_ptr<caf::actor_system> actors_;
  std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);
  core::journal_actor journal_;
  core::operations_actor operations_;
  caf::actor supervisor_;
};

// Pictures, no truth: a history that cannot be kept is said, and stops nothing.
void wired_plant::keep_readings(const manifest::daemon_config& config) {
  storage::history_options options;
  options.directory = (config.state_dir / "history").string();
  options.say = [](const std::string& what) { core::log_warning("history", {{"what", what}}); };
  history_ = storage::history::open(std::move(options), storage::machine_instant().wall_ns / 1'000'000'000);
  keeper_needs needs;
  needs.board = board_;
  needs.history = history_;
  needs.wall_ns = [] { return storage::machine_instant().wall_ns; };
  keeper_ = std::make_unique<readings_keeper>(std::move(needs));
  keeper_->start();
}

caf::expected<caf::actor> wired_plant::start_plant(const plant::plant_dependencies& with) {
  const plant::plant_actor fresh = plant::spawn_plant(*actors_, with);
  plant_->set(fresh);
  caf::anon_send(operations_, core::bind_atom_v, caf::actor_cast<caf::strong_actor_ptr>(fresh));
  return caf::actor_cast<caf::actor>(fresh);
}

void wired_plant::spawn_actors(const manifest::daemon_config& config) {
  actor_config_ = std::make_unique<actor_config>();
  actors_ = std::make_unique<caf::actor_system>(*actor_config_);
  journal_ = core::spawn_journal(*actors_, {store_.log(), store_.hub()}, {}, true);
  operations_ = core::spawn_operations(*actors_, {journal_, store_.hub(), storage::machine_instant}, {});

  const auto secrets = std::make_shared<daemon_secrets>(store_.vault(), config.site_dir.string());
  plant::plant_dependencies with;
  with.journal = journal_;
  with.operations = operations_;
  with.hub = store_.hub();
  with.drivers = std::make_shared<daemon_cdus>(io_);
  with.login_of = [secrets](const journal::FactoryLogin& login) { return secrets->site_login(login); };
  with.board = board_;
  with.clock = storage::machine_instant;
  with.new_uuid = storage::new_uuid;
  with.instance = config.instance;

  core::child_spec plant_child;
  plant_child.plan.name = "plant";
  plant_child.start = [this, with](caf::event_based_actor*) { return start_plant(with); };
  core::supervisor_plan plan;
  plan.name = "daemon";
  supervisor_ = actors_->spawn(core::supervisor, plan, std::vector<core::child_spec>{plant_child});
  // A plant that cannot be kept alive: the process ends, loudly, and its service manager starts a fresh one. Meanwhile every CDU
  // goes on by its own controller.
  supervisor_->attach_functor([stopping = stopping_, gone = gone_](const caf::error&) {
    if (stopping->load()) return;
    gone->store(true);
    core::log_error("plant_given_up", {{"next", "the process ends; see why the plant actor died above"}});
    ::kill(::getpid(), SIGTERM);
  });
}

absl::StatusOr<std::unique_ptr<rack_daemon>> wired_plant::build(const manifest::daemon_config& config,
                                                                const wire_options& options) {
  auto made = std::make_unique<wired_plant>();
  if (auto status = made->store_.open(config, options, "plant"); !status.ok()) return status;
  made->io_ = std::make_shared<devices::redfish::curl_transport>();
  made->keep_readings(config);
  made->spawn_actors(config);
  return absl::StatusOr<std::unique_ptr<rack_daemon>>(std::move(made));
}

bool wired_plant::round_trip(std::chrono::milliseconds limit) {
  const plant::plant_actor now = plant_->get();
  if (now == nullptr || store_.failed()) return false;
  caf::scoped_actor asker(*actors_);
  bool answered = false;
  asker->request(now, limit, core::status_atom_v)
      .receive([&answered](const core::actor_status&) { answered = true; }, [](const caf::error&) {});
  return answered;
}

bool wired_plant::stop_operations(std::chrono::milliseconds limit) {
  return end_actor(*actors_, operations_, limit, [](const auto& who) { caf::anon_send(who, core::stop_atom_v); });
}

// Nothing is said to the CDUs: they keep their set-points.
bool wired_plant::stop_devices(std::chrono::milliseconds limit) {
  stopping_->store(true);
  const bool ended = end_actor(*actors_, supervisor_, limit, tell_exit);
  keeper_.reset();
  plant_->set(plant::plant_actor{});
  io_.reset();
  return ended;
}

bool wired_plant::stop_store(std::chrono::milliseconds limit) {
  const bool ended = end_actor(*actors_, journal_, limit, tell_exit);
  store_.hub()->close();
  if (!ended) return false;
  actors_.reset();
  return store_.log()->close().ok();
}

}  // namespace

absl::StatusOr<std::unique_ptr<rack_daemon>> wire_plant(const manifest::daemon_config& config, const wire_options& options) {
  return wired_plant::build(config, options);
}

}  // namespace busbar::daemon
