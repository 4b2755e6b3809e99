// Telemetry of one device: what comes over the event stream, what is read when it does not come, and what
// nobody may make of a device that is slow, silent or wrong.
#include "actors/devices/redfish/telemetry_reader.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/devices/test_loop.hpp"

namespace busbar::devices::redfish {
namespace {

using core::reading_quality;

constexpr std::int64_t second_ns = 1'000'000'000;

std::string report_body(const std::string& id, int sequence, const std::string& rows) {
  return fmt::format(
      R"({{"@odata.id":"/redfish/v1/TelemetryService/MetricReports/{0}","@odata.type":"#MetricReport.v1_4_2.MetricReport",)"
      R"("Id":"{0}","ReportSequence":"{1}","MetricValues":[{2}]}})",
      id, sequence, rows);
}

std::string row(const std::string& property, const std::string& value) {
  return fmt::format(
      R"({{"MetricProperty":"/redfish/v1/{}","MetricValue":{},"Timestamp":"2026-01-06T22:56:02Z"}})",
      property, value);
}

const std::string inlet = "Chassis/Chassis_0/Sensors/Chassis_0_InletTemp#/Reading";
const std::string power = "Chassis/Chassis_0/Sensors/Chassis_0_TotalPower#/Reading";
const std::string link_0 = "Systems/HGX_Baseboard_0/Processors/GPU_0/Ports/NVLink_3#/LinkStatus";

// A device with a stream, two reports and one sensor; each part may be taken away.
class telemetry_of_a_device : public ::testing::Test, public http_transport {
 protected:
  telemetry_of_a_device() {
    const std::shared_ptr<http_transport> wire(static_cast<http_transport*>(this), [](http_transport*) {});
    driver_ = std::make_shared<driver>();
    driver_->device = std::make_shared<device>("192.0.2.1:8443", wire, loop_, device_options{});
    tree_ = {
        {"/redfish/v1",
         R"({"EventService":{"@odata.id":"/redfish/v1/EventService"},"TelemetryService":{"@odata.id":"/redfish/v1/TelemetryService"},
             "Chassis":{"@odata.id":"/redfish/v1/Chassis"},"Links":{"Sessions":{"@odata.id":"/redfish/v1/SessionService/Sessions"}}})"},
        {"/redfish/v1/EventService", R"({"ServerSentEventUri":"/redfish/v1/EventService/SSE"})"},
        {"/redfish/v1/TelemetryService",
         R"({"MetricReports":{"@odata.id":"/redfish/v1/TelemetryService/MetricReports"}})"},
        {"/redfish/v1/TelemetryService/MetricReports",
         R"({"Members":[{"@odata.id":"/redfish/v1/TelemetryService/MetricReports/Fast"},
                        {"@odata.id":"/redfish/v1/TelemetryService/MetricReports/Slow"}],"Members@odata.count":2})"},
        {"/redfish/v1/TelemetryService/MetricReports/Fast", report_body("Fast", 1, row(inlet, "\"21.5\""))},
        {"/redfish/v1/TelemetryService/MetricReports/Slow", report_body("Slow", 1, row(power, "\"6000\""))},
        {"/redfish/v1/Chassis",
         R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/Chassis_0"}],"Members@odata.count":1})"},
        {"/redfish/v1/Chassis/Chassis_0",
         R"({"Sensors":{"@odata.id":"/redfish/v1/Chassis/Chassis_0/Sensors"}})"},
        {"/redfish/v1/Chassis/Chassis_0/Sensors",
         R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/Chassis_0/Sensors/Humidity"}],"Members@odata.count":1})"},
        {"/redfish/v1/Chassis/Chassis_0/Sensors/Humidity",
         R"({"Id":"Humidity","Reading":45,"ReadingUnits":"%","Status":{"State":"Enabled"}})"},
    };
  }
  ~telemetry_of_a_device() override {
    if (reader_) reader_->stop();
    driver_->device->close();
  }

  void send(const std::string&, http_request request, http_callback callback) override {
    if (request.method == http_method::post) {
      ++logins_;
      return callback(reply_of(
          201, "{}", {{"x-auth-token", "token"}, {"location", "/redfish/v1/SessionService/Sessions/1"}}));
    }
    if (request.flow != nullptr) {
      ++streams_asked_;
      stream_path_ = request.path;
      if (stream_status_ != 200) return callback(reply_of(stream_status_, "{}"));
      flow_ = request.flow;
      flow_ended_ = std::move(callback);
      flow_->stop = [this] { end_stream(transport_error::unreachable); };
      return;
    }
    ++asked_[request.path];
    if (dead_) return callback(no_answer(transport_error::unreachable));
    if (session_lost_ && request.path != "/redfish/v1") {
      session_lost_ = false;
      return callback(reply_of(401, "{}"));
    }
    const auto found = tree_.find(request.path);
    callback(found == tree_.end() ? reply_of(404, "{}") : reply_of(200, found->second));
  }

  void end_stream(transport_error error = transport_error::none) {
    if (!flow_) return;
    flow_->stop = nullptr;
    flow_.reset();
    const auto ended = std::exchange(flow_ended_, nullptr);
    ended(error == transport_error::none ? reply_of(200, "") : no_answer(error));
  }
  void push(const std::string& bytes) {
    if (flow_) flow_->on_bytes(bytes);
  }
  void push_event(const std::string& body) { push(fmt::format("id: {}\ndata: {}\n\n", ++event_id_, body)); }

  void start(std::vector<std::string> fast = {"Fast"}) {
    driver_->device->log_in({"busbar", "secret"}, [](const absl::StatusOr<session_facts>&) {});
    telemetry_plan plan{"r01/c07", std::move(fast), board_, [this] { return now_; }};
    reader_ = std::make_shared<telemetry_reader>(driver_, loop_, plan);
    reader_->start();
    loop_->pass_time(1);  // to its first tick
  }
  // Seconds pass; each brings what `each` says.
  void pass(
      int seconds, const std::function<void()>& each = [] {}) {
    for (int i = 0; i < seconds; ++i) {
      now_.monotonic_ns += second_ns;
      now_.wall_ns += second_ns;
      each();
      loop_->pass_time(1);
    }
  }
  std::optional<core::reading> at(const std::string& name) const { return board_->find("r01/c07/" + name); }
  int polls() const {
    int all = 0;
    for (const char* id : {"Fast", "Slow"}) {
      const auto found = asked_.find(std::string("/redfish/v1/TelemetryService/MetricReports/") + id);
      all += found == asked_.end() ? 0 : found->second;
    }
    return all;
  }

  std::shared_ptr<test_loop> loop_ = std::make_shared<test_loop>();
  std::shared_ptr<core::reading_board> board_ = std::make_shared<core::reading_board>();
  std::map<std::string, std::string> tree_;
  std::map<std::string, int> asked_;
  int stream_status_ = 200;
  int streams_asked_ = 0;
  int logins_ = 0;
  int event_id_ = 0;
  bool dead_ = false;
  bool session_lost_ = false;
  std::string stream_path_;
  std::shared_ptr<http_flow> flow_;
  http_callback flow_ended_;
  core::instant now_{second_ns, 1'700'000'000 * second_ns};
  driver_ptr driver_;
  std::shared_ptr<telemetry_reader> reader_;
};

