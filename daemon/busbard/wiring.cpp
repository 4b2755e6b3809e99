// The rack's wiring: what is built, from what, in which order, and how it ends. Read it from top to bottom.
#include "daemon/busbard/wiring.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>

#include <atomic>
#include <csignal>
#include <mutex>
#include <utility>

#include "actors/core/error_bridge.hpp"
#include "actors/core/journal_actor.hpp"
#include "actors/core/log.hpp"
#include "actors/core/operations_actor.hpp"
#include "actors/core/regular_file.hpp"
#include "actors/core/supervisor_actor.hpp"
#include "actors/devices/redfish/curl_transport.hpp"
#include "actors/devices/redfish/redfish_bmc.hpp"
#include "actors/manifest/daemon_config.hpp"
#include "actors/rack/interlock_client.hpp"
#include "actors/rack/rack_actor.hpp"
#include "daemon/busbard/readings_keeper.hpp"
#include "daemon/busbard/rpc/plant_client.hpp"
#include "daemon/busbard/rpc/worker.hpp"
#include "daemon/busbard/wiring_agents.hpp"
#include "daemon/busbard/wiring_outlets.hpp"
#include "daemon/busbard/wiring_secrets.hpp"
#include "daemon/busbard/wiring_store.hpp"
#include "gpu/judge/agent_results.hpp"
#include "storage/journal_log.hpp"

namespace busbar::daemon {
namespace {

constexpr std::size_t worker_queue = 4096;

// The rack actor of the moment: a restart by its supervisor replaces it.
class rack_slot {
 public:
  void set(rack::rack_actor rack) {
    const std::lock_guard lock(mutex_);
    rack_ = std::move(rack);
  }
  rack::rack_actor get() const {
    const std::lock_guard lock(mutex_);
    return rack_;
  }

 private:
  mutable std::mutex mutex_;
  rack::rack_actor rack_;
};

node::judged_suite judge(const journal::Suite& suite, const std::string& run_id,
                         const std::vector<std::string>& members, std::uint32_t gpus,
                         const std::map<std::string, std::string>& limits,
                         const std::map<std::string, std::vector<agent::Measurement>>& measured) {
  const gpu::judgement judged = gpu::judge_agents(suite, run_id, members, gpus, limits, measured);
  return {judged.result, gpu::evidence_text(judged)};
}

// A lease file that cannot be read announces nothing; said once a text, not every two seconds.
std::string read_file(const std::string& path) {
  static std::mutex guard;
  static std::string last_said;
  auto text = core::read_regular_file(path, core::small_file_bytes);
  const std::lock_guard lock(guard);
  if (text.ok()) return *std::move(text);
  const std::string why(text.status().message());
  if (std::exchange(last_said, why) != why) core::log_warning("lease_file_not_read", {{"why", why}});
  return {};
}

class wired_rack final : public rack_daemon {
 public:
  static absl::StatusOr<std::unique_ptr<rack_daemon>> build(const manifest::daemon_config& config,
                                                            const wire_options& options);

  std::shared_ptr<core::snapshot_hub> hub() const override { return store_.hub(); }
  std::shared_ptr<const core::reading_board> board() const override { return board_; }
  std::shared_ptr<storage::history> history() const override { return history_; }
  core::event_source events() const override { return store_.events(); }
  void submit(std::shared_ptr<const core::command> what, core::answer_ptr answer) override {
    caf::anon_send(operations_, core::command_atom_v, std::move(what), std::move(answer));
  }
  std::vector<std::string> degraded() const override;
  std::string may_be_old() const override { return store_.may_be_old(); }
  bool failed() const override { return gone_->load() || store_.failed(); }
  bool round_trip(std::chrono::milliseconds limit) override;
  bool stop_operations(std::chrono::milliseconds limit) override;
  bool stop_devices(std::chrono::milliseconds limit) override;
  bool stop_store(std::chrono::milliseconds limit) override;

 private:
  absl::Status open_doors(const manifest::daemon_config& config);
  void keep_readings(const manifest::daemon_config& config);
  void spawn_actors(const manifest::daemon_config& config);
  caf::expected<caf::actor> start_rack(const rack::rack_dependencies& with);

