// A served test rack and a client of it.
#pragma once

#include <atomic>
#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "busbar/v1/busbar.grpc.pb.h"
#include "daemon/busbard/rpc/edge_server.hpp"
#include "tests/integration/edge/test_rack.hpp"

namespace busbar::test {

class edge_fixture : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "busbar-edge-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    rack_ = std::make_unique<test_rack>();
    options_.socket_path = (folder_ / "busbard.sock").string();
    options_.own_uid = geteuid();
    options_.groups = [](uid_t) { return std::vector<std::string>(); };
    options_.watches.bookmark_interval = std::chrono::milliseconds(50);
  }

  void TearDown() override {
    if (edge_ != nullptr) {
      edge_->stop_admission();
      edge_->stop_streams(std::chrono::milliseconds(2000));
    }
    edge_.reset();
    rack_.reset();
    std::filesystem::remove_all(folder_);
  }

  rpc::edge_dependencies needs() {
    rpc::edge_dependencies made;
    made.instance = "r01";
    made.version = "test";
    made.hub = rack_->hub();
    made.events = rack_->events();
    test_rack* const rack = rack_.get();
    made.submit = [rack](std::shared_ptr<const core::command> what, core::answer_ptr answer) {
      rack->submit(std::move(what), std::move(answer));
    };
    made.degraded = [] { return std::vector<std::string>(); };
    made.may_be_old = [this] { return std::string(why_old_.load()); };
    made.board = board_;
    if (history_ != nullptr) {
      made.history = [this](const std::string& name, std::int64_t from_s, std::int64_t to_s, std::int64_t step_s,
                            std::size_t limit) { return history_->read(name, from_s, to_s, step_s, limit); };
    }
    return made;
  }

  void serve() {
    auto started = rpc::edge_server::start(needs(), options_);
    ASSERT_TRUE(started.ok()) << started.status();
    edge_ = *std::move(started);
    stub_ = connect();
  }

  std::unique_ptr<v1::Busbar::Stub> connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    return v1::Busbar::NewStub(grpc::CreateCustomChannel("unix:" + options_.socket_path, grpc::InsecureChannelCredentials(), arguments));
  }

  struct call : grpc::ClientContext {
    explicit call(std::chrono::seconds limit = std::chrono::seconds(20)) {
      set_deadline(std::chrono::system_clock::now() + limit);
    }
    v1::ErrorInfo error() const {
      v1::ErrorInfo info;
      const auto found = GetServerTrailingMetadata().find(rpc::error_key);
      if (found != GetServerTrailingMetadata().end()) info.ParseFromArray(found->second.data(), static_cast<int>(found->second.size()));
      return info;
    }
  };

  v1::Operation begin(const std::string& request_id = {}) {
    call context;
    v1::BringupRackRequest request;
    request.mutable_act()->set_name("racks/r01");
    request.mutable_act()->set_request_id(request_id);
    v1::Operation operation;
    const grpc::Status status = stub_->BringupRack(&context, request, &operation);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return operation;
  }

  std::filesystem::path folder_;
  std::unique_ptr<test_rack> rack_;
  std::atomic<const char*> why_old_{""};  // why what is shown may be old
  std::shared_ptr<core::reading_board> board_ = std::make_shared<core::reading_board>();
  std::shared_ptr<storage::history> history_;
  rpc::edge_options options_;
  std::unique_ptr<rpc::edge_server> edge_;
  std::unique_ptr<v1::Busbar::Stub> stub_;
};

}  // namespace busbar::test
