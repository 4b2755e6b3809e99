// The decoders: the leak truth table row by row, wrong types and words, single captured bodies, and seeded
// damage to all of them.
#include "actors/devices/redfish/decode.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "actors/devices/points.hpp"
#include "actors/devices/redfish/crawl.hpp"
#include "actors/devices/redfish/walk.hpp"
#include "tests/unit/devices/replay_tree.hpp"

namespace busbar::devices::redfish {
namespace {

using verdict = journal::Detector;

json_document parsed(const std::string& text) {
  auto document = json_document::parse(text);
  EXPECT_TRUE(document.has_value()) << text;
  return document.value_or(json_document());
}

struct leak_row {
  const char* word;  // DetectorState; empty: the property is missing
  const char* state;
  const char* health;
  raw_leak raw;
  verdict::Verdict wanted;
};

const leak_row leak_rows[] = {
    {"OK", "Enabled", "OK", raw_leak::dry, verdict::DRY},
    {"OK", "Enabled", "OK", raw_leak::not_offered, verdict::DRY},
    {"OK", "Enabled", "OK", raw_leak::unreadable, verdict::UNKNOWN},
    {"OK", "Enabled", "OK", raw_leak::wet, verdict::LEAK},
    {"OK", "Enabled", "Critical", raw_leak::dry, verdict::UNKNOWN},
    {"OK", "Degraded", "OK", raw_leak::dry, verdict::UNKNOWN},
    {"Critical", "Degraded", "Critical", raw_leak::dry, verdict::UNKNOWN},
    {"Critical", "Enabled", "Critical", raw_leak::dry, verdict::UNKNOWN},
    {"Critical", "Degraded", "Critical", raw_leak::not_offered, verdict::LEAK},
    {"Critical", "Enabled", "Critical", raw_leak::unreadable, verdict::LEAK},
    {"Critical", "Enabled", "Critical", raw_leak::wet, verdict::LEAK},
    {"Warning", "Enabled", "Warning", raw_leak::dry, verdict::UNKNOWN},
    {"Warning", "Enabled", "Warning", raw_leak::not_offered, verdict::UNKNOWN},
    {"Warning", "Enabled", "Warning", raw_leak::wet, verdict::LEAK},
    {"LeakDetected", "Enabled", "Critical", raw_leak::not_offered, verdict::LEAK},
    {"LeakDetected", "Enabled", "OK", raw_leak::not_offered, verdict::UNKNOWN},
    {"Wonderful", "Enabled", "OK", raw_leak::dry, verdict::UNKNOWN},
    {"", "Enabled", "OK", raw_leak::dry, verdict::UNKNOWN},
    {"", "Enabled", "OK", raw_leak::not_offered, verdict::UNKNOWN},
    {"OK", "Absent", "OK", raw_leak::dry, verdict::UNKNOWN},
    {"OK", "Disabled", "OK", raw_leak::not_offered, verdict::UNKNOWN},
    {"OK", "UnavailableOffline", "OK", raw_leak::dry, verdict::UNKNOWN},
    {"OK", "", "OK", raw_leak::dry, verdict::UNKNOWN},
    {"Critical", "Absent", "Critical", raw_leak::not_offered, verdict::UNKNOWN},
};

TEST(leak_table, holds_row_by_row) {
  for (const leak_row& row : leak_rows) {
    std::vector<std::pair<std::string, std::string>> members{{"Id", json_quote("x")}};
    if (*row.word != '\0') members.emplace_back("DetectorState", json_quote(row.word));
    members.emplace_back("Status",
                         json_object({{"State", json_quote(row.state)}, {"Health", json_quote(row.health)}}));
    const detector_facts facts = judge_detector(parsed(json_object(members)).root(), row.raw);
    EXPECT_EQ(facts.verdict, row.wanted) << row.word << ' ' << row.state << ' ' << row.health << ' '
                                         << static_cast<int>(row.raw) << ": " << facts.detail;
  }
}

TEST(leak_table, no_wrong_type_is_ever_dry) {
  for (const char* text :
       {"{}", R"({"DetectorState":0})", R"({"DetectorState":null,"Status":null})",
        R"({"DetectorState":["OK"]})", R"({"DetectorState":"OK","Status":"Enabled"})",
        R"({"DetectorState":"OK","Status":{"State":true}})",
        R"({"DetectorState":"ok","Status":{"State":"Enabled"}})", R"({"Status":{"State":"Enabled"}})"}) {
    for (const raw_leak raw : {raw_leak::not_offered, raw_leak::unreadable, raw_leak::dry}) {
      EXPECT_EQ(judge_detector(parsed(text).root(), raw).verdict, verdict::UNKNOWN) << text;
    }
  }
}

TEST(leak_table, a_raw_value_counts_only_with_a_limit_and_an_enabled_sensor) {
  const auto raw = [](const char* text) { return decode_raw_leak(parsed(text).root()); };
  EXPECT_EQ(
      raw(R"({"Reading":1.7353,"Status":{"State":"Enabled"},"Thresholds":{"LowerCritical":{"Reading":1.617}}})"),
      raw_leak::dry);
  EXPECT_EQ(
      raw(R"({"Reading":0.4,"Status":{"State":"Enabled"},"Thresholds":{"LowerCritical":{"Reading":1.617}}})"),
      raw_leak::wet);
  EXPECT_EQ(raw(R"({"Reading":1.7,"Status":{"State":"Enabled"}})"), raw_leak::unreadable);
  EXPECT_EQ(
      raw(R"({"Reading":1.7,"Status":{"State":"Absent"},"Thresholds":{"LowerCritical":{"Reading":1.617}}})"),
      raw_leak::unreadable);
  EXPECT_EQ(raw(R"({"Reading":null,"Thresholds":{"LowerCritical":{"Reading":1.617}}})"),
            raw_leak::unreadable);
  EXPECT_EQ(raw(R"({"Reading":"1.7","Thresholds":{"LowerCritical":{"Reading":1.617}}})"),
            raw_leak::unreadable);
}

TEST(leak_table, names_are_shortened_as_the_sku_has_them) {
  EXPECT_EQ(short_detector_name("Chassis_0_LeakDetector_1_ColdPlate", "Chassis_0"), "1_ColdPlate");
  EXPECT_EQ(short_detector_name("leakage1", "MGX_NVSwitch_0"), "leakage1");
  EXPECT_EQ(short_detector_name("r01_rope", "r01"), "rope");
  EXPECT_EQ(short_detector_name("r010_rope", "r01"), "r010_rope");
}

TEST(decoders, an_absent_sensor_at_zero_has_no_value) {
  const reading_facts absent = decode_sensor(parsed(R"({"Reading":0,"Status":{"State":"Absent"}})").root());
  EXPECT_EQ(absent.value, std::nullopt);
  EXPECT_EQ(absent.quality, reading_quality::not_enabled);
  const reading_facts text = decode_sensor(parsed(R"({"Reading":"null"})").root());
  EXPECT_EQ(text.value, std::nullopt);
  EXPECT_EQ(text.quality, reading_quality::bad_form);
  EXPECT_EQ(decode_sensor(parsed(R"({"Reading":"21.5"})").root()).quality, reading_quality::bad_form);
  EXPECT_EQ(decode_sensor(parsed(R"({})").root()).quality, reading_quality::no_value);
}

TEST(decoders, power_is_unknown_for_any_other_word_or_type) {
  EXPECT_EQ(decode_power_state(parsed(R"({"PowerState":"On"})").root()), journal::POWER_ON);
  for (const char* text : {"{}", R"({"PowerState":true})", R"({"PowerState":null})", R"({"PowerState":"on"})",
                           R"({"PowerState":"Paused"})"}) {
    EXPECT_EQ(decode_power_state(parsed(text).root()), journal::POWER_UNKNOWN) << text;
  }
}

TEST(decoders, ok_on_a_part_that_shows_nothing_is_not_health) {
  const auto gpu = decode_processor(
      parsed(R"({"Id":"GPU_0","ProcessorType":"GPU","Status":{"State":"Enabled","Health":"OK"}})").root());
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->part.health(), journal::HEALTH_UNKNOWN);
  const auto named = decode_processor(
      parsed(
          R"({"Id":"GPU_0","ProcessorType":"GPU","Model":"Rubin","Status":{"State":"Enabled","Health":"OK"}})")
          .root());
  EXPECT_EQ(named->part.health(), journal::HEALTH_GOOD);
  EXPECT_TRUE(is_placeholder("CPLDSerialNumber"));
  EXPECT_TRUE(is_placeholder("N/A"));
  EXPECT_TRUE(is_placeholder("  "));
  EXPECT_TRUE(is_placeholder("0x0000"));
  EXPECT_FALSE(is_placeholder("9000000000001"));
}

TEST(decoders, a_shelf_supply_with_its_capacity_as_text_has_watts) {
  EXPECT_EQ(decode_supply_watts(parsed(R"({"CapacityWatts":"5500"})").root()), 5500);
  EXPECT_EQ(decode_supply_watts(parsed(R"({"PowerCapacityWatts":null})").root()), std::nullopt);
  EXPECT_EQ(decode_supply_watts(parsed(R"({"PowerCapacityWatts":0})").root()), std::nullopt);
}

TEST(decoders, a_task_is_found_by_the_whole_name_of_its_component) {
  const auto task = parsed(
      R"({"Payload":{"JsonBody":"{\"Targets\":[\"/redfish/v1/UpdateService/FirmwareInventory/FW_CPLD_10\"]}"}})");
  EXPECT_TRUE(task_is_for(task.root(), "FW_CPLD_10"));
  EXPECT_FALSE(task_is_for(task.root(), "FW_CPLD_1"));
  EXPECT_FALSE(task_is_for(task.root(), ""));
}

