// What is in a tray or a shelf. A body that a list names and the device does not show makes the set
// incomplete; it never ends the reading of the rest. Parts that appear in two systems are counted once.
#include <fmt/format.h>

#include <set>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/driver.hpp"

namespace busbar::devices::redfish {
namespace {

struct collecting {
  inventory_facts facts;
  std::set<std::string> keys;
  absl::Status failed;  // the device itself gave up

  void incomplete(std::string why) {
    facts.complete = false;
    if (facts.incomplete_why.empty()) facts.incomplete_why = std::move(why);
  }
  void take(part_facts part) {
    if (part.absent || !keys.insert(part.serial_key).second) return;
    facts.parts.push_back(std::move(part.part));
  }
  // Notes what a list or body lacks. False: there is nothing to read in it.
  bool usable(const fetched& body) {
    if (body.device_failed()) failed = body.status;
    if (!body.ok()) incomplete(std::string(body.status.message()));
    return body.ok();
  }
  bool usable(const listing& list) {
    if (list.device_failed()) failed = list.status;
    if (!list.complete)
      incomplete(list.incomplete_why.empty() ? std::string(list.status.message()) : list.incomplete_why);
    return !list.members.empty();
  }
};
using collecting_ptr = std::shared_ptr<collecting>;

// The bodies behind a collection link of a body; no link gives none.
task<std::vector<fetched>> members_behind(driver_ptr d, collecting_ptr into, std::optional<std::string> uri) {
  std::vector<fetched> bodies;
  if (!uri || !into->failed.ok()) co_return bodies;
  const listing list = co_await fetch_list(d->device, *uri, priority::telemetry, list_of::bodies);
  if (!into->usable(list)) co_return bodies;
  bodies = co_await fetch_members(d->device, list, priority::telemetry);
  co_return bodies;
}

task<bool> take_drives(driver_ptr d, collecting_ptr into, std::optional<std::string> storage_uri) {
  const std::vector<fetched> storages = co_await members_behind(d, into, storage_uri);
  for (const fetched& storage : storages) {
    if (!into->usable(storage)) continue;
    std::vector<std::string> uris;
    for (const json_view& drive : storage.body()["Drives"].items()) {
      if (const auto uri = drive.link()) uris.push_back(*uri);
    }
    const std::vector<fetched> drives = co_await fetch_all(d->device, uris, priority::telemetry);
    for (const fetched& drive : drives) {
      if (!into->usable(drive)) continue;
      part_facts part = decode_drive(drive.body());
      // Two controllers may both have a drive "0": without a serial the URI tells them apart.
      if (part.part.serial().empty()) part.serial_key = "drive/uri/" + plain_uri(drive.uri);
      into->take(std::move(part));
    }
  }
  co_return true;
}

task<bool> take_system(driver_ptr d, collecting_ptr into, fetched system) {
  const std::vector<fetched> processors =
      co_await members_behind(d, into, system.body()["Processors"].link());
  for (const fetched& one : processors) {
    if (!into->usable(one)) continue;
    auto part = decode_processor(one.body());
    if (part) into->take(std::move(*part));
  }
  const std::vector<fetched> memory = co_await members_behind(d, into, system.body()["Memory"].link());
  for (const fetched& one : memory) {
    if (!into->usable(one)) continue;
    // Memory of a GPU is the GPU's own, told by the processor.
    if (one.body()["Id"].text().value_or("").starts_with("GPU_")) continue;
    into->take(decode_memory(one.body()));
  }
  const bool drives = co_await take_drives(d, into, system.body()["Storage"].link());
  co_return drives;
}

task<bool> take_adapters(driver_ptr d, collecting_ptr into, std::optional<std::string> uri) {
  const std::vector<fetched> adapters = co_await members_behind(d, into, uri);
  for (const fetched& one : adapters) {
    if (!into->usable(one)) continue;
    part_facts part = decode_adapter(one.body());
    if (part.part.serial().empty()) part.serial_key = part.part.kind() + "/uri/" + plain_uri(one.uri);
    const std::vector<fetched> ports = co_await members_behind(d, into, one.body()["Ports"].link());
    for (const fetched& port : ports) {
      const auto gbps = port.ok() ? decode_port_gbps(port.body()) : std::nullopt;
      if (gbps && *gbps > part.part.gbps()) part.part.set_gbps(*gbps);
    }
    into->take(std::move(part));
  }
  co_return true;
}

task<bool> take_supplies(driver_ptr d, collecting_ptr into, fetched chassis) {
  const auto subsystem_uri = chassis.body()["PowerSubsystem"].link();
  if (!subsystem_uri) co_return true;
  const fetched subsystem = co_await fetch(d->device, *subsystem_uri, priority::telemetry);
  // A shelf may show itself twice, once with a dead link: the other one tells.
  if (subsystem.device_failed()) into->failed = subsystem.status;
  if (!subsystem.ok()) co_return false;
  const std::vector<fetched> supplies =
      co_await members_behind(d, into, subsystem.body()["PowerSupplies"].link());
  for (const fetched& one : supplies) {
    if (into->usable(one)) into->take(decode_supply(one.body()));
  }
  co_return true;
}

task<bool> take_asics(driver_ptr d, collecting_ptr into) {
  const root_members fabrics = co_await members_of_root(d, "Fabrics", priority::telemetry);
  if (!into->usable(fabrics.list)) co_return true;
  for (const fetched& fabric : fabrics.bodies) {
    if (!into->usable(fabric)) continue;
    const std::vector<fetched> switches = co_await members_behind(d, into, fabric.body()["Switches"].link());
    for (const fetched& one : switches) {
      if (into->usable(one)) into->take(decode_switch_asic(one.body()));
    }
  }
  co_return true;
}

task<bool> take_compute(driver_ptr d, collecting_ptr into) {
  const root_members systems = co_await members_of_root(d, "Systems", priority::telemetry);
  if (!into->usable(systems.list)) co_return true;
  for (const fetched& system : systems.bodies) {
    if (!into->usable(system)) continue;
    const bool taken = co_await take_system(d, into, system);
    (void)taken;
    if (!into->failed.ok()) co_return false;
  }
  const root_members chassis = co_await members_of_root(d, "Chassis", priority::telemetry);
  if (!into->usable(chassis.list)) co_return true;
  for (const fetched& one : chassis.bodies) {
    if (!into->usable(one)) continue;
    const bool taken = co_await take_adapters(d, into, one.body()["NetworkAdapters"].link());
    (void)taken;
  }
  co_return true;
}

task<bool> take_shelf(driver_ptr d, collecting_ptr into) {
  const root_members chassis = co_await members_of_root(d, "Chassis", priority::telemetry);
  if (!into->usable(chassis.list)) co_return true;
  bool shown = false;
  for (const fetched& one : chassis.bodies) {
    if (!into->usable(one)) continue;
    const bool taken = co_await take_supplies(d, into, one);
    shown = shown || taken;
  }
  if (!shown)
    into->incomplete(fmt::format("no chassis of {} shows its power supplies", d->device->address()));
  co_return true;
}

// The valves behind a rack controller.
task<bool> take_valves(driver_ptr d, collecting_ptr into) {
  const root_members chassis = co_await members_of_root(d, "Chassis", priority::telemetry);
  if (!into->usable(chassis.list)) co_return true;
  for (const fetched& one : chassis.bodies) {
    const auto thermal_uri = into->usable(one) ? one.body()["ThermalSubsystem"].link() : std::nullopt;
    if (!thermal_uri) continue;
    const fetched thermal = co_await fetch(d->device, *thermal_uri, priority::telemetry);
    if (!into->usable(thermal)) continue;
    const std::vector<fetched> connectors =
        co_await members_behind(d, into, thermal.body()["CoolantConnectors"].link());
    for (const fetched& connector : connectors) {
      const std::string name = last_part(connector.uri);
      if (!into->usable(connector)) continue;
      if (!decode_action(connector.body(), "CoolantConnector.ValveControl", "ValveState").target) continue;
      part_facts part;
      part.part.set_kind("valve");
      part.part.set_id(name);
      part.part.set_health(decode_health(decode_status(connector.body()), false));
      part.serial_key = "valve/" + name;
      into->take(std::move(part));
    }
  }
  co_return true;
}

}  // namespace

task<absl::StatusOr<inventory_facts>> read_inventory(driver_ptr d) {
  const auto into = std::make_shared<collecting>();
  bool done = false;
  if (d->kind == journal::SWITCH_TRAY) {
    done = co_await take_asics(d, into);
  } else if (d->kind == journal::POWER_SHELF) {
    done = co_await take_shelf(d, into);
  } else if (d->kind == journal::RACK_CONTROLLER) {
    done = co_await take_valves(d, into);
  } else {
    done = co_await take_compute(d, into);
  }
  (void)done;
  if (!into->failed.ok()) co_return into->failed;
  co_return std::move(into->facts);
}

task<processors_read> read_processors(driver_ptr d, priority urgency) {
  processors_read result;
  const root_members systems = co_await members_of_root(d, "Systems", urgency);
  if (!systems.list.ok()) {
    result.failed = systems.list.status;
    co_return result;
  }
  std::set<std::string> keys;
  for (const fetched& system : systems.bodies) {
    const auto uri = system.ok() ? system.body()["Processors"].link() : std::nullopt;
    if (!uri) continue;
    const listing list = co_await fetch_list(d->device, *uri, urgency, list_of::bodies);
    if (list.device_failed()) result.failed = list.status;
    if (!list.complete) result.complete = false;
    if (!list.complete && result.incomplete_why.empty()) result.incomplete_why = list.incomplete_why;
    std::vector<fetched> bodies = co_await fetch_members(d->device, list, urgency);
    for (fetched& body : bodies) {
      if (body.device_failed()) result.failed = body.status;
      const auto part = body.ok() ? decode_processor(body.body()) : std::nullopt;
      if (!body.ok()) result.complete = false;
      if (part && keys.insert(part->serial_key).second) result.bodies.push_back(std::move(body));
    }
    if (!result.failed.ok()) co_return result;
  }
  co_return result;
}

}  // namespace busbar::devices::redfish