TEST_F(telemetry_of_a_device, comes_over_the_event_stream_and_then_nothing_is_polled) {
  start();
  ASSERT_EQ(streams_asked_, 1);
  EXPECT_EQ(stream_path_, "/redfish/v1/EventService/SSE?$filter=EventFormatType%20eq%20MetricReport");
  int second = 0;
  pass(30, [this, &second] {
    ++second;
    push_event(report_body("Fast", second, row(inlet, fmt::format("\"{}\"", 20 + second))));
    push_event(report_body("Slow", second, row(power, "\"6000\"")));
  });
  EXPECT_EQ(polls(), 0);
  ASSERT_TRUE(at("inlet_temperature").has_value());
  EXPECT_EQ(at("inlet_temperature")->value, 50);
  EXPECT_EQ(at("inlet_temperature")->unit, "Cel");
  EXPECT_EQ(at("inlet_temperature")->quality, reading_quality::good);
  EXPECT_EQ(at("inlet_temperature")->source_wall_ns, 1'767'740'162 * second_ns);
  EXPECT_EQ(at("inlet_temperature")->received_wall_ns, now_.wall_ns);
  EXPECT_EQ(at("power")->value, 6000);
  EXPECT_EQ(reader_->figures().streamed_reports, 60u);
  EXPECT_EQ(reader_->figures().gaps, 0u);
}

TEST_F(telemetry_of_a_device, without_a_stream_reads_the_fast_reports_each_second_and_the_others_each_ten) {
  stream_status_ = 404;
  start();
  pass(40);
  EXPECT_EQ(streams_asked_, 1);  // refused for good: not asked again each second
  EXPECT_GE(asked_["/redfish/v1/TelemetryService/MetricReports/Fast"], 38);
  EXPECT_LE(asked_["/redfish/v1/TelemetryService/MetricReports/Fast"], 42);
  EXPECT_GE(asked_["/redfish/v1/TelemetryService/MetricReports/Slow"], 4);
  EXPECT_LE(asked_["/redfish/v1/TelemetryService/MetricReports/Slow"], 5);
  EXPECT_EQ(at("inlet_temperature")->value, 21.5);
  EXPECT_EQ(at("power")->value, 6000);
  EXPECT_EQ(driver_->device->figures().in_flight_peak,
            1);  // one request at a time, the others' place is theirs
}

TEST_F(telemetry_of_a_device, reads_at_once_what_a_lost_stream_brought_and_opens_it_anew) {
  start();
  int sequence = 0;
  const auto brings = [this, &sequence] {
    push_event(report_body("Fast", ++sequence, row(inlet, "\"30\"")));
    push_event(report_body("Slow", sequence, row(power, "\"5000\"")));
  };
  pass(5, brings);
  ASSERT_EQ(polls(), 0);
  end_stream(transport_error::unreachable);
  EXPECT_EQ(polls(), 2);  // reconciled before a second has passed
  EXPECT_EQ(at("inlet_temperature")->value, 21.5);
  pass(2);
  EXPECT_EQ(streams_asked_, 2);
  const int polled = polls();
  pass(10, brings);
  EXPECT_LE(polls() - polled, 1);
  EXPECT_EQ(at("power")->value, 5000);
  EXPECT_EQ(reader_->figures().streams_lost, 1u);
}

// A BMC that restarts forgets its subscriptions and may keep the connection: alive, and without reports.
TEST_F(telemetry_of_a_device, a_stream_that_only_says_that_it_lives_is_given_up_and_its_reports_are_read) {
  start();
  int sequence = 0;
  pass(5, [this, &sequence] { push_event(report_body("Fast", ++sequence, row(inlet, "\"30\""))); });
  const int polled = polls();
  pass(8, [this] { push(": alive\n\n"); });
  EXPECT_GE(streams_asked_, 2);
  EXPECT_GT(polls(), polled);
  EXPECT_EQ(at("inlet_temperature")->value, 21.5);
  EXPECT_EQ(at("inlet_temperature")->quality, reading_quality::good);
}

TEST_F(telemetry_of_a_device, what_comes_no_more_is_stale_and_never_zero) {
  start();
  int sequence = 0;
  pass(5, [this, &sequence] { push_event(report_body("Fast", ++sequence, row(inlet, "\"30\""))); });
  dead_ = true;
  end_stream(transport_error::unreachable);
  stream_status_ = 503;
  pass(6);
  EXPECT_EQ(at("inlet_temperature")->quality, reading_quality::stale);
  EXPECT_EQ(at("inlet_temperature")->value, 30);
  dead_ = false;
  pass(70);
  EXPECT_EQ(at("inlet_temperature")->quality, reading_quality::good);
}

TEST_F(telemetry_of_a_device, a_row_that_its_report_brings_no_more_is_stale_alone) {
  start();
  int sequence = 0;
  const auto both = [this, &sequence] {
    push_event(report_body("Fast", ++sequence, row(inlet, "\"30\"") + "," + row(power, "\"1\"")));
  };
  pass(5, both);
  pass(6, [this, &sequence] { push_event(report_body("Fast", ++sequence, row(power, "\"2\""))); });
  EXPECT_EQ(at("inlet_temperature")->quality, reading_quality::stale);
  EXPECT_EQ(at("power")->quality, reading_quality::good);
  pass(1, both);
  EXPECT_EQ(at("inlet_temperature")->quality, reading_quality::good);
}

TEST_F(telemetry_of_a_device, a_value_of_a_wrong_type_is_bad_and_has_no_value) {
  start();
  int sequence = 0;
  for (const char* wrong :
       {"null", "true", "\"nan\"", "\"12 W\"", "\"\"", "{}", "[1]", "\"LinkUp\"", "\"0x10\""}) {
    pass(1, [&] { push_event(report_body("Fast", ++sequence, row(inlet, "\"30\""))); });
    ASSERT_EQ(at("inlet_temperature")->quality, reading_quality::good);
    pass(1, [&] { push_event(report_body("Fast", ++sequence, row(inlet, wrong))); });
    EXPECT_EQ(at("inlet_temperature")->quality, reading_quality::bad) << wrong;
    EXPECT_FALSE(at("inlet_temperature")->value.has_value()) << wrong;
  }
  for (const auto& [word, value] : std::map<std::string, std::optional<double>>{
           {"\"LinkUp\"", 1}, {"\"LinkDown\"", 0}, {"\"Marvellous\"", std::nullopt}, {"1", std::nullopt}}) {
    pass(1, [&] { push_event(report_body("Fast", ++sequence, row(link_0, word))); });
    EXPECT_EQ(at("gpu0/nvlink3/up")->value, value) << word;
  }
}

TEST_F(telemetry_of_a_device, a_session_lost_in_mid_stream_leads_to_one_login_and_a_new_stream) {
  start();
  int sequence = 0;
  const auto brings = [this, &sequence] {
    push_event(report_body("Fast", ++sequence, row(inlet, "\"30\"")));
    push_event(report_body("Slow", sequence, row(power, "\"1\"")));
  };
  pass(3, brings);
  ASSERT_EQ(logins_, 1);
  session_lost_ = true;
  end_stream();
  pass(3);
  EXPECT_EQ(logins_, 2);
  EXPECT_EQ(streams_asked_, 2);
  pass(3, brings);
  EXPECT_EQ(at("inlet_temperature")->value, 30);
  EXPECT_EQ(logins_, 2);
}

TEST_F(telemetry_of_a_device, asks_nothing_before_the_first_login) {
  telemetry_plan plan{"r01/c07", {"Fast"}, board_, [this] { return now_; }};
  reader_ = std::make_shared<telemetry_reader>(driver_, loop_, plan);
  reader_->start();
  loop_->pass_time(1);
  pass(20);
  EXPECT_TRUE(asked_.empty());
  EXPECT_EQ(streams_asked_, 0);
}

TEST_F(telemetry_of_a_device, leaves_a_device_that_does_not_answer_alone_for_longer_and_longer) {
  stream_status_ = 404;
  start();
  pass(5);
  dead_ = true;
  asked_.clear();
  pass(300);
  EXPECT_LE(polls(), 16);
  EXPECT_GE(polls(), 5);
  dead_ = false;
  pass(70);
  EXPECT_EQ(at("inlet_temperature")->quality, reading_quality::good);
}

TEST_F(telemetry_of_a_device, a_body_that_is_no_report_is_not_asked_for_each_second) {
  stream_status_ = 404;
  tree_["/redfish/v1/TelemetryService/MetricReports/Fast"] = "<html>";
  tree_["/redfish/v1/TelemetryService/MetricReports/Slow"] = R"({"MetricValues":7})";
  start();
  pass(120);
  EXPECT_LE(polls(), 12);
  EXPECT_EQ(board_->size(), 0u);
}

TEST_F(telemetry_of_a_device, without_reports_reads_sensor_by_sensor) {
  tree_.erase("/redfish/v1/TelemetryService");
  start();
  pass(3);
  ASSERT_TRUE(at("sensors/Chassis_0/Humidity").has_value());
  EXPECT_EQ(at("sensors/Chassis_0/Humidity")->value, 45);
  EXPECT_EQ(at("sensors/Chassis_0/Humidity")->unit, "%");
  const int before = asked_["/redfish/v1/Chassis/Chassis_0/Sensors/Humidity"];
  pass(60);
  EXPECT_GE(asked_["/redfish/v1/Chassis/Chassis_0/Sensors/Humidity"] - before, 4);
  EXPECT_LE(asked_["/redfish/v1/Chassis/Chassis_0/Sensors/Humidity"] - before, 7);
  EXPECT_EQ(streams_asked_, 0);  // events alone are nothing to telemetry
}

TEST_F(telemetry_of_a_device, beside_reports_the_sensors_are_read_slowly_and_do_not_outvote_a_report) {
  tree_["/redfish/v1/Chassis/Chassis_0/Sensors"] =
      R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/Chassis_0/Sensors/Chassis_0_InletTemp"},
                     {"@odata.id":"/redfish/v1/Chassis/Chassis_0/Sensors/Humidity"}]})";
  tree_["/redfish/v1/Chassis/Chassis_0/Sensors/Chassis_0_InletTemp"] =
      R"({"Reading":99,"ReadingUnits":"Cel"})";
  start();
  int sequence = 0;
  pass(700, [this, &sequence] {
    push_event(report_body("Fast", ++sequence, row(inlet, "\"30\"")));
    push_event(report_body("Slow", sequence, row(power, "\"1\"")));
  });
  EXPECT_GE(asked_["/redfish/v1/Chassis/Chassis_0/Sensors/Humidity"], 1);
  EXPECT_LE(asked_["/redfish/v1/Chassis/Chassis_0/Sensors/Humidity"], 3);
  EXPECT_EQ(at("sensors/Chassis_0/Humidity")->value, 45);
  EXPECT_EQ(at("inlet_temperature")->value, 30);
}

