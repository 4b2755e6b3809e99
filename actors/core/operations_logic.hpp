// What operations are and become: pure, no CAF, no clock. The actor feeds commands and reports in and commits what it gets.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/clock.hpp"
#include "actors/core/command.hpp"
#include "actors/core/journal_batch.hpp"
#include "actors/core/snapshot_hub.hpp"

namespace busbar::core {

struct component_update;
struct operation_end;

struct operations_config {
  // How long an operation of a verb may run; a verb that is not here has `deadline`.
  std::map<std::string, std::chrono::seconds> deadlines = {{"rack_bringup", std::chrono::hours(8)},
                                                           {"rack_shutdown", std::chrono::hours(1)},
                                                           {"node_retry", std::chrono::hours(8)}};
  std::chrono::seconds deadline{600};
  std::chrono::hours request_age{24};      // how long a request id is remembered
  std::chrono::hours kept_age{24 * 7};     // ended operations are kept this long,
  std::size_t kept_count = 200;            // and never fewer than these
};

// What to do with a command.
struct operation_decision {
  enum class act {
    refuse,    // answer status
    answer,    // answer operation_id, which there is already
    join,      // the same request is being begun right now: answer with it, once it is
    validate,  // ask the owner, create nothing
    create,    // commit `created`, then submit
    cancel,    // tell the owner to cancel operation_id, answer it
  };
  act what = act::refuse;
  absl::Status status;
  std::string operation_id;
  std::shared_ptr<const journal::Operation> created;
};

class operations_logic {
 public:
  // Takes over what is RUNNING in the state.
  operations_logic(operations_config config, const snapshot& state, const instant& now);

  // Validates the target against the state; registers what it decides to create.
  operation_decision decide(const command& what, const snapshot& state, const instant& now);
  // A created one could not be committed, or the journal had answered that request before.
  void forget(const std::string& id);
  // The owner accepted, so a repeated request is answered at once.
  void accepted(const std::string& id);
  // The owner refused: FAILED without rows, since nothing was begun.
  bool refused(const std::string& id, const absl::Status& why, const instant& now);

  // True: the operation changed and wants to be committed. Reports about ended or unknown operations or rows change nothing.
  bool report(const component_update& update);
  bool report(const operation_end& end, const instant& now);
  // Ends what is past its deadline; ids of those.
  std::vector<std::string> expire(const instant& now);

  // One commit an operation at a time; changes in between go into the next one. Empty: nothing to write now.
  std::optional<journal_batch> take_commit(const std::string& id, const snapshot& state, const instant& now);
  // failed: it will be written again.
  void committed(const std::string& id, bool ok);
  // Those that wait to be written and are not being written.
  std::vector<std::string> unwritten() const;

  // Those that an owner has accepted and not ended.
  std::vector<std::shared_ptr<const journal::Operation>> running() const;
  std::shared_ptr<const journal::Operation> find(const std::string& id) const;
  std::uint64_t ignored_reports() const { return ignored_reports_; }

 private:
  struct live {
    journal::Operation operation;
    std::int64_t deadline_ns = never_ns;  // monotonic
    bool begun = false;                   // the owner accepted it
    bool dirty = false;
    bool writing = false;
  };

  std::optional<operation_decision> repeated(const command& what, const snapshot& state, const instant& now) const;
  operation_decision decide_cancel(const command& what, const snapshot& state);
  std::chrono::seconds deadline_of(std::string_view verb) const;
  void end(live& one, std::string_view state, std::string_view fault, std::string_view message, const instant& now);
  void retire_old(journal_batch& batch, const snapshot& state, const instant& now) const;

  operations_config config_;
  std::map<std::string, live> live_;
  std::deque<std::pair<std::string, std::string>> cancels_;  // request id, operation: carried out; the newest few
  std::uint64_t next_id_ = 1;
  std::uint64_t ignored_reports_ = 0;
};

// The batch that makes an operation durable for the first time, its request id with it.
journal_batch creation_batch(const journal::Operation& operation);

// What a repeated request of an operation is answered with: OK, or the refusal of the first time.
absl::Status answer_of(const journal::Operation& operation);

bool has_ended(const journal::Operation& operation);

// "r01/operations/3; wait for it, or stop it: busbar ops cancel r01/operations/3": an operation as the CLI calls
// it, for those it keeps out. target: the rack's name or a thing of it.
std::string running_words(std::string_view target, std::string_view id);

}  // namespace busbar::core
