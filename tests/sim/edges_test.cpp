// Which arrows of the tables the seeds take, and why the others are not taken: an arrow that is neither is a
// finding.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <set>

#include "actors/node/node_table.hpp"
#include "tests/sim/scenarios.hpp"

namespace busbar::test_support {
namespace {

constexpr journal::MemberKind kinds[] = {journal::COMPUTE_TRAY, journal::SWITCH_TRAY, journal::POWER_SHELF};

// Phases (by what they wait for) that these seeds never show, and why that is right.
const std::map<std::string, std::string>& never_shown() {
  static const std::map<std::string, std::string> reasons = {
      {"an announcement of its BMC's MAC or address", "the lease file is read before the bring-up begins"},
      {"the agent of a host that was on already",
       "only a crash between power-on and the agent's report leads there"},
      {"the host to be told off before staging",
       "only a host that is on without our agent; the site starts dark"},
      {"the host to be read back off", "as above"},
      {"the BMC to take ForceOff",
       "the simulated BMCs offer what is asked; force follows a graceful shutdown that hangs"},
      {"to be read back off after ForceOff", "as above"},
      {"to be read back off", "the simulated BMCs offer ForceRestart, so no restart is made of off and on"},
      {"the BMC's answer to the factory login",
       "only a crash between an account's creation and its proof leads there"},
      {"proof of the new factory password", "shown only until the login is answered"},
      {"its agent, to start the node suite",
       "an agent is there from staging on, unless the daemon died just then"},
      {"the password change that the BMC demands", "only with the trouble of that name"},
      {"the update that the BMC may already know", "only after a push whose answer was lost"},
      {"the host to come back from a restart begun before ours", "only a crash during a restart leads there"},
  };
  return reasons;
}

struct seen {
  std::set<std::string> arrows, waits;
};

seen by_the_seeds() {
  seen all;
  const auto keep = [&all](const rack_story& story) {
    return [&all, story](rack_world& world) {
      auto what = story(world);
      all.arrows.insert(world.watch->arrows_taken().begin(), world.watch->arrows_taken().end());
      all.waits.insert(world.watch->waits_seen().begin(), world.watch->waits_seen().end());
      return what;
    };
  };
  const rack_story up_and_down = [](rack_world& world) {
    auto what = bring_up(world);
    return what.has_value() ? what : shut_down(world);
  };
  const auto first =
      for_seeds(2, [&keep, &up_and_down](simulation& sim) { return in_a_rack(sim, keep(up_and_down)); });
  EXPECT_TRUE(first.passed()) << first.describe();
  const auto rest = for_seeds(40, [&keep](simulation& sim) { return in_a_rack(sim, keep(any_day)); });
  EXPECT_TRUE(rest.passed()) << rest.describe();
  return all;
}

TEST(tables, have_every_arrow_taken_by_some_seed) {
  const seen all = by_the_seeds();
  for (const journal::MemberKind kind : kinds) {
    for (const node::arrow& arrow : node::arrows_of(kind)) {
      const std::string name = journal::MemberKind_Name(kind) + " " + journal::NodeStep_Name(arrow.from) +
                               " -> " + journal::NodeStep_Name(arrow.to);
      EXPECT_TRUE(all.arrows.contains(name)) << name << " was never taken";
    }
  }
  for (int step = journal::PLANNED; step < journal::RACK_PRODUCTION; ++step) {
    const std::string name = "RACK " + journal::RackStep_Name(static_cast<journal::RackStep>(step)) + " -> " +
                             journal::RackStep_Name(static_cast<journal::RackStep>(step + 1));
    EXPECT_TRUE(all.arrows.contains(name)) << name << " was never taken";
  }
  std::set<std::string> listed;
  const auto list = [&listed](std::span<const node::phase> phases) {
    for (const node::phase& phase : phases) {
      if (!phase.waits_for.empty()) listed.insert(std::string(phase.waits_for));
    }
  };
  for (const journal::MemberKind kind : kinds) {
    for (const node::arrow& arrow : node::arrows_of(kind)) list(arrow.phases);
  }
  list(node::power_down_phases());
  list(node::reconnect_phases());
  EXPECT_GT(listed.size(), 40U);
  for (const auto& [phase, why] : never_shown())
    EXPECT_TRUE(listed.contains(phase)) << phase << " is in no table";
  for (const std::string& phase : listed) {
    if (all.waits.contains(phase)) continue;
    const auto why = never_shown().find(phase);
    EXPECT_NE(why, never_shown().end()) << "never waited for, and nobody says why: " << phase;
    if (why != never_shown().end()) std::cout << "never waited for: " << phase << ": " << why->second << '\n';
  }
}

}  // namespace
}  // namespace busbar::test_support
