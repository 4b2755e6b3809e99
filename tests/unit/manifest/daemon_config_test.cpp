#include "actors/manifest/daemon_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace busbar::manifest {
namespace {

TEST(daemon_config, fills_in_what_is_not_said) {
  const auto [config, errors] = read_daemon_config(
      {"/etc/busbar/r01.yaml", "instance: r01\nsite_dir: site\nvault_key_file: /k/vault.key\n"}, "/tmp/run");
  ASSERT_TRUE(errors.empty()) << to_text(errors.front());
  EXPECT_EQ(config.role, "rack");
  EXPECT_EQ(config.site_dir, "/etc/busbar/site");
  EXPECT_EQ(config.vault_key_file, "/k/vault.key");
  EXPECT_EQ(config.interlock_socket, "/tmp/run/r01/interlock.sock");
  EXPECT_EQ(config.state_dir, "/var/lib/busbar/r01");
  EXPECT_EQ(config.agent_ca_dir, "/var/lib/busbar/r01/agent-ca");
  EXPECT_FALSE(config.tcp.has_value());
}

TEST(daemon_config, reads_mutual_tls) {
  const auto [config, errors] = read_daemon_config(
      {"d.yaml",
       "apiVersion: busbar.v1\nkind: Daemon\ninstance: r01\nsite_dir: /s\nvault_key_file: /k\n"
       "tcp: {listen: \"10.0.0.1:7000\", cert: c.pem, key: k.pem, ca: ca.pem}\n"});
  ASSERT_TRUE(errors.empty()) << to_text(errors.front());
  ASSERT_TRUE(config.tcp.has_value());
  EXPECT_EQ(config.tcp->listen, "10.0.0.1:7000");
  EXPECT_EQ(config.tcp->ca, "ca.pem");
}

TEST(daemon_config, names_every_error) {
  const auto result = read_daemon_config({"d.yaml",
                                          "instance: r01\nrole: fabric\nsite: /s\nstate_dir: [x]\ntcp: "
                                          "{listen: here, cert: c.pem, key: k.pem}\n"});
  std::vector<std::string> found;
  for (const spec_error& error : result.errors) found.push_back(to_text(error));
  EXPECT_THAT(found, ::testing::ElementsAre("d.yaml: role: 'fabric' is not a role of this release (rack, plant)",
                                            "d.yaml: site: unknown key", "d.yaml: state_dir: expected a text",
                                            "d.yaml: site_dir: missing", "d.yaml: vault_key_file: missing",
                                            "d.yaml: tcp.listen: 'here' is not an endpoint (host:port)",
                                            "d.yaml: tcp.ca: missing"));
}

TEST(daemon_config, survives_what_is_no_map) {
  for (const char* content : {"", "- 1", "x", "{", "tcp: 3"}) {
    EXPECT_FALSE(read_daemon_config({"d.yaml", content}).errors.empty()) << content;
  }
}

}  // namespace
}  // namespace busbar::manifest
