#include "daemon/busbard/rpc/peers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace busbar::rpc {
namespace {

group_source member_of(std::vector<std::string> groups) {
  return [groups](uid_t) { return groups; };
}

TEST(peers, root_and_the_own_user_are_operators) {
  EXPECT_EQ(caller_of_uid(0, 990, member_of({})), (caller{"uid:0", role::op}));
  EXPECT_EQ(caller_of_uid(990, 990, member_of({})), (caller{"uid:990", role::op}));
}

TEST(peers, groups_give_roles) {
  EXPECT_EQ(caller_of_uid(7, 990, member_of({"users", "busbar-viewer"})), (caller{"uid:7", role::viewer}));
  EXPECT_EQ(caller_of_uid(7, 990, member_of({"busbar-viewer", "busbar-operator"})), (caller{"uid:7", role::op}));
  EXPECT_EQ(caller_of_uid(7, 990, member_of({"busbar-safety"})), (caller{"uid:7", role::viewer}));
}

TEST(peers, nobody_else_is_let_in) {
  EXPECT_EQ(caller_of_uid(7, 990, member_of({"users", "busbar", "sudo"})), std::nullopt);
  EXPECT_EQ(caller_of_uid(7, 990, member_of({})), std::nullopt);
}

TEST(peers, certificates_have_the_roles_that_the_configuration_gives) {
  const certificate_roles roles{{"eye"}, {"hand"}};
  EXPECT_EQ(caller_of_certificate("hand", roles), (caller{"cn:hand", role::op}));
  EXPECT_EQ(caller_of_certificate("eye", roles), (caller{"cn:eye", role::viewer}));
  EXPECT_EQ(caller_of_certificate("other", roles), std::nullopt);
  EXPECT_EQ(caller_of_certificate("", roles), std::nullopt);
}

class peer_numbers : public ::testing::Test {
 protected:
  static int open_one() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }
  static std::string peer(int number) { return "fd:" + std::to_string(number); }
  peer_table table;
};

TEST_F(peer_numbers, a_connection_is_known_by_its_number) {
  const int socket = open_one();
  ASSERT_GE(socket, 0);
  const int number = table.admit(socket, {"uid:7", role::viewer});
  EXPECT_EQ(number, socket);
  EXPECT_EQ(table.find(peer(number)), (caller{"uid:7", role::viewer}));
  EXPECT_EQ(table.find(peer(number + 1)), std::nullopt);
  close(number);
}

TEST_F(peer_numbers, a_number_is_never_used_for_another_user) {
  const int first = open_one();
  ASSERT_EQ(table.admit(first, {"uid:0", role::op}), first);
  close(first);
  const int second = open_one();  // the system gives the same number again
  ASSERT_EQ(second, first);
  const int number = table.admit(second, {"uid:7", role::viewer});
  ASSERT_GE(number, 0);
  EXPECT_NE(number, first);
  // A late look of the first connection still finds the first user.
  EXPECT_EQ(table.find(peer(first)), (caller{"uid:0", role::op}));
  EXPECT_EQ(table.find(peer(number)), (caller{"uid:7", role::viewer}));
  EXPECT_EQ(fcntl(first, F_GETFD), -1) << "the accepted number must be closed";
  close(number);
}

TEST_F(peer_numbers, the_same_user_may_have_a_number_again) {
  const int first = open_one();
  ASSERT_EQ(table.admit(first, {"uid:7", role::viewer}), first);
  close(first);
  const int second = open_one();
  ASSERT_EQ(second, first);
  EXPECT_EQ(table.admit(second, {"uid:7", role::viewer}), first);
  close(second);
}

TEST_F(peer_numbers, other_kinds_of_peers_are_not_known) {
  EXPECT_EQ(table.find("ipv4:127.0.0.1:4242"), std::nullopt);
  EXPECT_EQ(table.find("unix:"), std::nullopt);
  EXPECT_EQ(table.find("fd:"), std::nullopt);
  EXPECT_EQ(table.find("fd:3x"), std::nullopt);
}

}  // namespace
}  // namespace busbar::rpc
