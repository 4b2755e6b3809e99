#include "daemon/busbard/rpc/filter.hpp"

#include <gtest/gtest.h>

#include "busbar/v1/busbar.pb.h"
#include "busbar/v1/resources.pb.h"

namespace busbar::rpc {
namespace {

bool fits(const char* text, const google::protobuf::Message& message) {
  const auto parsed = filter::parse(text, message.GetDescriptor());
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() && parsed->matches(message);
}

v1::Node node() {
  v1::Node made;
  made.set_name("racks/r01/nodes/c07");
  made.mutable_status()->set_step(v1::NodeStep::CONFIGURED);
  made.mutable_status()->mutable_identity()->set_bmc_mac("02:00:00:00:00:07");
  made.add_conditions()->set_type("CONFIG_DRIFT");
  made.add_conditions()->set_type("LEAK_LATCHED");
  (*made.mutable_status()->mutable_facts())["clique_id"] = "4";
  return made;
}

TEST(filter, takes_json_and_proto_spelling) {
  EXPECT_TRUE(fits("status.identity.bmcMac=02:00:00:00:00:07", node()));
  EXPECT_TRUE(fits("status.identity.bmc_mac=02:00:00:00:00:07", node()));
  EXPECT_TRUE(fits("status.step=CONFIGURED status.retired=false", node()));
  EXPECT_FALSE(fits("status.step=CONFIGURED status.retired=true", node()));
  EXPECT_TRUE(fits("", node()));
}

TEST(filter, one_element_of_a_repeated_field_is_enough) {
  EXPECT_TRUE(fits("conditions.type=LEAK_LATCHED", node()));
  EXPECT_FALSE(fits("conditions.type=DEADLINE", node()));
}

TEST(filter, looks_up_a_map_by_its_key) {
  EXPECT_TRUE(fits("status.facts.clique_id=4", node()));
  EXPECT_FALSE(fits("status.facts.clique_id=5", node()));
  EXPECT_FALSE(fits("status.facts.other=4", node()));
}

TEST(filter, what_is_absent_fits_nothing) {
  EXPECT_FALSE(fits("status.identity.serial=", node()));
  EXPECT_FALSE(fits("status.agent_connected=false", node()));
}

TEST(filter, refuses_what_it_does_not_understand) {
  const auto* of = v1::Node::descriptor();
  EXPECT_FALSE(filter::parse("status.stepp=CONFIGURED", of).ok());
  EXPECT_FALSE(filter::parse("status=x", of).ok());
  EXPECT_FALSE(filter::parse("name.more=x", of).ok());
  EXPECT_FALSE(filter::parse("CONFIGURED", of).ok());
  EXPECT_FALSE(filter::parse("=x", of).ok());
}

}  // namespace
}  // namespace busbar::rpc
