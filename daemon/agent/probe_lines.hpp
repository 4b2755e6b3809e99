// The text between the agent and a probe program: one JSON request, strict JSON lines back
// (gpu/probe/request.hpp is the other side). nlohmann stays in the .cpp.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "busbar/agent/agent.pb.h"

namespace busbar::agent_client {

std::string probe_request(const agent::Run& run, std::uint32_t gpus);

struct probe_progress {
  double fraction = 0;
};
using probe_line = std::variant<probe_progress, agent::Measurement>;

// A line with an unknown or missing field, another type, a GPU outside 0..gpus-1 or a text and a value at
// once is an error: the test then ends as not ok, whatever else the program says. Without a value and without
// a text, quality is never GOOD.
absl::StatusOr<probe_line> parse_probe_line(std::string_view line, std::uint32_t gpus);

}  // namespace busbar::agent_client
