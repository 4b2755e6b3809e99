// MetricReports as an event stream carries them, and how many points a rack gives.
#include <chrono>

#include "tests/unit/sim_model/bench_site.hpp"

namespace busbar::sim {
namespace {

TEST(simulated_reports, a_stream_carries_reports_only_where_it_was_asked_to) {
  bench_site site;
  const std::string token = site.token(shelf);
  const http_reply events = site.send(shelf, "GET", "/redfish/v1/EventService/SSE", nullptr, token);
  EXPECT_TRUE(events.event_stream);
  EXPECT_FALSE(events.reports);
  const http_reply reports =
      site.send(shelf, "GET", "/redfish/v1/EventService/SSE?$filter=EventFormatType%20eq%20MetricReport",
                nullptr, token);
  EXPECT_TRUE(reports.event_stream);
  EXPECT_TRUE(reports.reports);
  const http_reply other = site.send(
      shelf, "GET", "/redfish/v1/EventService/SSE?$filter=EventFormatType%20eq%20Event", nullptr, token);
  EXPECT_FALSE(other.reports);
}

TEST(simulated_reports, a_stream_and_a_get_say_the_same_and_both_are_counted) {
  bench_site site;
  const std::string token = site.token(shelf);
  const auto streamed = site.model->metric_reports(shelf, site.now);
  ASSERT_EQ(streamed.size(), 1u);
  const json from_stream = json::parse(streamed.front(), nullptr, false);
  const json from_get = site.get(shelf, "/TelemetryService/MetricReports/PowerShelfMetrics_0", token);
  EXPECT_EQ(from_stream["Id"], from_get["Id"]);
  EXPECT_EQ(from_stream["@odata.id"], from_get["@odata.id"]);
  EXPECT_EQ(from_stream["MetricValues"].size(), from_get["MetricValues"].size());
  const json truth = json::parse(*site.model->truth("r01/p01", site.now), nullptr, false);
  EXPECT_EQ(truth["points_reported"], 2 * from_get["MetricValues"].size());
}

TEST(simulated_reports, a_device_without_power_gives_none) {
  bench_site site;
  EXPECT_TRUE(site.model->metric_reports(tray_one, site.now).empty());
  EXPECT_TRUE(site.model->metric_reports("127.18.9.9", site.now).empty());
}

TEST(simulated_reports, a_whole_rack_that_runs_gives_ten_thousand_points) {
  site_options options;
  options.sku = "vr-nvl72";
  options.profile = "instant";
  auto model = *site::make(options);
  instant now{0};
  const auto act = [&model, &now](const std::string& address, const std::string& path, const char* type) {
    http_request login;
    login.method = "POST";
    login.target = "/redfish/v1/SessionService/Sessions";
    login.body = json{{"UserName", "root"}, {"Password", model->factory_password()}}.dump();
    login.peer = "127.0.0.1:40000";
    const http_reply opened = model->handle(address, login, now);
    http_request reset;
    reset.method = "POST";
    reset.target = path;
    reset.body = json{{"ResetType", type}}.dump();
    reset.peer = login.peer;
    const auto token = opened.headers.find("X-Auth-Token");
    reset.headers["x-auth-token"] = token == opened.headers.end() ? "" : token->second;
    return model->handle(address, reset, now).status;
  };
  const auto pass = [&model, &now](std::chrono::seconds time) { model->advance(now += time); };
  for (const device_identity& one : model->devices()) {
    if (one.kind == device_kind::power_shelf) {
      act(one.address, "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.Reset", "On");
    }
  }
  pass(5s);
  for (const device_identity& one : model->devices()) {
    if (one.kind == device_kind::compute_tray || one.kind == device_kind::switch_tray) {
      act(one.address, "/redfish/v1/Systems/System_0/Actions/ComputerSystem.Reset", "On");
    }
  }
  pass(20s);
  std::size_t points = 0;
  for (const device_identity& one : model->devices()) {
    for (const std::string& report : model->metric_reports(one.address, now)) {
      points += json::parse(report, nullptr, false)["MetricValues"].size();
    }
  }
  EXPECT_GE(points, 10'000u);
  EXPECT_LE(points, 12'000u);
}

}  // namespace
}  // namespace busbar::sim
