// What a spec makes of a rack: its members as they start, what a changed spec keeps, and the interlock's
// arming record. Pure.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/journal_batch.hpp"
#include "actors/rack/rack_rules.hpp"
#include "busbar/interlock/interlock.pb.h"

namespace busbar::rack {

struct applied_spec {
  std::shared_ptr<const journal::Rack> rack;
  std::vector<std::shared_ptr<const journal::Node>> members;  // all declared, old ones with their state
  std::vector<std::string> removed;                           // names no longer declared
};

// A member that stays in its slot keeps its state; one whose BMC MAC (without one: fixed address) changed
// starts again. Whether that may be is refuse_member_changes' to say.
applied_spec apply_spec(const journal::RackSpec& spec, const journal::Rack* before, const member_map& members,
                        const std::function<std::string()>& new_uuid);

// The highest generation of an arming record that the interlock was seen to hold; kept among the rack's
// facts.
constexpr std::string_view generation_fact = "interlock_generation";
std::uint64_t armed_generation(const journal::Rack& rack);

// Every tray whose interlock account exists (and those joining), with what the interlock needs to watch it.
// password_of gives the vaulted password of the interlock's account; empty leaves the tray out.
interlock::ArmingRecord arming_record(const journal::Rack& rack, const member_map& members,
                                      const std::set<std::string>& joining, std::uint64_t generation,
                                      const std::function<std::string(const journal::Node&)>& password_of);

}  // namespace busbar::rack
