#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/edge/edge_fixture.hpp"

namespace busbar::test {
namespace {

class edge_watch : public edge_fixture {
 protected:
  void SetUp() override {
    edge_fixture::SetUp();
    rack_->declare(2);
  }

  // Reads until done(response) says so; true if it did.
  static bool read_until(grpc::ClientReader<v1::WatchResponse>& stream, const std::function<bool(const v1::WatchResponse&)>& done) {
    v1::WatchResponse response;
    while (stream.Read(&response)) {
      if (done(response)) return true;
    }
    return false;
  }
};

TEST_F(edge_watch, begins_with_the_present_state_and_goes_on_without_gap) {
  serve();
  call context;
  const auto stream = stub_->Watch(&context, v1::WatchRequest());
  std::set<std::string> initial;
  ASSERT_TRUE(read_until(*stream, [&initial](const v1::WatchResponse& response) {
    if (response.has_node()) initial.insert(response.node().name());
    if (response.has_shelf()) initial.insert(response.shelf().name());
    if (response.has_rack()) initial.insert(response.rack().name());
    EXPECT_TRUE(response.initial() || response.has_bookmark());
    return response.bookmark().initial_complete();
  }));
  EXPECT_EQ(initial.size(), 5u);
  rack_->set_step("r01/c01", journal::CONFIGURED);
  bool event = false;
  bool node = false;
  EXPECT_TRUE(read_until(*stream, [&event, &node](const v1::WatchResponse& response) {
    EXPECT_FALSE(response.initial());
    event = event || (response.has_event() && response.event().object() == "racks/r01/nodes/c01");
    node = node || (response.has_node() && response.node().status().step() == v1::NodeStep::CONFIGURED);
    return event && node;
  }));
  context.TryCancel();
}

TEST_F(edge_watch, goes_on_from_a_position) {
  serve();
  const journal::Position before = rack_->hub()->read()->position;
  rack_->set_step("r01/c01", journal::DISCOVERED);
  rack_->set_step("r01/c02", journal::DISCOVERED);
  v1::WatchRequest request;
  request.mutable_position()->set_journal_id(before.journal_id());
  request.mutable_position()->set_revision(before.revision());
  request.add_kinds("nodes");
  request.set_parent("r01/c02");
  call context;
  const auto stream = stub_->Watch(&context, request);
  EXPECT_TRUE(read_until(*stream, [](const v1::WatchResponse& response) {
    EXPECT_TRUE(response.has_bookmark() || response.node().name() == "racks/r01/nodes/c02") << response.ShortDebugString();
    return response.has_node();
  }));
  context.TryCancel();
}

TEST_F(edge_watch, a_foreign_position_is_out_of_range) {
  serve();
  v1::WatchRequest request;
  request.mutable_position()->set_journal_id("another");
  request.mutable_position()->set_revision(1);
  call context;
  const auto stream = stub_->Watch(&context, request);
  v1::WatchResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_NE(status.error_message().find(rack_->hub()->read()->position.journal_id()), std::string::npos)
      << "names the oldest: " << status.error_message();
}

TEST_F(edge_watch, an_unknown_kind_is_refused) {
  serve();
  v1::WatchRequest request;
  request.add_kinds("node");
  call context;
  const auto stream = stub_->Watch(&context, request);
  v1::WatchResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(edge_watch, bookmarks_come_at_rest) {
  serve();
  v1::WatchRequest request;
  request.set_bookmarks(true);
  call context;
  const auto stream = stub_->Watch(&context, request);
  EXPECT_TRUE(read_until(*stream, [](const v1::WatchResponse& response) {
    return response.has_bookmark() && !response.bookmark().initial_complete();
  }));
  context.TryCancel();
}

// The client reads nothing while far more is written than its transport and its queue hold.
TEST_F(edge_watch, a_client_that_lags_too_far_is_ended) {
  options_.watches.queue = 16;
  serve();
  v1::WatchRequest request;
  request.add_kinds("nodes");
  call context;
  const auto stream = stub_->Watch(&context, request);
  ASSERT_TRUE(read_until(*stream, [](const v1::WatchResponse& response) { return response.bookmark().initial_complete(); }));
  for (int i = 0; i < 400; ++i) {
    auto node = std::make_shared<journal::Node>(*rack_->hub()->read()->node("r01/c01"));
    (*node->mutable_facts())["padding"] = std::string(100'000, static_cast<char>('a' + i % 26));
    core::journal_batch batch;
    batch.put(std::shared_ptr<const journal::Node>(node));
    rack_->commit(std::move(batch));
  }
  v1::WatchResponse response;
  int read = 0;
  while (stream->Read(&response)) ++read;
  EXPECT_LT(read, 400);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(edge_watch, stopping_ends_streams_with_unavailable) {
  serve();
  call context;
  const auto stream = stub_->Watch(&context, v1::WatchRequest());
  ASSERT_TRUE(read_until(*stream, [](const v1::WatchResponse& response) { return response.bookmark().initial_complete(); }));
  edge_->stop_admission();
  EXPECT_TRUE(edge_->stop_streams(std::chrono::milliseconds(2000)));
  v1::WatchResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(edge_watch, a_client_that_goes_away_leaves_nothing_behind) {
  serve();
  for (int i = 0; i < 20; ++i) {
    call context;
    const auto stream = stub_->Watch(&context, v1::WatchRequest());
    v1::WatchResponse response;
    ASSERT_TRUE(stream->Read(&response));
    context.TryCancel();
    while (stream->Read(&response)) {
    }
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  edge_->stop_admission();
  EXPECT_TRUE(edge_->stop_streams(std::chrono::milliseconds(2000)));
}

}  // namespace
}  // namespace busbar::test
