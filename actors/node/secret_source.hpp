// Where a member's passwords come from: the vault, and the site's factory password files. Thread-safe.
// Implemented in the daemon's wiring and by a fake in tests.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "actors/core/journal_batch.hpp"
#include "actors/devices/bmc.hpp"
#include "busbar/journal/spec.pb.h"

namespace busbar::node {

class secret_source {
 public:
  virtual ~secret_source() = default;
  // NOT_FOUND: not made yet.
  virtual absl::StatusOr<std::string> get(const std::string& name) const = 0;
  // A fresh password under this name, sealed to ride in a batch; nothing when there is one already. get()
  // finds it at once, also before the batch is durable.
  virtual absl::StatusOr<std::optional<core::sealed_secret>> make(const std::string& name) = 0;
  // A login whose password lies in a small file of the site folder (factory logins, the CDU's reader). Files
  // are read once and kept; a path outside the site folder is refused.
  virtual absl::StatusOr<devices::credentials> site_login(const journal::FactoryLogin& login) const = 0;
};

}  // namespace busbar::node
