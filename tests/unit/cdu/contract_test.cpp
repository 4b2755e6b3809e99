// What every driver of a CDU keeps to, and the fake with them: a value not given is unknown, a write is only
// asked, a refusal names the limits, a silent unit is unavailable.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "actors/devices/cdu_fake.hpp"
#include "actors/devices/modbus/modbus_cdu.hpp"
#include "actors/devices/redfish/redfish_cdu.hpp"
#include "tests/support/modbus_server.hpp"
#include "tests/unit/devices/test_loop.hpp"

namespace busbar::devices {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// One unit behind one driver, and the hand of the test on both.
class bench {
 public:
  virtual ~bench() = default;
  virtual cdu& driver() = 0;
  virtual void settle() {}
  virtual void hide_supply_temperature() = 0;
  virtual void ignore_writes() = 0;
  virtual void fall_silent() = 0;

  absl::StatusOr<cdu_facts> read() {
    std::promise<absl::StatusOr<cdu_facts>> promise;
    auto answer = promise.get_future();
    driver().read([&promise](absl::StatusOr<cdu_facts> got) { promise.set_value(std::move(got)); });
    settle();
    return answer.get();
  }
  absl::Status write(cdu_value what, double value) {
    std::promise<absl::Status> promise;
    auto answer = promise.get_future();
    driver().write(what, value, [&promise](absl::Status got) { promise.set_value(std::move(got)); });
    settle();
    return answer.get();
  }
};

class fake_bench final : public bench {
 public:
  cdu& driver() override { return unit_; }
  void hide_supply_temperature() override { unit_.truth.supply_c.reset(); }
  void ignore_writes() override { unit_.how.ignores = true; }
  void fall_silent() override { unit_.how.silent = true; }

