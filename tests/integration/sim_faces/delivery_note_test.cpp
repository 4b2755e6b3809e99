#include "daemon/sim/delivery_note.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "actors/manifest/spec_reader.hpp"
#include "daemon/sim/certificate.hpp"
#include "daemon/sim/site.hpp"

namespace busbar::sim {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

class delivery_note : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "busbar-note-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    site_options options;
    options.racks = 2;
    options.sku = std::get<0>(GetParam());
    options.profile = std::get<1>(GetParam());
    options.rack_controllers = true;
    auto made = site::make(options);
    ASSERT_TRUE(made.ok());
    site_ = std::move(*made);
    const absl::Status written = write_delivery_note(*site_, folder_.string(), instant{0});
    ASSERT_TRUE(written.ok()) << written.message();
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  std::unique_ptr<site> site_;
};

TEST_P(delivery_note, is_read_by_the_strict_reader_without_an_error) {
  std::vector<manifest::source_file> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (entry.path().extension() == ".yaml") {
      files.push_back({fs::relative(entry.path(), folder_).string(), read(entry.path())});
    }
  }
  const manifest::read_result result = manifest::read_spec(files);
  for (const manifest::spec_error& each : result.errors) {
    ADD_FAILURE() << each.file << " " << each.key_path << ": " << each.message;
  }
  ASSERT_EQ(result.racks.size(), 2u);
  const sku_data& sku = site_->sku();
  for (const journal::RackSpec& rack : result.racks) {
    EXPECT_EQ(rack.manifest().members_size(), sku.compute + sku.switches + sku.shelves + 1);
    ASSERT_EQ(rack.manifest().valves_size(), 3);
    ASSERT_EQ(rack.manifest().pdus_size(), 2);
    EXPECT_EQ(rack.manifest().pdus(0).dialect(), "raritan_pdu2");
    EXPECT_EQ(rack.manifest().pdus(1).outlets_size(), sku.shelves);
    EXPECT_EQ(rack.manifest().valves(0).name(), "supply");
    EXPECT_EQ(rack.manifest().valves(1).name(), "return");
    EXPECT_EQ(rack.manifest().cooling().detectors_size(), 2);
    EXPECT_EQ(rack.manifest().cooling().connector(), rack.manifest().rack());
    EXPECT_GT(rack.manifest().cooling().supply_max_c(), 0);
    EXPECT_EQ(rack.baseline().firmware().at("compute_tray").rows_size(), 10);
    EXPECT_EQ(rack.suites_size(), 2);
    EXPECT_EQ(rack.sku().rack().gpus(), static_cast<unsigned>(sku.gpus * sku.compute));
  }
}

TEST_P(delivery_note, digests_are_those_of_the_images) {
  const std::string baseline = read(folder_ / "baselines" / "vr-2026-11.yaml");
  int images = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "fw")) {
    const std::string image = read(entry.path());
    EXPECT_NE(baseline.find(sha256_hex(image)), std::string::npos) << entry.path();
    EXPECT_EQ(image.size(), image.find('\n') + 1 + 64 * 1024) << entry.path();
    ++images;
  }
  EXPECT_EQ(images, 16);
}

TEST_P(delivery_note, keeps_passwords_to_their_owner_and_announces_every_bmc) {
  for (const char* const name : {"factory.pw", "cdu01.pw"}) {
    EXPECT_EQ(fs::status(folder_ / name).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
  const std::string leases = read(folder_ / "leases");
  for (const device_identity& each : site_->devices()) {
    if (each.kind == device_kind::rack_pdu) continue;  // wired by hand: it asks for no lease
    EXPECT_NE(leases.find(each.mac + " " + each.address + " "), std::string::npos) << each.member;
  }
}

INSTANTIATE_TEST_SUITE_P(sites, delivery_note,
                         testing::Values(std::tuple("vr-nvl72", "quick"), std::tuple("vr-4x1", "instant"),
                                         std::tuple("vr-4x1", "real")));

TEST(simulated_certificates, are_kept_once_made_and_refused_when_broken) {
  std::string pattern = (fs::temp_directory_path() / "busbar-cert-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const std::string path = pattern + "/bmc.pem";
  const auto first = certificate_at(path, "r01-c01-bmc", "127.18.1.1");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->sha256.size(), 64u);
  const auto again = certificate_at(path, "r01-c01-bmc", "127.18.1.1");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->sha256, first->sha256);
  EXPECT_NE(make_certificate("r01-c01-bmc", "127.18.1.1")->sha256, first->sha256);
  std::ofstream(path, std::ios::trunc) << "no certificate";
  EXPECT_FALSE(certificate_at(path, "r01-c01-bmc", "127.18.1.1").ok());
  fs::remove_all(pattern);
}

}  // namespace
}  // namespace busbar::sim
