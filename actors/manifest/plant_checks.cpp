#include "actors/manifest/plant_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/sha.h>

#include <array>
#include <map>

#include "actors/manifest/names.hpp"
#include "actors/manifest/values.hpp"

namespace busbar::manifest {
namespace {

class cdu_checker {
 public:
  cdu_checker(const std::string& file, int index, std::vector<spec_error>& errors)
      : file_(file), index_(index), errors_(errors) {}

  void check(const journal::CduSpec& cdu) {
    if (!cdu.name().empty() && !is_cdu_name(cdu.name()))
      report("name", fmt::format("'{}' is not the name of a CDU (cdu01, cdu_east)", cdu.name()));
    check_access(cdu);
    check_range("supply_limits_c", "supply_c", cdu.supply_c(), cdu.supply_min_c(), cdu.supply_max_c());
    check_range("dp_limits_kpa", "dp_kpa", cdu.dp_kpa(), cdu.dp_min_kpa(), cdu.dp_max_kpa());
    if (cdu.direct_duty() && cdu.authority() != "busbar")
      report("direct_duty", "needs authority: busbar; a device or the BMS that commands takes no duties");
  }

 private:
  void report(const std::string& key, std::string message) {
    errors_.push_back({file_, fmt::format("cdus[{}].{}", index_, key), std::move(message)});
  }
  void check_access(const journal::CduSpec& cdu) {
    const bool redfish = cdu.protocol() == "redfish", modbus = cdu.protocol() == "modbus";
    if (redfish && !cdu.has_login()) report("login", "missing: over redfish an account is needed");
    if (redfish && cdu.has_login() && cdu.login().user().empty())
      report("login.user", "'' is not a text: it is empty");
    if (redfish && !cdu.map().empty()) report("map", "is of modbus; over redfish there is none");
    if (modbus && cdu.map().empty()) report("map", "missing: over modbus its register map must be named");
    if (modbus && cdu.has_login()) report("login", "is of redfish; modbus knows no accounts");
  }
  void check_range(const std::string& limits, const std::string& key, double value, double least,
                   double most) {
    if (most <= least) return report(limits, "the second number must be above the first");
    if (value != 0 && (value < least || value > most))
      report(key, fmt::format("{} is not within its own limits, {} to {}", value, least, most));
  }

  const std::string& file_;
  const int index_;
  std::vector<spec_error>& errors_;
};

}  // namespace

void check_plant_spec(const journal::PlantSpec& plant, const std::string& file,
                      std::vector<spec_error>& errors) {
  const auto report = [&file, &errors](std::string key, std::string message) {
    errors.push_back({file, std::move(key), std::move(message)});
  };
  if (!plant.digest().empty()) report("digest", "unknown key");
  if (!plant.plant().empty() && !is_plant_name(plant.plant()))
    report("plant", fmt::format("'{}' is not the name of a plant (plant1, plant_east)", plant.plant()));
  std::map<std::string, int> names, racks;
  std::map<std::string, std::string> addresses;
  for (int i = 0; i < plant.cdus_size(); ++i) {
    const journal::CduSpec& cdu = plant.cdus(i);
    cdu_checker(file, i, errors).check(cdu);
    if (const auto [first, added] = names.emplace(cdu.name(), i); !added && !cdu.name().empty())
      report(fmt::format("cdus[{}].name", i),
             fmt::format("{} is already that of cdus[{}]", cdu.name(), first->second));
    const std::string here = fmt::format("cdus[{}].address", i);
    if (const auto [first, added] = addresses.emplace(cdu.address(), here); !added && !cdu.address().empty())
      report(here, fmt::format("{} is already {}", cdu.address(), first->second));
    // A rack has one CDU to ask.
    for (int j = 0; j < cdu.racks_size(); ++j) {
      const std::string& rack = cdu.racks(j).rack();
      const auto [first, added] = racks.emplace(rack, i);
      if (!added && !rack.empty())
        report(fmt::format("cdus[{}].racks[{}].rack", i, j),
               fmt::format("{} is already fed by cdus[{}]", rack, first->second));
    }
  }
}

std::string digest_of(const journal::PlantSpec& plant) {
  journal::PlantSpec bare = plant;
  bare.clear_digest();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream sink(&bytes);
    google::protobuf::io::CodedOutputStream coded(&sink);
    coded.SetSerializationDeterministic(true);
    bare.SerializeToCodedStream(&coded);
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash.data());
  return fmt::format("{:02x}", fmt::join(hash, ""));
}

}  // namespace busbar::manifest