 private:
  cdu_fake unit_;
};

// ---- Redfish
constexpr const char* base = "/redfish/v1/ThermalEquipment/CDUs/1";

std::map<std::string, nlohmann::json> redfish_tree() {
  const std::string unit = base;
  const auto link = [](const std::string& to) { return nlohmann::json{{"@odata.id", to}}; };
  const auto list = [&link](const std::string& of, const std::vector<std::string>& ids) {
    nlohmann::json members = nlohmann::json::array();
    for (const std::string& id : ids) members.push_back(link(of + "/" + id));
    return nlohmann::json{{"@odata.id", of}, {"Members@odata.count", ids.size()}, {"Members", members}};
  };
  const auto reading = [](double value) { return nlohmann::json{{"Reading", value}}; };
  const nlohmann::json good = {{"State", "Enabled"}, {"Health", "OK"}};
  const std::string secondary = unit + "/SecondaryCoolantConnectors";
  std::map<std::string, nlohmann::json> tree = {
      {"/redfish/v1", {{"ThermalEquipment", link("/redfish/v1/ThermalEquipment")}}},
      {"/redfish/v1/ThermalEquipment", {{"CDUs", link("/redfish/v1/ThermalEquipment/CDUs")}}},
      {"/redfish/v1/ThermalEquipment/CDUs", list("/redfish/v1/ThermalEquipment/CDUs", {"1"})},
      {unit,
       {{"@odata.id", unit},
        {"Status", good},
        {"SecondaryCoolantConnectors", link(secondary)},
        {"PrimaryCoolantConnectors", link(unit + "/PrimaryCoolantConnectors")},
        {"Pumps", link(unit + "/Pumps")},
        {"Links", {{"Chassis", {link("/redfish/v1/Chassis/CDU")}}}}}},
      {secondary, list(secondary, {"r01", "r02"})},
      {unit + "/PrimaryCoolantConnectors", list(unit + "/PrimaryCoolantConnectors", {"1"})},
      {unit + "/PrimaryCoolantConnectors/1", {{"SupplyTemperatureCelsius", reading(30)}, {"Status", good}}},
      {unit + "/Pumps", list(unit + "/Pumps", {"1", "2"})},
      {unit + "/Pumps/1", {{"PumpSpeedPercent", reading(60)}, {"Status", good}}},
      {unit + "/Pumps/2",
       {{"PumpSpeedPercent", reading(0)}, {"Status", {{"State", "Enabled"}, {"Health", "Critical"}}}}},
      {"/redfish/v1/Chassis/CDU", {{"Controls", link("/redfish/v1/Chassis/CDU/Controls")}}},
      {"/redfish/v1/Chassis/CDU/Controls", list("/redfish/v1/Chassis/CDU/Controls", {"Supply", "Pressure"})},
      {"/redfish/v1/Chassis/CDU/Controls/Supply",
       {{"ControlType", "Temperature"},
        {"ControlMode", "Automatic"},
        {"SetPoint", 40},
        {"AllowableMin", 15},
        {"AllowableMax", 50}}},
      {"/redfish/v1/Chassis/CDU/Controls/Pressure",
       {{"ControlType", "PressurekPa"}, {"SetPoint", 60}, {"AllowableMin", 10}, {"AllowableMax", 250}}},
  };
  for (const char* rack : {"r01", "r02"}) {
    tree[secondary + "/" + rack] = {{"FlowLitersPerMinute", reading(120)},
                                    {"SupplyTemperatureCelsius", reading(40)},
                                    {"ReturnTemperatureCelsius", reading(52)},
                                    {"DeltaPressurekPa", reading(60)},
                                    {"Status", good}};
  }
  return tree;
}

class redfish_bench final : public bench {
 public:
  redfish_bench() {
    transport_ = std::make_shared<redfish::scripted_transport>(
        [this](const redfish::http_request& request) { return answer(request); });
    unit_ = redfish::make_redfish_cdu("10.0.0.9:443", {"plant", "secret"}, transport_, loop_);
  }
  cdu& driver() override { return *unit_; }
  void settle() override { loop_->pass_time(); }
  void hide_supply_temperature() override {
    for (auto& [path, body] : tree_) {
      if (path.find("SecondaryCoolantConnectors/") != std::string::npos)
        body.erase("SupplyTemperatureCelsius");
    }
  }
  void ignore_writes() override { ignores_ = true; }
  void fall_silent() override { silent_ = true; }

 private:
  redfish::http_outcome answer(const redfish::http_request& request) {
    if (silent_) return redfish::no_answer(redfish::transport_error::unreachable);
    const auto found = tree_.find(request.path.substr(0, request.path.find('?')));
    if (found == tree_.end()) return redfish::reply_of(404, "{}");
    if (request.method == redfish::http_method::get) return redfish::reply_of(200, found->second.dump());
    const double wanted = nlohmann::json::parse(request.body)["SetPoint"].get<double>();
    const double least = found->second["AllowableMin"], most = found->second["AllowableMax"];
    if (wanted < least || wanted > most) {
      return redfish::reply_of(
          400,
          nlohmann::json{
              {"error",
               {{"@Message.ExtendedInfo",
                 {{{"MessageId", "Base.1.0.PropertyValueOutOfRange"},
                   {"Message", fmt::format("SetPoint {} is not within {} to {}", wanted, least, most)}}}}}}}
              .dump());
    }
    if (!ignores_) found->second["SetPoint"] = wanted;
    return redfish::reply_of(204, "");
  }
  std::map<std::string, nlohmann::json> tree_ = redfish_tree();
  bool ignores_ = false, silent_ = false;
  std::shared_ptr<redfish::test_loop> loop_ = std::make_shared<redfish::test_loop>();
  std::shared_ptr<redfish::scripted_transport> transport_;
  std::shared_ptr<cdu> unit_;
};

// ---- Modbus
constexpr const char* modbus_map = R"({"name": "bench_cdu", "unit": 1, "points": [
  {"name": "supply_temperature", "address": 10, "scale": 0.1, "unit": "C", "poll": "fast", "min": -20, "max": 120, "absent": [65535]},
  {"name": "return_temperature", "address": 11, "scale": 0.1, "unit": "C", "poll": "fast", "min": -20, "max": 120},
  {"name": "flow", "address": 12, "scale": 0.1, "unit": "L/min", "poll": "fast", "min": 0, "max": 2000},
  {"name": "differential_pressure", "address": 13, "scale": 0.1, "unit": "kPa", "poll": "fast", "min": 0, "max": 500},
  {"name": "pump_1_speed", "address": 14, "unit": "%", "poll": "fast", "min": 0, "max": 100},
  {"name": "pump_2_speed", "address": 15, "unit": "%", "poll": "fast", "min": 0, "max": 100},
  {"name": "facility_supply_temperature", "address": 16, "scale": 0.1, "unit": "C", "min": -20, "max": 120},
  {"name": "supply_temperature_set", "address": 20, "scale": 0.1, "unit": "C", "min": 15, "max": 50, "writable": true},
  {"name": "differential_pressure_set", "address": 21, "scale": 0.1, "unit": "kPa", "min": 10, "max": 250, "writable": true}]})";

