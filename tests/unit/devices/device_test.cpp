// The budget, the queue and the back-off of one device.
#include "actors/devices/redfish/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/redfish_bmc.hpp"
#include "actors/devices/redfish/walk.hpp"
#include "tests/unit/devices/test_loop.hpp"

namespace busbar::devices::redfish {
namespace {

using core::fault;
using ::testing::ElementsAre;

class device_budget : public ::testing::Test {
 protected:
  device_budget() {
    transport =
        std::make_shared<scripted_transport>([this](const http_request& request) { return script(request); });
    target = std::make_shared<device>("192.0.2.1:8443", transport, loop, device_options{});
  }
  ~device_budget() override { target->close(); }

  void get(const std::string& uri, priority urgency = priority::telemetry) {
    request wanted;
    wanted.uri = uri;
    wanted.urgency = urgency;
    target->submit(wanted, [this, uri](response answer) { answers.emplace_back(uri, std::move(answer)); });
  }
  std::vector<std::string> sent() const {
    std::vector<std::string> paths;
    for (const http_request& request : transport->seen) paths.push_back(request.path);
    return paths;
  }

  std::function<http_outcome(const http_request&)> script = [](const http_request&) {
    return reply_of(200, "{}");
  };
  std::shared_ptr<test_loop> loop = std::make_shared<test_loop>();
  std::shared_ptr<scripted_transport> transport;
  std::shared_ptr<device> target;
  std::vector<std::pair<std::string, response>> answers;
};

TEST_F(device_budget, keeps_at_most_two_requests_in_flight) {
  transport->hold = true;
  for (int i = 0; i < 10; ++i) get("/" + std::to_string(i));
  EXPECT_EQ(transport->waiting.size(), 2u);
  for (int i = 0; i < 10; ++i) {
    transport->release_one();
    EXPECT_LE(transport->waiting.size(), 2u);
  }
  EXPECT_EQ(answers.size(), 10u);
  EXPECT_EQ(target->figures().in_flight_peak, 2);
}

TEST_F(device_budget, sends_safety_before_command_before_telemetry) {
  transport->hold = true;
  get("/a");
  get("/b");
  get("/telemetry");
  get("/command", priority::command);
  get("/safety", priority::safety);
  while (!transport->waiting.empty()) transport->release_one();
  EXPECT_THAT(sent(), ElementsAre("/a", "/b", "/safety", "/command", "/telemetry"));
}

TEST_F(device_budget, leaves_a_failing_device_alone_and_then_serves_it_one_by_one) {
  int failures = 2;
  script = [&failures](const http_request&) {
    return failures-- > 0 ? reply_of(500, "") : reply_of(200, "{}");
  };
  get("/a");
  EXPECT_EQ(transport->seen.size(), 1u);  // it waits
  EXPECT_THAT(loop->delays, ElementsAre(milliseconds(250)));
  loop->pass_time(1);
  EXPECT_THAT(loop->delays, ElementsAre(milliseconds(250), milliseconds(500)));
  loop->pass_time(1);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].second.http, 200);
  transport->hold = true;
  for (int i = 0; i < 6; ++i) get("/b" + std::to_string(i));
  EXPECT_EQ(transport->waiting.size(), 1u);
  for (int i = 0; i < 4; ++i) transport->release_one();
  EXPECT_EQ(transport->waiting.size(), 2u);  // it has answered well again
}

TEST_F(device_budget, repeats_reads_but_never_acts) {
  script = [](const http_request&) { return no_answer(transport_error::timeout); };
  get("/a");
  loop->pass_time();
  EXPECT_EQ(transport->seen.size(), 3u);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(core::fault_of(answers[0].second.status), fault::BMC_SLOW);

  request act;
  act.method = http_method::post;
  act.uri = "/act";
  act.body = "{}";
  target->submit(act, [this](response answer) { answers.emplace_back("/act", std::move(answer)); });
  loop->pass_time();
  EXPECT_EQ(transport->seen.size(), 4u);
  EXPECT_EQ(answers.size(), 2u);
}

TEST_F(device_budget, what_waits_behind_an_unreachable_device_is_answered_with_it) {
  transport->hold = true;
  script = [](const http_request&) { return no_answer(transport_error::unreachable); };
  for (int i = 0; i < 5; ++i) get("/" + std::to_string(i));
  transport->release_one();
  EXPECT_EQ(answers.size(), 4u);  // the first, and the three that were queued
  transport->release_one();
  EXPECT_EQ(answers.size(), 5u);
  EXPECT_EQ(transport->seen.size(), 2u);
}

TEST_F(device_budget, close_answers_everything_exactly_once) {
  transport->hold = true;
  for (int i = 0; i < 5; ++i) get("/" + std::to_string(i));
  target->close();
  EXPECT_EQ(answers.size(), 5u);
  for (const auto& [uri, answer] : answers) EXPECT_EQ(answer.status.code(), absl::StatusCode::kUnavailable);
  while (!transport->waiting.empty()) transport->release_one();
  EXPECT_EQ(answers.size(), 5u);
  get("/late");
  EXPECT_EQ(answers.size(), 6u);
}

TEST_F(device_budget, does_not_follow_a_link_to_another_host) {
  get("https://redfishpdu.example.com/redfish/v1");
  get("//elsewhere/redfish/v1");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_TRUE(transport->seen.empty());
  EXPECT_EQ(core::fault_of(answers[0].second.status), fault::BMC_BAD_DATA);
}

