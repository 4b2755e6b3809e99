#include "tests/integration/edge/test_rack.hpp"

#include <caf/actor_cast.hpp>
#include <caf/after.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "actors/core/error_bridge.hpp"

namespace busbar::test {
namespace {

using namespace core;

owner_actor::behavior_type toy_owner(owner_actor::pointer self, operations_actor operations) {
  return {
      [](submit_atom, const command_ptr& what, const std::string&) -> caf::result<command_result_ptr> {
        if (what->arguments.contains("from") && what->arguments.at("from") == "production") {
          return make_fault_error(fault::OPERATION_CONFLICT, "only backwards");
        }
        return command_result_ptr(std::make_shared<const command_result>(command_result{"", "begun", {}}));
      },
      [](resume_atom, const operation_ptr&) {},
      [self, operations](cancel_atom, const std::string& id) {
        self->send(operations, operation_end_ptr(std::make_shared<const operation_end>(
                                   operation_end{id, "CANCELLED", "", "by request"})));
      },
  };
}

template <class Handle>
bool end_actor(caf::actor_system& system, Handle& handle, std::chrono::milliseconds limit) {
  if (handle == nullptr) return true;
  caf::scoped_actor self(system);
  self->monitor(handle);
  caf::anon_send_exit(handle, caf::exit_reason::user_shutdown);
  handle = nullptr;
  bool down = false;
  self->receive([&down](const caf::down_msg&) { down = true; }, caf::after(limit) >> [] {});
  return down;
}

}  // namespace

test_rack::configuration::configuration() {
  config_file_path.clear();
  set("scheduler.max-threads", 2);
}

test_rack::test_rack(std::shared_ptr<storage::memory_store> disk) : disk_(std::move(disk)), system_(config_) {
  storage::journal_options options;
  options.clock = storage::machine_instant;
  options.boot_id = "boot";
  auto log = storage::journal_log::open(disk_, options);
  if (!log.ok()) std::abort();
  log_ = *log;
  auto contents = log_->load();
  if (!contents.ok()) std::abort();
  hub_ = std::make_shared<snapshot_hub>(contents->state, hub_options{8192, events()});
  journal_ = spawn_journal(system_, {log_, hub_}, {}, true);
  operations_ = spawn_operations(system_, {journal_, hub_, storage::machine_instant}, {});
  owner_ = system_.spawn(toy_owner, operations_);
  caf::anon_send(operations_, bind_atom_v, caf::actor_cast<caf::strong_actor_ptr>(owner_));
}

test_rack::~test_rack() {
  const std::chrono::milliseconds limit(5000);
  stop_operations(limit);
  stop_devices(limit);
  stop_store(limit);
}

core::event_source test_rack::events() const {
  return [log = log_](const journal::Position& from, std::uint64_t to, std::size_t limit) {
    return log->read_events(from, to, limit);
  };
}

void test_rack::submit(std::shared_ptr<const core::command> what, core::answer_ptr answer) {
  if (interceptor_) return interceptor_(std::move(what), std::move(answer));
  if (operations_ == nullptr) return;  // the answer ends itself
  caf::anon_send(operations_, command_atom_v, command_ptr(std::move(what)), std::move(answer));
}

bool test_rack::round_trip(std::chrono::milliseconds limit) {
  caf::scoped_actor self(system_);
  bool ok = false;
  self->request(operations_, limit, status_atom_v)
      .receive([&ok](const actor_status&) { ok = true; }, [](const caf::error&) {});
  return ok;
}

bool test_rack::stop_operations(std::chrono::milliseconds limit) { return end_actor(system_, operations_, limit); }

bool test_rack::stop_devices(std::chrono::milliseconds limit) { return end_actor(system_, owner_, limit); }

bool test_rack::stop_store(std::chrono::milliseconds limit) {
  const bool ended = end_actor(system_, journal_, limit);
  hub_->close();
  return ended;
}

journal::Position test_rack::commit(core::journal_batch batch) {
  caf::scoped_actor self(system_);
  journal::Position position;
  self->request(journal_, std::chrono::seconds(10), commit_atom_v,
                batch_ptr(std::make_shared<const journal_batch>(std::move(batch))))
      .receive([&position](const commit_ptr& done) { position = done->position; },
               [](const caf::error&) { std::abort(); });
  return position;
}

void test_rack::declare(int compute_trays) {
  core::journal_batch batch;
  auto rack = std::make_shared<journal::Rack>();
  rack->set_name("r01");
  rack->set_state("planned");
  rack->mutable_spec()->set_digest("d1");
  batch.put(std::shared_ptr<const journal::Rack>(rack));
  for (int i = 1; i <= compute_trays; ++i) {
    batch.put(std::make_shared<const journal::Node>(full_node(fmt::format("r01/c{:02}", i), journal::COMPUTE_TRAY)));
  }
  batch.put(std::make_shared<const journal::Node>(full_node("r01/s01", journal::SWITCH_TRAY)));
  batch.put(std::make_shared<const journal::Node>(full_node("r01/p01", journal::POWER_SHELF)));
  commit(std::move(batch));
}

void test_rack::set_step(const std::string& name, journal::NodeStep step) {
  auto node = std::make_shared<journal::Node>(*hub_->read()->node(name));
  node->set_step(step);
  core::journal_batch batch;
  batch.put(std::shared_ptr<const journal::Node>(node));
  journal::Event event;
  event.set_object(name);
  event.set_kind("node");
  event.set_type("step_entered");
  batch.events.push_back(std::move(event));
  commit(std::move(batch));
}

void test_rack::end_operation(const std::string& id, const std::string& state) {
  const auto operation = hub_->read()->operation(id);
  for (const auto& row : operation->components()) {
    caf::anon_send(operations_, component_update_ptr(std::make_shared<const component_update>(
                                    component_update{id, row.target(), "SUCCEEDED", "production", "", ""})));
  }
  caf::anon_send(operations_, operation_end_ptr(std::make_shared<const operation_end>(operation_end{id, state, "", ""})));
}

journal::Node full_node(const std::string& name, journal::MemberKind kind) {
  journal::Node node;
  node.set_name(name);
  node.set_uid("5d1c0f0e-0000-4000-8000-" + name);
  node.mutable_spec()->set_slot(name.substr(name.find('/') + 1));
  node.mutable_spec()->set_kind(kind);
  node.mutable_spec()->set_bmc_mac("02:00:00:00:00:07");
  node.set_step(journal::DECLARED);
  node.mutable_identity()->set_serial("SN-0001");
  node.mutable_identity()->set_pin_sha256(std::string(64, 'a'));
  node.mutable_power()->set_observed(journal::POWER_ON);
  for (int i = 0; i < 4; ++i) {
    journal::Part& part = *node.add_parts();
    part.set_kind("gpu");
    part.set_id(fmt::format("GPU{}", i));
    part.set_model("GPU-288GB");
    part.set_serial(fmt::format("G{:08}", i));
    part.set_memory_gib(288);
    part.set_links_up(18);
    journal::Detector& detector = *node.add_detectors();
    detector.set_name(fmt::format("detector{}", i));
    detector.set_verdict(journal::Detector::DRY);
    journal::FirmwareProgress& row = *node.add_firmware();
    row.set_component(fmt::format("component{}", i));
    row.set_wanted("1.2.3");
    row.set_seen("1.2.3");
    row.set_state(journal::FirmwareProgress::CURRENT);
  }
  return node;
}

}  // namespace busbar::test