class modbus_bench final : public bench {
 public:
  modbus_bench() : server_([this](const modbus::frame& came) { return answer(came); }) {
    auto map = modbus::parse_register_map(modbus_map, "bench");
    if (!map.ok()) ADD_FAILURE() << map.status();
    modbus::exchange_options quick;
    quick.timeout_min_ns = 20'000'000;
    quick.timeout_max_ns = 50'000'000;
    unit_ =
        modbus::make_modbus_cdu(*loop_.open(server_.address(), quick), *map, [] { return std::int64_t{1}; });
  }
  cdu& driver() override { return *unit_; }
  void hide_supply_temperature() override { set(10, 65535); }
  void ignore_writes() override {
    const std::lock_guard lock(guard_);
    ignores_ = true;
  }
  void fall_silent() override {
    const std::lock_guard lock(guard_);
    silent_ = true;
  }

 private:
  void set(std::uint16_t at, std::uint16_t value) {
    const std::lock_guard lock(guard_);
    registers_[at] = value;
  }
  static std::uint16_t word(const std::string& pdu, std::size_t at) {
    return static_cast<std::uint16_t>((static_cast<unsigned char>(pdu[at]) << 8) |
                                      static_cast<unsigned char>(pdu[at + 1]));
  }
  test::modbus_answer answer(const modbus::frame& came) {
    const std::lock_guard lock(guard_);
    if (silent_ || came.pdu.size() < 5) return {};
    modbus::frame reply{came.transaction, came.unit, came.pdu};
    const std::uint16_t at = word(came.pdu, 1);
    if (came.pdu[0] == 6) {
      if (!ignores_) registers_[at] = word(came.pdu, 3);
    } else if (came.pdu[0] == 16) {
      if (!ignores_) registers_[at] = word(came.pdu, 6);
      reply.pdu = came.pdu.substr(0, 5);
    } else {
      const std::uint16_t count = word(came.pdu, 3);
      reply.pdu = std::string(1, came.pdu[0]) + static_cast<char>(2 * count);
      for (std::uint16_t i = 0; i < count; ++i) {
        const std::uint16_t value = registers_[static_cast<std::uint16_t>(at + i)];
        reply.pdu += static_cast<char>(value >> 8);
        reply.pdu += static_cast<char>(value & 0xFF);
      }
    }
    return {modbus::encode(reply), 0, false};
  }
  std::mutex guard_;  // of what the server's thread reads
  std::map<std::uint16_t, std::uint16_t> registers_ = {{10, 400}, {11, 520}, {12, 2400}, {13, 600}, {14, 60},
                                                       {15, 0},   {16, 300}, {20, 400},  {21, 600}};
  bool ignores_ = false, silent_ = false;
  test::modbus_server server_;
  modbus::tcp_loop loop_;
  std::shared_ptr<cdu> unit_;
};

