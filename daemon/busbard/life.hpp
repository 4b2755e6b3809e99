// The life of a busbard: start with named events, serve until a signal, stop in order. Everything here is what main does; a test
// hands in another rack.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "actors/manifest/daemon_config.hpp"
#include "daemon/busbard/wiring.hpp"

namespace busbar::daemon {

// What a shell or systemd sees.
enum class exit_code : int {
  done = 0,       // stopped in order
  failed = 1,     // could not start, or lost what it needs
  usage = 2,      // command line or configuration
  conflict = 5,   // another daemon of this instance runs, or the store is not for this release, damaged, or on a full disk
  timeout = 6,    // stopped, but a step of the stop had to be given up
};

struct life_options {
  bool reflection = false;
  // Limits of the ordered stop, step by step.
  std::chrono::milliseconds streams_limit{5'000};
  std::chrono::milliseconds operations_limit{10'000};
  std::chrono::milliseconds devices_limit{15'000};
  std::chrono::milliseconds store_limit{15'000};
  std::chrono::milliseconds round_trip_limit{5'000};  // a message through the actors and back
};

using rack_factory = std::function<absl::StatusOr<std::unique_ptr<rack_daemon>>(const manifest::daemon_config&)>;

// Blocks the signals that serve() waits for. First thing in main, before any thread is made.
void block_signals();

// Serves until SIGTERM or SIGINT; a second one during the stop ends the process at once.
exit_code serve(const manifest::daemon_config& config, const life_options& options, const rack_factory& make_rack);

// For people and for `--print-config`: the settings in force, as YAML.
std::string print(const manifest::daemon_config& config);

}  // namespace busbar::daemon
