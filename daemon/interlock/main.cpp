// busbar-interlock: the rack's safety function beside busbard. This version is a gate only: it does not trip.
#include <curl/curl.h>
#include <fmt/format.h>
#include <getopt.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "daemon/interlock/operator_client.hpp"
#include "daemon/interlock/service.hpp"

namespace {

// Exit codes of every Busbar program: 1 false or failed, 2 usage, 5 precondition.
constexpr int exit_failed = 1;
constexpr int exit_usage = 2;
constexpr int exit_precondition = 5;

constexpr std::string_view usage =
    "usage: busbar-interlock --instance r01 --key-file F [--run-dir DIR] [--state-dir DIR] [--busbard-uid "
    "UID]\n"
    "       busbar-interlock key new PATH\n"
    "       busbar-interlock reset DEVICE --instance r01 --reason TEXT [--run-dir DIR]\n"
    "                        a person resets the latch of r01/c07 (\"*\": a damaged latch file); its "
    "detectors must be dry\n"
    "\n"
    "Sockets:  DIR/<instance>/interlock.sock (busbard), DIR/<instance>/operator.sock (uid 0, group "
    "busbar-safety)\n"
    "State:    DIR/<instance>/interlock/ (record.sealed, latches.bin, sessions)\n"
    "Defaults: --run-dir $BUSBAR_RUN_DIR or /run/busbar, --state-dir /var/lib/busbar, --busbard-uid the own "
    "uid\n"
    "\n"
    "Gate only: this version watches leak detectors, latches leaks and closes the gate on host power. It "
    "does not trip.\n";

int say_usage() {
  std::fputs(usage.data(), stderr);
  return exit_usage;
}

int exit_code_of(const absl::Status& status) {
  if (status.ok()) return EXIT_SUCCESS;
  std::fputs(fmt::format("busbar-interlock: {}\n", std::string(status.message())).c_str(), stderr);
  const bool precondition = absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status);
  return precondition ? exit_precondition : exit_failed;
}

bool is_instance(std::string_view name) {
  return !name.empty() && name.size() <= 24 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

bool parse(int argc, char** argv, busbar::interlock::service_config* config) {
  static const option options[] = {
      {"instance", required_argument, nullptr, 'i'},    {"run-dir", required_argument, nullptr, 'r'},
      {"state-dir", required_argument, nullptr, 's'},   {"key-file", required_argument, nullptr, 'k'},
      {"busbard-uid", required_argument, nullptr, 'b'}, {nullptr, 0, nullptr, 0}};
  int found = 0;
  while ((found = ::getopt_long(argc, argv, "", options, nullptr)) != -1) {
    switch (found) {
      case 'i':
        config->instance = optarg;
        break;
      case 'r':
        config->run_dir = optarg;
        break;
      case 's':
        config->state_dir = optarg;
        break;
      case 'k':
        config->key_file = optarg;
        break;
      case 'b': {
        char* end = nullptr;
        config->busbard_uid = static_cast<uid_t>(std::strtoul(optarg, &end, 10));
        if (*optarg < '0' || *optarg > '9' || *end != '\0') return false;
        break;
      }
      default:
        return false;
    }
  }
  return optind == argc && is_instance(config->instance) && !config->key_file.empty();
}

std::string default_run_dir() {
  const char* run_dir = std::getenv("BUSBAR_RUN_DIR");
  return run_dir != nullptr ? run_dir : "/run/busbar";
}

int reset(int argc, char** argv) {
  static const option options[] = {{"instance", required_argument, nullptr, 'i'},
                                   {"run-dir", required_argument, nullptr, 'r'},
                                   {"reason", required_argument, nullptr, 'w'},
                                   {nullptr, 0, nullptr, 0}};
  std::string instance, reason, run_dir = default_run_dir();
  int found = 0;
  while ((found = ::getopt_long(argc, argv, "", options, nullptr)) != -1) {
    if (found == 'i') {
      instance = optarg;
    } else if (found == 'r') {
      run_dir = optarg;
    } else if (found == 'w') {
      reason = optarg;
    } else {
      return say_usage();
    }
  }
  if (argc - optind != 2 || !is_instance(instance) || reason.empty())
    return say_usage();  // "reset" and the device
  const std::string socket = run_dir + "/" + instance + "/operator.sock";
  const absl::Status status = busbar::interlock::reset_latch(socket, argv[optind + 1], reason);
  if (status.ok()) std::fputs(fmt::format("{}: latch reset\n", argv[optind + 1]).c_str(), stdout);
  return exit_code_of(status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "key" && std::string_view(argv[2]) == "new") {
    return exit_code_of(busbar::interlock::make_key_file(argv[3]));
  }
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(usage.data(), stdout);
    return EXIT_SUCCESS;
  }
  if (argc > 1 && std::string_view(argv[1]) == "reset") return reset(argc, argv);
  busbar::interlock::service_config config;
  config.run_dir = default_run_dir();
  config.state_dir = "/var/lib/busbar";
  config.busbard_uid = ::geteuid();
  if (!parse(argc, argv, &config)) return say_usage();

  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  curl_global_init(CURL_GLOBAL_DEFAULT);
  int code = EXIT_SUCCESS;
  {
    busbar::interlock::service service(config);
    absl::Status status = service.open();
    if (status.ok()) status = service.run();
    code = exit_code_of(status);
  }
  curl_global_cleanup();
  return code;
}
