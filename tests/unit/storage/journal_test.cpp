#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "actors/core/digest.hpp"
#include "actors/core/errors.hpp"
#include "storage/key_codec.hpp"
#include "storage/migrations.hpp"
#include "tests/support/memory_journal.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace busbar::storage {
namespace {

using test_support::memory_journal;

std::shared_ptr<const journal::Node> node(const std::string& name, journal::NodeStep step) {
  auto made = std::make_shared<journal::Node>();
  made->set_name(name);
  made->set_step(step);
  return made;
}

journal::Event event(const std::string& object, const std::string& role = {}) {
  journal::Event made;
  made.set_object(object);
  made.set_kind("node");
  made.set_type("step_entered");
  if (!role.empty()) {
    made.mutable_principal()->set_name("uid:1000");
    made.mutable_principal()->set_role(role);
  }
  return made;
}

core::journal_batch put(const std::string& name, journal::NodeStep step) {
  core::journal_batch made;
  made.put(node(name, step));
  made.events.push_back(event(name));
  return made;
}

core::journal_batch request(const std::string& id, const std::string& digest, const std::string& operation) {
  core::journal_batch made = put("r01/c01", journal::DISCOVERED);
  made.requests.push_back({id, digest, operation});
  return made;
}

TEST(journal, one_revision_a_batch_and_all_of_it_after_restart) {
  memory_journal journal;
  core::journal_batch batch = put("r01/c01", journal::IDENTIFIED);
  auto rack = std::make_shared<journal::Rack>();
  rack->set_name("r01");
  batch.put(std::shared_ptr<const journal::Rack>(rack));
  auto operation = std::make_shared<journal::Operation>();
  operation->set_id("operations/1");
  batch.put(std::shared_ptr<const journal::Operation>(operation));
  batch.put_record("next_operation", "2");
  const auto first = journal.log->commit(batch);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->commit.position.revision(), 1U);
  ASSERT_TRUE(journal.log->commit(put("r01/c02", journal::DECLARED)).ok());
  journal.restart();
  const core::snapshot& state = *journal.found.state;
  EXPECT_EQ(state.position.revision(), 2U);
  EXPECT_EQ(state.node("r01/c01")->step(), journal::IDENTIFIED);
  EXPECT_EQ(state.nodes->at("r01/c01").revision, 1U);
  EXPECT_EQ(state.nodes->at("r01/c02").revision, 2U);
  EXPECT_NE(state.rack("r01"), nullptr);
  EXPECT_NE(state.operation("operations/1"), nullptr);
  EXPECT_EQ(*state.record("next_operation"), "2");
  EXPECT_EQ(state.node("r01/c03"), nullptr);
}

TEST(journal, keeps_valves_pdus_and_cdus_through_a_restart_and_forgets_the_erased) {
  memory_journal journal;
  auto valve = std::make_shared<journal::Valve>();
  valve->set_name("r01/supply");
  valve->set_commanded_percent(40);
  valve->mutable_lease()->set_holder("alice");
  auto pdu = std::make_shared<journal::Pdu>();
  pdu->set_name("r01/u01");
  pdu->add_outlets()->set_state(journal::Outlet::OFF);
  auto cdu = std::make_shared<journal::Cdu>();
  cdu->set_name("cdu01");
  cdu->mutable_supply()->set_proven(40);
  core::journal_batch batch;
  batch.put(std::shared_ptr<const journal::Cdu>(cdu));
  batch.put(std::shared_ptr<const journal::Valve>(valve));
  batch.put(std::shared_ptr<const journal::Pdu>(pdu));
  ASSERT_TRUE(journal.log->commit(batch).ok());
  journal.restart();
  EXPECT_EQ(journal.found.state->valve("r01/supply")->SerializeAsString(), valve->SerializeAsString());
  EXPECT_EQ(journal.found.state->pdu("r01/u01")->SerializeAsString(), pdu->SerializeAsString());
  EXPECT_EQ(journal.found.state->cdu("cdu01")->SerializeAsString(), cdu->SerializeAsString());
  EXPECT_EQ(journal.found.state->valve("r01/u01"), nullptr);
  core::journal_batch gone;
  gone.erase(core::object_kind::valve, "r01/supply");
  gone.erase(core::object_kind::pdu, "r01/u01");
  gone.erase(core::object_kind::cdu, "cdu01");
  ASSERT_TRUE(journal.log->commit(gone).ok());
  journal.restart();
  EXPECT_TRUE(journal.found.state->valves->empty());
  EXPECT_TRUE(journal.found.state->pdus->empty());
  EXPECT_TRUE(journal.found.state->cdus->empty());
}

