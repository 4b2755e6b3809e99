// The one host restart that BIOS settings and host firmware share: written first, then boot-once, permit, dry
// detectors, ForceRestart (off and on where the device offers none), read back On, this boot's agent.
#pragma once

#include <span>

#include "actors/node/node_table.hpp"

namespace busbar::node {

// A list of phases to be put at the end of an arrow's own; after it the arrow goes on at run().after_restart.
std::span<const phase> restart_phases();
outcome go_restart(machine& m, phase_id then);

// First phase of an arrow that may restart the host: a restart that a crash left open is waited for or
// carried to its end, never begun a second time.
outcome enter_recover_restart(machine& m);
outcome take_recover_restart(machine& m, const node_event& event);

// Differences between what the baseline names and what was read; pure.
struct attribute_plan {
  std::map<std::string, std::string> to_write;
  std::vector<journal::Drift> drift;       // what differs now (seen "" = no such attribute)
  std::vector<journal::Drift> impossible;  // read-only or absent and different
};
attribute_plan plan_attributes(const journal::Attributes& wanted,
                               const std::map<std::string, devices::attribute_facts>& seen);

std::vector<std::string> attribute_names(const journal::Attributes& wanted);
const journal::Attributes& bios_of(machine& m);
const journal::Attributes& device_of(machine& m);

}  // namespace busbar::node
