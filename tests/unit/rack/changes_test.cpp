// Which members a manifest may drop or re-key, and which not: every kind of change against every state.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/rack/rack_changes.hpp"
#include "actors/rack/rack_members.hpp"
#include "tests/unit/rack/rack_bench.hpp"

namespace busbar::rack::test {
namespace {

using ::testing::HasSubstr;

struct change {
  const char* what;
  void (*apply)(journal::Manifest& manifest, int row);
};

const std::vector<change> rekeyings = {
    {"left out",
     [](journal::Manifest& manifest, int row) { manifest.mutable_members()->DeleteSubrange(row, 1); }},
    {"another BMC MAC", [](journal::Manifest& manifest,
                           int row) { manifest.mutable_members(row)->set_bmc_mac("02:18:01:00:0f:0f"); }},
    {"no BMC MAC",
     [](journal::Manifest& manifest, int row) { manifest.mutable_members(row)->clear_bmc_mac(); }},
    {"another address",
     [](journal::Manifest& manifest, int row) { manifest.mutable_members(row)->set_address("127.18.9.9"); }},
    {"another slot",
     [](journal::Manifest& manifest, int row) { manifest.mutable_members(row)->set_slot("c77"); }},
    {"slots exchanged",
     [](journal::Manifest& manifest, int row) {
       const std::string one = manifest.members(row).slot();
       manifest.mutable_members(row)->set_slot(manifest.members(row + 1).slot());
       manifest.mutable_members(row + 1)->set_slot(one);
     }},
};

struct use {
  const char* what;
  void (*apply)(journal::Node& node);
};

void take_over(journal::Node& node) {
  node.set_step(journal::CREDENTIALED);
  node.mutable_access()->set_account_created(true);
}

const std::vector<use> in_use = {
    {"on", [](journal::Node& node) { node.mutable_power()->set_observed(journal::POWER_ON); }},
    {"going on", [](journal::Node& node) { node.mutable_power()->set_observed(journal::POWERING_ON); }},
    {"going off", [](journal::Node& node) { node.mutable_power()->set_observed(journal::POWERING_OFF); }},
    {"told on, not read", [](journal::Node& node) { node.mutable_power()->set_wanted(journal::POWER_ON); }},
    {"read off, told on",
     [](journal::Node& node) {
       node.mutable_power()->set_observed(journal::POWER_OFF);
       node.mutable_power()->set_wanted(journal::POWER_ON);
     }},
    {"taken over, power unknown", &take_over},
    {"only the password changed",
     [](journal::Node& node) { node.mutable_access()->set_factory_password_changed(true); }},
    {"only the interlock's account",
     [](journal::Node& node) { node.mutable_access()->set_interlock_account_created(true); }},
    {"an act open", [](journal::Node& node) { node.add_intents()->set_verb("create_account"); }},
    {"in production, read off",
     [](journal::Node& node) {
       take_over(node);
       node.set_step(journal::PRODUCTION);
       node.mutable_power()->set_observed(journal::POWER_OFF);
     }},
};

const std::vector<use> free_members = {
    {"never reached", [](journal::Node&) {}},
    {"only seen", [](journal::Node& node) { node.set_step(journal::DISCOVERED); }},
    {"taken over, read off",
     [](journal::Node& node) {
       take_over(node);
       node.mutable_power()->set_observed(journal::POWER_OFF);
     }},
    {"failed, read off",
     [](journal::Node& node) {
       take_over(node);
       node.mutable_failure()->set_fault("INVENTORY_MISSING");
       node.mutable_power()->set_observed(journal::POWER_OFF);
     }},
};

class manifest_changes : public ::testing::Test {
 protected:
  // Rows as they are declared, with MACs and an address each answers at; row 4 is r01/c05.
  static void declare(rack_bench& bench) {
    unsigned number = 0;
    for (const auto& [name, node] : std::map(bench.state.run.members)) {
      const std::string mac = fmt::format("02:18:01:00:00:{:02x}", ++number);
      const std::string address = fmt::format("127.18.1.{}", number);
      bench.change(name, [&mac, &address](journal::Node& changed) {
        changed.mutable_spec()->set_bmc_mac(mac);
        changed.mutable_identity()->set_address(address + ":8443");
      });
      *bench.spec().mutable_manifest()->add_members() = bench.node(name).spec();
    }
  }
  static absl::Status apply(const rack_bench& bench, const change& how, bool dry_run = false) {
    auto next = std::make_shared<journal::RackSpec>(bench.state.rack.spec());
    how.apply(*next->mutable_manifest(), 4);
    core::command what;
    what.verb = "manifest_apply";
    what.target = "r01";
    what.spec = next;
    what.validate_only = dry_run;
    return refuse_command(what, bench.state, false);
  }
};

TEST_F(manifest_changes, a_member_in_use_is_neither_dropped_nor_rekeyed) {
  for (const use& state : in_use) {
    rack_bench bench;
    declare(bench);
    bench.change(slot('c', 5), state.apply);
    for (const change& how : rekeyings) {
      for (const bool dry_run : {false, true}) {
        const absl::Status refused = apply(bench, how, dry_run);
        EXPECT_EQ(core::fault_of(refused), core::fault::MEMBER_IN_USE) << how.what << " while " << state.what;
        EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
        const std::string words(refused.message());
        EXPECT_THAT(words, HasSubstr("r01/c05"));
        EXPECT_THAT(words, HasSubstr("busbar rack shutdown r01"));
      }
    }
  }
}

TEST_F(manifest_changes, a_member_that_is_read_off_or_was_never_taken_may_go) {
  for (const use& state : free_members) {
    rack_bench bench;
    declare(bench);
    bench.change(slot('c', 5), state.apply);
    for (const change& how : rekeyings) {
      const absl::Status allowed = apply(bench, how);
      EXPECT_TRUE(allowed.ok()) << how.what << " while " << state.what << ": " << allowed;
    }
  }
}

TEST_F(manifest_changes, all_members_in_use_are_named_at_once) {
  rack_bench bench;
  declare(bench);
  for (const char kind : {'c', 's', 'p'})
    bench.change(slot(kind, 1),
                 [](journal::Node& node) { node.mutable_power()->set_observed(journal::POWER_ON); });
  const change nobody{"nobody", [](journal::Manifest& manifest, int) { manifest.clear_members(); }};
  const std::string words(apply(bench, nobody).message());
  for (const char* name : {"r01/c01", "r01/s01", "r01/p01"}) EXPECT_THAT(words, HasSubstr(name));
  EXPECT_THAT(words, ::testing::Not(HasSubstr("r01/c02")));
}

TEST_F(manifest_changes, what_keeps_the_device_the_same_is_no_change_of_it) {
  rack_bench bench;
  declare(bench);
  bench.change(slot('c', 5), [](journal::Node& node) {
    take_over(node);
    node.mutable_power()->set_observed(journal::POWER_ON);
  });
  const std::vector<change> harmless = {
      {"nothing", [](journal::Manifest&, int) {}},
      {"the address it has, written down",
       [](journal::Manifest& manifest, int row) {
         manifest.mutable_members(row)->set_address("127.18.1.5");
       }},
      {"a serial written down",
       [](journal::Manifest& manifest, int row) { manifest.mutable_members(row)->set_serial("SN1"); }},
      {"another row left out",
       [](journal::Manifest& manifest, int row) { manifest.mutable_members()->DeleteSubrange(row + 1, 1); }},
      {"a row more", [](journal::Manifest& manifest, int) { manifest.add_members()->set_slot("c99"); }},
  };
  for (const change& how : harmless) EXPECT_TRUE(apply(bench, how).ok()) << how.what << apply(bench, how);
}

TEST_F(manifest_changes, another_address_of_a_member_without_a_mac_is_another_member) {
  rack_bench bench;
  declare(bench);
  journal::RackSpec next = bench.state.rack.spec();
  bench.change(slot('c', 5), [](journal::Node& node) {
    node.mutable_spec()->clear_bmc_mac();
    node.mutable_spec()->set_address("127.18.1.5");
    take_over(node);
    node.mutable_power()->set_observed(journal::POWER_OFF);
  });
  next.mutable_manifest()->mutable_members(4)->clear_bmc_mac();
  next.mutable_manifest()->mutable_members(4)->set_address("127.18.1.77");
  ASSERT_TRUE(refuse_member_changes(next, bench.state.run.members).ok());
  const applied_spec applied =
      apply_spec(next, &bench.state.rack, bench.state.run.members, [] { return std::string("fresh"); });
  const auto moved = std::find_if(applied.members.begin(), applied.members.end(),
                                  [](const auto& member) { return member->name() == slot('c', 5); });
  ASSERT_NE(moved, applied.members.end());
  EXPECT_EQ((*moved)->step(), journal::DECLARED) << "what was read of the other device is not this one's";
  EXPECT_FALSE((*moved)->access().account_created());
}

}  // namespace
}  // namespace busbar::rack::test
