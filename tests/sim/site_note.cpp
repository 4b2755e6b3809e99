#include "tests/sim/site_note.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "actors/manifest/spec_reader.hpp"
#include "daemon/sim/delivery_note.hpp"
#include "storage/vault.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace busbar::test_support {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << "the simulated site's delivery note: " << why << '\n';
  std::abort();
}

site_note write() {
  static const storage::temporary_folder folder;
  sim::site_options options;
  options.sku = "vr-4x1";
  options.profile = "instant";
  options.seed = site_seed;
  options.rack_controllers = true;
  const auto site = sim::site::make(options);
  if (!site.ok()) give_up(std::string(site.status().message()));
  site_note note;
  note.folder = folder.path();
  note.key_file = folder.file("vault.key");
  if (const auto written = sim::write_delivery_note(**site, note.folder, sim::instant{0}); !written.ok())
    give_up(std::string(written.message()));
  if (const auto made = storage::new_key(note.key_file); !made.ok()) give_up(std::string(made.message()));
  std::vector<manifest::source_file> files;
  for (const auto& each : std::filesystem::recursive_directory_iterator(note.folder)) {
    if (each.path().extension() != ".yaml") continue;
    std::ifstream in(each.path(), std::ios::binary);
    files.push_back({each.path().lexically_relative(note.folder).string(),
                     std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>())});
  }
  const auto read = manifest::read_spec(files);
  for (const manifest::spec_error& error : read.errors) std::cerr << manifest::to_text(error) << '\n';
  if (read.racks.size() != 1) give_up("does not read back");
  note.spec = read.racks.front();
  return note;
}

}  // namespace

const site_note& delivered() {
  static const site_note note = write();
  return note;
}

}  // namespace busbar::test_support