template <class Bench>
class cdu_contract : public ::testing::Test {
 protected:
  Bench unit;
};
using benches = ::testing::Types<fake_bench, redfish_bench, modbus_bench>;
class bench_names {
 public:
  template <class Bench>
  static std::string GetName(int) {
    return std::is_same_v<Bench, fake_bench>      ? "fake"
           : std::is_same_v<Bench, redfish_bench> ? "redfish"
                                                  : "modbus";
  }
};
TYPED_TEST_SUITE(cdu_contract, benches, bench_names);

TYPED_TEST(cdu_contract, reads_everything_in_one_batch) {
  const auto facts = this->unit.read();
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->supply_c, 40);
  EXPECT_EQ(facts->return_c, 52);
  EXPECT_EQ(facts->flow_lpm, 240);
  EXPECT_EQ(facts->dp_kpa, 60);
  EXPECT_EQ(facts->facility_supply_c, 30);
  EXPECT_EQ(facts->supply_set_point.value, 40);
  EXPECT_EQ(facts->dp_set_point.value, 60);
  EXPECT_EQ(facts->supply_set_point.most, 50);
  ASSERT_EQ(facts->pumps.size(), 2U);
  EXPECT_EQ(facts->pumps[0].running, true);
}

TYPED_TEST(cdu_contract, a_value_that_is_not_given_is_unknown_and_the_rest_is_there) {
  this->unit.hide_supply_temperature();
  const auto facts = this->unit.read();
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->supply_c, std::nullopt);
  EXPECT_EQ(facts->flow_lpm, 240);
}

TYPED_TEST(cdu_contract, holds_a_set_point_that_was_written) {
  EXPECT_TRUE(this->unit.write(cdu_value::supply_set_point, 38.5).ok());
  EXPECT_TRUE(this->unit.write(cdu_value::dp_set_point, 72).ok());
  const auto facts = this->unit.read();
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->supply_set_point.value, 38.5);
  EXPECT_EQ(facts->dp_set_point.value, 72);
}

TYPED_TEST(cdu_contract, a_unit_that_keeps_what_it_had_is_read_to_keep_it) {
  this->unit.ignore_writes();
  static_cast<void>(
      this->unit.write(cdu_value::supply_set_point, 38.5));  // it may say OK: that proves nothing
  const auto facts = this->unit.read();
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->supply_set_point.value, 40);
}

TYPED_TEST(cdu_contract, a_value_outside_its_limits_is_refused_with_them_and_nothing_changes) {
  const absl::Status refused = this->unit.write(cdu_value::supply_set_point, 61);
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.message()), HasSubstr("50"));
  EXPECT_EQ(this->unit.read()->supply_set_point.value, 40);
}

TYPED_TEST(cdu_contract, a_unit_without_a_watchdog_for_them_takes_no_duties) {
  EXPECT_FALSE(this->unit.write(cdu_value::pump_duty, 80).ok());
}

TYPED_TEST(cdu_contract, a_silent_unit_gives_no_values_and_takes_none) {
  this->unit.fall_silent();
  EXPECT_FALSE(this->unit.read().ok());
  EXPECT_FALSE(this->unit.write(cdu_value::dp_set_point, 72).ok());
}

