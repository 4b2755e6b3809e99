// The life of each member kind as data: arrow by arrow, phase by phase. `busbar explain` and the docs are
// made from it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "actors/core/errors.hpp"
#include "actors/node/node_machine.hpp"
#include "busbar/journal/state.pb.h"

namespace busbar::node {

// One small thing to do or to wait for. enter() asks; take() judges what came back.
struct phase {
  phase_id id;
  std::string_view waits_for;  // what the live view shows while it waits
  core::fault deadline_fault;  // when the arrow's deadline passes here and nothing more exact is known
  outcome (*enter)(machine&);
  outcome (*take)(machine&, const node_event&);
};

struct arrow {
  journal::NodeStep from;
  journal::NodeStep to;
  std::string_view deadline_key;  // in the baseline's deadlines
  std::int64_t default_deadline_s;
  std::span<const phase> phases;
};

std::span<const arrow> arrows_of(journal::MemberKind kind);
std::span<const phase> power_down_phases();
std::span<const phase> reconnect_phases();
std::span<const phase> recheck_phases();
std::span<const phase> release_phases();

}  // namespace busbar::node
