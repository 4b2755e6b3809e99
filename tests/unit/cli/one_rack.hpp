// What most tests of commands begin with.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/cli/fake_daemon.hpp"

namespace busbar::cli {

// r01 with three trays, one of them failed.
inline void fill(testing::fake_daemon& daemon, const std::string& rack) {
  daemon.racks["racks/" + rack] = testing::sample_rack(rack);
  for (const char* slot : {"c01", "c02", "s01"}) {
    v1::Node node = testing::sample_node(rack, slot);
    daemon.nodes[node.name()] = node;
  }
  auto& failed = *daemon.nodes["racks/" + rack + "/nodes/c02"].mutable_status();
  failed.set_health(v1::HEALTH_UNKNOWN);
  failed.mutable_power()->clear_observed();
  failed.mutable_identity()->set_serial("SN-OTHER");
  failed.mutable_failure()->set_step("IDENTIFIED");
  failed.mutable_failure()->set_fault("IDENTITY_SERIAL_MISMATCH");
  failed.mutable_failure()->set_message("serial differs");
  failed.mutable_failure()->set_expected("SN1830002");
  failed.mutable_failure()->set_seen("SN-OTHER");
  auto& firmware = *failed.add_firmware();
  firmware.set_component("FW_BMC_0");
  firmware.set_wanted("25.10-3");
}

struct one_rack : public ::testing::Test {
  testing::site here;
  testing::fake_daemon r01{here.folder(), "r01"};
  one_rack() { fill(r01, "r01"); }
};

}  // namespace busbar::cli