TEST(modbus_cdu, the_map_of_the_laboratory_cdu_says_who_has_the_duties_and_what_each_rack_gets) {
  const auto map = modbus::parse_register_map(*modbus::shipped_map("lab_cdu"), "lab_cdu");
  ASSERT_TRUE(map.ok());
  point_batch points;
  const auto add = [&points](const std::string& name, double value) {
    named_point one;
    one.name = name;
    one.reading.value = value;
    one.reading.quality = point_quality::good;
    points.points.push_back(one);
  };
  add("r01_flow", 120);
  add("r02_flow", 80);
  add("supply_temperature_set", 32);
  add("differential_pressure_set", 60);
  add("override_timeout", 30);
  add("override_mask", 1);
  add("leaks.r01_rope", 1);
  add("leaks.r01_pan", 0);
  add("leak_detector_faults.r01_rope", 1);
  add("leak_detector_faults.r01_pan", 0);
  const cdu_facts facts = modbus::cdu_facts_of(*map, points);
  EXPECT_EQ(facts.flow_lpm, 200);
  EXPECT_EQ(facts.connectors.size(), 2U);
  EXPECT_EQ(facts.supply_set_point.value, 32);
  EXPECT_EQ(facts.dp_set_point.most, 80);
  EXPECT_EQ(facts.own_control, false);
  EXPECT_EQ(facts.watchdog_s, 30);
  std::map<std::string, journal::Detector::Verdict> seen;
  for (const detector_facts& one : facts.detectors) seen[one.name] = one.verdict;
  EXPECT_EQ(seen.at("r01_rope"), journal::Detector::UNKNOWN);  // wet by a detector that is at fault
  EXPECT_EQ(seen.at("r01_pan"), journal::Detector::DRY);
}

TEST(cdu_fake, a_duty_lapses_unless_it_is_given_again) {
  cdu_fake unit;
  unit.how.watchdog_s = 5;
  absl::Status taken = absl::UnknownError("no answer");
  const auto keep = [&taken](const absl::Status& status) { taken = status; };
  unit.write(cdu_value::pump_duty, 80, keep);
  ASSERT_TRUE(taken.ok());
  unit.pass(4s);
  unit.write(cdu_value::pump_duty, 80, keep);
  unit.pass(4s);
  EXPECT_EQ(unit.truth.own_control, false);
  unit.pass(2s);
  EXPECT_EQ(unit.truth.own_control, true);
}

TEST(cdu_facts, what_is_not_wholly_known_has_no_sum) {
  cdu_facts facts;
  facts.connectors = {{"r01", 120, 60, 40, 52, {}}, {"r02", {}, 55, 41, {}, {}}};
  take_connectors(facts);
  EXPECT_EQ(facts.flow_lpm, std::nullopt);
  EXPECT_EQ(facts.return_c, std::nullopt);
  EXPECT_EQ(facts.supply_c, 41);
  EXPECT_EQ(facts.dp_kpa, 55);
}

TEST(modbus_cdu, the_shipped_map_of_an_orv3_pumping_unit_gives_what_it_has_and_nothing_else) {
  const auto map = modbus::parse_register_map(*modbus::shipped_map("orv3_rpu"), "orv3_rpu");
  ASSERT_TRUE(map.ok());
  point_batch points;
  const auto add = [&points](const std::string& name, double value) {
    named_point one;
    one.name = name;
    one.reading.value = value;
    one.reading.quality = point_quality::good;
    points.points.push_back(one);
  };
  add("outlet_temperature", 38);
  add("outlet_pressure", 210);
  add("inlet_pressure", 150);
  add("outlet_target", 40);
  add("leak_alarm.internal", 1);
  add("leak_alarm.pan", 0);
  add("status_alarm.pump", 1);
  const cdu_facts facts = modbus::cdu_facts_of(*map, points);
  EXPECT_EQ(facts.supply_c, 38);
  EXPECT_EQ(facts.dp_kpa, 60);
  EXPECT_EQ(facts.supply_set_point.value, 40);
  EXPECT_EQ(facts.dp_set_point.value, std::nullopt);
  EXPECT_EQ(facts.health, "Critical");
  std::map<std::string, journal::Detector::Verdict> seen;
  for (const detector_facts& one : facts.detectors) seen[one.name] = one.verdict;
  EXPECT_EQ(seen.at("internal"), journal::Detector::LEAK);
  EXPECT_EQ(seen.at("pan"), journal::Detector::DRY);
  EXPECT_EQ(seen.at("floor"), journal::Detector::UNKNOWN);  // not among the points: not read
}

}  // namespace
}  // namespace busbar::devices