TEST(decoders, a_task_with_an_unknown_word_is_not_done) {
  EXPECT_EQ(decode_task(parsed(R"({"TaskState":"Completed","TaskStatus":"OK"})").root(), 200).state,
            task_state::completed);
  EXPECT_EQ(decode_task(parsed(R"({"TaskState":"Completed","TaskStatus":"Critical"})").root(), 200).state,
            task_state::failed);
  EXPECT_EQ(decode_task(parsed(R"({"TaskState":"Exception"})").root(), 200).state, task_state::failed);
  EXPECT_EQ(decode_task(parsed(R"({"TaskState":"Marvellous"})").root(), 200).state, task_state::running);
  EXPECT_EQ(decode_task(parsed(R"({})").root(), 202).state, task_state::running);
}

TEST(points, a_report_replaces_its_points_and_text_is_bad_not_zero) {
  const auto batch = decode_metric_report(
      R"({"MetricValues":[{"MetricProperty":"/a","MetricValue":"12.5","Timestamp":"2025-01-06T22:56:02.131+00:00"},
          {"MetricProperty":"/b","MetricValue":"nan"},{"MetricProperty":"/c","MetricValue":"null"},{"MetricProperty":"/d"},
          {"MetricProperty":"/e","MetricValue":"12 W"},{"MetricValue":"1"},
          {"MetricProperty":"/f","MetricValue":"1","Oem":{"Nvidia":{"MetricValueStale":true}}}]})",
      "/report", 1'000);
  ASSERT_TRUE(batch.ok());
  point_table table;
  table.apply(*batch);
  ASSERT_EQ(table.size(), 6u);
  EXPECT_EQ(table.find("/a")->value, 12.5);
  EXPECT_EQ(table.find("/a")->quality, point_quality::good);
  EXPECT_EQ(table.find("/a")->source_time_ns, 1'736'204'162'131'000'000);
  for (const char* name : {"/b", "/c", "/d", "/e"}) {
    EXPECT_EQ(table.find(name)->value, std::nullopt) << name;
    EXPECT_EQ(table.find(name)->quality, point_quality::bad) << name;
  }
  EXPECT_EQ(table.find("/f")->quality, point_quality::stale);
  table.mark_stale(2'000);
  EXPECT_EQ(table.find("/a")->quality, point_quality::stale);
  EXPECT_FALSE(decode_metric_report("<html>", "/report", 1).ok());
  EXPECT_FALSE(decode_metric_report("{}", "/report", 1).ok());
}

