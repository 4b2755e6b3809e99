// The one answer to a command, from whatever actor or thread gets to give it. Knows no CAF and no gRPC.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "actors/core/command.hpp"

namespace busbar::core {

// finish() takes effect once: the first call wins, later ones do nothing. Destroying it unfinished (dropped in a handler, lost
// with a dead actor's mailbox) finishes with UNAVAILABLE. Thread-safe; const because messages are pointers to const.
class command_answer {
 public:
  virtual ~command_answer() = default;
  virtual void finish(absl::StatusOr<command_result> result) const = 0;
};

using answer_ptr = std::shared_ptr<const command_answer>;

}  // namespace busbar::core
