#include <gtest/gtest.h>

#include <caf/send.hpp>
#include <caf/typed_actor.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/core/error_bridge.hpp"
#include "actors/core/journal_actor.hpp"
#include "actors/core/mutant.hpp"
#include "tests/support/deterministic.hpp"
#include "tests/support/memory_journal.hpp"

namespace busbar::core {
namespace {

batch_ptr put(const std::string& name, journal::NodeStep step = journal::DISCOVERED) {
  auto node = std::make_shared<journal::Node>();
  node->set_name(name);
  node->set_step(step);
  journal_batch batch;
  batch.put(std::shared_ptr<const journal::Node>(std::move(node)));
  journal::Event event;
  event.set_object(name);
  event.set_kind("node");
  batch.events.push_back(event);
  return std::make_shared<const journal_batch>(std::move(batch));
}

class journal_actor_test : public test_support::deterministic_fixture {
 protected:
  void SetUp() override { start({}); }
  void TearDown() override {
    journal_ = nullptr;
    deterministic_fixture::TearDown();
  }
  void start(journal_config config) {
    journal_ = spawn_journal(actors(), {disk_.log, disk_.hub}, config, false);
    settle();
  }
  absl::Status commit(batch_ptr batch) {
    const auto done = ask<commit_ptr>(journal_, commit_atom_v, std::move(batch));
    return done ? absl::OkStatus() : to_status(done.error());
  }
  // A writer that sends now and notes the answer when it comes.
  void send(batch_ptr batch, std::shared_ptr<std::vector<std::uint64_t>> answers) {
    actors().spawn([journal = journal_, batch, answers](caf::event_based_actor* self) {
      self->request(journal, commit_timeout, commit_atom_v, batch)
          .then([answers](const commit_ptr& done) { answers->push_back(done->position.revision()); },
                [](const caf::error& error) { ADD_FAILURE() << caf::to_string(error); });
    });
  }
  std::uint64_t syncs() const { return disk_.disk->syncs(); }

  test_support::memory_journal disk_;
  journal_actor journal_;
};

TEST_F(journal_actor_test, answers_after_the_sync_and_after_publishing) {
  const auto done = ask<commit_ptr>(journal_, commit_atom_v, put("r01/c01"));
  ASSERT_TRUE(done);
  EXPECT_EQ((*done)->position.revision(), 1U);
  EXPECT_EQ(disk_.hub->read()->position.revision(), 1U);
  EXPECT_NE(disk_.hub->read()->node("r01/c01"), nullptr);
  EXPECT_EQ(disk_.log->load()->state->node("r01/c01")->step(), journal::DISCOVERED);
}

TEST_F(journal_actor_test, all_that_wait_share_one_sync_in_order_of_arrival) {
  const auto answers = std::make_shared<std::vector<std::uint64_t>>();
  const std::uint64_t before = syncs();
  for (int i = 0; i < 50; ++i) send(put("r01/c01"), answers);
  settle();
  ASSERT_EQ(answers->size(), 50U);
  for (std::size_t i = 0; i < answers->size(); ++i) EXPECT_EQ((*answers)[i], i + 1);
  EXPECT_LE(syncs() - before, 2U);
}

TEST_F(journal_actor_test, a_group_has_a_limit) {
  journal_config config;
  config.group_limit = 10;
  start(config);
  const auto answers = std::make_shared<std::vector<std::uint64_t>>();
  const std::uint64_t before = syncs();
  for (int i = 0; i < 50; ++i) send(put("r01/c01"), answers);
  settle();
  EXPECT_EQ(answers->size(), 50U);
  EXPECT_GE(syncs() - before, 5U);
}

TEST_F(journal_actor_test, a_full_disk_refuses_reads_go_on_and_it_recovers_by_itself) {
  ASSERT_TRUE(commit(put("r01/c01")).ok());
  disk_.disk->fill_disk(true);
  EXPECT_EQ(fault_of(commit(put("r01/c02"))), fault::STORE_READ_ONLY);
  EXPECT_EQ(commit(put("r01/c02")).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(ask<actor_status>(journal_, status_atom_v)->ok);
  EXPECT_NE(disk_.hub->read()->node("r01/c01"), nullptr);
  EXPECT_EQ(disk_.hub->read()->node("r01/c02"), nullptr);
  advance(std::chrono::seconds(5));
  EXPECT_FALSE(commit(put("r01/c02")).ok());
  disk_.disk->fill_disk(false);
  advance(std::chrono::seconds(2));
  EXPECT_TRUE(ask<actor_status>(journal_, status_atom_v)->ok);
  EXPECT_TRUE(commit(put("r01/c02")).ok());
}

TEST_F(journal_actor_test, a_bad_batch_gets_its_own_answer) {
  EXPECT_EQ(commit(put("")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(commit(nullptr).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(commit(put("r01/c01")).ok());
}

TEST_F(journal_actor_test, a_request_id_is_answered_once) {
  journal_batch batch;
  batch.requests.push_back({"q1", "digest", "operations/1"});
  const auto shared = std::make_shared<const journal_batch>(batch);
  ASSERT_TRUE(commit(shared).ok());
  const auto again = ask<commit_ptr>(journal_, commit_atom_v, batch_ptr(shared));
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->earlier_operation_id, "operations/1");
  EXPECT_EQ(*ask<std::string>(journal_, lookup_atom_v, std::string("q1"), std::string("digest")), "operations/1");
  EXPECT_EQ(*ask<std::string>(journal_, lookup_atom_v, std::string("q2"), std::string("digest")), "");
  const auto reused = ask<std::string>(journal_, lookup_atom_v, std::string("q1"), std::string("other"));
  ASSERT_FALSE(reused);
  EXPECT_EQ(fault_of(to_status(reused.error())), fault::REQUEST_ID_REUSED);
}

TEST_F(journal_actor_test, what_was_gathered_is_written_and_answered_before_it_stops) {
  const auto answers = std::make_shared<std::vector<std::uint64_t>>();
  send(put("r01/c01"), answers);
  run_job(0);  // the writer sends
  run_job(0);  // the journal gathers
  ASSERT_TRUE(answers->empty());
  caf::anon_send_exit(journal_, caf::exit_reason::user_shutdown);  // overtakes the end of the round
  settle();
  EXPECT_EQ(answers->size(), 1U);
  disk_.restart();
  EXPECT_NE(disk_.found.state->node("r01/c01"), nullptr);
}

TEST_F(journal_actor_test, retention_runs_between_commits) {
  storage::journal_options limits;
  limits.kept_events = 20;
  limits.trim_step = 5;
  test_support::memory_journal small(limits);
  const journal_actor tested = spawn_journal(actors(), {small.log, small.hub}, {}, false);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(ask<commit_ptr>(tested, commit_atom_v, put("r01/c01")));
  const auto held = small.log->read_events(small.log->oldest(), 60, 1000);
  ASSERT_TRUE(held.ok());
  EXPECT_LE(held->size(), 25U);
}

#ifdef BUSBAR_MUTANTS
TEST_F(journal_actor_test, the_mutant_that_answers_before_the_sync_is_one) {
  switch_mutant("answered_before_sync");
  const auto answers = std::make_shared<std::vector<std::uint64_t>>();
  send(put("r01/c01"), answers);
  const std::uint64_t before = syncs();
  while (answers->empty() && !coordinator().jobs.empty()) run_job(coordinator().jobs.size() - 1);
  const std::uint64_t at_answer = syncs();
  switch_mutant("");
  EXPECT_EQ(answers->size(), 1U);
  EXPECT_EQ(at_answer, before);
  settle();
}
#endif

}  // namespace
}  // namespace busbar::core