TEST(journal, fills_in_the_envelope_of_every_event) {
  memory_journal journal;
  journal.now->wall_ns = 77;
  journal.now->monotonic_ns = 55;
  core::journal_batch batch = put("r01/c01", journal::DISCOVERED);
  batch.events.push_back(event("r01/c02"));
  const auto done = journal.log->commit(batch);
  ASSERT_TRUE(done.ok());
  const journal::Event& second = *done->commit.events.at(1);
  EXPECT_EQ(second.position().journal_id(), journal.log->head().journal_id());
  EXPECT_EQ(second.position().revision(), 1U);
  EXPECT_EQ(second.index_in_batch(), 1U);
  EXPECT_EQ(second.wall_time_ns(), 77);
  EXPECT_EQ(second.monotonic_ns(), 55);
  EXPECT_EQ(second.boot_id(), "boot-of-test");
  EXPECT_EQ(second.schema_version(), schema_version);
  EXPECT_EQ(second.principal().role(), "system");
  const auto read = journal.log->read_events(journal.log->oldest(), 1, 10);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ((*read)[1]->SerializeAsString(), second.SerializeAsString());
}

TEST(journal, many_batches_take_one_sync_and_one_revision_each) {
  memory_journal journal;
  std::vector<std::shared_ptr<const core::journal_batch>> batches;
  for (int i = 0; i < 100; ++i) {
    batches.push_back(std::make_shared<core::journal_batch>(put("r01/c01", journal::DISCOVERED)));
  }
  const std::uint64_t before = journal.disk->syncs();
  const auto outcomes = journal.log->commit_many(batches);
  EXPECT_EQ(journal.disk->syncs(), before + 1);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    ASSERT_TRUE(outcomes[i].ok());
    EXPECT_EQ(outcomes[i]->commit.position.revision(), i + 1);
  }
}

TEST(journal, a_bad_batch_is_refused_alone) {
  memory_journal journal;
  core::journal_batch nameless;
  nameless.put(node("", journal::DECLARED));
  core::journal_batch null_object;
  null_object.puts.push_back({"x", std::shared_ptr<const journal::Node>()});
  const std::vector<std::shared_ptr<const core::journal_batch>> batches = {
      std::make_shared<core::journal_batch>(put("r01/c01", journal::DISCOVERED)),
      std::make_shared<core::journal_batch>(nameless), std::make_shared<core::journal_batch>(null_object), nullptr,
      std::make_shared<core::journal_batch>(put("r01/c02", journal::DISCOVERED))};
  const auto outcomes = journal.log->commit_many(batches);
  EXPECT_TRUE(outcomes[0].ok());
  for (const std::size_t bad : {1U, 2U, 3U}) EXPECT_EQ(outcomes[bad].status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(outcomes[4].ok());
  EXPECT_EQ(outcomes[4]->commit.position.revision(), 2U);
  journal.restart();
  EXPECT_EQ(journal.found.state->nodes->size(), 2U);
}

TEST(journal, intents_stay_open_until_closed_and_come_back_in_order) {
  memory_journal journal;
  for (const char* id : {"r01/c09/reset/1", "r01/c01/reset/1", "r01/c05/reset/1"}) {
    core::journal_batch batch;
    journal::Intent intent;
    intent.set_id(id);
    batch.intents_opened.push_back(intent);
    ASSERT_TRUE(journal.log->commit(batch).ok());
  }
  core::journal_batch closing;
  closing.intents_closed.push_back("r01/c01/reset/1");
  ASSERT_TRUE(journal.log->commit(closing).ok());
  journal.restart();
  ASSERT_EQ(journal.found.open_intents.size(), 2U);
  EXPECT_EQ(journal.found.open_intents[0].id(), "r01/c09/reset/1");
  EXPECT_EQ(journal.found.open_intents[0].opened_revision(), 1U);
  EXPECT_EQ(journal.found.open_intents[1].id(), "r01/c05/reset/1");
}

TEST(journal, an_erased_object_is_gone_and_its_end_is_an_event) {
  memory_journal journal;
  ASSERT_TRUE(journal.log->commit(put("r01/c01", journal::DISCOVERED)).ok());
  core::journal_batch batch;
  batch.erase(core::object_kind::node, "r01/c01");
  ASSERT_TRUE(journal.log->commit(batch).ok());
  const auto events = journal.log->last_events(1);
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->at(0)->type(), "erased");
  EXPECT_EQ(events->at(0)->object(), "r01/c01");
  journal.restart();
  EXPECT_TRUE(journal.found.state->nodes->empty());
}

