// Documents of kind Plant: what is read, and every way in which one is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "actors/manifest/daemon_config.hpp"
#include "actors/manifest/names.hpp"
#include "actors/manifest/plant_checks.hpp"
#include "actors/manifest/spec_diff.hpp"
#include "actors/manifest/spec_reader.hpp"

namespace busbar::manifest {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const std::string good = R"(apiVersion: busbar.v1
kind: Plant
plant: plant1
site: lab
cdus:
  - name: cdu01
    protocol: redfish
    address: 10.18.200.1:443
    login: {user: plant, password_file: cdu.pw}
    racks: [{rack: r01, rated_lpm: 150}, {rack: r02, rated_lpm: 150}]
    supply_c: 32
    supply_limits_c: [20, 45]
    dp_kpa: 60
    dp_limits_kpa: [20, 80]
)";

std::string with(std::string from, std::string to) {
  std::string text = good;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::vector<std::string> errors_of(const std::string& text) {
  std::vector<std::string> texts;
  const read_result read = read_spec({{"plant.yaml", text}});
  for (const spec_error& error : read.errors) texts.push_back(to_text(error));
  EXPECT_EQ(read.plants.empty(), !texts.empty());
  return texts;
}

TEST(plant_file, is_read_alone_and_has_a_digest_that_follows_its_content) {
  const read_result read = read_spec({{"plant.yaml", good}});
  ASSERT_TRUE(read.errors.empty()) << to_text(read.errors.front());
  ASSERT_EQ(read.plants.size(), 1U);
  const journal::PlantSpec& plant = read.plants.front();
  EXPECT_EQ(plant.cdus(0).racks_size(), 2);
  EXPECT_EQ(plant.cdus(0).supply_max_c(), 45);
  EXPECT_EQ(plant.digest(), digest_of(plant));
  const read_result other = read_spec({{"plant.yaml", with("supply_c: 32", "supply_c: 33")}});
  ASSERT_EQ(other.plants.size(), 1U);
  EXPECT_NE(other.plants.front().digest(), plant.digest());
  const auto changed = changes(plant, other.plants.front());
  ASSERT_EQ(changed.size(), 1U);
  EXPECT_EQ(changed.front().key_path, "cdus[cdu01].supply_c");
}

TEST(plant_file, is_refused_with_the_key_and_what_is_wrong) {
  const std::pair<std::string, const char*> bad[] = {
      {with("plant: plant1", "plant: west"), "not the name of a plant"},
      {with("name: cdu01", "name: west"), "not the name of a CDU"},
      {with("protocol: redfish", "protocol: bacnet"), "protocol"},
      {with("    login: {user: plant, password_file: cdu.pw}\n", ""), "login"},
      {with("protocol: redfish", "protocol: modbus"), "map"},
      {with("supply_c: 32", "supply_c: 50"), "is not within its own limits"},
      {with("[20, 45]", "[45, 20]"), "supply_limits_c"},
      {with("dp_kpa: 60", "dp_kpa: 90"), "is not within its own limits"},
      {with("rated_lpm: 150}, ", "rated_lpm: 0}, "), "rated_lpm"},
      {with("rack: r02", "rack: r01"), "already fed"},
      {with("supply_c: 32", "supply_c: 32\n    direct_duty: true"), "direct_duty"},
      {with("supply_c: 32", "supply_c: 32\n    direct_duty: maybe"), "neither true nor false"},
      {with("site: lab", "site: lab\ndigest: abc"), "unknown key"},
      {with("site: lab", "site: lab\nsight: lab"), "sight"},
  };
  for (const auto& [text, word] : bad) EXPECT_THAT(errors_of(text), Contains(HasSubstr(word))) << text;
}

TEST(plant_file, a_cdu_is_where_the_racks_say_that_it_is) {
  const read_result read = read_spec({{"a.yaml", good}, {"b.yaml", with("plant: plant1", "plant: plant2")}});
  ASSERT_FALSE(read.errors.empty());
  EXPECT_THAT(to_text(read.errors.front()), HasSubstr("also declared in a.yaml"));
}

TEST(names, of_cdus_and_plants_survive_both_ways) {
  for (const auto& [brief, full] : {std::pair{"cdu01", "cdus/cdu01"}, {"plant1", "plants/plant1"},
                                    {"plant1/operations/3", "plants/plant1/operations/3"}}) {
    EXPECT_EQ(long_name(brief), full);
    EXPECT_EQ(short_name(full), brief);
  }
  EXPECT_EQ(operation_name("plant1", "operations/3"), "plants/plant1/operations/3");
  EXPECT_EQ(operation_id("plants/plant1/operations/3"), "operations/3");
  EXPECT_EQ(long_name("r01"), "racks/r01");
}

TEST(daemon_config, role_and_name_of_an_instance_agree) {
  const auto errors = [](const std::string& instance, const std::string& role) {
    return read_daemon_config({"x.yaml", "instance: " + instance + "\nrole: " + role + "\nsite_dir: s\nvault_key_file: k\n"})
        .errors.size();
  };
  EXPECT_EQ(errors("plant1", "plant"), 0U);
  EXPECT_EQ(errors("r01", "rack"), 0U);
  EXPECT_EQ(errors("plant1", "rack"), 1U);
  EXPECT_EQ(errors("r01", "plant"), 1U);
}

}  // namespace
}  // namespace busbar::manifest
