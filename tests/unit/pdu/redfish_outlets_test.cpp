#include "actors/devices/redfish/redfish_outlets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/unit/devices/replay_tree.hpp"
#include "tests/unit/devices/test_loop.hpp"

namespace busbar::devices::redfish {
namespace {

using ::testing::HasSubstr;

// A PDU of today's schema: outlet 1 is measured, 2 is locked, 3 says what no schema knows.
std::map<std::string, std::string> strip_of_three() {
  const std::string base = "/redfish/v1/PowerEquipment/RackPDUs/1";
  const auto outlet = [&base](const std::string& id, const std::string& more) {
    return R"({"@odata.id": ")" + base + "/Outlets/" + id + R"(", "Id": ")" + id + R"(", "Name": "feed )" +
           id + R"(", "Actions": {"#Outlet.PowerControl": {"target": ")" + base + "/Outlets/" + id +
           R"(/Actions/Outlet.PowerControl"}}, )" + more + "}";
  };
  return {
      {"/redfish/v1", R"({"PowerEquipment": {"@odata.id": "/redfish/v1/PowerEquipment"}})"},
      {"/redfish/v1/PowerEquipment", R"({"RackPDUs": {"@odata.id": "/redfish/v1/PowerEquipment/RackPDUs"}})"},
      {"/redfish/v1/PowerEquipment/RackPDUs",
       R"({"Members@odata.count": 1, "Members": [{"@odata.id": ")" + base + R"("}]})"},
      {base, R"({"Outlets": {"@odata.id": ")" + base + R"(/Outlets"}})"},
      {base + "/Outlets", R"({"Members@odata.count": 3, "Members": [{"@odata.id": ")" + base +
                              R"(/Outlets/1"}, {"@odata.id": ")" + base + R"(/Outlets/2"}, {"@odata.id": ")" +
                              base + R"(/Outlets/3"}]})"},
      {base + "/Outlets/1",
       outlet("1", R"("PowerState": "On", "CurrentAmps": {"Reading": 1.5}, "PowerWatts": {"Reading": 330})")},
      {base + "/Outlets/2", outlet("2", R"("PowerState": "Off", "PowerControlLocked": true)")},
      {base + "/Outlets/3", outlet("3", R"("PowerState": true)")},
  };
}

struct world {
  explicit world(scripted_transport::handler answer)
      : transport(std::make_shared<scripted_transport>(std::move(answer))) {
    bank = make_redfish_outlets("10.0.0.9:443", {"reader", "secret"}, "", transport, loop);
  }
  absl::StatusOr<std::vector<outlet_facts>> read() {
    absl::StatusOr<std::vector<outlet_facts>> result = absl::InternalError("no answer");
    bank->read([&result](absl::StatusOr<std::vector<outlet_facts>> got) { result = std::move(got); });
    loop->pass_time();
    return result;
  }
  absl::Status ask(const std::string& outlet, outlet_act act) {
    absl::Status result = absl::InternalError("no answer");
    bank->ask(outlet, act, [&result](absl::Status got) { result = std::move(got); });
    loop->pass_time();
    return result;
  }
  std::shared_ptr<test_loop> loop = std::make_shared<test_loop>();
  std::shared_ptr<scripted_transport> transport;
  std::shared_ptr<outlet_bank> bank;
};

http_outcome from_map(const std::map<std::string, std::string>& tree, const http_request& request) {
  if (request.method == http_method::post) return reply_of(204, "");
  const auto found = tree.find(request.path);
  return found == tree.end() ? reply_of(404, "{}") : reply_of(200, found->second);
}

TEST(redfish_outlets, reads_state_current_and_power_and_takes_no_foreign_word_for_off) {
  world w([tree = strip_of_three()](const http_request& request) { return from_map(tree, request); });
  const auto outlets = w.read();
  ASSERT_TRUE(outlets.ok()) << outlets.status();
  ASSERT_EQ(outlets->size(), 3U);
  EXPECT_EQ((*outlets)[0].state, outlet_state::on);
  EXPECT_EQ((*outlets)[0].current_a, 1.5);
  EXPECT_EQ((*outlets)[0].power_w, 330);
  EXPECT_EQ((*outlets)[1].state, outlet_state::off);
  EXPECT_EQ((*outlets)[1].current_a, std::nullopt);
  EXPECT_EQ((*outlets)[2].state, outlet_state::unknown);
  EXPECT_EQ((*outlets)[2].raw_state, "true");
}

TEST(redfish_outlets, asks_by_the_action_the_outlet_offers) {
  world w([tree = strip_of_three()](const http_request& request) { return from_map(tree, request); });
  EXPECT_TRUE(w.ask("1", outlet_act::off).ok());
  const http_request& last = w.transport->seen.back();
  EXPECT_EQ(last.method, http_method::post);
  EXPECT_EQ(last.path, "/redfish/v1/PowerEquipment/RackPDUs/1/Outlets/1/Actions/Outlet.PowerControl");
  EXPECT_THAT(last.body, HasSubstr("Off"));
}

TEST(redfish_outlets, a_locked_or_unknown_outlet_is_refused_without_a_request_to_switch) {
  world w([tree = strip_of_three()](const http_request& request) { return from_map(tree, request); });
  EXPECT_EQ(w.ask("2", outlet_act::on).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(w.ask("9", outlet_act::on).code(), absl::StatusCode::kNotFound);
  for (const http_request& seen : w.transport->seen) EXPECT_EQ(seen.method, http_method::get);
}

TEST(redfish_outlets, one_outlet_that_cannot_be_read_is_unknown_and_the_rest_is_read) {
  auto tree = strip_of_three();
  tree.erase("/redfish/v1/PowerEquipment/RackPDUs/1/Outlets/2");
  world w([tree](const http_request& request) { return from_map(tree, request); });
  const auto outlets = w.read();
  ASSERT_TRUE(outlets.ok()) << outlets.status();
  ASSERT_EQ(outlets->size(), 3U);
  EXPECT_EQ((*outlets)[1].state, outlet_state::unknown);
  EXPECT_EQ((*outlets)[0].state, outlet_state::on);
}

TEST(redfish_outlets, a_captured_pdu_is_read_outlet_by_outlet) {
  const auto tree = captures_folder() / "rack-pdu-translation-layer";
  if (!std::filesystem::exists(tree)) GTEST_SKIP() << "no field data";
  world w([tree](const http_request& request) { return replay(tree, request); });
  const auto outlets = w.read();
  ASSERT_TRUE(outlets.ok()) << outlets.status();
  ASSERT_EQ(outlets->size(), 11U);
  const auto on = std::count_if(outlets->begin(), outlets->end(),
                                [](const outlet_facts& one) { return one.state == outlet_state::on; });
  EXPECT_EQ(on, 10);
  EXPECT_DOUBLE_EQ(outlets->front().current_a.value_or(0), 1.68);
  EXPECT_DOUBLE_EQ(outlets->front().power_w.value_or(0), 197.4);
}

}  // namespace
}  // namespace busbar::devices::redfish
