#include "actors/manifest/spec_reader.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/sha.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "actors/manifest/plant_checks.hpp"
#include "actors/manifest/spec_checks.hpp"
#include "actors/manifest/values.hpp"
#include "actors/manifest/yaml_decoder.hpp"

namespace busbar::manifest {
namespace {

constexpr std::string_view api_version = "busbar.v1";
constexpr std::size_t file_limit = 4U << 20U;

template <class Message>
struct document {
  std::string file;
  Message message;
};

struct documents {
  std::vector<document<journal::Manifest>> manifests;
  std::vector<document<journal::Sku>> skus;
  std::vector<document<journal::Baseline>> baselines;
  std::vector<document<journal::Suite>> suites;
  std::vector<document<journal::PlantSpec>> plants;
};

template <class Message>
void add(std::vector<document<Message>>& list, const std::string& file, const YAML::Node& root,
         void (*check)(const Message&, const std::string&, std::vector<spec_error>&),
         std::vector<spec_error>& errors) {
  document<Message>& added = list.emplace_back(document<Message>{file, {}});
  yaml_decoder(file, errors).decode_root(root, added.message);
  check(added.message, file, errors);
}

// The value of a top-level key as text; empty when it is not there or no text. Never operator[], which throws
// on non-maps.
std::string top_level(const YAML::Node& root, std::string_view key) {
  for (const auto& entry : root) {
    if (entry.first.IsScalar() && entry.first.Scalar() == key && entry.second.IsScalar())
      return entry.second.Scalar();
  }
  return {};
}

void read_document(const std::string& file, const YAML::Node& root, documents& all,
                   std::vector<spec_error>& errors) {
  if (!root.IsMap()) {
    errors.push_back({file, "", "expected a document with apiVersion and kind"});
    return;
  }
  const std::string version = top_level(root, "apiVersion");
  const std::string kind = top_level(root, "kind");
  if (version != api_version) {
    errors.push_back({file, "apiVersion",
                      version.empty() ? fmt::format("missing ({})", api_version)
                                      : fmt::format("'{}' is not {}", version, api_version)});
  }
  if (kind == "Manifest") return add(all.manifests, file, root, &check_manifest, errors);
  if (kind == "Sku") return add(all.skus, file, root, &check_sku, errors);
  if (kind == "Baseline") return add(all.baselines, file, root, &check_baseline, errors);
  if (kind == "Suite") return add(all.suites, file, root, &check_suite, errors);
  if (kind == "Plant") return add(all.plants, file, root, &check_plant_spec, errors);
  errors.push_back({file, "kind",
                    kind.empty() ? std::string("missing (Manifest, Sku, Baseline, Suite, Plant)")
                                 : fmt::format("'{}' is not one of: Manifest, Sku, Baseline, Suite, Plant", kind)});
}

void read_file(const source_file& file, documents& all, std::vector<spec_error>& errors) {
  if (file.content.size() > file_limit) {
    errors.push_back({file.path, "", fmt::format("is larger than {} MiB", file_limit >> 20U)});
    return;
  }
  try {
    const std::vector<YAML::Node> roots = YAML::LoadAll(file.content);
    bool any = false;
    for (const YAML::Node& root : roots) {
      if (root.IsNull()) continue;  // an empty document between separators
      any = true;
      read_document(file.path, root, all, errors);
    }
    if (!any) errors.push_back({file.path, "", "holds no document"});
  } catch (const YAML::Exception& failure) {
    const std::string place =
        failure.mark.is_null()
            ? std::string()
            : fmt::format("line {}, column {}", failure.mark.line + 1, failure.mark.column + 1);
    errors.push_back({file.path, place, "is not YAML: " + failure.msg});
  }
}

template <class Message>
const document<Message>* named(const std::vector<document<Message>>& list, const std::string& name) {
  const auto found = std::find_if(list.begin(), list.end(), [&name](const document<Message>& candidate) {
    return candidate.message.name() == name;
  });
  return found == list.end() ? nullptr : &*found;
}

template <class Message>
void check_names_unique(const std::vector<document<Message>>& list, std::vector<spec_error>& errors) {
  std::map<std::string, std::string> first;
  for (const auto& candidate : list) {
    if (candidate.message.name().empty()) continue;
    const auto [entry, added] = first.emplace(candidate.message.name(), candidate.file);
    if (!added) {
      errors.push_back(
          {candidate.file, "name", fmt::format("'{}' is also the name in {}", entry->first, entry->second)});
    }
  }
}

struct address_claim {
  std::string file;
  std::string key_path;  // members[3].address, cooling.address
  std::string cdu;       // empty: a member's
};

// Two things cannot answer at one address, over all manifests given: a BMC (of a tray or a shelf) is one
// member's alone, a CDU may be shared by racks that call it by one name.
void check_addresses(const documents& all, std::vector<spec_error>& errors) {
  std::map<std::string, address_claim> claims;              // by host
  std::map<std::string, const journal::CoolingSpec*> cdus;  // by name
  const auto claim = [&claims, &errors](const std::string& address, const address_claim& wanted) {
    if (address.empty()) return;
    const auto [first, added] = claims.emplace(host_of(address), wanted);
    const address_claim& held = first->second;
    if (added || (!held.cdu.empty() && held.cdu == wanted.cdu)) return;
    errors.push_back({wanted.file, wanted.key_path,
                      fmt::format("{} is also {}{}", address, held.key_path,
                                  held.file == wanted.file ? "" : " in " + held.file)});
  };
  for (const auto& [file, manifest] : all.manifests) {
    const journal::CoolingSpec& cooling = manifest.cooling();
    claim(cooling.address(), {file, "cooling.address", cooling.cdu()});
    const auto [known, first] = cdus.emplace(cooling.cdu(), &cooling);
    if (!first && !cooling.cdu().empty() && host_of(known->second->address()) != host_of(cooling.address())) {
      errors.push_back({file, "cooling.address",
                        fmt::format("{} is {} here, another manifest gives {} as its cooling.address",
                                    cooling.cdu(), cooling.address(), known->second->address())});
    }
    for (int i = 0; i < manifest.members_size(); ++i)
      claim(manifest.members(i).address(), {file, fmt::format("members[{}].address", i), ""});
    for (int i = 0; i < manifest.pdus_size(); ++i)
      claim(manifest.pdus(i).address(),
            {file, fmt::format("pdus[{}].address", i), "pdus"});  // one host may serve several
  }
}

// A tray can stand in one rack only: MACs and serials are unique over all manifests given.
void check_site(const documents& all, std::vector<spec_error>& errors) {
  check_names_unique(all.skus, errors);
  check_names_unique(all.baselines, errors);
  check_names_unique(all.suites, errors);
  std::map<std::string, std::string> racks;
  std::map<std::string, std::pair<std::string, std::string>> owners;  // fact -> file, key path
  check_addresses(all, errors);
  for (const auto& [file, manifest] : all.manifests) {
    const auto [rack, new_rack] = racks.emplace(manifest.rack(), file);
    if (!new_rack)
      errors.push_back({file, "rack", fmt::format("'{}' is also declared in {}", rack->first, rack->second)});
    for (int i = 0; i < manifest.members_size(); ++i) {
      const auto& member = manifest.members(i);
      const std::array<std::pair<std::string, std::string>, 2> facts{
          {{"bmc_mac", member.bmc_mac()}, {"serial", member.serial()}}};
      for (const auto& [key, value] : facts) {
        if (value.empty()) continue;
        const std::string path = fmt::format("members[{}].{}", i, key);
        const auto [owner, added] = owners.emplace(key + " " + value, std::pair(file, path));
        if (added || owner->second.first == file) continue;
        errors.push_back(
            {file, path,
             fmt::format("{} is also {} in {}", value, owner->second.second, owner->second.first)});
      }
    }
  }
}

// One plant is one daemon's, a CDU one plant's; and a CDU is where racks that read it themselves say that it is.
void check_plants(const documents& all, std::vector<spec_error>& errors) {
  std::map<std::string, std::string> plants, cdus;  // name -> file
  for (const auto& [file, plant] : all.plants) {
    const auto [known, fresh] = plants.emplace(plant.plant(), file);
    if (!fresh) errors.push_back({file, "plant", fmt::format("'{}' is also declared in {}", plant.plant(), known->second)});
    for (int i = 0; i < plant.cdus_size(); ++i) {
      const journal::CduSpec& cdu = plant.cdus(i);
      const auto [owner, first] = cdus.emplace(cdu.name(), file);
      if (!first && owner->second != file && !cdu.name().empty())
        errors.push_back({file, fmt::format("cdus[{}].name", i), fmt::format("'{}' is also declared in {}", cdu.name(), owner->second)});
      for (const auto& [where, manifest] : all.manifests) {
        const bool same = manifest.cooling().cdu() == cdu.name() && !cdu.name().empty();
        if (same && host_of(manifest.cooling().address()) != host_of(cdu.address()))
          errors.push_back({file, fmt::format("cdus[{}].address", i),
                            fmt::format("{} is {} here, {} gives {} as its cooling.address", cdu.name(), cdu.address(), where,
                                        manifest.cooling().address())});
      }
    }
  }
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

const document<journal::Suite>* suite_at(const documents& all, const std::string& baseline_file,
                                         const std::string& path) {
  for (const std::string& wanted : {path, folder_of(baseline_file) + path}) {
    for (const auto& suite : all.suites) {
      if (suite.file == wanted) return &suite;
    }
  }
  const document<journal::Suite>* found = nullptr;
  for (const auto& suite : all.suites) {
    if (!suite.file.ends_with("/" + path)) continue;
    if (found != nullptr) return nullptr;  // two files could be meant
    found = &suite;
  }
  return found;
}

template <class Message>
const document<Message>* resolve(const std::vector<document<Message>>& list, const std::string& name,
                                 const std::string& file, const std::string& key, const std::string& kind,
                                 std::vector<spec_error>& errors) {
  const document<Message>* found = named(list, name);
  if (found != nullptr || name.empty()) return found;
  std::vector<std::string> names;
  for (const auto& candidate : list) names.push_back(candidate.message.name());
  errors.push_back({file, key,
                    fmt::format("no {} is named '{}' (given: {})", kind, name,
                                names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))});
  return nullptr;
}

void resolve_suites(const document<journal::Manifest>& manifest, const document<journal::Baseline>& baseline,
                    const documents& all, journal::RackSpec& spec, std::vector<spec_error>& errors) {
  const std::map<std::string, std::string> paths(baseline.message.suites().begin(),
                                                 baseline.message.suites().end());
  for (const auto& [level, path] : paths) {
    const document<journal::Suite>* suite = suite_at(all, baseline.file, path);
    if (suite == nullptr) {
      errors.push_back({baseline.file, "suites." + level, fmt::format("no file given is '{}'", path)});
      continue;
    }
    if (!suite->message.level().empty() && suite->message.level() != level) {
      errors.push_back(
          {baseline.file, "suites." + level, fmt::format("{} is of level {}", path, suite->message.level())});
    }
    if (!manifest.message.sku().empty()) {
      check_suite_against_sku(suite->message, manifest.message.sku(), suite->file, errors);
    }
    (*spec.mutable_suites())[level] = suite->message;
  }
  for (int i = 0; i < manifest.message.gates_size(); ++i) {
    const std::string& gate = manifest.message.gates(i);
    if ((gate == "node" || gate == "rack") && !paths.contains(gate)) {
      errors.push_back(
          {manifest.file, fmt::format("gates[{}]", i),
           fmt::format("baseline {} names no suite of level {}", baseline.message.name(), gate)});
    }
  }
}

journal::RackSpec resolve_rack(const document<journal::Manifest>& manifest, const documents& all,
                               std::vector<spec_error>& errors) {
  journal::RackSpec spec;
  *spec.mutable_manifest() = manifest.message;
  const auto* sku = resolve(all.skus, manifest.message.sku(), manifest.file, "sku", "Sku", errors);
  if (sku != nullptr) {
    *spec.mutable_sku() = sku->message;
    if (sku->message.has_rack())
      check_members_against_sku(manifest.message, sku->message, manifest.file, errors);
  }
  const auto* baseline =
      resolve(all.baselines, manifest.message.baseline(), manifest.file, "baseline", "Baseline", errors);
  if (baseline != nullptr) {
    *spec.mutable_baseline() = baseline->message;
    for (auto& [kind, rows] : *spec.mutable_baseline()->mutable_firmware()) {
      std::stable_sort(rows.mutable_rows()->begin(), rows.mutable_rows()->end(),
                       [](const auto& a, const auto& b) { return a.order() < b.order(); });
    }
    resolve_suites(manifest, *baseline, all, spec, errors);
  }
  spec.set_digest(digest_of(spec));
  return spec;
}

}  // namespace

std::string digest_of(const journal::RackSpec& spec) {
  journal::RackSpec bare = spec;
  bare.clear_digest();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream sink(&bytes);
    google::protobuf::io::CodedOutputStream coded(&sink);
    coded.SetSerializationDeterministic(true);  // maps in key order
    bare.SerializeToCodedStream(&coded);
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash.data());
  return fmt::format("{:02x}", fmt::join(hash, ""));
}

read_result read_spec(const std::vector<source_file>& files) {
  read_result result;
  documents all;
  for (const source_file& file : files) read_file(file, all, result.errors);
  check_site(all, result.errors);
  if (all.manifests.empty() && all.plants.empty() && result.errors.empty())
    result.errors.push_back({"", "", "no document of kind Manifest or Plant is given"});
  for (const auto& manifest : all.manifests)
    result.racks.push_back(resolve_rack(manifest, all, result.errors));
  check_plants(all, result.errors);
  for (const auto& plant : all.plants) {
    journal::PlantSpec& spec = result.plants.emplace_back(plant.message);
    spec.set_digest(digest_of(spec));
  }
  // Two manifests that share a baseline report its faults once.
  std::set<std::string> seen;
  std::erase_if(result.errors,
                [&seen](const spec_error& error) { return !seen.insert(to_text(error)).second; });
  if (!result.errors.empty()) {
    result.racks.clear();
    result.plants.clear();
  }
  return result;
}

}  // namespace busbar::manifest
