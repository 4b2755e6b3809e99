// Tokens, the book of them, the CA and the agent's identity.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "daemon/agent/identity.hpp"
#include "daemon/agent/token.hpp"
#include "daemon/agent/x509.hpp"
#include "daemon/busbard/rpc/agent_pki.hpp"
#include "daemon/busbard/rpc/agent_token_book.hpp"

namespace busbar::rpc {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const book_time noon = {std::chrono::steady_clock::time_point(seconds(5000)), 1'800'000'000};
book_time after(seconds passed) {
  return {noon.monotonic + passed, noon.wall_s + passed.count()};
}
const std::string key_a(64, 'a');
const std::string key_b(64, 'b');

class token_book : public ::testing::Test {
 protected:
  agent_token_book book_{minutes(30)};
};

TEST_F(token_book, admits_the_right_token_with_the_right_serial_once) {
  book_.issue("r01/c07", "SN7", "token", noon);
  const auto first = book_.redeem("token", "SN7", key_a, after(seconds(60)));
  EXPECT_TRUE(first.status.ok());
  EXPECT_EQ(first.member, "r01/c07");
  EXPECT_TRUE(book_.redeem("token", "SN7", key_a, after(seconds(61))).status.ok());
  EXPECT_EQ(book_.redeem("token", "SN7", key_b, after(seconds(62))).status.code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(token_book, refuses_an_unknown_an_expired_and_a_replaced_token) {
  book_.issue("r01/c07", "SN7", "token", noon);
  EXPECT_FALSE(book_.redeem("guess", "SN7", key_a, noon).status.ok());
  EXPECT_FALSE(book_.redeem("token", "SN7", key_a, after(minutes(30))).status.ok());
  book_.issue("r01/c07", "SN7", "newer", noon);
  EXPECT_FALSE(book_.redeem("token", "SN7", key_a, noon).status.ok());
  EXPECT_TRUE(book_.redeem("newer", "SN7", key_a, noon).status.ok());
}

TEST_F(token_book, burns_a_token_shown_with_a_wrong_serial) {
  book_.issue("r01/c07", "SN7", "token", noon);
  const auto wrong = book_.redeem("token", "SN8", key_a, noon);
  EXPECT_EQ(wrong.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(wrong.member, "r01/c07");
  EXPECT_FALSE(book_.redeem("token", "SN7", key_a, noon).status.ok());
}

TEST_F(token_book, takes_any_serial_where_redfish_showed_none) {
  book_.issue("r01/c07", "", "token", noon);
  EXPECT_TRUE(book_.redeem("token", "whatever", key_a, noon).status.ok());
  EXPECT_FALSE(book_.expected_serial("r01/c07").has_value());
}

TEST_F(token_book, bars_a_revoked_member_until_its_next_token) {
  book_.issue("r01/c07", "SN7", "token", noon);
  book_.revoke("r01/c07");
  EXPECT_TRUE(book_.revoked("r01/c07"));
  EXPECT_FALSE(book_.redeem("token", "SN7", key_a, noon).status.ok());
  book_.issue("r01/c07", "SN7", "newer", noon);
  EXPECT_FALSE(book_.revoked("r01/c07"));
}

TEST_F(token_book, outlives_a_restart_with_its_digests_only) {
  book_.issue("r01/c07", "SN 7 \n", "first-secret", noon);
  book_.issue("r01/c08", "", "other-secret", noon);
  book_.revoke("r01/c09");
  ASSERT_TRUE(book_.redeem("other-secret", "x", key_a, noon).status.ok());
  const std::string text = book_.to_text(noon);
  EXPECT_EQ(text.find("secret"), std::string::npos);
  agent_token_book again{minutes(30)};
  // Another boot of the daemon: its monotonic clock starts elsewhere, the wall clock went on by a minute.
  const book_time later = {std::chrono::steady_clock::time_point(seconds(7)), noon.wall_s + 60};
  ASSERT_TRUE(again.parse(text, later).ok());
  EXPECT_EQ(again.expected_serial("r01/c07"), "SN 7 \n");
  EXPECT_TRUE(again.revoked("r01/c09"));
  EXPECT_FALSE(again.redeem("other-secret", "x", key_b, later).status.ok());
  EXPECT_TRUE(again.redeem("other-secret", "x", key_a, later).status.ok());
  const book_time too_late = {later.monotonic + minutes(29), 0};
  EXPECT_FALSE(again.redeem("first-secret", "SN 7 \n", key_a, too_late).status.ok());
}

TEST_F(token_book, lets_no_token_live_longer_for_a_clock_set_back) {
  book_.issue("r01/c07", "SN7", "token", noon);
  agent_token_book again{minutes(30)};
  const book_time day_before = {std::chrono::steady_clock::time_point(seconds(7)), noon.wall_s - 86400};
  ASSERT_TRUE(again.parse(book_.to_text(noon), day_before).ok());
  EXPECT_FALSE(again.redeem("token", "SN7", key_a, {day_before.monotonic + minutes(30), 0}).status.ok());
}

TEST_F(token_book, refuses_a_text_that_is_not_its_own) {
  book_.issue("r01/c07", "SN7", "token", noon);
  const std::string text = book_.to_text(noon);
  for (const std::string& wrong :
       {std::string(), std::string("{}"), text + "r01/c08 zz - - 0 open\n", text + "x\n",
        text.substr(0, text.size() - 4), text + "r01/c08 - - - nine open\n"}) {
    agent_token_book again{minutes(30)};
    EXPECT_FALSE(again.parse(wrong, noon).ok()) << wrong;
    EXPECT_FALSE(again.expected_serial("r01/c07").has_value());
  }
}

TEST(member_name, is_a_rack_and_a_slot) {
  for (const char* good : {"r01/c07", "rack-1/s09", "a/b"}) EXPECT_TRUE(is_member_name(good)) << good;
  for (const char* bad : {"", "/", "r01", "r01/", "/c07", "r01/c07/x", "r01/c 7", "r01/c\n7"})
    EXPECT_FALSE(is_member_name(bad)) << bad;
}

TEST(agent_token, carries_the_ca_and_is_read_back) {
  const std::string digest(64, 'c');
  const std::string text = agent_client::make_token(digest);
  const auto read = agent_client::parse_token(text);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->ca_sha256_hex, digest);
  EXPECT_NE(agent_client::make_token(digest), text);
  for (const std::string& wrong : {std::string(), text.substr(1), text + "x", std::string(87, 'a'),
                                   text.substr(0, 44) + std::string(43, '*')}) {
    EXPECT_FALSE(agent_client::parse_token(wrong).ok()) << wrong;
  }
}

TEST(boot_parameters, are_found_in_a_uri_and_in_a_kernel_command_line) {
  const auto uri =
      agent_client::parse_boot_parameters("https://images.site/s.efi?token=a.b-_&endpoint=127.18.1.250:7443");
  EXPECT_EQ(uri.token, "a.b-_");
  EXPECT_EQ(uri.endpoint, "127.18.1.250:7443");
  const auto line =
      agent_client::parse_boot_parameters("quiet token=no busbar.endpoint=h%3A1 busbar.token=yes ro\n");
  EXPECT_EQ(line.token, "yes");
  EXPECT_EQ(line.endpoint, "h:1");
  const auto none = agent_client::parse_boot_parameters("quiet token=no xbusbar.token=no");
  EXPECT_EQ(none.token, "");
  EXPECT_EQ(none.endpoint, "");
}

class agent_pki : public ::testing::Test {
 protected:
  agent_pki() {
    std::string pattern = (std::filesystem::temp_directory_path() / "busbar-pki-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~agent_pki() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::filesystem::path folder_;
};

TEST_F(agent_pki, makes_its_ca_once_and_keeps_the_key_to_itself) {
  const auto first = agent_ca::load_or_create(folder_, "r01");
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = agent_ca::load_or_create(folder_, "r01");
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->sha256_hex(), second->sha256_hex());
  struct stat facts {};
  ASSERT_EQ(::stat((folder_ / "agent-ca.key").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST_F(agent_pki, makes_no_second_ca_where_the_first_cannot_be_read) {
  ASSERT_TRUE(agent_ca::load_or_create(folder_, "r01").ok());
  std::filesystem::remove(folder_ / "agent-ca.key");
  EXPECT_FALSE(agent_ca::load_or_create(folder_, "r01").ok());
  std::ofstream(folder_ / "agent-ca.key") << agent_client::new_key_pem().value();
  EXPECT_FALSE(agent_ca::load_or_create(folder_, "r01").ok());
}

TEST_F(agent_pki, signs_for_the_name_the_gate_knows_and_not_for_the_one_asked) {
  const auto ca = *agent_ca::from_pem(*agent_ca::create("r01"));
  const auto key = *agent_client::new_key_pem();
  const auto certificate =
      ca.sign_client(*agent_client::make_csr(key, "r01/c01"), "r01/c07", std::chrono::hours(24));
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  const auto facts = agent_client::read_certificate(*certificate);
  ASSERT_TRUE(facts.ok());
  EXPECT_EQ(facts->common_name, "r01/c07");
  EXPECT_EQ(facts->not_after - facts->not_before, 86400 + 300);
  EXPECT_TRUE(agent_client::key_matches(key, *certificate).ok());
  EXPECT_FALSE(agent_client::key_matches(*agent_client::new_key_pem(), *certificate).ok());
}

TEST_F(agent_pki, refuses_a_request_that_is_none) {
  const auto ca = *agent_ca::from_pem(*agent_ca::create("r01"));
  auto csr = *agent_client::make_csr(*agent_client::new_key_pem(), "x");
  EXPECT_FALSE(ca.sign_client("", "r01/c07", seconds(60)).ok());
  csr[csr.size() / 2] = csr[csr.size() / 2] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(ca.sign_client(csr, "r01/c07", seconds(60)).ok());
  EXPECT_FALSE(ca.sign_client(std::string(20000, 'x'), "r01/c07", seconds(60)).ok());
}

TEST_F(agent_pki, is_recognised_by_the_digest_alone) {
  const auto ca = *agent_ca::from_pem(*agent_ca::create("r01"));
  const auto other = *agent_ca::from_pem(*agent_ca::create("r01"));
  const auto server = *ca.issue_server({"127.18.1.250"});
  EXPECT_TRUE(
      agent_client::verify_server_chain(server.certificate_pem, server.certificate_pem, ca.sha256_hex())
          .ok());
  EXPECT_FALSE(
      agent_client::verify_server_chain(server.certificate_pem, server.certificate_pem, other.sha256_hex())
          .ok());
  // The right CA shown beside a certificate it never signed.
  const auto stranger = *other.issue_server({"127.18.1.250"});
  const std::string forged = stranger.certificate_pem + ca.certificate_pem();
  EXPECT_FALSE(agent_client::verify_server_chain(forged, forged, ca.sha256_hex()).ok());
  // An agent's certificate is no gate's.
  const auto client = *ca.sign_client(*agent_client::make_csr(*agent_client::new_key_pem(), "x"),
                                      "agent-gate.busbar/x", seconds(60));
  EXPECT_FALSE(
      agent_client::verify_server_chain(client, client + ca.certificate_pem(), ca.sha256_hex()).ok());
}

TEST_F(agent_pki, keeps_an_identity_in_one_private_file) {
  const auto ca = *agent_ca::from_pem(*agent_ca::create("r01"));
  agent_client::identity mine;
  mine.token_digest = key_a;
  mine.key_pem = *agent_client::new_key_pem();
  agent_client::identity_store store(folder_ / "state" / "identity");
  EXPECT_TRUE(store.load().key_pem.empty());
  ASSERT_TRUE(store.save(mine).ok());
  EXPECT_EQ(store.load().key_pem, mine.key_pem);
  EXPECT_TRUE(store.load().certificate_pem.empty());
  mine.certificate_pem = *ca.sign_client(*agent_client::make_csr(mine.key_pem, "x"), "r01/c07", seconds(60));
  mine.ca_pem = ca.certificate_pem();
  ASSERT_TRUE(store.save(mine).ok());
  const auto read = store.load();
  EXPECT_EQ(read.token_digest, mine.token_digest);
  EXPECT_EQ(read.key_pem, mine.key_pem);
  EXPECT_EQ(read.certificate_pem, mine.certificate_pem);
  EXPECT_EQ(read.ca_pem, mine.ca_pem);
  struct stat facts {};
  ASSERT_EQ(::stat((folder_ / "state" / "identity").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
  EXPECT_TRUE(agent_client::identity_from_text("something else").key_pem.empty());
}

}  // namespace
}  // namespace busbar::rpc
