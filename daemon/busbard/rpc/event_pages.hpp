// Pages of events out of the journal. Reads the disk: on a worker's thread.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "actors/core/snapshot_hub.hpp"
#include "busbar/v1/busbar.pb.h"

namespace busbar::rpc {

// With `after`: only later ones, oldest first. Without: newest first. head: up to here. A page that had to look through too
// many events that do not fit comes back short, or empty, with a token to go on; OUT_OF_RANGE names the oldest position.
absl::StatusOr<v1::ListEventsResponse> event_page(const v1::ListEventsRequest& request, const std::string& instance,
                                                  const journal::Position& head, const core::event_source& events);

}  // namespace busbar::rpc
