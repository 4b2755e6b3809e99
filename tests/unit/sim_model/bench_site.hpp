// A site in process under a hand-driven clock, and the few moves that most tests make on it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/sim/json.hpp"
#include "daemon/sim/site.hpp"

namespace busbar::sim {

using namespace std::chrono_literals;

inline constexpr const char* shelf = "127.18.1.51";
inline constexpr const char* tray_one = "127.18.1.1";
inline constexpr const char* tray_two = "127.18.1.2";
inline constexpr const char* switch_one = "127.18.1.31";
inline constexpr const char* cdu = "127.18.200.1";

class bench_site {
 public:
  explicit bench_site(std::string profile = "instant") {
    site_options options;
    options.sku = "vr-4x1";
    options.profile = std::move(profile);
    auto made = site::make(options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    model = std::move(*made);
    site_hooks hooks;
    hooks.on_request = [this](const journal_record& record) { journal.push_back(record); };
    hooks.on_host_boot = [this](const std::string& member, const std::string& uri) {
      boots.emplace_back(member, uri);
    };
    model->set_hooks(std::move(hooks));
  }

  http_reply send(const std::string& address, const std::string& method, const std::string& target,
                  const json& body = nullptr, const std::string& token = "") {
    http_request request;
    request.method = method;
    request.target = target;
    request.body = body.is_null() ? "" : body.dump();
    request.peer = "127.0.0.1:40000";
    if (!token.empty()) {
      request.headers["x-auth-token"] = token;
    }
    return model->handle(address, request, now);
  }

  http_reply login(const std::string& address, const std::string& user, const std::string& password) {
    return send(address, "POST", "/redfish/v1/SessionService/Sessions",
                {{"UserName", user}, {"Password", password}});
  }

  std::string token(const std::string& address) {
    const http_reply reply = login(address, "root", model->factory_password());
    EXPECT_EQ(reply.status, 201) << reply.body;
    const auto found = reply.headers.find("X-Auth-Token");
    return found == reply.headers.end() ? "" : found->second;
  }

  json get(const std::string& address, const std::string& path, const std::string& token) {
    const http_reply reply = send(address, "GET", "/redfish/v1" + path, nullptr, token);
    EXPECT_EQ(reply.status, 200) << path;
    return json::parse(reply.body, nullptr, false);
  }

  void pass(instant time) {
    now += time;
    model->advance(now);
  }

  void shelf_on() {
    const std::string with = token(shelf);
    EXPECT_EQ(send(shelf, "POST", "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.Reset",
                   {{"ResetType", "On"}}, with)
                  .status,
              204);
    pass(1s);
  }

  http_reply reset(const std::string& address, const std::string& type, const std::string& token) {
    return send(address, "POST", "/redfish/v1/Systems/System_0/Actions/ComputerSystem.Reset",
                {{"ResetType", type}}, token);
  }

  json truth(const std::string& path) {
    const auto text = model->truth(path, now);
    EXPECT_TRUE(text.ok()) << path;
    return text.ok() ? json::parse(*text) : json();
  }

  void fault(const std::string& kind, const std::string& target, fault_request more = {}) {
    more.kind = kind;
    more.target = target;
    const auto id = model->add_fault(more, now);
    EXPECT_TRUE(id.ok()) << id.status().message();
  }

  std::unique_ptr<site> model;
  instant now{0};
  std::vector<journal_record> journal;
  std::vector<std::pair<std::string, std::string>> boots;
};

}  // namespace busbar::sim
