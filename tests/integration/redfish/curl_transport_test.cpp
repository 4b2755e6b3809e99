// The real transport against a real TLS server.
#include "actors/devices/redfish/curl_transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/redfish_bmc.hpp"
#include "tests/integration/redfish/tls_server.hpp"

namespace busbar::devices::redfish {
namespace {

using core::fault;
using test::served_request;
using test::tls_server;

http_outcome ask(curl_transport& transport, const std::string& address, http_request request) {
  const auto promise = std::make_shared<std::promise<http_outcome>>();
  transport.send(address, std::move(request),
                 [promise](http_outcome outcome) { promise->set_value(std::move(outcome)); });
  return promise->get_future().get();
}

http_request get(std::string path, std::string pin = "") {
  http_request request;
  request.path = std::move(path);
  request.pin = std::move(pin);
  return request;
}

std::string echo(const served_request& request) {
  return tls_server::ok(request.method + " " + request.path + " " + request.body);
}

TEST(curl_transport, learns_the_certificate_and_keeps_its_connection) {
  tls_server server(echo);
  curl_transport transport;
  for (int i = 0; i < 3; ++i) {
    const http_outcome outcome = ask(transport, server.address(),
                                     get("/redfish/v1?$skip=50", i == 0 ? "" : server.certificate_sha256()));
    ASSERT_EQ(outcome.error, transport_error::none) << outcome.detail;
    EXPECT_EQ(outcome.reply.status, 200);
    EXPECT_EQ(outcome.reply.body, "GET /redfish/v1?$skip=50 ");
    EXPECT_EQ(outcome.reply.certificate_sha256, server.certificate_sha256());
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST(curl_transport, sends_no_byte_of_a_request_to_a_wrong_certificate) {
  tls_server server(echo);
  curl_transport transport;
  http_request request = get("/redfish/v1/secret", std::string(64, '0'));
  request.headers.emplace_back("X-Auth-Token", "token");
  const http_outcome outcome = ask(transport, server.address(), request);
  EXPECT_EQ(outcome.error, transport_error::pin_mismatch);
  EXPECT_EQ(outcome.reply.certificate_sha256, server.certificate_sha256());
  EXPECT_EQ(server.bytes_read(), 0u);
}

TEST(curl_transport, compares_the_pin_on_a_kept_connection_too) {
  tls_server server(echo);
  curl_transport transport;
  ASSERT_EQ(ask(transport, server.address(), get("/a")).error, transport_error::none);
  const std::size_t before = server.bytes_read();
  EXPECT_EQ(ask(transport, server.address(), get("/b", std::string(64, '0'))).error,
            transport_error::pin_mismatch);
  EXPECT_EQ(server.bytes_read(), before);
}

TEST(curl_transport, tells_unreachable_from_silent) {
  curl_transport transport;
  std::string gone;
  {
    tls_server server(echo);
    gone = server.address();
  }
  EXPECT_EQ(ask(transport, gone, get("/")).error, transport_error::unreachable);
  tls_server silent([](const served_request&) { return std::string(); });
  http_request request = get("/");
  request.timeout = std::chrono::milliseconds(300);
  EXPECT_EQ(ask(transport, silent.address(), request).error, transport_error::timeout);
}

TEST(curl_transport, sends_bodies_methods_headers_and_files) {
  std::mutex mutex;
  std::vector<served_request> seen;
  tls_server server([&mutex, &seen](const served_request& request) {
    const std::lock_guard lock(mutex);
    seen.push_back(request);
    return tls_server::ok("{}", "ETag: \"7\"\r\nLocation: /x/1\r\n");
  });
  curl_transport transport;
  http_request patch = get("/x");
  patch.method = http_method::patch;
  patch.body = R"({"a":1})";
  patch.headers = {{"If-Match", "\"7\""}, {"Content-Type", "application/json"}};
  const http_outcome outcome = ask(transport, server.address(), patch);
  EXPECT_EQ(header_of(outcome.reply.headers, "etag"), "\"7\"");
  EXPECT_EQ(header_of(outcome.reply.headers, "location"), "/x/1");

  char name[] = "/tmp/busbar-image-XXXXXX";
  const int descriptor = mkstemp(name);
  ASSERT_GE(descriptor, 0);
  close(descriptor);
  std::ofstream(name) << "UEFI 2.4.1\nnoise";
  http_request push = get("/update");
  push.method = http_method::post;
  push.parts = {{"UpdateParameters", "application/json", R"({"Targets":["/t"]})", ""},
                {"UpdateFile", "application/octet-stream", "", name}};
  EXPECT_EQ(ask(transport, server.address(), push).reply.status, 200);
  http_request remove = get("/session/1");
  remove.method = http_method::del;
  EXPECT_EQ(ask(transport, server.address(), remove).reply.status, 200);
  std::filesystem::remove(name);

  const std::lock_guard lock(mutex);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].method, "PATCH");
  EXPECT_EQ(seen[0].body, R"({"a":1})");
  EXPECT_EQ(seen[0].headers["if-match"], "\"7\"");
  EXPECT_EQ(seen[1].method, "POST");
  EXPECT_THAT(seen[1].headers["content-type"], ::testing::StartsWith("multipart/form-data; boundary="));
  EXPECT_THAT(seen[1].body, ::testing::HasSubstr("name=\"UpdateFile\""));
  EXPECT_THAT(seen[1].body, ::testing::HasSubstr("UEFI 2.4.1\nnoise"));
  EXPECT_EQ(seen[2].method, "DELETE");
}

TEST(curl_transport, an_answer_that_is_too_large_is_cut_off) {
  tls_server server([](const served_request&) { return tls_server::ok(std::string(200'000, 'x')); });
  curl_options options;
  options.largest_body = 100'000;
  curl_transport transport(options);
  EXPECT_EQ(ask(transport, server.address(), get("/")).error, transport_error::too_large);
}

TEST(curl_transport, ending_answers_every_open_request_and_runs_every_timer) {
  tls_server silent([](const served_request&) { return std::string(); });
  std::atomic<int> answers = 0;
  std::atomic<int> timers = 0;
  {
    curl_transport transport;
    for (int i = 0; i < 4; ++i) {
      transport.send(silent.address(), get("/"), [&answers](const http_outcome& outcome) {
        EXPECT_EQ(outcome.error, transport_error::unreachable);
        ++answers;
      });
    }
    curl_transport* const loop = &transport;
    transport.post([loop, &timers] { loop->after(std::chrono::hours(1), [&timers] { ++timers; }); });
  }
  EXPECT_EQ(answers, 4);
  EXPECT_EQ(timers, 1);
}

TEST(curl_transport, a_driver_that_outlives_every_other_owner_ends_the_loop_by_itself) {
  tls_server server([](const served_request&) { return tls_server::ok(R"({"UUID":"u-1"})"); });
  auto transport = std::make_shared<curl_transport>();
  auto driver = make_redfish_factory(transport, transport)->make_bmc(server.address(), journal::COMPUTE_TRAY);
  transport.reset();
  const auto promise = std::make_shared<std::promise<absl::StatusOr<probe_facts>>>();
  driver->probe([promise](absl::StatusOr<probe_facts> got) { promise->set_value(std::move(got)); });
  const auto facts = promise->get_future().get();
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->uuid, "u-1");
  EXPECT_EQ(facts->certificate_sha256, server.certificate_sha256());
  driver.reset();
}

TEST(curl_transport, a_new_certificate_behind_one_address_is_refused_by_the_driver) {
  const auto root = [](const served_request&) { return tls_server::ok(R"({"UUID":"u-1"})"); };
  auto server = std::make_unique<tls_server>(root);
  const int port = server->port();
  const auto transport = std::make_shared<curl_transport>();
  const auto driver =
      make_redfish_factory(transport, transport)->make_bmc(server->address(), journal::COMPUTE_TRAY);
  const auto probe = [&driver] {
    const auto promise = std::make_shared<std::promise<absl::StatusOr<probe_facts>>>();
    driver->probe([promise](absl::StatusOr<probe_facts> got) { promise->set_value(std::move(got)); });
    return promise->get_future().get();
  };
  ASSERT_TRUE(probe().ok());
  server.reset();
  tls_server other(root, port);
  ASSERT_EQ(other.port(), port);
  const auto facts = probe();
  EXPECT_EQ(core::fault_of(facts.status()), fault::CERTIFICATE_CHANGED) << facts.status();
  EXPECT_EQ(other.bytes_read(), 0u);
}

// A flow and what became of it. The test's thread waits; the I/O thread fills.
struct open_flow {
  std::shared_ptr<http_flow> flow = std::make_shared<http_flow>();
  std::promise<void> seen;  // what was waited for has come
  std::promise<http_outcome> ended;
  std::string bytes;

  void begin(curl_transport& transport, const std::string& address, const std::string& path,
             std::string wanted, bool end_then = false) {
    flow->on_bytes = [this, wanted = std::move(wanted), end_then](std::string_view more) {
      const bool had = bytes.find(wanted) != std::string::npos;
      bytes += more;
      const bool has = bytes.find(wanted) != std::string::npos;
      if (has && !had) seen.set_value();
      return !(has && end_then);
    };
    http_request request = get(path);
    request.flow = flow;
    transport.send(address, std::move(request),
                   [this](http_outcome outcome) { ended.set_value(std::move(outcome)); });
  }
};

std::string endless(const served_request& request) {
  if (request.path == "/stream")
    return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n";
  if (request.path == "/none") return "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone";
  return tls_server::ok(request.path);
}

TEST(curl_transport, hands_over_a_flow_as_it_comes_and_serves_requests_beside_it) {
  tls_server server(endless);
  curl_transport transport;
  open_flow stream;
  stream.begin(transport, server.address(), "/stream", "data: one\n\n");
  stream.seen.get_future().get();
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(ask(transport, server.address(), get("/beside")).reply.body, "/beside");
  transport.post([&stream] { stream.flow->stop(); });
  const http_outcome end = stream.ended.get_future().get();
  EXPECT_NE(end.error, transport_error::none);
  EXPECT_EQ(stream.flow->stop, nullptr);
  EXPECT_EQ(stream.bytes, "data: one\n\n");
}

TEST(curl_transport, a_flow_ends_when_whoever_takes_it_has_enough) {
  tls_server server(endless);
  curl_transport transport;
  open_flow stream;
  stream.begin(transport, server.address(), "/stream", "one", true);
  EXPECT_NE(stream.ended.get_future().get().error, transport_error::none);
}

TEST(curl_transport, an_error_in_place_of_a_flow_is_an_ordinary_answer) {
  tls_server server(endless);
  curl_transport transport;
  open_flow stream;
  stream.begin(transport, server.address(), "/none", "never");
  const http_outcome end = stream.ended.get_future().get();
  EXPECT_EQ(end.error, transport_error::none);
  EXPECT_EQ(end.reply.status, 404);
  EXPECT_EQ(end.reply.body, "gone");
  EXPECT_EQ(stream.bytes, "");
}

TEST(curl_transport, ends_its_flows_with_itself_and_when_the_peer_goes) {
  auto server = std::make_unique<tls_server>(endless);
  open_flow first;
  open_flow second;
  {
    curl_transport transport;
    first.begin(transport, server->address(), "/stream", "one");
    first.seen.get_future().get();
    server.reset();
    first.ended.get_future().get();
    server = std::make_unique<tls_server>(endless);
    second.begin(transport, server->address(), "/stream", "one");
    second.seen.get_future().get();
  }
  EXPECT_EQ(second.ended.get_future().get().error, transport_error::unreachable);
}

}  // namespace
}  // namespace busbar::devices::redfish
