// busbard: the daemon of a rack or of a plant. Reads like what it does: options, configuration, then life.cpp.
#include <fmt/format.h>
#include <getopt.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "actors/core/log.hpp"
#include "actors/core/regular_file.hpp"
#include "actors/manifest/daemon_config.hpp"
#include "daemon/busbard/life.hpp"
#include "storage/vault.hpp"

namespace {

using busbar::daemon::exit_code;

constexpr const char* help = R"(busbard - takes a rack from dark to production, and keeps it there

  busbard --role rack --instance r01 --config FILE
  busbard --role plant --instance plant1 --config FILE   CDUs: set-points, demands of the racks
  busbard --config FILE --check-config      every error of FILE, then exit
  busbard --config FILE --print-config      the settings in force, then exit
  busbard vault-key new PATH                a fresh key for the vault, mode 0600; never overwrites

  --role ROLE          what to be, rack or plant; must agree with the file
  --instance NAME      which rack or plant; must agree with the file
  --config FILE        settings, YAML
  --reflection         let gRPC clients ask for the API's description
  --accept-empty-store begin anew though the state folder had a store that is gone or was exchanged; once, by hand
  --accept-lost-tail   go on from before the damage of the store's log (STORE_DAMAGED), without what was acknowledged after it; once,
                       by hand, where there is no backup
  --log-level LEVEL    debug, info (usual), warning, error
  --help, --version

Exit codes: 0 stopped in order; 1 failed; 2 usage or configuration; 5 another daemon, another release's store, none where one was, one that is
damaged, or a disk that is full or read-only; 6 stopped, but not everything ended in time.
)";

struct settings {
  std::string role;
  std::string instance;
  std::string config_file;
  bool check = false;
  bool print = false;
  busbar::core::log_level level = busbar::core::log_level::info;
  bool accept_empty_store = false;
  bool accept_lost_tail = false;
  busbar::daemon::life_options life;
};

int usage(const std::string& message) {
  fmt::print(stderr, "busbard: {}\nTry busbard --help\n", message);
  return static_cast<int>(exit_code::usage);
}

std::optional<busbar::core::log_level> level_named(const std::string& name) {
  using busbar::core::log_level;
  if (name == "debug") return log_level::debug;
  if (name == "info") return log_level::info;
  if (name == "warning") return log_level::warning;
  if (name == "error") return log_level::error;
  return std::nullopt;
}

// An exit code when there is nothing more to do.
std::optional<int> read_options(int argc, char** argv, settings& to) {
  enum : int { role = 1, instance, config, check, print, reflection, accept_empty, accept_tail, level, show_help, show_version };
  static const option known[] = {{"role", required_argument, nullptr, role},
                                 {"instance", required_argument, nullptr, instance},
                                 {"config", required_argument, nullptr, config},
                                 {"check-config", no_argument, nullptr, check},
                                 {"print-config", no_argument, nullptr, print},
                                 {"reflection", no_argument, nullptr, reflection},
                                 {"accept-empty-store", no_argument, nullptr, accept_empty},
                                 {"accept-lost-tail", no_argument, nullptr, accept_tail},
                                 {"log-level", required_argument, nullptr, level},
                                 {"help", no_argument, nullptr, show_help},
                                 {"version", no_argument, nullptr, show_version},
                                 {nullptr, 0, nullptr, 0}};
  for (int choice = 0; (choice = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    switch (choice) {
      case role: to.role = optarg; break;
      case instance: to.instance = optarg; break;
      case config: to.config_file = optarg; break;
      case check: to.check = true; break;
      case print: to.print = true; break;
      case reflection: to.life.reflection = true; break;
      case accept_empty: to.accept_empty_store = true; break;
      case accept_tail: to.accept_lost_tail = true; break;
      case level: {
        const auto named = level_named(optarg);
        if (!named.has_value()) return usage(fmt::format("no log level {}", optarg));
        to.level = *named;
        break;
      }
      case show_help: fmt::print("{}", help); return 0;
      case show_version: fmt::print("busbard 0.1.0\n"); return 0;
      default: return usage("see above");
    }
  }
  if (optind < argc) return usage(fmt::format("what is '{}'?", argv[optind]));
  if (to.config_file.empty()) return usage("--config is missing");
  return std::nullopt;
}

std::optional<busbar::manifest::daemon_config> read_config(const settings& from) {
  const auto read = busbar::core::read_regular_file(from.config_file, busbar::core::small_file_bytes);
  if (!read.ok()) {
    fmt::print(stderr, "{}\n", std::string(read.status().message()));
    return std::nullopt;
  }
  const std::string& content = *read;
  const char* run_dir = std::getenv("BUSBAR_RUN_DIR");
  busbar::manifest::config_result result = busbar::manifest::read_daemon_config(
      {from.config_file, content}, run_dir == nullptr ? "/run/busbar" : run_dir);
  const auto agree = [&result, &from](const std::string& key, const std::string& flag, const std::string& in_file) {
    if (flag.empty() || flag == in_file) return;
    result.errors.push_back({from.config_file, key, fmt::format("is '{}', but --{} says '{}'", in_file, key, flag)});
  };
  agree("role", from.role, result.config.role);
  agree("instance", from.instance, result.config.instance);
  for (const auto& error : result.errors) fmt::print(stderr, "{}\n", busbar::manifest::to_text(error));
  if (!result.errors.empty()) return std::nullopt;
  return result.config;
}

int vault_key(int argc, char** argv) {
  if (argc != 4 || std::string(argv[2]) != "new") return usage("vault-key new PATH");
  if (const absl::Status status = busbar::storage::new_key(argv[3]); !status.ok()) {
    fmt::print(stderr, "busbard: {}\n", std::string(status.message()));
    return static_cast<int>(status.code() == absl::StatusCode::kAlreadyExists ? exit_code::conflict : exit_code::failed);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  umask(077);  // what it keeps is its own user's; what others shall reach sets its mode itself
  busbar::daemon::block_signals();
  if (argc > 1 && std::string(argv[1]) == "vault-key") return vault_key(argc, argv);
  settings options;
  if (const auto code = read_options(argc, argv, options); code.has_value()) return *code;
  const auto config = read_config(options);
  if (!config.has_value()) return static_cast<int>(exit_code::usage);
  if (options.check) return 0;
  if (options.print) {
    fmt::print("{}", busbar::daemon::print(*config));
    return 0;
  }
  busbar::core::log_open(config->role, config->instance, options.level);
  return static_cast<int>(busbar::daemon::serve(
      *config, options.life,
      [how = busbar::daemon::wire_options{options.accept_empty_store, options.accept_lost_tail}](
          const busbar::manifest::daemon_config& wanted) {
        return wanted.role == "plant" ? busbar::daemon::wire_plant(wanted, how) : busbar::daemon::wire(wanted, how);
      }));
}