TEST_F(telemetry_of_a_device, stopped_it_puts_nothing_more_and_what_it_put_is_stale) {
  start();
  int sequence = 0;
  pass(3, [this, &sequence] { push_event(report_body("Fast", ++sequence, row(inlet, "\"30\""))); });
  ASSERT_NE(flow_, nullptr);
  reader_->stop();
  EXPECT_EQ(flow_, nullptr);  // the device's stream is free again
  EXPECT_EQ(at("inlet_temperature")->quality, reading_quality::stale);
  asked_.clear();
  pass(30);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(telemetry_of_a_device, closing_the_driver_ends_stream_and_reader) {
  start();
  ASSERT_NE(flow_, nullptr);
  driver_->device->close();
  EXPECT_EQ(flow_, nullptr);
  asked_.clear();
  pass(10);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(telemetry_of_a_device, a_device_with_endless_points_is_cut_off_at_a_bound) {
  start();
  std::string rows;
  for (int i = 0; i < 12'000; ++i) {
    rows += (i == 0 ? "" : ",") + row(fmt::format("Chassis/C/Sensors/S{}#/Reading", i), "\"1\"");
  }
  pass(2, [this, &rows] { push_event(report_body("Fast", 1, rows)); });
  EXPECT_LE(board_->size(), 8'192u);
  EXPECT_GE(reader_->figures().too_many, 3'000u);
}

TEST(telemetry_names, are_those_of_the_table) {
  const std::map<std::string, std::pair<std::string, std::string>> wanted = {
      {"/redfish/v1/Chassis/HGX_GPU_2/Sensors/HGX_GPU_2_Power_0#/Reading", {"gpu2/power", "W"}},
      {"/redfish/v1/Chassis/HGX_GPU_0/Sensors/HGX_GPU_0_TEMP_0#/Reading", {"gpu0/temperature", "Cel"}},
      {"/redfish/v1/Chassis/Chassis_0/Sensors/Chassis_0_LeakDetector_0_ColdPlate#/Reading",
       {"leak/0_ColdPlate", "V"}},
      {"/redfish/v1/" + inlet, {"inlet_temperature", "Cel"}},
      {"/redfish/v1/" + link_0, {"gpu0/nvlink3/up", "1"}},
      {"/redfish/v1/Systems/HGX_Baseboard_0/Processors/GPU_3/Ports/NVLink_17/Metrics#/TXBytes",
       {"gpu3/nvlink17/tx_bytes", "By"}},
      {"/redfish/v1/Fabrics/NVLinkFabric_0/Switches/NVSwitch_1/Ports/Port_71#/LinkStatus",
       {"asic1/port71/up", "1"}},
      {"/redfish/v1/Chassis/PowerShelf_0/Sensors/power_p4_pout#/Reading", {"psu4/output_power", "W"}},
      {"/redfish/v1/Chassis/PowerShelf_0/Sensors/power_chassis_output#/Reading", {"output_power", "W"}},
      {"/redfish/v1/Chassis/X_1/Sensors/Fan_2#/Reading", {"sensors/X_1/Fan_2", ""}},
      {"/redfish/v1/Some thing/\"odd\"#/Value", {"metrics/Some_thing/_odd__/Value", ""}},
  };
  for (const auto& [property, name] : wanted) {
    const auto found = name_point(property);
    ASSERT_TRUE(found.has_value()) << property;
    EXPECT_EQ(found->name, name.first);
    EXPECT_EQ(found->unit, name.second);
  }
  EXPECT_FALSE(name_point("").has_value());
  EXPECT_FALSE(name_point("/redfish/v1/").has_value());
}

}  // namespace
}  // namespace busbar::devices::redfish
