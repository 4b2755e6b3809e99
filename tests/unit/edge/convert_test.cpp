#include "daemon/busbard/rpc/convert.hpp"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace busbar::rpc {
namespace {

journal::Node tray() {
  journal::Node node;
  node.set_name("r01/c07");
  node.mutable_spec()->set_slot("c07");
  node.mutable_spec()->set_kind(journal::COMPUTE_TRAY);
  node.set_step(journal::CONFIGURED);
  return node;
}

TEST(convert, what_is_not_known_is_absent) {
  const v1::Node out = node_to_v1(tray(), 7);
  EXPECT_EQ(out.name(), "racks/r01/nodes/c07");
  EXPECT_EQ(out.revision(), 7u);
  EXPECT_EQ(out.status().step(), v1::NodeStep::CONFIGURED);
  EXPECT_EQ(out.status().health(), v1::HEALTH_UNKNOWN);
  EXPECT_FALSE(out.status().has_failure());
  EXPECT_FALSE(out.status().has_identity());
  EXPECT_FALSE(out.status().has_power());
  EXPECT_FALSE(out.status().has_agent_connected());
  EXPECT_FALSE(out.status().has_boot_id());
  EXPECT_FALSE(out.status().has_suite());
  EXPECT_FALSE(out.status().has_step_entered_time());
}

TEST(convert, an_empty_text_of_a_device_is_absent_and_not_empty) {
  journal::Node node = tray();
  node.mutable_identity()->set_source("lease file");
  node.add_firmware()->set_component("bmc");
  node.add_drift()->set_attribute("PowerProfile");
  journal::Part& part = *node.add_parts();
  part.set_kind("gpu");
  part.set_id("GPU0");
  const v1::Node out = node_to_v1(node, 1);
  EXPECT_FALSE(out.status().identity().has_serial());
  EXPECT_FALSE(out.status().identity().has_bmc_mac());
  EXPECT_FALSE(out.status().firmware(0).has_seen());
  EXPECT_FALSE(out.status().drift(0).has_seen());
  EXPECT_FALSE(out.status().parts(0).has_memory_gib());
  EXPECT_FALSE(out.status().parts(0).has_links_up());
  EXPECT_EQ(out.status().parts(0).health(), v1::HEALTH_UNKNOWN);
}

TEST(convert, an_unknown_detector_is_not_dry) {
  journal::Node node = tray();
  node.add_detectors()->set_name("manifold");
  EXPECT_EQ(node_to_v1(node, 1).status().detectors(0).verdict(), v1::Detector::UNKNOWN);
}

TEST(convert, a_number_of_a_later_release_is_unknown) {
  journal::Node node = tray();
  node.set_health(static_cast<journal::Health>(77));
  node.mutable_power()->set_observed(static_cast<journal::PowerState>(77));
  const v1::Node out = node_to_v1(node, 1);
  EXPECT_EQ(out.status().health(), v1::HEALTH_UNKNOWN);
  EXPECT_EQ(out.status().power().observed(), v1::Power::UNKNOWN);
}

TEST(convert, a_failure_says_what_to_do_next) {
  journal::Node node = tray();
  node.mutable_failure()->set_step(journal::IDENTIFIED);
  node.mutable_failure()->set_fault("IDENTITY_SERIAL_MISMATCH");
  node.mutable_failure()->set_expected("A1");
  node.mutable_failure()->set_seen("B2");
  const v1::Failure failure = node_to_v1(node, 1).status().failure();
  EXPECT_EQ(failure.step(), "IDENTIFIED");
  EXPECT_EQ(failure.expected(), "A1");
  EXPECT_EQ(failure.seen(), "B2");
  EXPECT_FALSE(failure.next_step().empty());
}

TEST(convert, a_metric_without_value_has_none) {
  journal::Node node = tray();
  node.mutable_suite()->set_verdict(journal::SuiteResult::INCOMPLETE);
  node.mutable_suite()->add_failures()->set_metric("hbm_gbps");
  const v1::Suite suite = node_to_v1(node, 1).status().suite();
  EXPECT_EQ(suite.verdict(), v1::Suite::INCOMPLETE);
  EXPECT_FALSE(suite.failures(0).has_value());
}

TEST(convert, a_shelf_is_named_among_shelves) {
  journal::Node node;
  node.set_name("r01/p01");
  node.mutable_spec()->set_kind(journal::POWER_SHELF);
  EXPECT_EQ(shelf_to_v1(node, 3).name(), "racks/r01/shelves/p01");
}

TEST(convert, a_rack_counts_its_members) {
  journal::Rack rack;
  rack.set_name("r01");
  rack.set_step(journal::POWERED);
  (*rack.mutable_gates())["node"] = "passed";
  (*rack.mutable_gates())["fabric"] = "NOT_REQUIRED";
  journal::Node ready = tray();
  ready.set_step(journal::PRODUCTION);
  for (int i = 0; i < 4; ++i) ready.add_parts()->set_kind("gpu");
  journal::Node broken = tray();
  broken.mutable_failure()->set_fault("DEADLINE");
  const std::vector<const journal::Node*> members = {&ready, &broken};
  const v1::Rack out = rack_to_v1(rack, members, 9);
  ASSERT_EQ(out.status().members_size(), 1);
  EXPECT_EQ(out.status().members(0).declared(), 2u);
  EXPECT_EQ(out.status().members(0).production(), 1u);
  EXPECT_EQ(out.status().members(0).failed(), 1u);
  EXPECT_EQ(out.status().gpus(), 4u);
  EXPECT_EQ(out.status().health(), v1::HEALTH_BAD);
  EXPECT_EQ(out.status().gates(0).state(), v1::Gate::PASSED);
  EXPECT_EQ(out.status().gates(1).state(), v1::Gate::NOT_REQUIRED);
  EXPECT_FALSE(out.status().has_interlock_armed());
}

TEST(convert, a_rack_is_never_good_on_unknown_members) {
  journal::Rack rack;
  rack.set_name("r01");
  rack.set_step(journal::RACK_PRODUCTION);
  journal::Node member = tray();
  const std::vector<const journal::Node*> members = {&member};
  EXPECT_EQ(rack_to_v1(rack, members, 1).status().health(), v1::HEALTH_UNKNOWN);
  EXPECT_EQ(rack_to_v1(rack, {}, 1).status().health(), v1::HEALTH_UNKNOWN);
  EXPECT_FALSE(rack_to_v1(rack, members, 1).status().has_gpus());
  member.set_health(journal::HEALTH_GOOD);
  EXPECT_EQ(rack_to_v1(rack, members, 1).status().health(), v1::HEALTH_GOOD);
}

TEST(convert, an_operation_that_failed_has_its_error_and_rows) {
  journal::Operation operation;
  operation.set_id("operations/12");
  operation.set_target("r01");
  operation.set_state("FAILED");
  operation.set_fault("DEADLINE");
  operation.add_components()->set_target("r01/c07");
  operation.mutable_components(0)->set_state("FAILED");
  const v1::Operation out = operation_to_v1(operation, "r01", 4);
  EXPECT_EQ(out.name(), "racks/r01/operations/12");
  EXPECT_TRUE(out.done());
  EXPECT_EQ(out.error().fault(), "DEADLINE");
  EXPECT_EQ(out.components(0).target(), "racks/r01/nodes/c07");
  EXPECT_EQ(out.components(0).state(), v1::ComponentResult::FAILED);
}

TEST(convert, a_state_nobody_knows_is_not_done) {
  journal::Operation operation;
  operation.set_state("EXPLODED");
  const v1::Operation out = operation_to_v1(operation, "r01", 4);
  EXPECT_FALSE(out.done());
  EXPECT_EQ(out.state(), v1::Operation::STATE_UNSPECIFIED);
}

// The conversion carries numbers over: both packages must have the same.
TEST(convert, enumerations_of_both_packages_have_the_same_numbers) {
  using google::protobuf::EnumDescriptor;
  const std::vector<std::pair<const EnumDescriptor*, const EnumDescriptor*>> pairs = {
      {journal::NodeStep_descriptor(), v1::NodeStep::Value_descriptor()},
      {journal::RackStep_descriptor(), v1::RackStep::Value_descriptor()},
      {journal::Health_descriptor(), v1::Health_descriptor()},
      {journal::PowerState_descriptor(), v1::Power::State_descriptor()},
      {journal::MemberKind_descriptor(), v1::MemberKind_descriptor()},
      {journal::Detector::Verdict_descriptor(), v1::Detector::Verdict_descriptor()},
      {journal::FirmwareProgress::State_descriptor(), v1::FirmwareComponent::State_descriptor()},
      {journal::SuiteResult::Verdict_descriptor(), v1::Suite::Verdict_descriptor()}};
  for (const auto& [ours, theirs] : pairs) {
    ASSERT_EQ(ours->value_count(), theirs->value_count()) << ours->full_name();
    for (int i = 0; i < ours->value_count(); ++i) {
      EXPECT_EQ(ours->value(i)->number(), theirs->value(i)->number()) << ours->full_name();
      // Prefixes differ (POWER_ON and ON); the end of the words does not.
      EXPECT_TRUE(ours->value(i)->name().ends_with(theirs->value(i)->name()) || i == 0 ||
                  theirs->value(i)->name().ends_with(ours->value(i)->name()))
          << ours->value(i)->full_name() << " and " << theirs->value(i)->full_name();
    }
  }
}

}  // namespace
}  // namespace busbar::rpc
