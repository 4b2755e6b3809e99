#include "tests/unit/sim_model/bench_site.hpp"

namespace busbar::sim {
namespace {

constexpr const char* accounts = "/redfish/v1/AccountService/Accounts";

TEST(simulated_bmc, refuses_everything_but_the_root_and_a_login_without_credentials) {
  bench_site site;
  EXPECT_EQ(site.send(shelf, "GET", "/redfish/v1").status, 200);
  EXPECT_EQ(site.send(shelf, "GET", "/redfish/v1/Chassis").status, 401);
  EXPECT_EQ(site.send(shelf, "GET", "/redfish/v1/Chassis", nullptr, "no-such-token").status, 401);
  EXPECT_EQ(site.send(shelf, "POST", accounts,
                      {{"UserName", "x"}, {"Password", "longenough"}, {"RoleId", "Operator"}})
                .status,
            401);
}

TEST(simulated_bmc, holds_eight_sessions_and_says_so_at_the_ninth) {
  bench_site site;
  for (int each = 0; each < 8; ++each) {
    EXPECT_EQ(site.login(shelf, "root", site.model->factory_password()).status, 201);
  }
  const http_reply ninth = site.login(shelf, "root", site.model->factory_password());
  EXPECT_EQ(ninth.status, 503);
  EXPECT_NE(ninth.body.find("SessionLimitExceeded"), std::string::npos);
}

TEST(simulated_bmc, frees_a_session_that_is_deleted_or_forgotten) {
  bench_site site;
  const http_reply first = site.login(shelf, "root", site.model->factory_password());
  const std::string token = first.headers.at("X-Auth-Token");
  EXPECT_EQ(site.send(shelf, "DELETE", first.headers.at("Location"), nullptr, token).status, 204);
  EXPECT_EQ(site.send(shelf, "GET", "/redfish/v1/Chassis", nullptr, token).status, 401);
  const std::string other = site.token(shelf);
  site.pass(1801s);
  EXPECT_EQ(site.send(shelf, "GET", "/redfish/v1/Chassis", nullptr, other).status, 401);
}

TEST(simulated_bmc, locks_the_account_after_five_wrong_passwords_and_opens_it_after_the_time) {
  bench_site site("quick");
  for (int each = 0; each < 5; ++each) {
    EXPECT_EQ(site.login(shelf, "root", "wrong-password").status, 401);
  }
  EXPECT_EQ(site.login(shelf, "root", site.model->factory_password()).status, 401);
  EXPECT_EQ(site.truth("r01/p01/accounts/root/locked"), true);
  site.pass(61s);
  EXPECT_EQ(site.login(shelf, "root", site.model->factory_password()).status, 201);
}

TEST(simulated_bmc, counts_wrong_passwords_anew_after_a_right_one) {
  bench_site site("quick");
  for (int each = 0; each < 4; ++each) {
    site.login(shelf, "root", "wrong-password");
  }
  site.token(shelf);
  for (int each = 0; each < 4; ++each) {
    site.login(shelf, "root", "wrong-password");
  }
  EXPECT_EQ(site.login(shelf, "root", site.model->factory_password()).status, 201);
}

TEST(simulated_bmc, creates_an_account_once_and_changes_its_password) {
  bench_site site;
  const std::string token = site.token(shelf);
  const json account = {
      {"UserName", "busbar-00c0ffee"}, {"Password", "generated-secret"}, {"RoleId", "Administrator"}};
  EXPECT_EQ(site.send(shelf, "POST", accounts, account, token).status, 201);
  const http_reply again = site.send(shelf, "POST", accounts, account, token);
  EXPECT_EQ(again.status, 400);
  EXPECT_NE(again.body.find("ResourceAlreadyExists"), std::string::npos);
  EXPECT_EQ(site.login(shelf, "busbar-00c0ffee", "generated-secret").status, 201);
  EXPECT_EQ(site.send(shelf, "PATCH", std::string(accounts) + "/root", {{"Password", "a-new-secret"}}, token)
                .status,
            204);
  EXPECT_EQ(site.login(shelf, "root", site.model->factory_password()).status, 401);
  EXPECT_EQ(site.login(shelf, "root", "a-new-secret").status, 201);
  EXPECT_EQ(site.truth("r01/p01/accounts/root/factory_password"), false);
}

TEST(simulated_bmc, journals_dangerous_acts_with_their_object_and_never_a_secret) {
  bench_site site;
  const std::string token = site.token(shelf);
  site.send(shelf, "POST", accounts,
            {{"UserName", "b"}, {"Password", "generated-secret"}, {"RoleId", "Operator"}}, token);
  site.send(shelf, "PATCH", std::string(accounts) + "/root", {{"Password", "generated-secret"}}, token);
  ASSERT_EQ(site.journal.size(), 3u);
  EXPECT_EQ(site.journal[1].act, "account_create");
  EXPECT_EQ(site.journal[1].argument, "b");
  EXPECT_EQ(site.journal[2].act, "password_change");
  EXPECT_EQ(site.journal[2].device, "r01/p01");
  EXPECT_EQ(site.journal[2].user, "root");
  for (const journal_record& record : site.journal) {
    EXPECT_EQ(to_json(record).find("generated-secret"), std::string::npos);
    EXPECT_EQ(to_json(record).find(token), std::string::npos);
  }
}

TEST(simulated_bmc, lets_nobody_in_before_a_demanded_password_change) {
  bench_site site;
  site.fault("change_required", "r01/p01");
  const http_reply login = site.login(shelf, "root", site.model->factory_password());
  ASSERT_EQ(login.status, 201);
  EXPECT_NE(login.body.find("PasswordChangeRequired"), std::string::npos);
  const std::string token = login.headers.at("X-Auth-Token");
  const http_reply refused = site.send(shelf, "GET", "/redfish/v1/Chassis", nullptr, token);
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("PasswordChangeRequired"), std::string::npos);
  EXPECT_EQ(site.send(shelf, "PATCH", std::string(accounts) + "/root", {{"Password", "a-new-secret"}}, token)
                .status,
            204);
  EXPECT_EQ(site.send(shelf, "GET", "/redfish/v1/Chassis", nullptr, token).status, 200);
}

TEST(simulated_bmc, keeps_reader_and_operator_within_their_rights) {
  bench_site site;
  const std::string reader =
      site.login(cdu, "reader", site.model->reader_password()).headers.at("X-Auth-Token");
  EXPECT_EQ(site.send(cdu, "GET", "/redfish/v1/ThermalEquipment/CDUs/1", nullptr, reader).status, 200);
  EXPECT_EQ(site.send(cdu, "POST", accounts,
                      {{"UserName", "b"}, {"Password", "generated-secret"}, {"RoleId", "Operator"}}, reader)
                .status,
            403);
  const std::string root = site.token(shelf);
  site.send(shelf, "POST", accounts,
            {{"UserName", "op"}, {"Password", "generated-secret"}, {"RoleId", "Operator"}}, root);
  const std::string op = site.login(shelf, "op", "generated-secret").headers.at("X-Auth-Token");
  EXPECT_EQ(
      site.send(shelf, "PATCH", std::string(accounts) + "/root", {{"Password", "a-new-secret"}}, op).status,
      403);
  EXPECT_EQ(site.send(shelf, "POST", "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.Reset",
                      {{"ResetType", "On"}}, op)
                .status,
            204);
}

TEST(simulated_bmc, shows_each_credential_fault) {
  bench_site site;
  site.fault("factory_refused", "r01/p01");
  EXPECT_EQ(site.login(shelf, "root", site.model->factory_password()).status, 401);
  site.model->clear_faults("factory_refused", "", site.now);
  site.fault("session_cap", "r01/p01");
  EXPECT_EQ(site.login(shelf, "root", site.model->factory_password()).status, 503);
  site.model->clear_faults("", "", site.now);
  site.fault(
      "lockout", "r01/p01",
      {.kind = "", .target = "", .delay = instant{0}, .duration = instant(30s), .severity = {}, .value = ""});
  EXPECT_EQ(site.login(shelf, "root", site.model->factory_password()).status, 401);
  site.pass(31s);
  const std::string token = site.token(shelf);
  site.fault("foreign_owner", "r01/p01");
  EXPECT_NE(site.send(shelf, "GET", accounts, nullptr, token).body.find("busbar-deadbeef"),
            std::string::npos);
}

}  // namespace
}  // namespace busbar::sim
