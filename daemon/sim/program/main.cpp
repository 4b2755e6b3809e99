#include <cstdio>
#include <string>

#include "daemon/sim/faults.hpp"
#include "daemon/sim/program/commands.hpp"

namespace {

constexpr const char* usage =
    "busbar-sim: simulated racks that answer Redfish over HTTPS, with agents and physics\n"
    "\n"
    "  busbar-sim run --state-dir DIR [--racks N] [--sku vr-nvl72|vr-4x1] [--profile quick|instant|real]\n"
    "                 [--seed S] [--ideal] [--no-rack-controllers] [--stamp-writes] [--network 127.18]\n"
    "                 [--plant unix:PATH]\n"
    "  busbar-sim fault add KIND TARGET [--at D] [--for D] [--severity X] [--value V] --state-dir DIR\n"
    "  busbar-sim fault list | kinds | clear [ID | KIND [TARGET]] --state-dir DIR\n"
    "  busbar-sim load PATTERN TARGET --state-dir DIR\n"
    "  busbar-sim truth [PATH] [-o json] --state-dir DIR\n"
    "  busbar-sim journal [-f] [-o json] --state-dir DIR\n"
    "  busbar-sim replay DIR --listen ADDRESS:PORT\n"
    "\n"
    "--state-dir may be given as BUSBAR_SIM_STATE_DIR. --ideal: devices answer at once; no figure uses it.\n"
    "--network: rack n answers on NETWORK.n.x; give another one to each simulator on a host.\n"
    "--plant: the site's files also declare plant1, which holds cdu01 and serves the racks there.\n"
    "Durations: 250ms, 10s, 2m. journal -o json prints one object a line.\n";

}  // namespace

int main(int count, char** texts) {
  using namespace busbar::sim;
  const arguments line =
      parse_arguments(count, texts, {"--ideal", "--rack-controllers", "--no-rack-controllers", "--stamp-writes", "-f", "--help", "-h"},
                      {"--state-dir", "--racks", "--sku", "--profile", "--seed", "--at", "--for",
                       "--severity", "--value", "--network", "--plant", "-o", "--output", "--listen"});
  if (line.has("--help") || line.has("-h")) {
    std::fputs(usage, stdout);
    return exit_done;
  }
  const std::string command = line.words.empty() ? "" : line.words.front();
  if (line.error.empty()) {
    if (command == "run") {
      return run_command(line);
    }
    if (command == "replay") {
      return replay_command(line);
    }
    if (command == "fault") {
      return fault_command(line);
    }
    if (command == "load") {
      return load_command(line);
    }
    if (command == "truth") {
      return truth_command(line);
    }
    if (command == "journal") {
      return journal_command(line);
    }
  }
  std::fprintf(stderr, "%s%s%s", line.error.c_str(), line.error.empty() ? "" : "\n\n", usage);
  return exit_usage;
}
