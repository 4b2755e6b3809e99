// NVLink seen from one tray: links of its GPUs or of its switches, and who leads the fabric.
#include <fmt/format.h>

#include <set>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {
namespace {

struct ports_read {
  std::uint32_t up = 0;
  std::uint32_t announced = 0;
  bool complete = true;
  absl::Status failed;
};

bool is_nvlink(json_view port) {
  const auto protocol = port["PortProtocol"].text();
  return !protocol || *protocol == "NVLink";
}

task<ports_read> read_ports(driver_ptr d, std::optional<std::string> uri) {
  ports_read read;
  if (!uri) {
    read.complete = false;
    co_return read;
  }
  const listing list = co_await fetch_list(d->device, *uri, priority::telemetry, list_of::bodies);
  if (list.device_failed()) read.failed = list.status;
  read.complete = list.complete;
  const std::vector<fetched> ports = co_await fetch_members(d->device, list, priority::telemetry);
  std::uint32_t others = 0;
  for (const fetched& port : ports) {
    if (port.device_failed()) read.failed = port.status;
    if (!port.ok()) read.complete = false;
    if (!port.ok()) continue;
    if (!is_nvlink(port.body())) {
      ++others;
      continue;
    }
    const auto up = decode_link_up(port.body());
    if (!up) read.complete = false;
    if (up.value_or(false)) ++read.up;
  }
  const std::size_t announced = std::max(list.announced.value_or(0), list.members.size());
  read.announced = static_cast<std::uint32_t>(announced) - others;
  co_return read;
}

void take(nvlink_facts& facts, const std::string& id, const ports_read& ports) {
  facts.links_up[id] = ports.up;
  facts.links_announced[id] = ports.announced;
  facts.complete = facts.complete && ports.complete;
}

task<absl::StatusOr<nvlink_facts>> read_gpus(driver_ptr d) {
  nvlink_facts facts;
  const processors_read processors = co_await read_processors(d, priority::telemetry);
  if (!processors.failed.ok()) co_return processors.failed;
  facts.complete = processors.complete;
  std::set<std::string> cliques;
  bool all_tell = true;
  for (const fetched& one : processors.bodies) {
    if (one.body()["ProcessorType"].text() != "GPU") continue;
    const auto clique = one.body()["Oem"]["Nvidia"]["FabricCliqueId"].canonical();
    if (clique && !clique->empty()) cliques.insert(*clique);
    all_tell = all_tell && clique && !clique->empty();
    const ports_read ports = co_await read_ports(d, one.body()["Ports"].link());
    if (!ports.failed.ok()) co_return ports.failed;
    take(facts, one.body()["Id"].text().value_or(last_part(one.uri)), ports);
  }
  // GPUs of one tray in different cliques: both ids are shown, and equal nothing expected.
  if (all_tell && !cliques.empty()) {
    std::string text;
    for (const std::string& clique : cliques) text += (text.empty() ? "" : ", ") + clique;
    facts.clique_id = text;
  }
  co_return facts;
}

void take_manager(nvlink_facts& facts, json_view fabric) {
  const json_view manager = fabric["Oem"]["Nvidia"]["FabricManager"];
  const auto primary = manager["Primary"].boolean();
  if (primary) facts.fabric_primary = *primary || facts.fabric_primary.value_or(false);
  const auto clique = manager["CliqueId"].canonical();
  if (clique && !clique->empty()) facts.clique_id = clique;
  const auto partition = manager["PartitionId"].canonical();
  if (partition && !partition->empty()) facts.partition = partition;
}

task<absl::StatusOr<nvlink_facts>> read_switches(driver_ptr d) {
  nvlink_facts facts;
  const root_members fabrics = co_await members_of_root(d, "Fabrics", priority::telemetry);
  if (!fabrics.list.ok()) co_return fabrics.list.status;
  facts.complete = fabrics.list.complete;
  for (const fetched& fabric : fabrics.bodies) {
    if (fabric.device_failed()) co_return fabric.status;
    if (!fabric.ok()) facts.complete = false;
    if (!fabric.ok()) continue;
    take_manager(facts, fabric.body());
    const auto uri = fabric.body()["Switches"].link();
    if (!uri) continue;
    const listing list = co_await fetch_list(d->device, *uri, priority::telemetry, list_of::bodies);
    if (list.device_failed()) co_return list.status;
    if (!list.complete) facts.complete = false;
    const std::vector<fetched> switches = co_await fetch_members(d->device, list, priority::telemetry);
    for (const fetched& one : switches) {
      if (one.device_failed()) co_return one.status;
      if (!one.ok()) facts.complete = false;
      if (!one.ok()) continue;
      const ports_read ports = co_await read_ports(d, one.body()["Ports"].link());
      if (!ports.failed.ok()) co_return ports.failed;
      take(facts, one.body()["Id"].text().value_or(last_part(one.uri)), ports);
    }
  }
  co_return facts;
}

}  // namespace

task<absl::StatusOr<nvlink_facts>> read_nvlink(driver_ptr d) {
  if (d->kind == journal::SWITCH_TRAY) {
    absl::StatusOr<nvlink_facts> switches = co_await read_switches(d);
    co_return switches;
  }
  absl::StatusOr<nvlink_facts> gpus = co_await read_gpus(d);
  co_return gpus;
}

}  // namespace busbar::devices::redfish
