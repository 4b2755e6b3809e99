// busbar-agent: on a compute tray's OS. Takes its token and endpoint from flags or the kernel's boot
// parameters, its serial from the firmware's tables, finds its engines in the libexec folder and serves its
// rack daemon until SIGTERM.
#include <getopt.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "daemon/agent/agent_client.hpp"
#include "daemon/agent/child_engine.hpp"
#include "daemon/agent/token.hpp"

namespace {

using namespace busbar::agent_client;

constexpr const char* version = "0.1.0";

struct arguments {
  std::string endpoint;
  std::string token;
  std::string serial;
  std::string limits = "reference";
  std::filesystem::path state_dir = "/run/busbar-agent";
  std::filesystem::path engines = "/usr/libexec/busbar";
  std::uint32_t gpus = 4;
};

void usage(std::FILE* out) {
  std::fputs(
      "busbar-agent [--endpoint HOST:PORT] [--token TOKEN | --token-file FILE] [--serial TEXT] [--limits "
      "NAME]\n"
      "             [--gpus N] [--state-dir DIR] [--engines DIR]\n"
      "Token and endpoint default to busbar.token= and busbar.endpoint= of /proc/cmdline, the serial to the "
      "firmware's\n"
      "product serial. --limits: whose limits the results are judged by (a SKU's name, or reference).\n",
      out);
}

std::string file_text(const std::string& path) {
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// nullopt: said why on stderr.
std::optional<arguments> read_arguments(int argc, char** argv) {
  static const option options[] = {{"endpoint", required_argument, nullptr, 'e'},
                                   {"token", required_argument, nullptr, 't'},
                                   {"token-file", required_argument, nullptr, 'f'},
                                   {"serial", required_argument, nullptr, 's'},
                                   {"limits", required_argument, nullptr, 'l'},
                                   {"gpus", required_argument, nullptr, 'g'},
                                   {"state-dir", required_argument, nullptr, 'd'},
                                   {"engines", required_argument, nullptr, 'x'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {nullptr, 0, nullptr, 0}};
  arguments out;
  const auto boot = parse_boot_parameters(file_text("/proc/cmdline"));
  out.token = boot.token;
  out.endpoint = boot.endpoint;
  out.serial = file_text("/sys/class/dmi/id/product_serial");
  for (int key = 0; (key = getopt_long(argc, argv, "h", options, nullptr)) != -1;) {
    const std::string value = optarg != nullptr ? optarg : "";
    if (key == 'h') {
      usage(stdout);
      std::exit(0);
    } else if (key == 'e') {
      out.endpoint = value;
    } else if (key == 't') {
      out.token = value;
    } else if (key == 'f') {
      out.token = file_text(value);
    } else if (key == 's') {
      out.serial = value;
    } else if (key == 'l') {
      out.limits = value;
    } else if (key == 'd') {
      out.state_dir = value;
    } else if (key == 'x') {
      out.engines = value;
    } else if (key == 'g') {
      const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), out.gpus);
      if (code != std::errc() || *end != '\0' || out.gpus < 1 || out.gpus > 64) {
        std::fprintf(stderr, "busbar-agent: --gpus takes 1 to 64\n");
        return std::nullopt;
      }
    } else {
      usage(stderr);
      return std::nullopt;
    }
  }
  if (optind != argc || out.endpoint.empty() || out.token.empty()) {
    std::fprintf(stderr, "busbar-agent: no endpoint or token, by flags or boot parameters\n");
    usage(stderr);
    return std::nullopt;
  }
  return out;
}

agent_options options_of(const arguments& given) {
  agent_options options;
  options.endpoint = given.endpoint;
  options.token = given.token;
  options.boot_id = file_text("/proc/sys/kernel/random/boot_id");
  options.dmi_serial = given.serial;
  options.limits = given.limits;
  options.software_version = version;
  options.identity_file = given.state_dir / "identity";
  options.seed = std::random_device{}();
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const auto given = read_arguments(argc, argv);
  if (!given) return 2;
  // Blocked before any thread starts, so that only the wait below takes them.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  signal(SIGPIPE, SIG_IGN);

  std::vector<std::string> problems;
  const auto engines = child_engine::open_all(given->engines, given->gpus, &problems);
  for (const auto& problem : problems)
    std::fprintf(stderr, "busbar-agent: engine refused: %s\n", problem.c_str());
  for (const auto& one : engines) {
    std::fprintf(stderr, "busbar-agent: engine=%s sha256=%s\n", one->name().c_str(), one->sha256().c_str());
  }
  if (engines.empty())
    std::fprintf(stderr, "busbar-agent: no engine in %s; it will report and run nothing\n",
                 given->engines.c_str());

  event_loop loop;
  agent_client agent(loop, options_of(*given), engines, [](agent_phase phase, const std::string& why) {
    const auto name = to_text(phase);
    std::fprintf(stderr, "busbar-agent: phase=%.*s why=\"%s\"\n", static_cast<int>(name.size()), name.data(),
                 why.c_str());
  });
  agent.start();
  int signal_number = 0;
  sigwait(&ending, &signal_number);
  agent.stop(std::string("the agent stops on signal ") + std::to_string(signal_number));
  return 0;
}
