#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/edge/edge_fixture.hpp"

namespace busbar::test {
namespace {

class edge_reads : public edge_fixture {
 protected:
  void SetUp() override {
    edge_fixture::SetUp();
    rack_->declare(3);
    serve();
  }

  std::vector<std::string> list(v1::ListRequest request, grpc::Status* status = nullptr) {
    std::vector<std::string> names;
    for (int page = 0; page < 50; ++page) {
      call context;
      v1::ListNodesResponse response;
      const grpc::Status got = stub_->ListNodes(&context, request, &response);
      if (status != nullptr) *status = got;
      if (!got.ok()) return names;
      for (const auto& node : response.nodes()) names.push_back(node.name());
      if (response.next_page_token().empty()) return names;
      request.set_page_token(response.next_page_token());
    }
    ADD_FAILURE() << "pages without end";
    return names;
  }
};

TEST_F(edge_reads, get_takes_either_spelling) {
  for (const char* name : {"racks/r01/nodes/c02", "r01/c02"}) {
    call context;
    v1::GetRequest request;
    request.set_name(name);
    v1::Node node;
    const grpc::Status status = stub_->GetNode(&context, request, &node);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(node.name(), "racks/r01/nodes/c02");
    EXPECT_EQ(node.status().parts_size(), 4);
    EXPECT_GT(node.revision(), 0u);
  }
}

TEST_F(edge_reads, every_kind_can_be_read) {
  v1::GetRequest request;
  {
    call context;
    v1::Rack rack;
    request.set_name("r01");
    ASSERT_TRUE(stub_->GetRack(&context, request, &rack).ok());
    EXPECT_EQ(rack.status().members_size(), 3);
  }
  {
    call context;
    v1::Shelf shelf;
    request.set_name("r01/p01");
    ASSERT_TRUE(stub_->GetShelf(&context, request, &shelf).ok());
    EXPECT_EQ(shelf.name(), "racks/r01/shelves/p01");
  }
  {
    call context;
    v1::Node node;
    EXPECT_EQ(stub_->GetNode(&context, request, &node).error_code(), grpc::StatusCode::NOT_FOUND) << "a shelf is no node";
  }
  {
    call context;
    v1::ListRacksResponse racks;
    ASSERT_TRUE(stub_->ListRacks(&context, v1::ListRequest(), &racks).ok());
    EXPECT_EQ(racks.racks_size(), 1);
  }
  {
    call context;
    v1::DaemonStatus status;
    ASSERT_TRUE(stub_->GetStatus(&context, v1::GetStatusRequest(), &status).ok());
    EXPECT_EQ(status.instance(), "r01");
    EXPECT_EQ(status.position().revision(), rack_->hub()->read()->position.revision());
  }
}

TEST_F(edge_reads, an_unknown_name_says_so_with_its_fault) {
  call context;
  v1::GetRequest request;
  request.set_name("r01/c99");
  v1::Node node;
  EXPECT_EQ(stub_->GetNode(&context, request, &node).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(context.error().fault(), "UNKNOWN_TARGET");
  EXPECT_FALSE(context.error().next_step().empty());
}

TEST_F(edge_reads, a_change_is_seen_at_once) {
  rack_->set_step("r01/c01", journal::CONFIGURED);
  call context;
  v1::GetRequest request;
  request.set_name("r01/c01");
  request.mutable_read_mask()->add_paths("status.step");
  v1::Node node;
  ASSERT_TRUE(stub_->GetNode(&context, request, &node).ok());
  EXPECT_EQ(node.status().step(), v1::NodeStep::CONFIGURED);
  EXPECT_EQ(node.name(), "") << "the mask leaves out the rest";
}

TEST_F(edge_reads, pages_hold_everything_once) {
  v1::ListRequest request;
  for (const int size : {0, 1, 2, 3, 4}) {
    request.set_page_size(size);
    EXPECT_EQ(list(request), (std::vector<std::string>{"racks/r01/nodes/c01", "racks/r01/nodes/c02", "racks/r01/nodes/c03",
                                                        "racks/r01/nodes/s01"}))
        << size;
  }
}

TEST_F(edge_reads, pages_are_of_one_revision) {
  call first;
  v1::ListRequest request;
  request.set_page_size(1);
  v1::ListNodesResponse page;
  ASSERT_TRUE(stub_->ListNodes(&first, request, &page).ok());
  const std::uint64_t revision = page.position().revision();
  rack_->set_step("r01/c02", journal::CONFIGURED);
  request.set_page_token(page.next_page_token());
  call second;
  page.Clear();
  ASSERT_TRUE(stub_->ListNodes(&second, request, &page).ok());
  EXPECT_EQ(page.position().revision(), revision);
  EXPECT_EQ(page.nodes(0).status().step(), v1::NodeStep::DECLARED);
}

TEST_F(edge_reads, filters_choose) {
  rack_->set_step("r01/c02", journal::CONFIGURED);
  v1::ListRequest request;
  request.set_filter("status.step=CONFIGURED");
  EXPECT_EQ(list(request), std::vector<std::string>{"racks/r01/nodes/c02"});
  request.set_filter("status.stepp=CONFIGURED");
  grpc::Status status;
  list(request, &status);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_filter("");
  request.set_parent("racks/r09");
  list(request, &status);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(edge_reads, a_call_without_deadline_is_refused) {
  grpc::ClientContext context;
  v1::DaemonStatus response;
  const grpc::Status status = stub_->GetStatus(&context, v1::GetStatusRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(edge_reads, events_come_newest_first) {
  rack_->set_step("r01/c01", journal::DISCOVERED);
  rack_->set_step("r01/c02", journal::DISCOVERED);
  call context;
  v1::ListEventsResponse events;
  const grpc::Status status = stub_->ListEvents(&context, v1::ListEventsRequest(), &events);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(events.events_size(), 2);
  EXPECT_EQ(events.events(0).object(), "racks/r01/nodes/c02");
}

// Nothing new is shown while nothing is written: by every way to see a rack or a member, until it is over.
TEST_F(edge_reads, what_may_be_old_is_shown_with_unknown_health_and_the_reason) {
  const auto look = [this](const std::string& why, v1::Health rack_health) {
    const auto judge = [&why](const auto& shown, std::optional<v1::Health> health) {
      if (health.has_value()) {
        EXPECT_EQ(shown.status().health(), *health) << shown.name();
      }
      const auto& rows = shown.conditions();
      const bool says = std::any_of(rows.begin(), rows.end(), [&why](const auto& row) {
        return row.type() == "MAY_BE_OLD" && row.health() == v1::HEALTH_UNKNOWN && row.message() == why;
      });
      EXPECT_EQ(says, !why.empty()) << shown.name();
      if (!why.empty()) {
        EXPECT_EQ(shown.status().waits_for(), why) << shown.name();
      }
    };
    const std::optional<v1::Health> of_all = why.empty() ? std::nullopt : std::optional(v1::HEALTH_UNKNOWN);
    v1::GetRequest request;
    v1::Rack rack;
    v1::Node node;
    v1::Shelf shelf;
    call rack_call, node_call, shelf_call, racks_call, nodes_call, watch_call;
    request.set_name("r01");
    ASSERT_TRUE(stub_->GetRack(&rack_call, request, &rack).ok());
    judge(rack, rack_health);
    request.set_name("r01/c02");
    ASSERT_TRUE(stub_->GetNode(&node_call, request, &node).ok());
    judge(node, of_all);
    request.set_name("r01/p01");
    ASSERT_TRUE(stub_->GetShelf(&shelf_call, request, &shelf).ok());
    judge(shelf, of_all);
    v1::ListRacksResponse racks;
    ASSERT_TRUE(stub_->ListRacks(&racks_call, v1::ListRequest(), &racks).ok());
    for (const v1::Rack& one : racks.racks()) judge(one, rack_health);
    v1::ListNodesResponse nodes;
    ASSERT_TRUE(stub_->ListNodes(&nodes_call, v1::ListRequest(), &nodes).ok());
    for (const v1::Node& one : nodes.nodes()) judge(one, of_all);
    auto stream = stub_->Watch(&watch_call, v1::WatchRequest());
    v1::WatchResponse response;
    while (stream->Read(&response) && !response.bookmark().initial_complete()) {
      if (response.has_rack()) judge(response.rack(), rack_health);
      if (response.has_node()) judge(response.node(), of_all);
      if (response.has_shelf()) judge(response.shelf(), of_all);
    }
    watch_call.TryCancel();
    stream->Finish();
  };
  v1::GetRequest request;
  request.set_name("r01");
  v1::Rack before;
  call context;
  ASSERT_TRUE(stub_->GetRack(&context, request, &before).ok());
  why_old_ = "the store takes no writes since noon; what is shown may be old";
  look(why_old_.load(), v1::HEALTH_UNKNOWN);
  why_old_ = "";
  look("", before.status().health());
}

TEST_F(edge_reads, a_watch_shows_all_anew_when_it_comes_to_be_old_and_when_it_is_so_no_more) {
  call context;
  auto stream = stub_->Watch(&context, v1::WatchRequest());
  v1::WatchResponse response;
  while (stream->Read(&response) && !response.bookmark().initial_complete()) {
  }
  for (const char* why : {"no writes", ""}) {
    why_old_ = why;
    std::set<std::string> seen;
    while (seen.size() < 6 && stream->Read(&response)) {  // a rack, three and one trays, a shelf
      const auto take = [&seen, why](const auto& shown) {
        seen.insert(shown.name());
        const auto& rows = shown.conditions();
        const bool says =
            std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.type() == "MAY_BE_OLD"; });
        EXPECT_EQ(says, *why != '\0') << shown.name();
      };
      if (response.has_rack()) take(response.rack());
      if (response.has_node()) take(response.node());
      if (response.has_shelf()) take(response.shelf());
    }
    EXPECT_EQ(seen.size(), 6U) << "'" << why << "'";
  }
  context.TryCancel();
  stream->Finish();
}

TEST_F(edge_reads, more_calls_than_there_is_room_for_are_turned_away) {
  edge_->stop_admission();
  edge_->stop_streams(std::chrono::milliseconds(1000));
  options_.admission.read = 0;
  serve();
  call context;
  v1::DaemonStatus response;
  const grpc::Status status = stub_->GetStatus(&context, v1::GetStatusRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(edge_reads, a_second_daemon_on_the_same_socket_is_refused) {
  const auto second = rpc::edge_server::start(needs(), options_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  call context;
  v1::DaemonStatus response;
  EXPECT_TRUE(stub_->GetStatus(&context, v1::GetStatusRequest(), &response).ok()) << "the first must go on";
}

}  // namespace
}  // namespace busbar::test