TEST(journal, a_repeated_request_changes_nothing_and_names_the_first_operation) {
  memory_journal journal;
  const auto first = journal.log->commit(request("q1", "digest", "operations/1"));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->earlier_operation_id, "");
  journal.restart();
  const auto again = journal.log->commit(request("q1", "digest", "operations/2"));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->earlier_operation_id, "operations/1");
  EXPECT_EQ(again->commit.position.revision(), 1U);
  EXPECT_EQ(again->commit.batch, nullptr);
  EXPECT_EQ(journal.log->head().revision(), 1U);
  EXPECT_EQ(*journal.log->find_request("q1", "digest"), "operations/1");
  EXPECT_EQ(*journal.log->find_request("q2", "digest"), "");
}

TEST(journal, refuses_a_request_id_with_another_body) {
  memory_journal journal;
  ASSERT_TRUE(journal.log->commit(request("q1", "digest", "operations/1")).ok());
  EXPECT_EQ(core::fault_of(journal.log->commit(request("q1", "other", "operations/2")).status()),
            core::fault::REQUEST_ID_REUSED);
  EXPECT_EQ(core::fault_of(journal.log->find_request("q1", "other").status()), core::fault::REQUEST_ID_REUSED);
  EXPECT_EQ(journal.log->head().revision(), 1U);
}

TEST(journal, a_request_sent_twice_at_once_starts_once) {
  memory_journal journal;
  const auto one = std::make_shared<const core::journal_batch>(request("q1", "digest", "operations/1"));
  const std::vector<std::shared_ptr<const core::journal_batch>> twice = {one, one};
  const auto outcomes = journal.log->commit_many(twice);
  EXPECT_TRUE(outcomes[0].ok());
  EXPECT_FALSE(outcomes[1].ok());
  EXPECT_EQ(journal.log->head().revision(), 1U);
}

TEST(journal, refuses_a_foreign_position) {
  memory_journal journal;
  ASSERT_TRUE(journal.log->commit(put("r01/c01", journal::DISCOVERED)).ok());
  journal::Position foreign;
  foreign.set_journal_id("another");
  const auto read = journal.log->read_events(foreign, 1, 10);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(std::string(read.status().message()).find(journal.log->oldest().journal_id() + "@0"), std::string::npos);
  journal::Position ahead = journal.log->head();
  ahead.set_revision(2);
  EXPECT_EQ(journal.log->read_events(ahead, 5, 10).status().code(), absl::StatusCode::kOutOfRange);
}

TEST(journal, reads_on_from_a_position_without_splitting_a_revision) {
  memory_journal journal;
  for (int i = 0; i < 3; ++i) {
    core::journal_batch batch = put("r01/c01", journal::DISCOVERED);
    batch.events.push_back(event("r01/c02"));
    ASSERT_TRUE(journal.log->commit(batch).ok());
  }
  journal::Position from = journal.log->oldest();
  from.set_revision(1);
  const auto read = journal.log->read_events(from, 3, 1);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ(read->at(0)->position().revision(), 2U);
  EXPECT_EQ(read->at(1)->position().revision(), 2U);
  EXPECT_EQ(journal.log->read_events(from, 2, 100)->size(), 2U);
  EXPECT_TRUE(journal.log->read_events(journal.log->head(), 3, 100)->empty());
}

