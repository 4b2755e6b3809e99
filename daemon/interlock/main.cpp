// busbar-interlock: the rack's safety function beside busbard.
#include <curl/curl.h>
#include <fmt/format.h>
#include <getopt.h>
#include <pthread.h>
#include <sys/stat.h>
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
    "       busbar-interlock reset|bypass|trip|status ...   what a person does; each shows its usage\n"
    "\n"
    "Sockets:  DIR/<instance>/interlock.sock (busbard), DIR/<instance>/operator.sock (uid 0, group "
    "busbar-safety)\n"
    "State:    DIR/<instance>/interlock/ (record.sealed, latches.bin, sessions)\n"
    "Defaults: --run-dir $BUSBAR_RUN_DIR or /run/busbar, --state-dir /var/lib/busbar, --busbard-uid the own "
    "uid\n"
    "\n"
    "Watches leak detectors and coolant, keeps the gate on host power, trips trays and the rack. It only "
    "removes "
    "energy.\n";

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

}  // namespace

int main(int argc, char** argv) {
  ::umask(
      077);  // its record, latches and sessions are its own user's; the sockets set their modes themselves
  if (argc == 4 && std::string_view(argv[1]) == "key" && std::string_view(argv[2]) == "new") {
    return exit_code_of(busbar::interlock::make_key_file(argv[3]));
  }
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::fputs(usage.data(), stdout);
    return EXIT_SUCCESS;
  }
  if (argc > 1 && busbar::interlock::is_operator_command(argv[1]))
    return busbar::interlock::run_operator_command(argc, argv, default_run_dir());
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
