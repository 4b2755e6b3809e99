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

constexpr journal::MemberKind kinds[] = {journal::COMPUTE_TRAY, journal::SWITCH_TRAY, journal::POWER_SHELF,
                                         journal::RACK_CONTROLLER};

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
      {"MAC and serial under its new certificate",
       "only a BMC that comes back from its own restart with another certificate"},
      {"a login under its new certificate", "as above"},
      {"the interlock to take its new certificate", "as above"},
      {"an update that names no component to end", "only a BMC whose tasks name no component"},
      {"the BMC to take the PowerCycle", "no row of the delivered baseline asks for it"},
      {"the update that the BMC may already know", "only after a push whose answer was lost"},
      {"the host to come back from a restart begun before ours", "only a crash during a restart leads there"},
  };
  return reasons;
}

// The ways back: a shutdown or a latch takes a member to credentialed; a shutdown takes the rack to planned,
// one that ended halfway to cooled, and a mended member to the declaration of a new run.
std::set<std::string> ways_back() {
  std::set<std::string> all;
  for (const journal::MemberKind kind : kinds) {
    for (const node::arrow& arrow : node::arrows_of(kind)) {
      if (arrow.to > journal::CREDENTIALED)
        all.insert(journal::MemberKind_Name(kind) + " " + journal::NodeStep_Name(arrow.to) +
                   " -> CREDENTIALED");
    }
  }
  const auto rack = [&all](int from, journal::RackStep to) {
    all.insert("RACK " + journal::RackStep_Name(static_cast<journal::RackStep>(from)) + " -> " +
               journal::RackStep_Name(to));
  };
  for (int from = journal::STANDBY; from <= journal::RACK_PRODUCTION; ++from) rack(from, journal::PLANNED);
  for (int from = journal::POWERED; from <= journal::RACK_PRODUCTION; ++from) rack(from, journal::COOLED);
  rack(journal::RACK_VALIDATED, journal::NVLINK_READY);
  rack(journal::RACK_PRODUCTION, journal::NVLINK_READY);
  return all;
}

// Ways back that these seeds need not go, and why that is right.
struct rare_way {
  const char* kind;
  const char* from;  // empty: from anywhere
  const char* to;
  const char* why;
};
constexpr rare_way rare_ways[] = {
    {"POWER_SHELF", "", "CREDENTIALED",
     "a shelf passes these steps at once; a shutdown finds it at their end"},
    {"RACK_CONTROLLER", "", "CREDENTIALED", "nothing takes it back but a retry: a shutdown and a trip leave it alone"},
    {"COMPUTE_TRAY", "", "CREDENTIALED", "only a leak or a shutdown in just that step"},
    {"SWITCH_TRAY", "", "CREDENTIALED", "only a leak or a shutdown in just that step"},
    {"RACK", "", "PLANNED", "only a shutdown after a bring-up that ended in just that step, or a trip in it"},
    {"RACK", "", "COOLED", "only a shutdown that ended halfway: cancelled, or a host not read off"},
    {"RACK", "RACK_VALIDATED", "NVLINK_READY", "only a member mended just then and brought up again"},
    {"RACK", "RACK_PRODUCTION", "NVLINK_READY", "only a mended member that is brought up again"},
};
// These are gone by every exploration, or the scenarios have lost their subject.
constexpr const char* common_ways[] = {
    "COMPUTE_TRAY PRODUCTION -> CREDENTIALED", "SWITCH_TRAY PRODUCTION -> CREDENTIALED",
    "POWER_SHELF PRODUCTION -> CREDENTIALED", "RACK RACK_PRODUCTION -> PLANNED"};

std::string why_rare(const std::string& way) {
  for (const rare_way& each : rare_ways) {
    const std::string begin = std::string(each.kind) + " " + each.from, end = std::string(" -> ") + each.to;
    if (way.starts_with(begin) && way.ends_with(end)) return each.why;
  }
  return {};
}

bool is_forward(const std::string& arrow) {
  for (const journal::MemberKind kind : kinds) {
    for (const node::arrow& each : node::arrows_of(kind)) {
      if (arrow == journal::MemberKind_Name(kind) + " " + journal::NodeStep_Name(each.from) + " -> " +
                       journal::NodeStep_Name(each.to))
        return true;
    }
  }
  for (int step = journal::PLANNED; step < journal::RACK_PRODUCTION; ++step) {
    if (arrow == "RACK " + journal::RackStep_Name(static_cast<journal::RackStep>(step)) + " -> " +
                     journal::RackStep_Name(static_cast<journal::RackStep>(step + 1)))
      return true;
  }
  return false;
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
  const std::set<std::string> back = ways_back();
  for (const std::string& taken : all.arrows) {
    EXPECT_TRUE(is_forward(taken) || back.contains(taken)) << taken << " is no way that anybody named";
  }
  for (const std::string& way : back) {
    if (all.arrows.contains(way)) continue;
    EXPECT_FALSE(why_rare(way).empty()) << "never gone back, and nobody says why: " << way;
    std::cout << "never gone back: " << way << ": " << why_rare(way) << '\n';
  }
  for (const char* const way : common_ways) EXPECT_TRUE(all.arrows.contains(way)) << way << " was never gone";
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
