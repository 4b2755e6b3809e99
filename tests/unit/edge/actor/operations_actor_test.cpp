#include "actors/core/operations_actor.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/core/error_bridge.hpp"
#include "actors/core/journal_actor.hpp"
#include "storage/journal_log.hpp"
#include "storage/memory_store.hpp"
#include "tests/support/deterministic.hpp"

namespace busbar::core {
namespace {

// What the owner was told, and how it answers.
struct owner_world {
  std::optional<caf::error> refuse;
  bool silent = false;
  std::vector<std::string> submitted;
  std::vector<std::string> resumed;
  std::vector<std::string> cancelled;
};

owner_actor::behavior_type owner(owner_actor::pointer self, std::shared_ptr<owner_world> world) {
  return {
      [self, world](submit_atom, const command_ptr&, const std::string& id) -> caf::result<command_result_ptr> {
        world->submitted.push_back(id);
        if (world->silent) {
          self->make_response_promise<command_result_ptr>();
          return caf::delegated<command_result_ptr>();
        }
        if (world->refuse.has_value()) return *world->refuse;
        return command_result_ptr(std::make_shared<const command_result>(command_result{"", "begun", {}}));
      },
      [world](resume_atom, const operation_ptr& operation) { world->resumed.push_back(operation->id()); },
      [world](cancel_atom, const std::string& id) { world->cancelled.push_back(id); },
  };
}

// What a client would see.
struct answer_seen {
  int times = 0;
  absl::StatusOr<command_result> result;
};

class recorded_answer final : public command_answer {
 public:
  explicit recorded_answer(std::shared_ptr<answer_seen> seen) : seen_(std::move(seen)) {}
  ~recorded_answer() override { finish(absl::UnavailableError("dropped")); }
  void finish(absl::StatusOr<command_result> result) const override {
    if (done_) return;
    done_ = true;
    ++seen_->times;
    seen_->result = std::move(result);
  }

 private:
  std::shared_ptr<answer_seen> seen_;
  mutable bool done_ = false;
};

class operations_actor_test : public test_support::deterministic_fixture {
 protected:
  void SetUp() override { start(std::make_shared<storage::memory_store>()); }
  void TearDown() override {
    operations_ = nullptr;
    journal_ = nullptr;
    owner_ = nullptr;
    deterministic_fixture::TearDown();
  }

  void start(std::shared_ptr<storage::memory_store> disk) {
    disk_ = std::move(disk);
    storage::journal_options options;
    options.clock = [this] { return instant{now().time_since_epoch().count(), wall_ns()}; };
    options.boot_id = "boot";
    auto log = storage::journal_log::open(disk_, options);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *log;
    auto contents = log_->load();
    ASSERT_TRUE(contents.ok()) << contents.status();
    hub_ = std::make_shared<snapshot_hub>(contents->state);
    journal_ = spawn_journal(actors(), {log_, hub_}, {}, false);
    operations_ = spawn_operations(actors(), {journal_, hub_, options.clock}, config_);
    world_ = std::make_shared<owner_world>();
    settle();
  }

  void add_rack() {
    journal_batch batch;
    auto rack = std::make_shared<journal::Rack>();
    rack->set_name("r01");
    batch.put(std::shared_ptr<const journal::Rack>(rack));
    for (const char* slot : {"c01", "c02"}) {
      auto node = std::make_shared<journal::Node>();
      node->set_name(std::string("r01/") + slot);
      node->mutable_spec()->set_kind(journal::COMPUTE_TRAY);
      batch.put(std::shared_ptr<const journal::Node>(node));
    }
    ASSERT_TRUE(ask<commit_ptr>(journal_, commit_atom_v, batch_ptr(std::make_shared<const journal_batch>(batch))));
  }

  void bind_owner() {
    owner_ = actors().spawn(owner, world_);
    caf::anon_send(operations_, bind_atom_v, caf::actor_cast<caf::strong_actor_ptr>(owner_));
    settle();
  }

  static std::shared_ptr<command> bringup(std::string request_id = "a") {
    auto what = std::make_shared<command>();
    what->verb = "rack_bringup";
    what->target = "r01";
    what->request_id = std::move(request_id);
    what->request_digest = "1";
    return what;
  }

