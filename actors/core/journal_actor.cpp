#include "actors/core/journal_actor.hpp"

#include <caf/actor_system.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <utility>
#include <vector>

#include "actors/core/error_bridge.hpp"
#include "actors/core/log.hpp"
#include "actors/core/mutant.hpp"
#include "actors/core/snapshot_hub.hpp"
#include "storage/journal_log.hpp"

namespace busbar::core {
namespace {

constexpr int idle_rounds = 32;

using commit_promise = caf::typed_response_promise<commit_ptr>;

struct journal_state {
  static inline const char* name = "journal";

  journal_dependencies with;
  journal_config config;
  std::vector<batch_ptr> batches;        // gathered, not yet written
  std::vector<commit_promise> promises;  // one a batch
  bool gathering = false;                // a gather message is under way
  std::size_t gathered_before = 0;       // batches held when it was sent
  std::size_t last_group = 0;            // batches synced together the last time
  int rounds_left = 0;                   // that may pass idly while fewer wait than the last time
  bool refusing = false;                 // the store refuses writes, and that was logged
  bool probing = false;                  // a probe message is under way
  bool trimming = false;                 // a trim message is under way
  std::uint64_t handled = 0;
};

using journal_self = journal_actor::stateful_pointer<journal_state>;

commit_ptr answer_to(const storage::journal_log::outcome& outcome) {
  auto result = std::make_shared<commit_result>();
  result->position = outcome.commit.position;
  result->earlier_operation_id = outcome.earlier_operation_id;
  return result;
}

// Waits for the store to take writes again.
void watch_health(journal_self self) {
  journal_state& state = self->state;
  if (state.probing || state.with.log->health() != storage::store_health::read_only) return;
  if (!state.refusing) log_error("store_read_only", {{"next", "free space on the state folder's disk"}});
  state.refusing = true;
  state.probing = true;
  self->delayed_send(self, state.config.probe_interval, probe_atom_v);
}

void look_at_retention(journal_self self) {
  journal_state& state = self->state;
  if (state.trimming || !state.with.log->trim_is_due()) return;
  state.trimming = true;
  self->send(self, trim_atom_v);
}

// One sync for all that was gathered; published before it is answered, so that who gets an answer can read what it made.
void flush(journal_self self) {
  journal_state& state = self->state;
  if (state.batches.empty()) return;
  const std::vector<batch_ptr> batches = std::exchange(state.batches, {});
  std::vector<commit_promise> promises = std::exchange(state.promises, {});
  const auto outcomes = state.with.log->commit_many(batches);
  std::vector<committed_batch> commits;
  commits.reserve(outcomes.size());
  for (const auto& outcome : outcomes) {
    if (outcome.ok() && outcome->commit.batch != nullptr) commits.push_back(outcome->commit);
  }
  state.with.hub->publish(commits);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].ok()) {
      promises[i].deliver(answer_to(*outcomes[i]));
    } else {
      promises[i].deliver(to_caf(outcomes[i].status()));
    }
  }
  state.handled += outcomes.size();
  state.last_group = outcomes.size();
  state.rounds_left = outcomes.size() > 1 ? idle_rounds : 0;
  watch_health(self);
  look_at_retention(self);
}

// The message comes round behind all that the mailbox holds now.
void await_round(journal_self self) {
  self->state.gathering = true;
  self->state.gathered_before = self->state.batches.size();
  self->send(self, gather_atom_v);
}

caf::result<commit_ptr> gather(journal_self self, const batch_ptr& batch) {
  journal_state& state = self->state;
  auto promise = self->make_response_promise<commit_promise>();
  state.batches.push_back(batch);
  state.promises.push_back(promise);
  if (BUSBAR_MUTANT(answered_before_sync)) {
    auto guess = std::make_shared<commit_result>();
    guess->position = state.with.log->head();
    guess->position.set_revision(guess->position.revision() + state.batches.size());
    promise.deliver(commit_ptr(std::move(guess)));
  }
  if (state.batches.size() >= state.config.group_limit) {
    flush(self);
  } else if (!state.gathering) {
    await_round(self);
  }
  return promise;
}

// More rounds while they bring more. A crowd that was answered together comes back one by one: while fewer wait than the last
// time, a bounded number of idle rounds (a microsecond or so each, against a sync of hundreds) is worth a sync saved. A lone
// writer never waits for others.
void end_of_round(journal_self self) {
  journal_state& state = self->state;
  state.gathering = false;
  const bool grew = state.batches.size() > state.gathered_before;
  const bool crowd_is_coming = state.batches.size() < state.last_group && state.rounds_left-- > 0;
  if (!state.batches.empty() && (grew || crowd_is_coming)) {
    await_round(self);
  } else {
    flush(self);
  }
}

void probe(journal_self self) {
  journal_state& state = self->state;
  state.probing = false;
  if (state.with.log->health() != storage::store_health::read_only) return;
  if (const absl::Status recovered = state.with.log->probe(); !recovered.ok()) {
    watch_health(self);
    return;
  }
  state.refusing = false;
  log_info("store_writable");
}

void trim(journal_self self) {
  journal_state& state = self->state;
  state.trimming = false;
  const auto more = state.with.log->trim();
  if (!more.ok()) {
    log_warning("journal_trim_failed", {{"error", std::string(more.status().message())}});
    watch_health(self);
    return;
  }
  if (*more) look_at_retention(self);
}

caf::result<std::string> look_up(journal_self self, const std::string& request_id, const std::string& digest) {
  const auto known = self->state.with.log->find_request(request_id, digest);
  if (!known.ok()) return to_caf(known.status());
  return *known;
}

actor_status health(journal_self self) {
  const storage::store_health health = self->state.with.log->health();
  const bool writable = health == storage::store_health::serving || health == storage::store_health::shedding;
  return {writable, std::string(storage::name_of(health)), self->state.handled};
}

journal_actor::behavior_type journal(journal_self self, const journal_dependencies& dependencies,
                                     const journal_config& config) {
  self->state.with = dependencies;
  self->state.config = config;
  self->set_exit_handler([self](const caf::exit_msg& message) {
    if (message.reason != caf::exit_reason::kill) flush(self);
    self->quit(message.reason);
  });
  return {
      [self](commit_atom, const batch_ptr& batch) { return gather(self, batch); },
      [self](lookup_atom, const std::string& request_id, const std::string& digest) {
        return look_up(self, request_id, digest);
      },
      [self](status_atom) { return health(self); },
      [self](gather_atom) { end_of_round(self); },
      [self](probe_atom) { probe(self); },
      [self](trim_atom) { trim(self); },
  };
}

}  // namespace

journal_actor spawn_journal(caf::actor_system& system, journal_dependencies dependencies, journal_config config,
                            bool detached) {
  if (detached) return system.spawn<caf::detached>(journal, std::move(dependencies), config);
  return system.spawn(journal, std::move(dependencies), config);
}

}  // namespace busbar::core
