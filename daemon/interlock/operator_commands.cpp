// busbar-interlock reset|bypass|trip|status: what a person of group busbar-safety does without busbard.
#include <fmt/format.h>
#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "daemon/interlock/operator_client.hpp"
#include "daemon/interlock/text.hpp"
#include "daemon/interlock/trip_plan.hpp"

namespace busbar::interlock {
namespace {

// Exit codes of every Busbar program.
constexpr int exit_done = 0;
constexpr int exit_false = 1;
constexpr int exit_usage = 2;
constexpr int exit_unknown = 3;
constexpr int exit_not_permitted = 4;
constexpr int exit_precondition = 5;
constexpr int exit_timeout = 6;
constexpr int exit_unreachable = 7;

constexpr std::string_view usage =
    "usage: busbar-interlock reset SCOPE --instance r01 --reason TEXT\n"
    "                        SCOPE: r01/c07, r01 (a trip of the rack), or \"*\" (a damaged latch file)\n"
    "       busbar-interlock bypass DEVICE DETECTOR --instance r01 --reason TEXT --for SECONDS\n"
    "                        the detector neither trips nor blocks power-on, at most 28800 s; --for 0 ends "
    "it\n"
    "       busbar-interlock trip SCOPE --instance r01 --reason TEXT --yes\n"
    "                        emergency stop of r01/c07 or of the whole rack r01\n"
    "       busbar-interlock status --instance r01\n"
    "Each takes --run-dir DIR ($BUSBAR_RUN_DIR or /run/busbar).\n";

struct options {
  std::string instance;
  std::string run_dir;
  std::string reason;
  long length_s = -1;
  bool yes = false;
  std::vector<std::string> words;
};

bool parse(int argc, char** argv, options* into) {
  static const option known[] = {{"instance", required_argument, nullptr, 'i'},
                                 {"run-dir", required_argument, nullptr, 'r'},
                                 {"reason", required_argument, nullptr, 'w'},
                                 {"for", required_argument, nullptr, 'f'},
                                 {"yes", no_argument, nullptr, 'y'},
                                 {nullptr, 0, nullptr, 0}};
  int found = 0;
  while ((found = ::getopt_long(argc, argv, "", known, nullptr)) != -1) {
    if (found == 'i') into->instance = optarg;
    if (found == 'r') into->run_dir = optarg;
    if (found == 'w') into->reason = optarg;
    if (found == 'y') into->yes = true;
    if (found == 'f') {
      char* end = nullptr;
      into->length_s = std::strtol(optarg, &end, 10);
      if (*optarg < '0' || *optarg > '9' || *end != '\0') return false;
    }
    if (found == '?') return false;
  }
  for (int at = optind; at < argc; ++at) into->words.emplace_back(argv[at]);
  return !into->instance.empty();
}

int say_usage() {
  std::fputs(usage.data(), stderr);
  return exit_usage;
}

int code_of(const absl::Status& status) {
  if (status.ok()) return exit_done;
  std::fputs(fmt::format("busbar-interlock: {}\n", std::string(status.message())).c_str(), stderr);
  if (absl::IsFailedPrecondition(status)) return exit_precondition;
  if (absl::IsPermissionDenied(status)) return exit_not_permitted;
  if (absl::IsDeadlineExceeded(status)) return exit_timeout;
  if (absl::IsUnavailable(status)) return exit_unreachable;
  return absl::IsInvalidArgument(status) ? exit_usage : exit_false;
}

void show(const Status& status) {
  const auto line = [](const std::string& text) { std::fputs((text + "\n").c_str(), stdout); };
  line(fmt::format("{}: {}", status.instance(),
                   status.armed_rack() ? "armed" : "not armed: " + status.reason()));
  line(status.trips_text());
  for (const TripStatus& trip : status.open_trips()) {
    std::string waits;
    for (const std::string& each : trip.waits_for()) waits += (waits.empty() ? "" : ", ") + each;
    line(fmt::format("TRIP {} of {}: {}: {}; {}{}", trip.number(), trip.scope(),
                     std::string(name_of(trip.cause())), trip.detail(),
                     trip.closed() ? "done, latched" : "waits for " + waits,
                     trip.alarm() ? "; ALARM: a device does not obey" : ""));
  }
  for (const Latch& latch : status.latches()) {
    if (latch.kind() == Latch::LEAK_SEEN)
      line(fmt::format("LEAK latched at {} detector {} (number {})", latch.device(), latch.detector(),
                       latch.number()));
  }
  for (const BypassStatus& bypass : status.bypasses()) {
    line(fmt::format("BYPASS of {} of {} by {}, {} s left: {}", bypass.detector(), bypass.device(),
                     bypass.owner(), bypass.left_s(), bypass.reason()));
  }
  if (!status.suspected_leak().empty()) line("SUSPECTED LEAK: " + status.suspected_leak());
  for (const DeviceStatus& device : status.devices()) {
    line(fmt::format("{:<12} {:<9} {:<8} {}", device.name(), device.armed() ? "armed" : "not armed",
                     device.gate_open() ? "gate open" : "", device.reason()));
  }
  line(fmt::format("real-time priority: {}, memory locked: {} {}", status.realtime() ? "yes" : "no",
                   status.memory_locked() ? "yes" : "no", status.realtime_detail()));
  if (!status.warning().empty()) line("warning: " + status.warning());
}

int run_status(const options& given) {
  const std::string folder = given.run_dir + "/" + given.instance;
  auto status = read_status(folder + "/operator.sock");
  if (!status.ok()) status = read_status(folder + "/interlock.sock");
  if (!status.ok()) return code_of(status.status());
  show(*status);
  return judge_status(*status);
}

}  // namespace

int judge_status(const Status& status) {
  const bool known_bad = !status.latches().empty() || !status.open_trips().empty() ||
                         !status.suspected_leak().empty() || !status.latch_file_ok();
  if (!known_bad && status.generation() == 0) return exit_unknown;
  const bool all_armed = std::all_of(status.devices().begin(), status.devices().end(),
                                     [](const DeviceStatus& device) { return device.armed(); });
  const bool well = !known_bad && status.armed_rack() && all_armed && status.bypasses().empty();
  return well ? exit_done : exit_false;
}

bool is_operator_command(const std::string& name) {
  return name == "reset" || name == "bypass" || name == "trip" || name == "status";
}

int run_operator_command(int argc, char** argv, const std::string& default_run_dir) {
  options given;
  given.run_dir = default_run_dir;
  if (!parse(argc, argv, &given)) return say_usage();
  if (given.words.empty()) return say_usage();
  const bool readable =
      is_utf8(given.reason) && std::all_of(given.words.begin(), given.words.end(),
                                           [](const std::string& word) { return is_utf8(word); });
  if (!readable) {
    std::fputs("busbar-interlock: the reason or a name is not UTF-8; nothing was asked; give it as UTF-8\n",
               stderr);
    return exit_usage;
  }
  const std::string name = given.words.front();
  if (name == "status") return given.words.size() == 1 ? run_status(given) : say_usage();
  const std::size_t words = name == "bypass" ? 3 : 2;
  if (given.words.size() != words || given.reason.empty()) return say_usage();
  const std::string& scope = given.words[1];
  Request request;
  std::string done;
  if (name == "reset") {
    request.mutable_reset()->set_device(scope);
    request.mutable_reset()->set_reason(given.reason);
    done = scope + ": latch reset";
  } else if (name == "trip") {
    if (!given.yes) {
      std::fputs(fmt::format("trip {} turns off {}; repeat with --yes\n", scope,
                             scope == given.instance
                                 ? "every host of the rack, cuts its shelves and closes its valves"
                                 : "that tray")
                     .c_str(),
                 stderr);
      return exit_usage;
    }
    request.mutable_trip()->set_scope(scope);
    request.mutable_trip()->set_reason(given.reason);
    done = scope + ": trip opened; look at busbar-interlock status for what it waits for";
  } else {
    if (given.length_s < 0) return say_usage();
    request.mutable_bypass()->set_device(scope);
    request.mutable_bypass()->set_detector(given.words[2]);
    request.mutable_bypass()->set_reason(given.reason);
    request.mutable_bypass()->set_length_s(static_cast<std::uint64_t>(given.length_s));
    done = given.length_s == 0 ? "bypass ended" : fmt::format("bypassed for {} s", given.length_s);
  }
  const absl::Status status =
      ask_operator(given.run_dir + "/" + given.instance + "/operator.sock", std::move(request));
  if (status.ok()) std::fputs((done + "\n").c_str(), stdout);
  return code_of(status);
}

}  // namespace busbar::interlock