  // In order of building; the destructor takes them down in reverse.
  wired_store store_;
  std::shared_ptr<core::reading_board> board_ = std::make_shared<core::reading_board>();
  std::shared_ptr<storage::history> history_;
  std::unique_ptr<readings_keeper> keeper_;
  std::shared_ptr<rpc::worker> blocking_;
  std::shared_ptr<rack_slot> rack_ = std::make_shared<rack_slot>();
  std::shared_ptr<late_agent_gate> agents_;
  std::shared_ptr<rack::interlock_client> interlock_;
  std::shared_ptr<rpc::plant_client> plant_;
  std::shared_ptr<devices::redfish::curl_transport> io_;
  std::unique_ptr<actor_config> actor_config_;
  std::unique_ptr<caf::actor_system> actors_;
  std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);
  core::journal_actor journal_;
  core::operations_actor operations_;
  caf::actor supervisor_;
};

absl::Status wired_rack::open_doors(const manifest::daemon_config& config) {
  blocking_ = std::make_shared<rpc::worker>(worker_queue);
  auto ca = rpc::agent_ca::load_or_create(config.agent_ca_dir, config.instance);
  if (!ca.ok()) return ca.status();
  agents_ = std::make_shared<late_agent_gate>(
      (config.state_dir / "agents").string(), *std::move(ca), [slot = rack_](validation::agent_event event) {
        const rack::rack_actor rack = slot->get();
        if (rack == nullptr) return;
        caf::anon_send(
            rack, rack::agent_event_ptr(std::make_shared<const validation::agent_event>(std::move(event))));
      });
  interlock_ = std::make_shared<rack::interlock_client>(config.interlock_socket.string());
  rpc::plant_wire to_plant;
  if (config.tcp.has_value()) {
    to_plant.ca_file = config.tcp->ca.string();
    to_plant.cert_file = config.tcp->cert.string();
    to_plant.key_file = config.tcp->key.string();
  }
  plant_ = std::make_shared<rpc::plant_client>(std::move(to_plant));
  io_ = std::make_shared<devices::redfish::curl_transport>();
  return absl::OkStatus();
}

// Pictures, no truth: a history that cannot be kept is said, and stops nothing.
void wired_rack::keep_readings(const manifest::daemon_config& config) {
  storage::history_options options;
  options.directory = (config.state_dir / "history").string();
  options.say = [](const std::string& what) { core::log_warning("history", {{"what", what}}); };
  history_ = storage::history::open(std::move(options), storage::machine_instant().wall_ns / 1'000'000'000);
  keeper_needs needs;
  needs.rack = config.instance;
  needs.board = board_;
  needs.history = history_;
  needs.shelves = [hub = store_.hub()] {
    std::vector<std::string> shelves;
    const auto state = hub->read();
    for (const auto& [name, node] : *state->nodes) {
      if (node.object->spec().kind() == journal::POWER_SHELF) shelves.push_back(name);
    }
    return shelves;
  };
  needs.wall_ns = [] { return storage::machine_instant().wall_ns; };
  keeper_ = std::make_unique<readings_keeper>(std::move(needs));
  keeper_->start();
}

caf::expected<caf::actor> wired_rack::start_rack(const rack::rack_dependencies& with) {
  const rack::rack_actor fresh = rack::spawn_rack(*actors_, with);
  rack_->set(fresh);
  caf::anon_send(operations_, core::bind_atom_v, caf::actor_cast<caf::strong_actor_ptr>(fresh));
  return caf::actor_cast<caf::actor>(fresh);
}

void wired_rack::spawn_actors(const manifest::daemon_config& config) {
  actor_config_ = std::make_unique<actor_config>();
  actors_ = std::make_unique<caf::actor_system>(*actor_config_);
  journal_ = core::spawn_journal(*actors_, {store_.log(), store_.hub()}, {}, true);
  operations_ = core::spawn_operations(*actors_, {journal_, store_.hub(), storage::machine_instant}, {});

  rack::rack_dependencies with;
  with.journal = journal_;
  with.operations = operations_;
  with.hub = store_.hub();
  with.drivers = devices::redfish::make_redfish_factory(io_, io_);
  with.secrets = std::make_shared<daemon_secrets>(store_.vault(), config.site_dir.string());
  with.agents = agents_;
  with.board = board_;
  with.outlets = std::make_shared<daemon_outlets>(io_);
  with.interlock = interlock_;
  with.judge = judge;
  with.clock = storage::machine_instant;
  with.run_blocking = [worker = blocking_](std::function<void()> work) {
    worker->post_always(std::move(work));
  };
  with.read_file = read_file;
  with.new_uuid = storage::new_uuid;
  with.open_agent_gate = [worker = blocking_, gate = agents_](const std::string& endpoint) {
    worker->post_always([gate, endpoint] { gate->open(endpoint); });
  };
  with.plant = plant_;
  with.instance = config.instance;
  with.site_dir = config.site_dir.string();

  core::child_spec rack_child;
  rack_child.plan.name = "rack";
  rack_child.start = [this, with](caf::event_based_actor*) { return start_rack(with); };
  core::supervisor_plan plan;
  plan.name = "daemon";
  supervisor_ = actors_->spawn(core::supervisor, plan, std::vector<core::child_spec>{rack_child});
  // A rack that cannot be kept alive: the process ends, loudly, and its service manager starts a fresh one.
  supervisor_->attach_functor([stopping = stopping_, gone = gone_](const caf::error&) {
    if (stopping->load()) return;
    gone->store(true);
    core::log_error("rack_given_up", {{"next", "the process ends; see why the rack actor died above"}});
    ::kill(::getpid(), SIGTERM);
  });
}

absl::StatusOr<std::unique_ptr<rack_daemon>> wired_rack::build(const manifest::daemon_config& config,
                                                               const wire_options& options) {
  auto made = std::make_unique<wired_rack>();
  if (auto status = made->store_.open(config, options, "rack"); !status.ok()) return status;
  if (auto status = made->open_doors(config); !status.ok()) return status;
  made->keep_readings(config);
  made->spawn_actors(config);
  return absl::StatusOr<std::unique_ptr<rack_daemon>>(std::move(made));
}

std::vector<std::string> wired_rack::degraded() const {
  std::vector<std::string> reasons;
  if (std::string why = store_.why_degraded(); !why.empty()) reasons.push_back(std::move(why));
  const auto view = interlock_->last();
  if (view->life != rack::interlock_life::alive) {
    reasons.push_back(fmt::format("interlock {}: no host power-on", rack::name_of(view->life)));
  }
  return reasons;
}

bool wired_rack::round_trip(std::chrono::milliseconds limit) {
  const rack::rack_actor rack = rack_->get();
  // A store that stopped for good makes this process useless: its watchdog starves, and a fresh one reads the
  // disk anew.
  if (rack == nullptr || store_.failed()) return false;
  caf::scoped_actor asker(*actors_);
  bool answered = false;
  asker->request(rack, limit, core::status_atom_v)
      .receive([&answered](const core::actor_status&) { answered = true; }, [](const caf::error&) {});
  return answered;
}

bool wired_rack::stop_operations(std::chrono::milliseconds limit) {
  return end_actor(*actors_, operations_, limit,
                   [](const auto& who) { caf::anon_send(who, core::stop_atom_v); });
}

bool wired_rack::stop_devices(std::chrono::milliseconds limit) {
  stopping_->store(true);
  const bool ended = end_actor(*actors_, supervisor_, limit, tell_exit);
  keeper_.reset();
  rack_->set(rack::rack_actor{});
  interlock_->observe({});
  agents_->stop(std::chrono::seconds(2));
  blocking_->stop();
  plant_->stop();
  io_.reset();
  return ended;
}

bool wired_rack::stop_store(std::chrono::milliseconds limit) {
  const bool ended = end_actor(*actors_, journal_, limit, tell_exit);
  store_.hub()->close();
  if (!ended) return false;
  actors_.reset();
  return store_.log()->close().ok();
}

}  // namespace

absl::StatusOr<std::unique_ptr<rack_daemon>> wire(const manifest::daemon_config& config,
                                                  const wire_options& options) {
  return wired_rack::build(config, options);
}

}  // namespace busbar::daemon
