#include "tests/sim/rack_world.hpp"

#include <caf/send.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "actors/core/journal_actor.hpp"
#include "actors/core/operations_actor.hpp"
#include "actors/devices/redfish/redfish_bmc.hpp"
#include "actors/node/detector_logic.hpp"
#include "daemon/busbard/wiring_secrets.hpp"
#include "gpu/judge/agent_results.hpp"
#include "storage/memory_store.hpp"
#include "storage/rocks_store.hpp"
#include "storage/vault.hpp"
#include "tests/sim/site_note.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace busbar::test_support {
namespace {

using namespace std::chrono_literals;

constexpr const char* rack_name = "r01";

node::judged_suite judge(const journal::Suite& suite, const std::string& run_id,
                         const std::vector<std::string>& members, std::uint32_t gpus,
                         const std::map<std::string, std::string>& limits,
                         const std::map<std::string, std::vector<agent::Measurement>>& measured) {
  const gpu::judgement judged = gpu::judge_agents(suite, run_id, members, gpus, limits, measured);
  return {judged.result, gpu::evidence_text(judged)};
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return file ? std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>())
              : std::string();
}

// Keeps the answer, or that it was lost with the daemon.
class kept_answer final : public core::command_answer {
 public:
  ~kept_answer() override = default;
  void finish(absl::StatusOr<core::command_result> result) const override {
    if (!kept->has_value()) *kept = std::move(result);
  }
  std::shared_ptr<std::optional<absl::StatusOr<core::command_result>>> kept =
      std::make_shared<std::optional<absl::StatusOr<core::command_result>>>();
};

}  // namespace

// ---- what ends with a daemon's life
// ------------------------------------------------------------------------------------------------

// The disk as one life sees it: after the crash nothing of that life reaches it any more.
class rack_world::severable_store final : public storage::store {
 public:
  explicit severable_store(std::shared_ptr<storage::store> below) : below_(std::move(below)) {}
  void sever() { severed_ = true; }

  absl::Status write(const storage::store_write& batch) override {
    return severed_ ? absl::UnavailableError("this life has ended") : below_->write(batch);
  }
  absl::StatusOr<std::optional<std::string>> get(storage::family where, std::string_view key) const override {
    return below_->get(where, key);
  }
  absl::Status scan(storage::family where, std::string_view from, std::string_view to,
                    const visitor& visit) const override {
    return below_->scan(where, from, to, visit);
  }
  absl::Status scan_back(storage::family where, std::string_view from, std::string_view to,
                         const visitor& visit) const override {
    return below_->scan_back(where, from, to, visit);
  }
  storage::store_health health() const override { return below_->health(); }
  absl::Status probe() override {
    return severed_ ? absl::UnavailableError("this life has ended") : below_->probe();
  }
  absl::Status close() override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<storage::store> below_;
  bool severed_ = false;
};

class rack_world::interlock_door final : public rack::interlock_port {
 public:
  interlock_door(test::fake_interlock& behind, const bool& silent, std::function<void()> told)
      : behind_(behind), silent_(silent), told_(std::move(told)) {}
  void close() {
    open_ = false;
    behind_.observe({});
  }
  void arm(const interlock::ArmingRecord& record, done reply) override {
    if (open_ && !silent_) behind_.arm(record, std::move(reply));
  }
  void announce_blind_window(std::string device, std::chrono::milliseconds length, done reply) override {
    if (open_ && !silent_) behind_.announce_blind_window(std::move(device), length, std::move(reply));
  }
  void read_latches(std::uint64_t after,
                    std::function<void(absl::Status, std::vector<interlock::Latch>)> reply) override {
    if (open_ && !silent_) behind_.read_latches(after, std::move(reply));
  }
  std::shared_ptr<const rack::interlock_view> last() const override { return behind_.last(); }
  void observe(observer watcher) override {
    if (!open_) return;
    behind_.observe([watcher = std::move(watcher),
                     told = told_](const std::shared_ptr<const rack::interlock_view>& view) {
      watcher(view);
      told();
    });
  }

 private:
  test::fake_interlock& behind_;
  const bool& silent_;
  const std::function<void()> told_;
  bool open_ = true;
};

struct rack_world::life {
  std::shared_ptr<severable_store> store;
  std::shared_ptr<site_transport> transport;
  std::shared_ptr<interlock_door> to_interlock;
};

struct disk {
  std::shared_ptr<storage::store> store;
  std::optional<storage::temporary_folder> folder;

