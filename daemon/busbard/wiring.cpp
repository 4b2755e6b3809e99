// The rack's wiring: what is built, from what, in which order, and how it ends. Read it from top to bottom.
#include "daemon/busbard/wiring.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scoped_actor.hpp>

#include <atomic>
#include <csignal>
#include <filesystem>
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
#include "daemon/busbard/instance_lock.hpp"
#include "daemon/busbard/rpc/worker.hpp"
#include "daemon/busbard/wiring_agents.hpp"
#include "daemon/busbard/wiring_outlets.hpp"
#include "daemon/busbard/wiring_secrets.hpp"
#include "gpu/judge/agent_results.hpp"
#include "storage/disk_room.hpp"
#include "storage/journal_log.hpp"
#include "storage/journal_mark.hpp"
#include "storage/rocks_store.hpp"
#include "storage/vault.hpp"
#include "storage/wal_check.hpp"

namespace busbar::daemon {
namespace {

constexpr std::size_t worker_queue = 4096;

struct actor_config : caf::actor_system_config {
  actor_config() {
    config_file_path.clear();  // CAF would read caf-application.ini of the working directory
    set("scheduler.max-threads", std::size_t{2});
  }
};

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

// Tells an actor to end and waits for it; false when it took longer. Watches before it tells, by the handle:
// an actor that is already gone must not be watched by its address.
template <class Handle, class Tell>
bool end_actor(caf::actor_system& system, Handle& who, std::chrono::milliseconds limit, const Tell& tell) {
  caf::scoped_actor waiter(system);
  waiter->monitor(who);
  tell(who);
  bool ended = false;
  waiter->receive([&ended](const caf::down_msg&) { ended = true; }, caf::after(limit) >> [] {});
  who = nullptr;
  return ended;
}

const auto tell_exit = [](const auto& who) { caf::anon_send_exit(who, caf::exit_reason::user_shutdown); };

// A person took the loss upon them: it stands in the journal, under its new id, before anything goes on.
absl::Status record_lost_tail(storage::journal_log& log, const std::string& instance, const std::string& lost) {
  journal::Event event;
  event.set_object(instance);
  event.set_kind("rack");
  event.set_type("lost_tail_accepted");
  event.set_severity("error");
  event.set_message(fmt::format("busbard --accept-lost-tail: {}; accounts, passwords and latches of that time may not be "
                                "what is stored",
                                lost));
  event.mutable_principal()->set_name(fmt::format("uid {}", ::geteuid()));
  event.mutable_principal()->set_role("operator");
  core::journal_batch batch;
  batch.events.push_back(std::move(event));
  core::log_warning("lost_tail_accepted", {{"lost", lost}, {"journal_id", log.head().journal_id()}});
  return log.commit(std::move(batch)).status();
}

class wired_rack final : public rack_daemon {
 public:
  static absl::StatusOr<std::unique_ptr<rack_daemon>> build(const manifest::daemon_config& config,
                                                            const wire_options& options);

  std::shared_ptr<core::snapshot_hub> hub() const override { return hub_; }
  core::event_source events() const override {
    return [log = log_](const journal::Position& from, std::uint64_t to, std::size_t limit) {
      return log->read_events(from, to, limit);
    };
  }
  void submit(std::shared_ptr<const core::command> what, core::answer_ptr answer) override {
    caf::anon_send(operations_, core::command_atom_v, std::move(what), std::move(answer));
  }
  std::vector<std::string> degraded() const override;
  std::string may_be_old() const override;
  bool failed() const override { return gone_->load() || log_->health() == storage::store_health::failed; }
  bool round_trip(std::chrono::milliseconds limit) override;
  bool stop_operations(std::chrono::milliseconds limit) override;
  bool stop_devices(std::chrono::milliseconds limit) override;
  bool stop_store(std::chrono::milliseconds limit) override;

 private:
  absl::Status open_store(const manifest::daemon_config& config, const wire_options& how);
  absl::Status open_doors(const manifest::daemon_config& config);
  void spawn_actors(const manifest::daemon_config& config);
  caf::expected<caf::actor> start_rack(const rack::rack_dependencies& with);