TEST(journal, a_restored_copy_is_a_new_journal_that_knows_its_parent) {
  memory_journal journal;
  ASSERT_TRUE(journal.log->commit(put("r01/c01", journal::DISCOVERED)).ok());
  const journal::Position old = journal.log->head();
  journal_options options;
  options.clock = [] { return core::instant{1, 1}; };
  options.restored = true;
  const auto copy = journal.disk->copy();
  const auto restored = journal_log::open(copy, options);
  ASSERT_TRUE(restored.ok());
  EXPECT_NE((*restored)->head().journal_id(), old.journal_id());
  EXPECT_EQ((*restored)->head().revision(), 1U);
  EXPECT_EQ((*restored)->read_events(old, 1, 1).status().code(), absl::StatusCode::kOutOfRange);
  journal::JournalIdentity identity;
  ASSERT_TRUE(identity.ParseFromString(**copy->get(family::meta, identity_key())));
  ASSERT_EQ(identity.parents_size(), 1);
  EXPECT_EQ(identity.parents(0).journal_id(), old.journal_id());
  EXPECT_EQ(identity.parents(0).revision(), 1U);
  journal.restart();
  EXPECT_EQ(journal.log->head().journal_id(), old.journal_id());
}

TEST(journal, acts_of_people_form_a_chain_that_shows_a_change) {
  memory_journal journal;
  for (const char* role : {"operator", "", "operator", "viewer"}) {
    core::journal_batch batch;
    batch.events.push_back(event("r01", role));
    ASSERT_TRUE(journal.log->commit(batch).ok());
  }
  ASSERT_TRUE(journal.log->verify_audit().ok());
  std::vector<std::pair<std::string, std::string>> records;
  ASSERT_TRUE(journal.disk->scan(family::audit, {}, {}, [&records](std::string_view key, std::string_view value) {
    records.emplace_back(key, value);
    return true;
  }).ok());
  ASSERT_EQ(records.size(), 3U);
  journal::Event forged;
  ASSERT_TRUE(forged.ParseFromString(records[1].second));
  forged.mutable_principal()->set_name("uid:0");
  store_write write;
  write.put(family::audit, records[1].first, forged.SerializeAsString());
  ASSERT_TRUE(journal.disk->write(write).ok());
  EXPECT_EQ(core::fault_of(journal.log->verify_audit()), core::fault::STORE_DAMAGED);
  store_write removal;
  removal.put(family::audit, records[1].first, records[1].second);
  removal.erase(family::audit, records[2].first);
  ASSERT_TRUE(journal.disk->write(removal).ok());
  EXPECT_EQ(core::fault_of(journal.log->verify_audit()), core::fault::STORE_DAMAGED) << "the newest record was taken away";
}

TEST(journal, a_full_disk_refuses_and_keeps_reads_then_recovers_without_reusing_a_revision) {
  memory_journal journal;
  ASSERT_TRUE(journal.log->commit(put("r01/c01", journal::DISCOVERED)).ok());
  journal.disk->fill_disk(true);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(core::fault_of(journal.log->commit(put("r01/c01", journal::IDENTIFIED)).status()),
              core::fault::STORE_READ_ONLY);
  }
  EXPECT_EQ(journal.log->health(), store_health::read_only);
  EXPECT_EQ(journal.log->head().revision(), 1U);
  EXPECT_EQ(journal.log->load()->state->node("r01/c01")->step(), journal::DISCOVERED);
  EXPECT_FALSE(journal.log->probe().ok());
  journal.disk->fill_disk(false);
  EXPECT_FALSE(journal.log->commit(put("r01/c01", journal::IDENTIFIED)).ok()) << "only a probe lifts it";
  ASSERT_TRUE(journal.log->probe().ok());
  const auto done = journal.log->commit(put("r01/c01", journal::IDENTIFIED));
  ASSERT_TRUE(done.ok());
  EXPECT_GT(done->commit.position.revision(), 2U);
}

