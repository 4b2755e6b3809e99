// Whether a member's telemetry is to run, and by which plan. Pure.
#pragma once

#include <string>
#include <vector>

#include "busbar/journal/spec.pb.h"
#include "busbar/journal/state.pb.h"

namespace busbar::node {

// From the moment that it has our account until it is handed back.
bool wants_telemetry(const journal::Node& node);

// Reports that the baseline names fast for this kind of member.
std::vector<std::string> fast_reports(const journal::RackSpec& spec, journal::MemberKind kind);

}  // namespace busbar::node
