// The TCP listener: who comes in is who the certificate says, and nobody else comes in.
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "daemon/cli/context.hpp"
#include "tests/integration/edge/certificates.hpp"
#include "tests/integration/edge/edge_fixture.hpp"

namespace busbar::test {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class edge_mutual_tls : public edge_fixture {
 protected:
  void SetUp() override {
    edge_fixture::SetUp();
    site_ = std::make_unique<authority>(folder_, "site");
    other_ = std::make_unique<authority>(folder_, "other");
    const key_files own = site_->sign("busbard");
    rpc::edge_tcp tcp;
    tcp.listen = "127.0.0.1:0";
    tcp.cert = own.cert;
    tcp.key = own.key;
    tcp.ca = site_->ca();
    tcp.roles.viewers = {"dashboard"};
    tcp.roles.operators = {"fleet"};
    options_.tcp = tcp;
    rack_->declare(1);
    serve();
    ASSERT_NE(edge_, nullptr);
    ASSERT_GT(edge_->tcp_port(), 0);
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(edge_->tcp_port()); }

  std::unique_ptr<v1::Busbar::Stub> stub_with(const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Busbar::NewStub(grpc::CreateCustomChannel(address(), credentials, arguments));
  }
  // Without files: no certificate is shown.
  std::unique_ptr<v1::Busbar::Stub> stub_of(const key_files& files, const std::string& trusted) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = content_of(trusted);
    if (!files.cert.empty()) {
      options.pem_cert_chain = content_of(files.cert);
      options.pem_private_key = content_of(files.key);
    }
    return stub_with(grpc::SslCredentials(options));
  }

  static grpc::Status read(v1::Busbar::Stub& stub) {
    call context;
    v1::DaemonStatus response;
    return stub.GetStatus(&context, v1::GetStatusRequest(), &response);
  }
  static grpc::Status act(v1::Busbar::Stub& stub, v1::Operation& operation) {
    call context;
    v1::ActRequest request;
    request.set_name("r01");
    return stub.ShutdownRack(&context, request, &operation);
  }

  std::unique_ptr<authority> site_;
  std::unique_ptr<authority> other_;
};

TEST_F(edge_mutual_tls, an_operator_acts_under_the_name_of_his_certificate) {
  const auto stub = stub_of(site_->sign("fleet"), site_->ca());
  EXPECT_TRUE(read(*stub).ok());
  v1::Operation operation;
  const grpc::Status status = act(*stub, operation);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(operation.principal(), "cn:fleet");
}

TEST_F(edge_mutual_tls, a_viewer_reads_and_does_not_act) {
  const auto stub = stub_of(site_->sign("dashboard"), site_->ca());
  const grpc::Status status = read(*stub);
  EXPECT_TRUE(status.ok()) << status.error_message();
  v1::Operation operation;
  EXPECT_EQ(act(*stub, operation).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(operation.name(), "");
}

// The authority signs for many; a role is what the configuration gives.
TEST_F(edge_mutual_tls, a_name_without_a_role_may_nothing) {
  for (const char* name : {"stranger", "Fleet", "fleet ", "cn:fleet", "uid:0", "fleet.example", ""}) {
    const auto stub = stub_of(site_->sign(name), site_->ca());
    EXPECT_EQ(read(*stub).error_code(), grpc::StatusCode::UNAUTHENTICATED) << name;
    v1::Operation operation;
    EXPECT_EQ(act(*stub, operation).error_code(), grpc::StatusCode::UNAUTHENTICATED) << name;
  }
}

TEST_F(edge_mutual_tls, nobody_comes_in_without_a_valid_certificate_of_its_authority) {
  const key_files foreign = other_->sign("fleet");
  struct intruder {
    const char* what;
    key_files files;
  };
  for (const intruder& one : {intruder{"no certificate", {}},
                              {"another authority", foreign},
                              {"expired", site_->sign("fleet", {-7200, -3600})},
                              {"not valid yet", site_->sign("fleet", {3600, 7200})}}) {
    const auto stub = stub_of(one.files, site_->ca());
    EXPECT_EQ(read(*stub).error_code(), grpc::StatusCode::UNAVAILABLE) << one.what;
    v1::Operation operation;
    EXPECT_FALSE(act(*stub, operation).ok()) << one.what;
    EXPECT_EQ(operation.name(), "") << one.what;
  }
  EXPECT_TRUE(read(*stub_of(site_->sign("fleet"), site_->ca())).ok()) << "and the daemon goes on";
}

TEST_F(edge_mutual_tls, plain_text_is_refused) {
  const auto stub = stub_with(grpc::InsecureChannelCredentials());
  EXPECT_EQ(read(*stub).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(edge_mutual_tls, a_client_that_trusts_another_authority_leaves) {
  EXPECT_EQ(read(*stub_of(site_->sign("fleet"), other_->ca())).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(edge_mutual_tls, the_command_line_comes_in_and_says_why_it_does_not) {
  const auto busbar = [this](const key_files& files, const std::string& trusted) {
    std::ostringstream out;
    std::ostringstream err;
    std::istringstream in;
    cli::context world{.out = out, .err = err, .in = in};
    const cli::exit_code code =
        cli::run({"get", "racks", "-o", "name", "--endpoint", address(), "--tls-ca", trusted, "--tls-cert",
                  files.cert, "--tls-key", files.key},
                 world);
    return std::pair(code, out.str() + err.str());
  };
  const auto [good, said] = busbar(site_->sign("dashboard"), site_->ca());
  EXPECT_EQ(good, cli::exit_code::done) << said;
  EXPECT_EQ(said, "r01\n");
  EXPECT_EQ(busbar(site_->sign("fleet", {-7200, -3600}), site_->ca()).first, cli::exit_code::unreachable);
  EXPECT_EQ(busbar(site_->sign("stranger"), site_->ca()).first, cli::exit_code::not_permitted);
}

}  // namespace
}  // namespace busbar::test