TEST_F(device_budget, no_fault_shows_the_token_or_a_password) {
  script = [](const http_request& request) {
    if (request.path == "/redfish/v1") return reply_of(200, R"({"Links":{"Sessions":{"@odata.id":"/S"}}})");
    if (request.path == "/S")
      return reply_of(201, "{}", {{"x-auth-token", "token-4711"}, {"location", "/S/1"}});
    return reply_of(400, "{}");
  };
  absl::StatusOr<session_facts> session = absl::InternalError("none");
  target->log_in({"root", "pass-0815"},
                 [&session](absl::StatusOr<session_facts> got) { session = std::move(got); });
  ASSERT_TRUE(session.ok()) << session.status();
  get("/x");
  ASSERT_EQ(answers.size(), 1u);
  request named;
  named.uri = "/x";
  const std::string text = fault_of_answer(*target, named, answers[0].second).ToString() + session->uri;
  EXPECT_EQ(text.find("token-4711"), std::string::npos);
  EXPECT_EQ(text.find("pass-0815"), std::string::npos);
}

TEST_F(device_budget, a_changed_object_is_patched_with_its_new_etag) {
  int version = 1;
  std::vector<std::string> matched;
  script = [&version, &matched](const http_request& request) {
    const http_headers etag{{"etag", "\"" + std::to_string(version) + "\""}};
    if (request.method == http_method::get) {
      const auto reply = reply_of(200, R"({"Id":"x"})", etag);
      if (version == 1) version = 2;  // somebody changes it between our read and our write
      return reply;
    }
    for (const auto& [name, value] : request.headers) {
      if (name == "If-Match") matched.push_back(value);
    }
    return matched.back() == etag.front().second ? reply_of(204, "") : reply_of(412, "{}");
  };
  absl::Status result = absl::InternalError("none");
  start<absl::Status>(patch(target, "/x", "{}", priority::command),
                      [&result](absl::Status got) { result = std::move(got); });
  EXPECT_TRUE(result.ok()) << result;
  EXPECT_THAT(matched, ElementsAre("\"1\"", "\"2\""));
}

listing read_list(const std::shared_ptr<device>& target, const std::string& uri) {
  listing list;
  start<listing>(fetch_list(target, uri, priority::telemetry),
                 [&list](listing got) { list = std::move(got); });
  return list;
}

TEST_F(device_budget, follows_pages_and_counts_each_member_once) {
  script = [](const http_request& request) {
    if (request.path == "/L") {
      return reply_of(200, R"({"Members@odata.count":3,"Members":[{"@odata.id":"/a"},{"@odata.id":"/b"}],
                              "Members@odata.nextLink":"/L?$skip=2"})");
    }
    return reply_of(200, R"({"Members@odata.count":3,"Members":[{"@odata.id":"/b/"},{"@odata.id":"/c"}]})");
  };
  const listing list = read_list(target, "/L");
  EXPECT_TRUE(list.complete) << list.incomplete_why;
  EXPECT_THAT(list.members, ElementsAre("/a", "/b", "/c"));
}

TEST_F(device_budget, pages_that_go_round_and_short_lists_are_incomplete) {
  script = [](const http_request& request) {
    if (request.path == "/short")
      return reply_of(200, R"({"Members@odata.count":9,"Members":[{"@odata.id":"/a"}]})");
    return reply_of(
        200,
        R"({"Members@odata.count":1,"Members":[{"@odata.id":"/a"}],"Members@odata.nextLink":"/L?$skip=1"})");
  };
  EXPECT_FALSE(read_list(target, "/L").complete);
  const listing list = read_list(target, "/short");
  EXPECT_FALSE(list.complete);
  EXPECT_THAT(list.members, ElementsAre("/a"));
  EXPECT_TRUE(list.ok());
}

TEST_F(device_budget, a_page_that_fails_keeps_the_members_before_it) {
  script = [](const http_request& request) {
    if (request.path == "/L") {
      return reply_of(200, R"({"Members":[{"@odata.id":"/a"}],"Members@odata.nextLink":"/L?$skip=1"})");
    }
    return reply_of(404, "{}");
  };
  const listing list = read_list(target, "/L");
  EXPECT_TRUE(list.ok());
  EXPECT_FALSE(list.complete);
  EXPECT_THAT(list.members, ElementsAre("/a"));
}

TEST(redfish_driver, letting_go_of_it_answers_what_is_open) {
  const auto loop = std::make_shared<test_loop>();
  const auto transport =
      std::make_shared<scripted_transport>([](const http_request&) { return reply_of(200, "{}"); });
  transport->hold = true;
  auto driver = make_redfish_factory(transport, loop)->make_bmc("192.0.2.1:8443", journal::COMPUTE_TRAY);
  std::vector<absl::Status> results;
  driver->read_power([&results](const absl::StatusOr<power_facts>& got) { results.push_back(got.status()); });
  driver->read_detectors([&results](const absl::StatusOr<std::vector<detector_facts>>& got) {
    results.push_back(got.status());
  });
  driver->login({"root", "x"},
                [&results](const absl::StatusOr<session_facts>& got) { results.push_back(got.status()); });
  EXPECT_TRUE(results.empty());
  driver.reset();
  ASSERT_EQ(results.size(), 3u);
  for (const absl::Status& status : results) EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  while (!transport->waiting.empty()) transport->release_one();
  EXPECT_EQ(results.size(), 3u);
}

}  // namespace
}  // namespace busbar::devices::redfish