  void open() {
    if (!folder.has_value()) return;
    if (store != nullptr) {
      EXPECT_TRUE(store->close().ok());
    }
    store.reset();
    storage::rocks_options on_disk;
    on_disk.directory = folder->file("store");
    auto opened = storage::open_rocks_store(std::move(on_disk));
    ASSERT_TRUE(opened.ok()) << opened.status();
    store = *std::move(opened);
  }
};

// ---- building and ending
// -------------------------------------------------------------------------------------------------------------

rack_world::rack_world(simulation& simulated, const world_options& options)
    : sim(simulated), options_(options), disk_(std::make_unique<disk>()) {
  spec_ = delivered().spec;
  // What cannot come shall be given up after a minute or two, not after hours of polling.
  for (auto& [step, limit] : *spec_.mutable_baseline()->mutable_deadlines())
    limit.set_seconds(std::min<std::int64_t>(limit.seconds(), step == "firmware" ? 120 : 60));
  if (options_.change_spec != nullptr) options_.change_spec(spec_);
  if (options_.on_disk) {
    disk_->folder.emplace();
    disk_->open();
  } else {
    disk_->store = std::make_shared<storage::memory_store>();
  }
  build_site();
  sim.add_invariant("rack", [this] { return look(); });
  start();
}

rack_world::~rack_world() {
  end_life();
  if (options_.on_disk && disk_->store != nullptr) {
    EXPECT_TRUE(disk_->store->close().ok());
  }
}

void rack_world::build_site() {
  sim::site_options options;
  options.sku = "vr-4x1";
  options.profile = "instant";
  options.seed = site_seed;
  options.rack_controllers = true;
  options.start = std::chrono::duration_cast<sim::instant>(sim.now().time_since_epoch());
  auto made = sim::site::make(options);
  ASSERT_TRUE(made.ok()) << made.status();
  site = *std::move(made);
  wire = std::make_unique<site_wire>(sim.devices(), *site,
                                     [this](std::uint64_t bound) { return sim.choose(bound); });
  agents = std::make_unique<site_agents>(sim.devices(), *site);
  watch = std::make_unique<rack_watch>(*site, *agents, spec_);
  sim::site_hooks hooks;
  hooks.on_host_boot = [this](const std::string& member, const std::string& uri) {
    agents->host_booted(member, uri);
  };
  hooks.on_host_off = [this](const std::string& member) { agents->host_off(member); };
  hooks.on_request = [this](const sim::journal_record& record) { watch->on_record(record); };
  site->set_hooks(std::move(hooks));
  wire->listen(
      [this](const std::string& address, const sim::http_request& request) {
        watch->on_sent(address, request.method, request.target, request.body);
      },
      [this](const std::string& address, const sim::http_request& request, const sim::http_reply& reply) {
        watch->on_answer(address, request.method, request.target, reply.body);
      });
}

void rack_world::start() {
  ++lives_;
  close_trips_later();
  life_ = std::make_shared<life>();
  life_->store = std::make_shared<severable_store>(disk_->store);
  storage::journal_options options;
  options.clock = [this] { return core::instant{now().count(), sim.wall_ns()}; };
  options.boot_id = "boot-of-test";
  auto opened = storage::journal_log::open(life_->store, std::move(options));
  ASSERT_TRUE(opened.ok()) << opened.status();
  log_ = *std::move(opened);
  const auto contents = log_->load();
  ASSERT_TRUE(contents.ok()) << contents.status();
  core::hub_options hub_options;
  hub_options.history = [log = log_](const journal::Position& from, std::uint64_t to, std::size_t limit) {
    return log->read_events(from, to, limit);
  };
  const auto before = hub_ == nullptr ? nullptr : hub_->read();
  hub_ = std::make_shared<core::snapshot_hub>(contents->state, std::move(hub_options));
  if (before != nullptr) {
    if (const auto what = difference_of(*before, *hub_->read()))
      watch->report("what was acknowledged is not what is stored after a crash: " + *what);
  }
  watch->see_with([this] { return hub_->read(); },
                  [this](const std::string& member) { return gate_is_open(member); });
  watch->on_state(hub_->read());
  watch->nothing_is_known();
  wire_rack();
  wire->resume();
  site_due_.reset();
  arm_site();
  beat();
}

