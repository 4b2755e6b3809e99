// Who is calling, over the real socket. Other users are played by threads that change their own user id (the raw system call
// changes that thread alone); without the right to do so these are NOT RUN.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "tests/integration/edge/edge_fixture.hpp"

namespace busbar::test {
namespace {

constexpr uid_t viewer = 61001;
constexpr uid_t operator_user = 61002;
constexpr uid_t stranger = 61003;

class edge_peers : public edge_fixture {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT RUN: needs root to play other users";
    edge_fixture::SetUp();
    options_.groups = [](uid_t uid) {
      if (uid == viewer) return std::vector<std::string>{"busbar-viewer"};
      if (uid == operator_user) return std::vector<std::string>{"busbar-operator"};
      return std::vector<std::string>{"users"};
    };
    rack_->declare(1);
    serve();
    // The test's users are in no group of the socket: what is tested is the decision, not the file's mode.
    ASSERT_EQ(chmod(options_.socket_path.c_str(), 0666), 0);
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  }

  // A connection made as uid; -1 if it could not be made.
  int connect_as(uid_t uid) {
    int result = -1;
    std::thread other([this, uid, &result] {
      if (syscall(SYS_setresuid, uid, uid, uid) != 0) return;
      const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      options_.socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
      if (::connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        result = made;
      } else {
        close(made);
      }
    });
    other.join();
    return result;
  }

  static std::unique_ptr<v1::Busbar::Stub> stub_on(int socket) {
    return v1::Busbar::NewStub(grpc::CreateInsecureChannelFromFd("test", socket));
  }

  static grpc::Status read(v1::Busbar::Stub& stub) {
    call context;
    v1::DaemonStatus response;
    return stub.GetStatus(&context, v1::GetStatusRequest(), &response);
  }

  static grpc::Status act(v1::Busbar::Stub& stub, v1::Operation* operation) {
    call context;
    v1::ActRequest request;
    request.set_name("r01");
    request.set_validate_only(operation == nullptr);
    v1::Operation unused;
    return stub.ShutdownRack(&context, request, operation == nullptr ? &unused : operation);
  }
};

TEST_F(edge_peers, a_viewer_reads_and_does_not_act) {
  const int socket = connect_as(viewer);
  ASSERT_GE(socket, 0);
  const auto stub = stub_on(socket);
  const grpc::Status status = read(*stub);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(act(*stub, nullptr).error_code(), grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(edge_peers, an_operator_acts_under_his_own_name) {
  const int socket = connect_as(operator_user);
  ASSERT_GE(socket, 0);
  const auto stub = stub_on(socket);
  v1::Operation operation;
  const grpc::Status status = act(*stub, &operation);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(operation.principal(), "uid:61002");
}

TEST_F(edge_peers, a_stranger_is_closed_out_at_once) {
  const int socket = connect_as(stranger);
  ASSERT_GE(socket, 0);
  char byte = 0;
  EXPECT_EQ(recv(socket, &byte, 1, 0), 0) << "the connection must end without a byte";
  close(socket);
  EXPECT_TRUE(read(*stub_).ok());
}

// Connections of many users come and go; numbers of sockets are used again and again, and nobody is ever taken for another.
TEST_F(edge_peers, nobody_is_taken_for_another_however_numbers_are_reused) {
  for (int round = 0; round < 25; ++round) {
    const auto as_viewer = stub_on(connect_as(viewer));
    EXPECT_EQ(act(*as_viewer, nullptr).error_code(), grpc::StatusCode::PERMISSION_DENIED) << round;
    const auto as_operator = stub_on(connect_as(operator_user));
    EXPECT_TRUE(act(*as_operator, nullptr).ok()) << round;
    EXPECT_TRUE(read(*as_viewer).ok()) << round;
  }
}

}  // namespace
}  // namespace busbar::test