TEST(journal, what_is_no_safety_does_not_ride_along_with_a_trip_on_a_full_disk) {
  memory_journal journal;
  journal.disk->fill_disk(true);
  ASSERT_FALSE(journal.log->commit(put("r01/c01", journal::DISCOVERED)).ok());
  core::journal_batch trip = put("r01/c09", journal::DISCOVERED);
  trip.safety = true;
  const std::vector<std::shared_ptr<const core::journal_batch>> batches = {
      std::make_shared<core::journal_batch>(put("r01/c02", journal::DISCOVERED)),
      std::make_shared<core::journal_batch>(trip)};
  const auto outcomes = journal.log->commit_many(batches);
  EXPECT_EQ(core::fault_of(outcomes[0].status()), core::fault::STORE_READ_ONLY);
  EXPECT_TRUE(outcomes[1].ok()) << outcomes[1].status();
  EXPECT_EQ(journal.log->load()->state->nodes->size(), 1U);
}

TEST(journal, state_that_cannot_be_decoded_is_damage_and_named) {
  memory_journal journal;
  store_write write;
  write.put(family::state, state_key(core::object_kind::node, "r01/c01"), state_value(1, "\xff\xff"));
  ASSERT_TRUE(journal.disk->write(write).ok());
  const auto loaded = journal.log->load();
  EXPECT_EQ(core::fault_of(loaded.status()), core::fault::STORE_DAMAGED);
  EXPECT_NE(std::string(loaded.status().message()).find("r01/c01"), std::string::npos);
}

class journal_evidence : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> keep(const std::string& bytes) {
    journal_options options;
    options.clock = [] { return core::instant{1, 1}; };
    options.evidence_directory = folder_.file("evidence");
    auto opened = journal_log::open(disk_, options);
    if (!opened.ok()) return opened.status();
    log_ = *opened;
    core::journal_batch batch;
    batch.evidence.push_back(std::make_shared<const std::string>(bytes));
    if (const auto done = log_->commit(batch); !done.ok()) return done.status();
    return core::evidence_name(bytes);
  }
  // Kept, and read back by its name.
  absl::StatusOr<std::string> kept_and_read(const std::string& bytes) {
    const auto name = keep(bytes);
    if (!name.ok()) return name.status();
    return log_->read_evidence(*name);
  }
  std::size_t files() const {
    const std::filesystem::directory_iterator all(folder_.file("evidence"));
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  const temporary_folder folder_;
  std::shared_ptr<memory_store> disk_ = std::make_shared<memory_store>();
  std::shared_ptr<journal_log> log_;
};

TEST_F(journal_evidence, small_stays_inline_and_large_becomes_one_file_named_by_its_content) {
  const std::string small(64 << 10, 's');
  const std::string large((64 << 10) + 1, 'l');
  EXPECT_EQ(*kept_and_read(small), small);
  EXPECT_EQ(files(), 0U);
  EXPECT_EQ(*kept_and_read(large), large);
  EXPECT_EQ(*kept_and_read(large), large);
  EXPECT_EQ(files(), 1U);
}

TEST_F(journal_evidence, a_changed_file_is_damage) {
  const auto name = keep(std::string(100'000, 'l'));
  ASSERT_TRUE(name.ok()) << name.status();
  for (const auto& file : std::filesystem::directory_iterator(folder_.file("evidence"))) {
    std::ofstream(file.path(), std::ios::app) << "x";
  }
  EXPECT_EQ(core::fault_of(log_->read_evidence(*name).status()), core::fault::STORE_DAMAGED);
}

TEST_F(journal_evidence, a_folder_that_refuses_the_file_refuses_the_batch_that_names_it) {
  ASSERT_TRUE(keep("small").ok());
  std::filesystem::remove_all(folder_.file("evidence"));
  const std::uint64_t before = log_->head().revision();
  core::journal_batch batch;
  batch.evidence.push_back(std::make_shared<const std::string>(100'000, 'l'));
  EXPECT_EQ(core::fault_of(log_->commit(batch).status()), core::fault::STORE_READ_ONLY);
  EXPECT_EQ(log_->head().revision(), before);
}

TEST_F(journal_evidence, an_unknown_name_is_not_found) {
  ASSERT_TRUE(keep("small").ok());
  EXPECT_EQ(log_->read_evidence("sha256:00").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace busbar::storage
