#include "actors/manifest/daemon_config.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>

#include "actors/manifest/names.hpp"
#include "actors/manifest/values.hpp"

namespace busbar::manifest {
namespace {

struct setting {
  std::string_view key;
  bool required = false;
  check rule = nullptr;
  std::string* text = nullptr;
  std::filesystem::path* path = nullptr;
};

complaint check_role(std::string_view text) {
  if (text == "rack" || text == "plant") return std::nullopt;
  return "a role of this release (rack, plant)";
}

// "fleet, console" as its names.
std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> names;
  std::string name;
  for (const char c : text + ",") {
    if (c == ',') {
      if (!name.empty()) names.push_back(std::move(name));
      name.clear();
    } else if (c != ' ') {
      name += c;
    }
  }
  return names;
}

class config_reader {
 public:
  config_reader(const std::string& file, std::vector<spec_error>& errors)
      : file_(file), folder_(std::filesystem::path(file).parent_path()), errors_(errors) {}

  void report(const std::string& key, std::string message) { errors_.push_back({file_, key, std::move(message)}); }

  // nested: keys that the caller reads itself.
  void read(const YAML::Node& node, const std::string& prefix, const std::vector<setting>& settings,
            const std::vector<std::string_view>& nested = {}) {
    if (!node.IsMap()) return report(prefix, "expected a map");
    const std::string dot = prefix.empty() ? "" : prefix + ".";
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
      if (!seen.insert(key).second) {
        report(dot + key, "the key is there twice");
        continue;
      }
      const auto known = std::find_if(settings.begin(), settings.end(), [&key](const setting& s) { return s.key == key; });
      if (known != settings.end()) {
        read_value(entry.second, *known, dot + key);
      } else if (std::find(nested.begin(), nested.end(), key) == nested.end()) {
        report(dot + key, "unknown key");
      }
    }
    for (const setting& expected : settings) {
      if (expected.required && !seen.contains(std::string(expected.key))) report(dot + std::string(expected.key), "missing");
    }
  }

 private:
  void read_value(const YAML::Node& node, const setting& target, const std::string& key) {
    if (!node.IsScalar() || node.Scalar().empty()) return report(key, "expected a text");
    const std::string& text = node.Scalar();
    if (target.rule != nullptr) {
      if (const complaint wrong = target.rule(text)) report(key, fmt::format("'{}' is not {}", text, *wrong));
    }
    if (target.text != nullptr) *target.text = text;
    if (target.path != nullptr) *target.path = (folder_ / text).lexically_normal();
  }

  std::string file_;
  std::filesystem::path folder_;
  std::vector<spec_error>& errors_;
};

void read_root(const YAML::Node& root, config_reader& reader, daemon_config& config) {
  std::string version;
  std::string kind;
  reader.read(root, "",
              {{"apiVersion", false, nullptr, &version},
               {"kind", false, nullptr, &kind},
               {"instance", true, &check_name, &config.instance},
               {"role", false, &check_role, &config.role},
               {"run_dir", false, nullptr, nullptr, &config.run_dir},
               {"state_dir", false, nullptr, nullptr, &config.state_dir},
               {"site_dir", true, nullptr, nullptr, &config.site_dir},
               {"vault_key_file", true, nullptr, nullptr, &config.vault_key_file},
               {"interlock_socket", false, nullptr, nullptr, &config.interlock_socket},
               {"agent_ca_dir", false, nullptr, nullptr, &config.agent_ca_dir}},
              {"tcp"});
  if (!version.empty() && version != "busbar.v1") reader.report("apiVersion", "is not busbar.v1");
  if (!kind.empty() && kind != "Daemon") reader.report("kind", "is not Daemon");
  if (!root.IsMap()) return;
  for (const auto& entry : root) {
    if (!entry.first.IsScalar() || entry.first.Scalar() != "tcp") continue;
    tcp_config& tcp = config.tcp.emplace();
    std::string operators;
    std::string viewers;
    reader.read(entry.second, "tcp",
                {{"listen", true, &check_endpoint, &tcp.listen},
                 {"cert", true, nullptr, nullptr, &tcp.cert},
                 {"key", true, nullptr, nullptr, &tcp.key},
                 {"ca", true, nullptr, nullptr, &tcp.ca},
                 {"operators", false, nullptr, &operators},
                 {"viewers", false, nullptr, &viewers}});
    tcp.operators = names_of(operators);
    tcp.viewers = names_of(viewers);
  }
}

}  // namespace

config_result read_daemon_config(const source_file& file, const std::filesystem::path& default_run_dir) {
  config_result result;
  result.config.run_dir = default_run_dir;
  config_reader reader(file.path, result.errors);
  try {
    read_root(YAML::Load(file.content), reader, result.config);
  } catch (const YAML::Exception& failure) {
    reader.report(fmt::format("line {}, column {}", failure.mark.line + 1, failure.mark.column + 1),
                  "is not YAML: " + failure.msg);
  }
  daemon_config& config = result.config;
  // Everywhere else a name says by itself what it is of.
  const bool is_plant = is_plant_name(config.instance);
  if (!config.instance.empty() && is_plant != (config.role == "plant")) {
    reader.report("instance", is_plant ? fmt::format("'{}' is the name of a plant: role is {}", config.instance, config.role)
                                       : fmt::format("'{}' is not the name of a plant (plant1)", config.instance));
  }
  if (config.state_dir.empty()) config.state_dir = std::filesystem::path("/var/lib/busbar") / config.instance;
  if (config.interlock_socket.empty()) config.interlock_socket = config.run_dir / config.instance / "interlock.sock";
  if (config.agent_ca_dir.empty()) config.agent_ca_dir = config.state_dir / "agent-ca";
  return result;
}

}  // namespace busbar::manifest
