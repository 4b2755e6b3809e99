#include <algorithm>
#include <set>

#include "daemon/sim/environment.hpp"
#include "tests/unit/sim_model/bench_site.hpp"

namespace busbar::sim {
namespace {

// Every link that a body names leads to a body, from the root on.
std::size_t walk(bench_site& site, const char* address, const std::string& token) {
  std::set<std::string> seen = {"/redfish/v1"};
  std::vector<std::string> open = {"/redfish/v1"};
  while (!open.empty()) {
    const std::string path = open.back();
    open.pop_back();
    const http_reply reply = site.send(address, "GET", path, nullptr, token);
    EXPECT_EQ(reply.status, 200) << path;
    const json body = json::parse(reply.body, nullptr, false);
    EXPECT_TRUE(body.is_object()) << path;
    EXPECT_EQ(body.value("@odata.id", ""), path);
    EXPECT_EQ(reply.body.find("\"$"), std::string::npos)
        << "a value was not filled in: " << path << reply.body;
    std::vector<const json*> parts = {&body};
    while (!parts.empty()) {
      const json& part = *parts.back();
      parts.pop_back();
      if (!part.is_structured()) {
        continue;
      }
      for (const auto& [key, value] : part.items()) {
        if (part.is_object() && key == "@odata.id" && seen.insert(value.get<std::string>()).second) {
          open.push_back(value.get<std::string>());
        }
        parts.push_back(&value);
      }
    }
  }
  return seen.size();
}

TEST(simulated_site, every_link_of_every_kind_of_device_leads_somewhere) {
  bench_site site;
  site.shelf_on();
  site.pass(1s);
  EXPECT_GT(walk(site, tray_one, site.token(tray_one)), 140u);
  EXPECT_GT(walk(site, switch_one, site.token(switch_one)), 300u);
  EXPECT_GT(walk(site, shelf, site.token(shelf)), 50u);
  EXPECT_GT(walk(site, cdu, site.token(cdu)), 30u);
}

TEST(simulated_site, two_racks_hold_what_the_sku_says) {
  site_options options;
  options.racks = 2;
  const auto made = site::make(options);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->devices().size(), 2u * (18 + 9 + 8 + 2) + 1);
  std::set<std::string> macs;
  std::set<std::string> serials;
  for (const device_identity& each : (*made)->devices()) {
    macs.insert(each.mac);
    serials.insert(each.serial);
  }
  EXPECT_EQ(macs.size(), 75u);
  EXPECT_EQ(serials.size(), 75u);
}

TEST(simulated_site, each_link_of_a_full_rack_has_one_port_of_its_own) {
  site_options options;
  const auto made = site::make(options);
  ASSERT_TRUE(made.ok());
  const auto* const around = dynamic_cast<const environment*>(made->get());
  ASSERT_NE(around, nullptr);
  std::set<std::pair<int, int>> links;
  for (int tray = 1; tray <= 9; ++tray) {
    for (int asic = 0; asic < 2; ++asic) {
      for (int port = 0; port < 72; ++port) {
        int gpu = 0;
        int link = 0;
        ASSERT_TRUE(around->port_carries(tray, asic, port, gpu, link));
        EXPECT_TRUE(links.emplace(gpu, link).second);
      }
    }
  }
  EXPECT_EQ(links.size(), 72u * 18u);
}

TEST(simulated_site, the_same_seed_and_calls_give_the_same_site) {
  std::string first;
  for (int run = 0; run < 2; ++run) {
    bench_site site;
    site.shelf_on();
    site.pass(1s);
    const std::string token = site.token(tray_one);
    site.reset(tray_one, "On", token);
    site.pass(7s);
    std::string seen = *site.model->truth("", site.now);
    seen += site.send(tray_one, "GET",
                      "/redfish/v1/TelemetryService/MetricReports/HGX_PlatformEnvironmentMetrics_0", nullptr,
                      token)
                .body;
    for (int each = 0; each < 10; ++each) {
      seen += std::to_string(site.model->service_time(tray_one, site.now).count()) + " ";
    }
    if (run == 0) {
      first = seen;
    } else {
      EXPECT_EQ(seen, first);
    }
  }
}

TEST(simulated_site, service_times_have_the_median_and_the_tail_of_a_bmc) {
  bench_site site;
  std::vector<double> drawn;
  for (int each = 0; each < 20000; ++each) {
    drawn.push_back(
        std::chrono::duration<double, std::milli>(site.model->service_time(shelf, site.now)).count());
  }
  std::sort(drawn.begin(), drawn.end());
  EXPECT_NEAR(drawn[10000], 15, 1);
  EXPECT_NEAR(drawn[19800], 150, 20);
}

TEST(simulated_site, a_compute_tray_reports_four_hundred_points_in_its_two_fast_reports) {
  site_options options;
  auto made = site::make(options);
  ASSERT_TRUE(made.ok());
  bench_site site;
  site.shelf_on();
  site.pass(1s);
  const std::string token = site.token(tray_one);
  std::size_t points = 0;
  for (const char* const report : {"HGX_PlatformEnvironmentMetrics_0", "HGX_ProcessorMetrics_0"}) {
    const json body = site.get(tray_one, std::string("/TelemetryService/MetricReports/") + report, token);
    points += body["MetricValues"].size();
    for (const json& value : body["MetricValues"]) {
      EXPECT_TRUE(value["MetricValue"].is_string());
    }
  }
  EXPECT_GE(points, 380u);
  EXPECT_LE(points, 420u);
}

TEST(simulated_site, an_entity_tag_saves_an_unchanged_body) {
  bench_site site;
  const std::string token = site.token(shelf);
  http_request request;
  request.method = "GET";
  request.target = "/redfish/v1/Chassis/";
  request.headers["x-auth-token"] = token;
  const http_reply whole = site.model->handle(shelf, request, site.now);
  ASSERT_EQ(whole.status, 200);
  request.headers["if-none-match"] = whole.headers.at("ETag");
  const http_reply saved = site.model->handle(shelf, request, site.now);
  EXPECT_EQ(saved.status, 304);
  EXPECT_TRUE(saved.body.empty());
}

TEST(simulated_site, expand_puts_members_into_the_collection) {
  bench_site site;
  const json body =
      site.get(shelf, "/Chassis/PowerShelf_0/PowerSubsystem/PowerSupplies?$expand=.", site.token(shelf));
  ASSERT_EQ(body["Members"].size(), 6u);
  EXPECT_EQ(body["Members"][0]["PowerCapacityWatts"], 5500);
}

TEST(simulated_site, what_was_changed_outlives_the_simulator) {
  std::string saved;
  {
    bench_site site;
    site.shelf_on();
    site.pass(1s);
    const std::string token = site.token(tray_one);
    site.send(tray_one, "PATCH", "/redfish/v1/AccountService/Accounts/root", {{"Password", "a-new-secret"}},
              token);
    site.reset(tray_one, "On", token);
    site.pass(1s);
    saved = site.model->save();
  }
  bench_site next;
  ASSERT_TRUE(next.model->restore(saved, next.now).ok());
  next.pass(1s);
  EXPECT_EQ(next.truth("r01/shelves_on"), 1);
  EXPECT_EQ(next.truth("r01/c01/power"), "On");
  EXPECT_EQ(next.login(tray_one, "root", "a-new-secret").status, 201);
  EXPECT_EQ(next.boots.size(), 1u);
  site_options other;
  other.sku = "vr-4x1";
  other.seed = 2;
  EXPECT_FALSE((*site::make(other))->restore(saved, next.now).ok());
}

TEST(simulated_site, refuses_options_that_it_does_not_know) {
  site_options options;
  options.sku = "no-such";
  EXPECT_FALSE(site::make(options).ok());
  options = {};
  options.profile = "no-such";
  EXPECT_FALSE(site::make(options).ok());
  options = {};
  options.racks = 0;
  EXPECT_FALSE(site::make(options).ok());
}

TEST(simulated_site, thousands_of_requests_fit_in_a_test) {
  bench_site site;
  const std::string token = site.token(shelf);
  for (int each = 0; each < 5000; ++each) {
    site.pass(1ms);
    ASSERT_EQ(site.send(shelf, "GET", "/redfish/v1/Chassis/PowerShelf_0", nullptr, token).status, 200);
  }
}

}  // namespace
}  // namespace busbar::sim