void rack_world::wire_rack() {
  const site_note& note = delivered();
  const auto clock = [this] { return core::instant{now().count(), sim.wall_ns()}; };
  auto vault = storage::vault::open(life_->store, note.key_file);
  ASSERT_TRUE(vault.ok()) << vault.status();
  life_->transport = std::make_shared<site_transport>(sim.devices(), *wire);
  life_->to_interlock = std::make_shared<interlock_door>(interlock, silent_, [this] { gates_moved(); });
  journal_ = core::spawn_journal(sim.actors(), {log_, hub_}, {}, false);
  operations_ = core::spawn_operations(sim.actors(), {journal_, hub_, clock}, {});
  auto slot = std::make_shared<rack::rack_actor>();

  rack::rack_dependencies with;
  with.journal = journal_;
  with.operations = operations_;
  with.hub = hub_;
  with.drivers = devices::redfish::make_redfish_factory(life_->transport, life_->transport);
  with.secrets = std::make_shared<daemon::daemon_secrets>(*std::move(vault), note.folder);
  with.agents = agents->door([this](validation::agent_event event) {
    if (rack_ == nullptr) return;
    caf::anon_send(rack_,
                   rack::agent_event_ptr(std::make_shared<const validation::agent_event>(std::move(event))));
  });
  with.interlock = life_->to_interlock;
  with.judge = judge;
  with.clock = clock;
  with.run_blocking = [](const std::function<void()>& work) { work(); };
  with.read_file = [change = options_.change_leases](const std::string& path) {
    return change == nullptr ? read_file(path) : change(read_file(path));
  };
  with.new_uuid = [number = std::make_shared<std::uint64_t>(0)] {
    return "0badc0de-0000-4000-8000-" + std::to_string(100'000'000'000 + ++*number);
  };
  with.open_agent_gate = [](const std::string&) {};
  with.outlets = options_.outlets;
  with.instance = rack_name;
  with.site_dir = note.folder;
  rack_ = rack::spawn_rack(sim.actors(), std::move(with));
  caf::anon_send(operations_, core::bind_atom_v, caf::actor_cast<caf::strong_actor_ptr>(rack_));
}

void rack_world::end_life() {
  if (life_ == nullptr) return;
  life_->store->sever();
  life_->transport->cut();
  life_->to_interlock->close();
  agents->close_door();
  wire->forget_all();
  rack_ = nullptr;
  operations_ = nullptr;
  journal_ = nullptr;
  if (const std::size_t left = sim.stop_all(); left != 0)
    watch->report(std::to_string(left) + " actors outlived the daemon");
  hub_->close();
  log_.reset();
  life_.reset();
}

void rack_world::crash() {
  sim.note("crash of life " + std::to_string(lives_));
  end_life();
  if (options_.on_disk) disk_->open();
  start();
}

void rack_world::crash_at_step(std::uint64_t step) {
  sim.limits.fault_per_mille = 1000;  // possible() decides
  sim.add_fault(
      "crash", [this] { crash(); }, 1, [this, step] { return steps_ >= step; });
}

std::optional<std::string> rack_world::look() {
  ++steps_;
  arm_site();
  watch->on_state(hub_->read());
  if (watch->broken().has_value()) return watch->broken();
  if (life_ != nullptr && life_->transport->peak() > 2)
    return "more than two requests were open at one device";
  return std::nullopt;
}

// ---- what a scenario does
// ---------------------------------------------------------------------------------------------------------------

std::optional<std::string> rack_world::run_until(const std::function<bool()>& done) {
  const exploration_outcome outcome = sim.run(done);
  auto what = outcome.failure();
  if (what.has_value()) *what += "\n" + describe();
  return what;
}

std::optional<std::string> rack_world::run(const std::string& verb, const std::string& target,
                                           std::map<std::string, std::string> arguments) {
  auto command = std::make_shared<core::command>();
  command->verb = verb;
  command->target = target;
  command->arguments = std::move(arguments);
  command->request_id = "request-" + std::to_string(next_request_++);
  command->request_digest = std::string(32, 'd');
  command->principal.set_name(who);
  command->reason = "a scenario";
  if (verb == "manifest_apply") command->spec = std::make_shared<const journal::RackSpec>(spec_);
  std::uint64_t asked_in_life = 0;
  ended_ = {};
  auto answer = std::make_shared<const kept_answer>();
  return run_until([this, command, answer = std::move(answer), asked_in_life]() mutable {
    const bool again =
        answer->kept->has_value() && !(*answer->kept)->ok() && absl::IsUnavailable((*answer->kept)->status());
    if (asked_in_life != lives_ &&
        (!answer->kept->has_value() || again)) {  // first, or lost with the daemon: the same request again
      asked_in_life = lives_;
      answer = std::make_shared<const kept_answer>();
      caf::anon_send(operations_, core::command_atom_v, core::command_ptr(command), core::answer_ptr(answer));
      return false;
    }
    if (!answer->kept->has_value()) return false;
    const auto& result = **answer->kept;
    if (!result.ok()) {
      ended_ = {"", "REFUSED", std::string(result.status().message())};
      return true;
    }
    const auto operation = hub_->read()->operation(result->operation_id);
    if (operation == nullptr || operation->state() == "RUNNING") return false;
    ended_ = {operation->id(), operation->state(), operation->fault()};
    return true;
  });
}

std::optional<std::string> rack_world::pass(std::chrono::milliseconds time) {
  const auto end = sim.now() + time;
  sim.devices().after(time, [] {});
  return run_until([this, end] { return sim.now() >= end; });
}

void rack_world::fill_disk(bool full) {
  const auto in_memory = std::dynamic_pointer_cast<storage::memory_store>(disk_->store);
  ASSERT_NE(in_memory, nullptr);
  in_memory->fill_disk(full);
}

std::optional<std::string> rack_world::check_at_rest() {
  storage::journal_options options;
  options.clock = [this] { return core::instant{now().count(), sim.wall_ns()}; };
  options.boot_id = "boot-of-test";
  const auto opened =
      storage::journal_log::open(std::make_shared<severable_store>(disk_->store), std::move(options));
  if (!opened.ok()) return "what is stored does not open: " + std::string(opened.status().message());
  const auto contents = (*opened)->load();
  if (!contents.ok()) return "what is stored does not load: " + std::string(contents.status().message());
  if (const auto what = difference_of(*hub_->read(), *contents->state))
    return "stored state is not acknowledged state: " + *what;
  if (const auto audit = (*opened)->verify_audit(); !audit.ok())
    return "the audit chain is broken: " + std::string(audit.message());
  for (const auto& [name, entry] : *hub_->read()->nodes) {
    const journal::SuiteResult& suite = entry.object->suite();
    if (suite.verdict() == journal::SuiteResult::PASS && !(*opened)->read_evidence(suite.evidence()).ok())
      return name + ": its evidence is not stored";
  }
  for (const auto& [id, entry] : *hub_->read()->operations) {
    if (entry.object->state() == "RUNNING") return id + " has not ended";
  }
  return watch->broken();
}

// ---- what it looks at
// ---------------------------------------------------------------------------------------------------------------------

std::string rack_world::fault_of(const std::string& member) const {
  const auto found = node(member);
  return found == nullptr ? "no such member" : found->failure().fault();
}

std::vector<std::shared_ptr<const journal::Event>> rack_world::events() const {
  journal::Position from;
  from.set_journal_id(state()->position.journal_id());
  auto read = log_->read_events(from, state()->position.revision(), 1'000'000);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *std::move(read) : std::vector<std::shared_ptr<const journal::Event>>{};
}

std::string rack_world::address_of(const std::string& member) const {
  for (const sim::device_identity& each : site->devices()) {
    if (each.member == member) return each.address;
  }
  return {};
}

std::string rack_world::truth(const std::string& path) {
  const auto text = site->truth(path, now());
  return text.ok() ? *text : std::string(text.status().message());
}

std::string rack_world::describe() const {
  std::string text = "life " + std::to_string(lives_) + ", step " + std::to_string(steps_) + ", " +
                     std::to_string(wire->served()) + " requests\n";
  const auto stored = state();
  if (const auto one = stored->rack(rack_name)) {
    text += "  r01 " + journal::RackStep_Name(one->step()) + " " + one->state() +
            " waits for: " + one->waits_for() + " " + one->failure().fault() + " " +
            one->failure().message() + "\n";
  }
  for (const auto& [name, entry] : *stored->nodes) {
    const journal::Node& one = *entry.object;
    text += "  " + name + " " + journal::NodeStep_Name(one.step()) + " waits for: " + one.waits_for() + " " +
            one.failure().fault() + " " + one.failure().message() + "\n";
  }
  for (const auto& [id, entry] : *stored->operations)
    text += "  " + id + " " + entry.object->verb() + " " + entry.object->state() + "\n";
  return text;
}

}  // namespace busbar::test_support
