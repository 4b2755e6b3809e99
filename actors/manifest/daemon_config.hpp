// The daemon's own settings, one YAML file. Strict like a spec; all errors at once. Pure: the caller reads the file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/manifest/spec_error.hpp"

namespace busbar::manifest {

// TCP only with mutual TLS.
struct tcp_config {
  std::string listen;              // host:port
  std::filesystem::path cert;
  std::filesystem::path key;
  std::filesystem::path ca;        // whose clients are let in
  std::vector<std::string> operators;  // common names of certificates; written as one text, with commas
  std::vector<std::string> viewers;
};

struct daemon_config {
  std::string instance;            // r01
  std::string role = "rack";
  std::filesystem::path run_dir = "/run/busbar";   // sockets in <run_dir>/<instance>/
  std::filesystem::path state_dir;                 // default /var/lib/busbar/<instance>
  std::filesystem::path site_dir;                  // what spec files' paths are relative to
  std::filesystem::path vault_key_file;
  std::filesystem::path interlock_socket;          // default <run_dir>/<instance>/interlock.sock
  std::filesystem::path agent_ca_dir;              // default <state_dir>/agent-ca
  std::optional<tcp_config> tcp;
};

struct config_result {
  daemon_config config;            // to be used only when errors is empty
  std::vector<spec_error> errors;
};

// Relative paths are relative to the folder of file.path. default_run_dir: $BUSBAR_RUN_DIR where the caller has it.
config_result read_daemon_config(const source_file& file, const std::filesystem::path& default_run_dir = "/run/busbar");

}  // namespace busbar::manifest