  // In order of building; the destructor takes them down in reverse.
  std::shared_ptr<storage::store> store_;
  std::shared_ptr<storage::journal_log> log_;
  mutable std::atomic<std::int64_t> no_writes_since_s_{0};  // 0: it takes them
  std::shared_ptr<core::snapshot_hub> hub_;
  std::shared_ptr<storage::vault> vault_;
  std::shared_ptr<rpc::worker> blocking_;
  std::shared_ptr<rack_slot> rack_ = std::make_shared<rack_slot>();
  std::shared_ptr<late_agent_gate> agents_;
  std::shared_ptr<rack::interlock_client> interlock_;
  std::shared_ptr<devices::redfish::curl_transport> io_;
  std::unique_ptr<actor_config> actor_config_;
  std::unique_ptr<caf::actor_system> actors_;
  std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
  std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);
  core::journal_actor journal_;
  core::operations_actor operations_;
  caf::actor supervisor_;
};

absl::Status wired_rack::open_store(const manifest::daemon_config& config, const wire_options& how) {
  const std::string mark = (config.state_dir / "journal_id").string();
  storage::rocks_options on_disk;
  on_disk.directory = (config.state_dir / "store").string();
  storage::journal_options options;
  options.clock = storage::machine_instant;
  options.boot_id = storage::machine_boot_id();
  options.evidence_directory = (config.state_dir / "evidence").string();
  if (!how.accept_empty_store) {
    if (auto there = storage::check_store_is_there(mark, on_disk.directory); !there.ok()) return there;
  }
  for (const std::string& folder :
       {config.state_dir.string(), on_disk.directory, options.evidence_directory}) {
    if (auto made = make_private_folder(folder); !made.ok()) return made;
  }
  std::string lost;
  const std::string store_folder = on_disk.directory;
  if (how.accept_lost_tail) {
    if (auto room = storage::check_room(store_folder); !room.ok()) return room;
    auto cut = storage::cut_lost_tail(store_folder);
    if (!cut.ok()) return cut.status();
    lost = *std::move(cut);
    on_disk.logs_were_cut = options.restored = !lost.empty();
    if (lost.empty()) core::log_info("no_tail_is_lost", {{"store", store_folder}});
  }
  auto store = storage::open_rocks_store(std::move(on_disk));
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  auto log = storage::journal_log::open(store_, std::move(options));
  if (!log.ok()) return log.status();
  log_ = *std::move(log);
  const absl::Status ours = storage::check_store_is_ours(mark, *log_);
  if (!ours.ok() && !how.accept_empty_store) return ours;
  if (!ours.ok()) {
    core::log_warning("other_store_accepted",
                      {{"journal_id", log_->head().journal_id()}, {"why", std::string(ours.message())}});
  }
  if (auto marked = storage::mark_journal(mark, *log_); !marked.ok()) return marked;
  if (!lost.empty()) {
    if (auto told = record_lost_tail(*log_, config.instance, lost); !told.ok()) return told;
    if (auto kept = storage::finish_cut(store_folder); !kept.ok()) return kept;
  }
  auto contents = log_->load();
  if (!contents.ok()) return contents.status();
  core::log_info("store_opened",
                 {{"revision", log_->head().revision()}, {"open_intents", contents->open_intents.size()}});
  core::hub_options hub_options;
  hub_options.history = events();
  hub_ = std::make_shared<core::snapshot_hub>(contents->state, std::move(hub_options));
  auto vault = storage::vault::open(store_, config.vault_key_file.string());
  if (!vault.ok()) return vault.status();
  vault_ = *std::move(vault);
  return absl::OkStatus();
}

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
  io_ = std::make_shared<devices::redfish::curl_transport>();
  return absl::OkStatus();
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
  journal_ = core::spawn_journal(*actors_, {log_, hub_}, {}, true);
  operations_ = core::spawn_operations(*actors_, {journal_, hub_, storage::machine_instant}, {});

  rack::rack_dependencies with;
  with.journal = journal_;
  with.operations = operations_;
  with.hub = hub_;
  with.drivers = devices::redfish::make_redfish_factory(io_, io_);
  with.secrets = std::make_shared<daemon_secrets>(vault_, config.site_dir.string());
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
  if (auto status = made->open_store(config, options); !status.ok()) return status;
  if (auto status = made->open_doors(config); !status.ok()) return status;
  made->spawn_actors(config);
  return absl::StatusOr<std::unique_ptr<rack_daemon>>(std::move(made));
}

// What a member says is shown when it is durable, so that nothing new is shown while nothing is written.
std::string wired_rack::may_be_old() const {
  const auto health = log_->health();
  if (health == storage::store_health::serving || health == storage::store_health::shedding) {
    no_writes_since_s_.store(0);
    return {};
  }
  std::int64_t since_s = 0;
  const std::int64_t now_s = storage::machine_instant().wall_ns / 1'000'000'000;
  if (no_writes_since_s_.compare_exchange_strong(since_s, now_s)) since_s = now_s;
  return fmt::format("the store takes no writes since {:%Y-%m-%dT%H:%M:%SZ}; what is shown may be old",
                     fmt::gmtime(static_cast<std::time_t>(since_s)));
}

std::vector<std::string> wired_rack::degraded() const {
  static_cast<void>(may_be_old());  // looked at every few seconds: so the time of the change is known

  std::vector<std::string> reasons;
  if (const auto health = log_->health(); health != storage::store_health::serving) {
    reasons.push_back(fmt::format("store is {}", storage::name_of(health)));
  }
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
  if (rack == nullptr || log_->health() == storage::store_health::failed) return false;
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
  rack_->set(rack::rack_actor{});
  interlock_->observe({});
  agents_->stop(std::chrono::seconds(2));
  blocking_->stop();
  io_.reset();
  return ended;
}

bool wired_rack::stop_store(std::chrono::milliseconds limit) {
  const bool ended = end_actor(*actors_, journal_, limit, tell_exit);
  hub_->close();
  if (!ended) return false;
  actors_.reset();
  return log_->close().ok();
}

}  // namespace

absl::StatusOr<std::unique_ptr<rack_daemon>> wire(const manifest::daemon_config& config,
                                                  const wire_options& options) {
  return wired_rack::build(config, options);
}

}  // namespace busbar::daemon
