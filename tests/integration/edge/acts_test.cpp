#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include "actors/core/errors.hpp"
#include "actors/core/messages.hpp"
#include "tests/integration/edge/edge_fixture.hpp"

namespace busbar::test {
namespace {

class edge_acts : public edge_fixture {
 protected:
  void SetUp() override {
    edge_fixture::SetUp();
    rack_->declare(2);
    serve();
  }

  grpc::Status shut_down(v1::ActRequest request, v1::Operation* operation, v1::ErrorInfo* error = nullptr) {
    call context;
    request.set_name("racks/r01");
    const grpc::Status status = stub_->ShutdownRack(&context, request, operation);
    if (error != nullptr) *error = context.error();
    return status;
  }
};

TEST_F(edge_acts, an_act_answers_with_its_operation) {
  const v1::Operation operation = begin();
  EXPECT_EQ(operation.name(), "racks/r01/operations/1");
  EXPECT_EQ(operation.state(), v1::Operation::RUNNING);
  EXPECT_EQ(operation.principal(), "uid:" + std::to_string(geteuid()));
  EXPECT_EQ(operation.components_size(), 4);
  EXPECT_FALSE(operation.request_id().empty()) << "the server makes one";
}

TEST_F(edge_acts, wait_answers_when_it_ends) {
  const v1::Operation operation = begin();
  v1::WaitOperationRequest request;
  request.set_name(operation.name());
  v1::Operation ended;
  grpc::Status status;
  std::thread waiting([this, &request, &ended, &status] {
    call context;
    status = stub_->WaitOperation(&context, request, &ended);
  });
  rack_->end_operation("operations/1", "SUCCEEDED");
  waiting.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(ended.done());
  EXPECT_EQ(ended.state(), v1::Operation::SUCCEEDED);
}

TEST_F(edge_acts, wait_answers_as_it_stands_when_its_time_is_over) {
  v1::WaitOperationRequest request;
  request.set_name(begin().name());
  request.mutable_timeout()->set_nanos(1'000'000);
  call context;
  v1::Operation operation;
  ASSERT_TRUE(stub_->WaitOperation(&context, request, &operation).ok());
  EXPECT_FALSE(operation.done());
}

TEST_F(edge_acts, cancel_goes_through) {
  v1::ActRequest request;
  request.set_name(begin().name());
  call context;
  v1::Operation operation;
  ASSERT_TRUE(stub_->CancelOperation(&context, request, &operation).ok());
  v1::WaitOperationRequest wait;
  wait.set_name(request.name());
  call waiting;
  ASSERT_TRUE(stub_->WaitOperation(&waiting, wait, &operation).ok());
  EXPECT_EQ(operation.state(), v1::Operation::CANCELLED);
}

TEST_F(edge_acts, a_repeated_request_id_starts_nothing_new) {
  EXPECT_EQ(begin("once").name(), begin("once").name());
  v1::ActRequest request;
  request.set_request_id("once");
  v1::Operation operation;
  v1::ErrorInfo error;
  EXPECT_EQ(shut_down(request, &operation, &error).error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(error.fault(), "REQUEST_ID_REUSED");
}

TEST_F(edge_acts, an_unknown_target_is_refused_whole) {
  call context;
  v1::BringupRackRequest request;
  request.mutable_act()->set_name("r01");
  request.add_members("c01");
  request.add_members("c77");
  v1::Operation operation;
  EXPECT_EQ(stub_->BringupRack(&context, request, &operation).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(rack_->hub()->read()->operations->empty());
}

TEST_F(edge_acts, an_owner_s_refusal_reaches_the_client) {
  call context;
  v1::RetryNodeRequest request;
  request.mutable_act()->set_name("r01/c01");
  request.set_from_step("production");
  v1::Operation operation;
  const grpc::Status status = stub_->RetryNode(&context, request, &operation);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(context.error().fault(), "OPERATION_CONFLICT");
  EXPECT_EQ(context.error().target(), "racks/r01/nodes/c01");
}

TEST_F(edge_acts, an_old_etag_is_refused) {
  v1::ActRequest request;
  request.set_etag("d0");
  v1::Operation operation;
  EXPECT_EQ(shut_down(request, &operation).error_code(), grpc::StatusCode::ABORTED);
  request.set_etag("d1");
  EXPECT_TRUE(shut_down(request, &operation).ok());
}

TEST_F(edge_acts, checking_only_starts_nothing) {
  v1::ActRequest request;
  request.set_validate_only(true);
  v1::Operation operation;
  ASSERT_TRUE(shut_down(request, &operation).ok());
  EXPECT_EQ(operation.name(), "");
  EXPECT_TRUE(operation.done());
  EXPECT_TRUE(rack_->hub()->read()->operations->empty());
}

TEST_F(edge_acts, wrong_files_are_all_told_at_once) {
  call context;
  v1::ApplyManifestRequest request;
  auto* file = request.add_files();
  file->set_path("manifests/r01.yaml");
  file->set_content("apiVersion: busbar.v1\nkind: Manifest\nrack: r01\nsurprise: 1\nother: 2\n");
  v1::ApplyManifestResponse response;
  EXPECT_EQ(stub_->ApplyManifest(&context, request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(context.error().fault(), "SPEC_INVALID");
  const auto found = context.GetServerTrailingMetadata().find(rpc::spec_errors_key);
  ASSERT_NE(found, context.GetServerTrailingMetadata().end());
  v1::SpecErrors errors;
  ASSERT_TRUE(errors.ParseFromArray(found->second.data(), static_cast<int>(found->second.size())));
  EXPECT_GE(errors.errors_size(), 2);
  EXPECT_EQ(errors.errors(0).file(), "manifests/r01.yaml");
}

// The three ways an answer can get lost. The client hears of each at once.
TEST_F(edge_acts, an_answer_given_twice_counts_once) {
  rack_->intercept([](std::shared_ptr<const core::command>, core::answer_ptr answer) {
    answer->finish(core::make_fault(core::fault::OPERATION_CONFLICT, "first"));
    answer->finish(core::command_result{"", "second", {}});
  });
  v1::Operation operation;
  const grpc::Status status = shut_down({}, &operation);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(status.error_message(), "first");
}

TEST_F(edge_acts, an_answer_given_by_two_threads_counts_once) {
  rack_->intercept([](std::shared_ptr<const core::command>, core::answer_ptr answer) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([answer] { answer->finish(core::command_result{"", "done", {}}); });
    }
    for (std::thread& each : threads) each.join();
  });
  for (int i = 0; i < 50; ++i) {
    v1::Operation operation;
    EXPECT_TRUE(shut_down({}, &operation).ok());
  }
}

TEST_F(edge_acts, an_answer_dropped_in_a_handler_is_unavailable) {
  rack_->intercept([](std::shared_ptr<const core::command>, core::answer_ptr) {});
  v1::Operation operation;
  EXPECT_EQ(shut_down({}, &operation).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(edge_acts, an_answer_lost_with_a_dead_actor_s_mailbox_is_unavailable) {
  // An actor that dies on the message before it.
  const caf::actor dying = rack_->actors().spawn([](caf::event_based_actor* self) -> caf::behavior {
    return {[self](core::stop_atom) { self->quit(caf::exit_reason::kill); },
            [](core::command_atom, const core::command_ptr&, const core::answer_ptr&) {}};
  });
  rack_->intercept([dying](std::shared_ptr<const core::command> what, core::answer_ptr answer) {
    caf::anon_send(dying, core::stop_atom_v);
    caf::anon_send(dying, core::command_atom_v, core::command_ptr(std::move(what)), std::move(answer));
  });
  for (int i = 0; i < 3; ++i) {
    v1::Operation operation;
    EXPECT_EQ(shut_down({}, &operation).error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_F(edge_acts, an_answer_that_never_comes_does_not_hold_up_the_stop) {
  core::answer_ptr kept;
  std::atomic<bool> inside{false};
  rack_->intercept([&kept, &inside](std::shared_ptr<const core::command>, core::answer_ptr answer) {
    kept = std::move(answer);
    inside.store(true);
    inside.notify_all();
  });
  grpc::Status status;
  std::thread client([this, &status] {
    v1::Operation operation;
    status = shut_down({}, &operation);
  });
  inside.wait(false);
  edge_->stop_admission();
  EXPECT_FALSE(edge_->stop_streams(std::chrono::milliseconds(50)));
  client.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  kept->finish(core::command_result{"", "far too late", {}});
}

}  // namespace
}  // namespace busbar::test