  std::shared_ptr<answer_seen> send(std::shared_ptr<const command> what) {
    auto seen = std::make_shared<answer_seen>();
    caf::anon_send(operations_, command_atom_v, command_ptr(std::move(what)), answer_ptr(std::make_shared<recorded_answer>(seen)));
    return seen;
  }

  void report(component_update update) {
    caf::anon_send(operations_, component_update_ptr(std::make_shared<const component_update>(std::move(update))));
    settle();
  }
  void report(operation_end end) {
    caf::anon_send(operations_, operation_end_ptr(std::make_shared<const operation_end>(std::move(end))));
    settle();
  }

  operations_config config_;
  std::shared_ptr<storage::memory_store> disk_;
  std::shared_ptr<storage::journal_log> log_;
  std::shared_ptr<snapshot_hub> hub_;
  std::shared_ptr<owner_world> world_;
  journal_actor journal_;
  operations_actor operations_;
  owner_actor owner_;
};

TEST_F(operations_actor_test, is_durable_before_the_owner_hears_of_it) {
  add_rack();
  bind_owner();
  const auto seen = send(bringup());
  while (world_->submitted.empty() && !coordinator().jobs.empty()) run_job(0);
  ASSERT_EQ(world_->submitted.size(), 1u);
  EXPECT_NE(hub_->read()->operation("operations/1"), nullptr);
  settle();
  ASSERT_EQ(seen->times, 1);
  ASSERT_TRUE(seen->result.ok()) << seen->result.status();
  EXPECT_EQ(seen->result->operation_id, "operations/1");
}

TEST_F(operations_actor_test, runs_to_its_end) {
  add_rack();
  bind_owner();
  send(bringup());
  settle();
  report(component_update{"operations/1", "r01/c01", "SUCCEEDED", "production", "", ""});
  report(component_update{"operations/1", "r01/c02", "SUCCEEDED", "production", "", ""});
  report(operation_end{"operations/1", "SUCCEEDED", "", ""});
  const auto operation = hub_->read()->operation("operations/1");
  EXPECT_EQ(operation->state(), "SUCCEEDED");
  EXPECT_GT(operation->ended_wall_ns(), 0);
}

TEST_F(operations_actor_test, answers_a_repeated_request_with_the_same_operation) {
  add_rack();
  bind_owner();
  const auto first = send(bringup());
  const auto second = send(bringup());  // before the first is answered
  settle();
  const auto third = send(bringup());
  settle();
  for (const auto& seen : {first, second, third}) {
    ASSERT_EQ(seen->times, 1);
    ASSERT_TRUE(seen->result.ok()) << seen->result.status();
    EXPECT_EQ(seen->result->operation_id, "operations/1");
  }
  EXPECT_EQ(world_->submitted.size(), 1u);
}

TEST_F(operations_actor_test, a_refusal_of_the_owner_ends_it_and_reaches_the_client) {
  add_rack();
  bind_owner();
  world_->refuse = make_fault_error(fault::OPERATION_CONFLICT, "r01 is shutting down");
  const auto seen = send(bringup());
  settle();
  ASSERT_EQ(seen->times, 1);
  EXPECT_EQ(fault_of(seen->result.status()), fault::OPERATION_CONFLICT);
  EXPECT_EQ(hub_->read()->operation("operations/1")->state(), "FAILED");
  const auto again = send(bringup());
  settle();
  EXPECT_EQ(fault_of(again->result.status()), fault::OPERATION_CONFLICT);
  EXPECT_EQ(world_->submitted.size(), 1u);
}

TEST_F(operations_actor_test, an_owner_that_never_answers_ends_it_too) {
  add_rack();
  bind_owner();
  world_->silent = true;
  const auto seen = send(bringup());
  settle();
  EXPECT_EQ(seen->times, 0);
  advance(submit_timeout + std::chrono::seconds(1));
  ASSERT_EQ(seen->times, 1);
  EXPECT_FALSE(seen->result.ok());
  EXPECT_EQ(hub_->read()->operation("operations/1")->state(), "FAILED");
  EXPECT_EQ(world_->cancelled, std::vector<std::string>{"operations/1"});
}

TEST_F(operations_actor_test, its_deadline_ends_it_and_stops_the_owner) {
  config_.deadlines["rack_bringup"] = std::chrono::seconds(60);
  operations_ = nullptr;
  start(std::make_shared<storage::memory_store>());
  add_rack();
  bind_owner();
  send(bringup());
  settle();
  advance(std::chrono::seconds(62));
  EXPECT_EQ(hub_->read()->operation("operations/1")->fault(), "DEADLINE");
  EXPECT_EQ(world_->cancelled, std::vector<std::string>{"operations/1"});
}

TEST_F(operations_actor_test, a_full_disk_refuses_the_command_and_begins_nothing) {
  add_rack();
  bind_owner();
  disk_->fill_disk(true);
  const auto seen = send(bringup());
  settle();
  ASSERT_EQ(seen->times, 1);
  EXPECT_EQ(fault_of(seen->result.status()), fault::STORE_READ_ONLY);
  EXPECT_TRUE(world_->submitted.empty());
  EXPECT_EQ(hub_->read()->operation("operations/1"), nullptr);
}

TEST_F(operations_actor_test, an_end_that_the_disk_refused_is_written_when_it_recovers) {
  add_rack();
  bind_owner();
  send(bringup());
  settle();
  disk_->fill_disk(true);
  report(operation_end{"operations/1", "CANCELLED", "", ""});
  EXPECT_EQ(hub_->read()->operation("operations/1")->state(), "RUNNING");
  disk_->fill_disk(false);
  advance(std::chrono::seconds(10));
  EXPECT_EQ(hub_->read()->operation("operations/1")->state(), "CANCELLED");
}

TEST_F(operations_actor_test, running_operations_are_resumed_after_a_restart) {
  add_rack();
  bind_owner();
  send(bringup());
  settle();
  const auto disk = disk_->copy();
  start(disk);
  bind_owner();
  EXPECT_EQ(world_->resumed, std::vector<std::string>{"operations/1"});
  EXPECT_TRUE(world_->submitted.empty());
}

TEST_F(operations_actor_test, a_new_owner_gets_what_the_dead_one_had) {
  add_rack();
  bind_owner();
  send(bringup());
  settle();
  caf::anon_send_exit(owner_, caf::exit_reason::kill);
  settle();
  const auto refused = send(bringup("b"));
  settle();
  EXPECT_EQ(refused->result.status().code(), absl::StatusCode::kUnavailable);
  bind_owner();
  EXPECT_EQ(world_->resumed, std::vector<std::string>{"operations/1"});
}

TEST_F(operations_actor_test, cancel_goes_to_the_owner) {
  add_rack();
  bind_owner();
  send(bringup());
  settle();
  auto what = std::make_shared<command>();
  what->verb = "operation_cancel";
  what->target = "operations/1";
  const auto seen = send(what);
  settle();
  EXPECT_TRUE(seen->result.ok());
  EXPECT_EQ(world_->cancelled, std::vector<std::string>{"operations/1"});
  report(operation_end{"operations/1", "CANCELLED", "", "by a person"});
  EXPECT_EQ(hub_->read()->operation("operations/1")->state(), "CANCELLED");
}

TEST_F(operations_actor_test, a_command_to_a_dead_actor_is_answered) {
  caf::anon_send_exit(operations_, caf::exit_reason::kill);
  const auto in_mailbox = send(bringup());
  settle();
  const auto after = send(bringup());
  settle();
  EXPECT_EQ(in_mailbox->times, 1);
  EXPECT_EQ(in_mailbox->result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(after->times, 1);
  EXPECT_EQ(after->result.status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(operations_actor_test, stop_answers_what_is_open_and_keeps_what_runs) {
  add_rack();
  bind_owner();
  send(bringup());
  settle();
  caf::anon_send(operations_, stop_atom_v);
  const auto late = send(bringup("b"));
  settle();
  EXPECT_EQ(late->result.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(hub_->read()->operation("operations/1")->state(), "RUNNING");
}

}  // namespace
}  // namespace busbar::core