TEST(points, sensors_give_units_that_reports_keep) {
  const auto sensor =
      decode_sensor_points(R"({"Reading":40,"ReadingUnits":"Cel","Status":{"State":"Enabled"}})", "/a", 1);
  ASSERT_TRUE(sensor.ok());
  point_table table;
  table.apply(*sensor);
  const auto report =
      decode_metric_report(R"({"MetricValues":[{"MetricProperty":"/a","MetricValue":"41"}]})", "/report", 2);
  table.apply(*report);
  EXPECT_EQ(table.find("/a")->value, 41);
  EXPECT_EQ(table.find("/a")->unit, "Cel");
}

TEST(points, times_that_are_none_are_none) {
  EXPECT_EQ(parse_time("1970-01-01T00:00:00+00:00"), std::nullopt);
  EXPECT_EQ(parse_time("2025-13-01T00:00:00Z"), std::nullopt);
  EXPECT_EQ(parse_time("2025-01-06T22:56:02"), std::nullopt);
  EXPECT_EQ(parse_time("yesterday"), std::nullopt);
  EXPECT_EQ(parse_time("2000-01-01T01:00:00+01:00"), 946'684'800'000'000'000);
}

// All decoders on one body; every result is looked at, so that nothing is left out by the compiler.
std::size_t decode_all(const std::string& text) {
  std::size_t seen = 0;
  const auto report = decode_metric_report(text, "/r", 1);
  const auto points = decode_sensor_points(text, "/s", 1);
  seen += report.ok() ? report->points.size() : 0;
  seen += points.ok() ? points->points.size() : 0;
  seen += messages_of(json_view()).size() + describe_error(text).size();
  const auto document = json_document::parse(text);
  if (!document) return seen;
  const json_view body = document->root();
  for (const raw_leak raw : {raw_leak::not_offered, raw_leak::unreadable, raw_leak::dry, raw_leak::wet}) {
    seen += judge_detector(body, raw).detail.size();
  }
  seen += decode_page(body).members.size() + messages_of(body).size() + decode_status(body).state.size();
  seen +=
      static_cast<std::size_t>(decode_raw_leak(body)) + static_cast<std::size_t>(decode_power_state(body));
  seen += decode_action(body, "ComputerSystem.Reset", "ResetType").values.size() +
          decode_action_info(body, "ResetType").size();
  if (const auto processor = decode_processor(body)) seen += processor->serial_key.size();
  for (const part_facts& part : {decode_memory(body), decode_drive(body), decode_adapter(body),
                                 decode_switch_asic(body), decode_supply(body)}) {
    seen += part.serial_key.size();
  }
  seen +=
      decode_port_gbps(body).value_or(0) + static_cast<std::size_t>(decode_slot_ordinal(body).value_or(0));
  seen += decode_account(body, "/a").name.size() + decode_boot(body).target.size() +
          decode_task(body, 200).message.size();
  seen += static_cast<std::size_t>(decode_link_up(body).value_or(false)) +
          static_cast<std::size_t>(task_is_for(body, "UEFI"));
  // As the root and only body of a service.
  crawled all;
  fetched root;
  root.uri = "/redfish/v1";
  root.http = 200;
  root.document = *document;
  all.bodies.emplace(root.uri, root);
  seen += render_text(conclude(all, "/redfish/v1")).size();
  return seen;
}

TEST(captured_bodies, go_through_every_decoder) {
  std::size_t seen = 0;
  const auto bodies = all_captured_bodies();
  for (const auto& path : bodies) seen += decode_all(read_text(path));
  EXPECT_TRUE(bodies.empty() || seen > bodies.size());
}

TEST(captured_bodies, seeded_damage_crashes_nothing) {
  const auto bodies = all_captured_bodies();
  std::mt19937_64 random(20'261'130);
  const std::vector<std::string> pieces{"null", "\"NA\"", "-1",      "1e999",           "[]", "{}",
                                        "true", "\"\"",   "\\u0000", "{\"@odata.id\":", "]",  "\xff"};
  std::size_t seen = 0;
  for (std::size_t i = 0; i < bodies.size(); i += 3) {
    const std::string text = read_text(bodies[i]);
    if (text.empty() || text.size() > 60'000) continue;
    for (int damage = 0; damage < 4; ++damage) {
      std::string damaged = text;
      for (int hit = 0; hit < 1 + damage; ++hit) {
        const std::size_t at = random() % damaged.size();
        const std::string& piece = pieces[random() % pieces.size()];
        switch (random() % 4) {
          case 0:
            damaged[at] = static_cast<char>(random() % 256);
            break;
          case 1:
            damaged.insert(at, piece);
            break;
          case 2: {
            // A whole value gives way to another: what a wrong type looks like.
            const auto colon = damaged.find(':', at);
            const auto end = damaged.find_first_of(",}", colon == std::string::npos ? at : colon);
            if (colon != std::string::npos && end != std::string::npos)
              damaged.replace(colon + 1, end - colon - 1, piece);
            break;
          }
          default:
            damaged.resize(at);
            damaged += ' ';
            break;
        }
      }
      seen += decode_all(damaged);
    }
  }
  EXPECT_TRUE(bodies.empty() || seen > 0);
}

TEST(captured_bodies, single_bodies_are_read_as_their_table_says) {
  const auto folder = captures_folder() / "single-bodies";
  if (captures_folder().empty()) return;
  const auto detector = parsed(read_text(folder / "leak-detector-off-schema-state.json"));
  EXPECT_EQ(judge_detector(detector.root(), raw_leak::not_offered).verdict, verdict::LEAK);
  const auto system = parsed(read_text(folder / "bluefield-system-empty-enums.json"));
  EXPECT_EQ(decode_boot(system.root()).enabled, "");
  EXPECT_EQ(decode_power_state(system.root()), journal::POWER_ON);
  const auto power = parsed(read_text(folder / "lenovo-power-psu2-critical.json"));
  std::size_t good = 0;
  std::size_t failed = 0;
  for (const json_view& row : power.root()["PowerSupplies"].items()) {
    const auto health = decode_supply(row).part.health();
    if (health == journal::HEALTH_GOOD) ++good;
    if (health == journal::HEALTH_BAD) ++failed;
  }
  EXPECT_EQ(good, 1u);
  EXPECT_EQ(failed, 1u);
}

TEST(json, hostile_nesting_and_text_are_refused) {
  EXPECT_FALSE(json_document::parse(std::string(100'000, '[')).has_value());
  EXPECT_FALSE(json_document::parse(std::string(500, '[') + std::string(500, ']')).has_value());
  EXPECT_FALSE(json_document::parse("").has_value());
  EXPECT_FALSE(json_document::parse("\"\xff\"").has_value());
  EXPECT_EQ(parse_number("1e999"), std::nullopt);
  EXPECT_EQ(parse_number("nan"), std::nullopt);
  EXPECT_EQ(parse_number(" 1"), std::nullopt);
  EXPECT_EQ(parse_number("0x10"), std::nullopt);
  EXPECT_EQ(parse_number("-1.5"), -1.5);
}

}  // namespace
}  // namespace busbar::devices::redfish
