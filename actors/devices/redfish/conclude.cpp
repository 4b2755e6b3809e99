// From the bodies of a service to a report. Pure.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "actors/core/errors.hpp"
#include "actors/devices/redfish/crawl.hpp"
#include "actors/devices/redfish/decode.hpp"

namespace busbar::devices::redfish {
namespace {

inspect_health as_health(journal::Health health) {
  if (health == journal::HEALTH_GOOD) return inspect_health::good;
  return health == journal::HEALTH_BAD ? inspect_health::bad : inspect_health::unknown;
}

class concluding {
 public:
  concluding(const crawled& all, std::string start) : all_(all), start_(std::move(start)) {}

  inspect_report run() {
    const fetched* const root = find_body(all_, start_);
    report_.requests = all_.requests;
    if (root == nullptr || root->device_failed()) {
      report_.unreachable_why = root == nullptr ? "nothing was read" : std::string(root->status.message());
      return std::move(report_);
    }
    report_.reachable = true;
    take_root(*root);
    take_conditions();
    take_systems();
    take_chassis();
    take_fabrics();
    take_detectors();
    take_equipment();
    take_firmware();
    take_bad_parts();
    take_oddities();
    judge();
    return std::move(report_);
  }

 private:
  void unknown(std::string what) {
    if (std::find(report_.unknown.begin(), report_.unknown.end(), what) == report_.unknown.end()) {
      report_.unknown.push_back(std::move(what));
    }
  }

  // The bodies of a list's members. What the list names and the device does not show keeps the whole from
  // being good.
  std::vector<const fetched*> bodies_of(const members_seen& list, std::string_view what) {
    std::vector<const fetched*> bodies;
    std::size_t missing = 0;
    for (const std::string& uri : list.uris) {
      const fetched* const body = find_body(all_, uri);
      if (body != nullptr && body->ok()) {
        bodies.push_back(body);
      } else {
        ++missing;
      }
    }
    if (missing > 0)
      unknown(fmt::format("{} of {} {} listed have no readable body", missing, list.uris.size(), what));
    return bodies;
  }

  void take_root(const fetched& root) {
    const json_view body = root.body();
    report_.vendor = body["Vendor"].text().value_or("");
    report_.product = body["Product"].text().value_or("");
    report_.redfish_version = body["RedfishVersion"].text().value_or("");
    report_.uuid = body["UUID"].text().value_or("");
    root_ = body;
    systems_ = members_in(all_, root_["Systems"].link());
    chassis_ = members_in(all_, root_["Chassis"].link());
    report_.systems_offered = root_["Systems"].link().has_value();
  }

  void take_conditions() {
    for (const auto& [uri, body] : all_.bodies) {
      const auto fault = core::fault_of(body.status);
      if (fault == core::fault::CREDENTIAL_CHANGE_REQUIRED) report_.condition = "password change required";
      if (fault == core::fault::BMC_FORBIDDEN && report_.condition.empty()) report_.condition = "forbidden";
    }
    if (!report_.condition.empty()) unknown("access: " + report_.condition);
  }

  void take_systems() {
    if (root_["Systems"].link() && !systems_.readable) unknown("systems: " + systems_.why);
    std::set<std::string> power;
    for (const fetched* one : bodies_of(systems_, "systems")) {
      const json_view body = one->body();
      inspected_system row;
      row.id = body["Id"].text().value_or(last_part(one->uri));
      row.model = identity_text(body["Model"]).value_or("");
      row.serial = identity_text(body["SerialNumber"]).value_or("");
      row.power = body["PowerState"].text().value_or("");
      row.health = as_health(decode_health(decode_status(body), true));
      power.insert(row.power);
      if (row.health == inspect_health::unknown) unknown("health of system " + row.id);
      const auto memory = body["MemorySummary"]["TotalSystemMemoryGiB"].number();
      // Two systems of one machine show the same memory: the larger figure, never the sum.
      if (memory && *memory > 0) report_.memory_gib = std::max(report_.memory_gib.value_or(0), *memory);
      take_processors(body);
      take_powered_by(body);
      report_.systems.push_back(std::move(row));
    }
    if (power.size() == 1) report_.power = *power.begin();
    if (power.size() > 1) report_.power = "mixed";
  }

  void take_processors(json_view system) {
    const auto link = system["Processors"].link();
    if (!link) return;
    const members_seen list = members_in(all_, link);
    report_.processors_announced += list.announced;
    if (!list.why.empty()) {
      report_.processors_complete = false;
      unknown("processors: " + list.why);
    }
    if (list.readable && list.uris.empty()) empty_processors_ = true;
    for (const fetched* one : bodies_of(list, "processors")) {
      const auto part = decode_processor(one->body());
      if (!part || !part_keys_.insert(part->serial_key).second) continue;
      if (part->part.kind() == "gpu") report_.gpu_source = "processors";
      report_.processors.push_back({part->part.kind(), part->part.id(), part->part.model(),
                                    part->part.serial(), part->absent, as_health(part->part.health()),
                                    std::nullopt});
    }
  }

  // Supplies that a system names and no chassis shows.
  void take_powered_by(json_view system) {
    for (const json_view& supply : system["Links"]["PoweredBy"].items()) {
      if (const auto uri = supply.link()) powered_by_.insert(*uri);
    }
  }

  void take_chassis() {
    if (root_["Chassis"].link() && !chassis_.readable) unknown("chassis: " + chassis_.why);
    std::set<std::string> shelf_power;
    for (const fetched* one : bodies_of(chassis_, "chassis")) {
      const json_view body = one->body();
      const status_words status = decode_status(body);
      const std::string type = body["ChassisType"].text().value_or("");
      const std::string power = body["PowerState"].text().value_or("");
      if (type == "Blade" && !status.absent() && last_part(one->uri).starts_with("Blade")) {
        ++report_.blades;
        if (power == "On") ++report_.blades_on;
      }
      if (type == "Shelf") shelf_power.insert(power);
      if (status.health.empty()) unknown("health of chassis " + last_part(one->uri));
      take_supplies(one->uri, body);
      take_sensors(body);
      take_temperatures(body);
      take_pcie_gpus(body);
    }
    // A shelf that shows itself twice is one shelf.
    report_.shelves = shelf_power.empty() ? 0 : 1;
    if (report_.power.empty() && shelf_power.size() == 1) report_.power = *shelf_power.begin();
    if (report_.systems.empty() && report_.blades > 0 && report_.power.empty()) {
      report_.power = report_.blades == report_.blades_on ? "On" : "mixed";
    }
    take_oem_gpus();
    if (report_.supplies.empty()) {
      for (const std::string& uri : powered_by_) {
        report_.supplies.push_back(
            {"psu", last_part(uri), "", "", false, inspect_health::unknown, std::nullopt});
      }
    }
    for (const inspected_part& one : report_.supplies) {
      if (one.health == inspect_health::unknown && !one.absent) unknown("power supply " + one.id);
    }
  }

  void take_supplies(const std::string& chassis_uri, json_view chassis) {
    const fetched* const subsystem = find_body(all_, chassis["PowerSubsystem"].link());
    if (subsystem != nullptr && subsystem->ok()) {
      const members_seen list = members_in(all_, subsystem->body()["PowerSupplies"].link());
      if (list.readable) {
        for (const fetched* one : bodies_of(list, "power supplies"))
          add_supply(chassis_uri, one->body(), last_part(one->uri));
        return;
      }
    }
    // The older resource tells only where the newer one does not: both show the same supplies.
    const fetched* const power = find_body(all_, chassis["Power"].link());
    if (power == nullptr || !power->ok()) return;
    std::size_t row = 0;
    for (const json_view& one : power->body()["PowerSupplies"].items())
      add_supply(chassis_uri, one, std::to_string(row++));
  }

  void add_supply(const std::string& chassis_uri, json_view body, const std::string& fallback_id) {
    const part_facts facts = decode_supply(body);
    inspected_part row{"psu",
                       facts.part.id().empty() ? fallback_id : facts.part.id(),
                       facts.part.model(),
                       facts.part.serial(),
                       facts.absent,
                       as_health(facts.part.health()),
                       decode_supply_watts(body)};
    // OK from a bay that shows no electrical value is no evidence: it may hold a fan dummy.
    bool evidence = row.watts.has_value();
    for (const char* key :
         {"LineInputVoltage", "LastPowerOutputWatts", "PowerOutputWatts", "PowerInputWatts"}) {
      evidence = evidence || body[key].number().has_value();
    }
    if (row.health == inspect_health::good && !evidence) row.health = inspect_health::unknown;
    const std::string key = row.serial.empty() ? chassis_uri + "/" + row.id : row.serial;
    if (!supply_keys_.insert(key).second) return;
    if (row.health == inspect_health::bad)
      report_.bad.push_back("power supply " + row.id + ": " + decode_status(body).health);
    report_.supplies.push_back(std::move(row));
  }

  void take_sensors(json_view chassis) {
    const members_seen list = members_in(all_, chassis["Sensors"].link());
    for (const std::string& uri : list.uris) {
      if (!sensor_uris_.insert(uri).second) continue;
      ++report_.sensors.listed;
      const fetched* const body = find_body(all_, uri);
      if (body == nullptr || !body->ok()) {
        ++report_.sensors.no_body;
      } else if (decode_sensor(body->body()).value) {
        ++report_.sensors.read;
      } else {
        ++report_.sensors.no_value;
      }
    }
    if (report_.sensors.no_body > 0) unknown("sensors without a body");
  }

  void take_temperatures(json_view chassis) {
    const fetched* const thermal = find_body(all_, chassis["Thermal"].link());
    if (thermal == nullptr || !thermal->ok()) return;
    for (const json_view& row : thermal->body()["Temperatures"].items()) {
      ++report_.temperatures.listed;
      const status_words status = decode_status(row);
      const bool counts = row["ReadingCelsius"].number() && (status.state.empty() || status.works());
      ++(counts ? report_.temperatures.read : report_.temperatures.no_value);
    }
  }

  void take_pcie_gpus(json_view chassis) {
    if (report_.gpu_source == "processors") return;
    const members_seen list = members_in(all_, chassis["PCIeDevices"].link());
    for (const std::string& uri : list.uris) {
      const std::string id = last_part(uri);
      if (!id.starts_with("GPU") || !part_keys_.insert("gpu/pcie/" + id).second) continue;
      report_.gpu_source = "PCIe devices";
      const fetched* const body = find_body(all_, uri);
      const bool shown = body != nullptr && body->ok();
      inspected_part row{"gpu", id, "", "", false, inspect_health::unknown, std::nullopt};
      if (shown) row.model = identity_text(body->body()["Model"]).value_or("");
      if (shown) row.serial = identity_text(body->body()["SerialNumber"]).value_or("");
      if (shown) row.health = as_health(decode_health(decode_status(body->body()), !row.serial.empty()));
      report_.processors.push_back(std::move(row));
    }
  }

  // One vendor lists GPUs only among its own devices, together with the baseboard and a switch that are
  // called GPU too: only those in a slot and with a serial number are taken.
  void take_oem_gpus() {
    if (!report_.gpu_source.empty()) return;
    for (const auto& [uri, body] : all_.bodies) {
      const json_view view = body.body();
      if (!body.ok() || view["DeviceType"].text() != "GPU") continue;
      const auto serial = identity_text(view["SerialNumber"]);
      if (!serial || !view["Location"].text().value_or("").starts_with("PCI-E Slot")) continue;
      inspected_part row{"gpu",
                         last_part(uri),
                         view["Name"].text().value_or(""),
                         *serial,
                         decode_status(view).absent(),
                         as_health(decode_health(decode_status(view), true)),
                         std::nullopt};
      report_.processors.push_back(std::move(row));
    }
    if (report_.count("gpu") > 0) report_.gpu_source = "an OEM list";
  }

  void take_fabrics() {
    const members_seen fabrics = members_in(all_, root_["Fabrics"].link());
    for (const std::string& uri : fabrics.uris) {
      const fetched* const fabric = find_body(all_, uri);
      if (fabric == nullptr || !fabric->ok()) continue;
      for (const fetched* one : bodies_of(members_in(all_, fabric->body()["Switches"].link()), "switches")) {
        const part_facts facts = decode_switch_asic(one->body());
        report_.asics.push_back({"asic", facts.part.id(), facts.part.model(), facts.part.serial(),
                                 facts.absent, as_health(facts.part.health()), std::nullopt});
        const auto ports = one->body()["Ports"].link();
        if (ports && !members_in(all_, ports).readable) unknown("ports of switch " + facts.part.id());
      }
    }
  }

  void add_detector(inspected_detector row) {
    row.aggregate = row.id.find("aggr") != std::string::npos;
    if (row.verdict == "unknown") unknown("leak detector " + row.id);
    if (row.verdict == "leak") report_.bad.push_back("leak detector " + row.id + ": leak");
    report_.detectors.push_back(std::move(row));
  }

  const fetched* sensor_named(const std::string& id, bool& listed) const {
    for (const std::string& uri : sensor_uris_) {
      if (last_part(uri) != id) continue;
      listed = true;
      return find_body(all_, uri);
    }
    return nullptr;
  }

  void judge(const std::string& uri, const std::string& otherwise) {
    if (!detector_ids_.insert(uri).second) return;
    const std::string id = last_part(uri);
    const fetched* const body = find_body(all_, uri);
    if (body == nullptr || !body->ok()) {
      const std::string why = body == nullptr ? "not read" : std::string(body->status.message());
      return add_detector({id, "unknown", otherwise + why, false});
    }
    bool listed = false;
    const fetched* const sensor = sensor_named(id, listed);
    raw_leak raw = listed ? raw_leak::unreadable : raw_leak::not_offered;
    if (sensor != nullptr && sensor->ok()) raw = decode_raw_leak(sensor->body());
    const detector_facts facts = judge_detector(body->body(), raw);
    const char* const word = facts.verdict == journal::Detector::DRY    ? "dry"
                             : facts.verdict == journal::Detector::LEAK ? "leak"
                                                                        : "unknown";
    add_detector({id, word, facts.detail, false});
  }

  void take_detectors() {
    for (const auto& [uri, body] : all_.bodies) {
      if (!body.ok()) continue;
      for (const std::string& one : members_in(all_, body.body()["LeakDetectors"].link()).uris)
        judge(one, "");
      for (const json_view& group : body.body()["LeakDetectorGroups"].items()) {
        for (const json_view& row : group["Detectors"].items()) {
          const auto source = row["DataSourceUri"].text();
          const std::string says =
              "the group says " + row["DetectorState"].text().value_or("nothing") + ", its own body: ";
          if (source) judge(plain_uri(*source), says);
        }
      }
    }
    // A bare voltage that is called a leak sensor proves nothing: 0 V may as well be a broken wire.
    for (const std::string& uri : sensor_uris_) {
      const std::string id = last_part(uri);
      const bool known = std::any_of(report_.detectors.begin(), report_.detectors.end(),
                                     [&id](const inspected_detector& row) { return row.id == id; });
      const fetched* const body = find_body(all_, uri);
      const std::string name = body != nullptr && body->ok() ? body->body()["Name"].text().value_or("") : "";
      if (known || lower_case(id + name).find("leak") == std::string::npos) continue;
      add_detector({name.empty() ? id : name, "unknown",
                    "a bare sensor without a detector that says what it means", false});
    }
  }

  void take_equipment() {
    for (const auto& [uri, body] : all_.bodies) {
      if (!body.ok()) continue;
      const std::string type = body.body()["@odata.type"].text().value_or("");
      if (type.starts_with("#CoolingUnit.")) ++report_.cdus;
      if (type.starts_with("#PowerDistribution.")) {
        ++report_.pdus;
        take_outlets(body.body());
      }
    }
    if (report_.cdus + report_.pdus > 0 && report_.systems.empty())
      unknown("the equipment's parts behind dead links");
  }

  void take_outlets(json_view pdu) {
    const members_seen list = members_in(all_, pdu["Outlets"].link());
    for (const std::string& uri : list.uris) {
      ++report_.outlets;
      const fetched* const body = find_body(all_, uri);
      const auto power =
          body != nullptr && body->ok() ? decode_power_state(body->body()) : journal::POWER_UNKNOWN;
      if (power == journal::POWER_ON) ++report_.outlets_on;
      if (power == journal::POWER_UNKNOWN) ++report_.outlets_unknown;
    }
  }

  void take_firmware() {
    const fetched* const service = find_body(all_, root_["UpdateService"].link());
    if (service == nullptr || !service->ok()) return;
    for (const std::string& uri : members_in(all_, service->body()["FirmwareInventory"].link()).uris) {
      const fetched* const body = find_body(all_, uri);
      inspected_firmware row{last_part(uri), std::nullopt};
      if (body != nullptr && body->ok()) row.version = identity_text(body->body()["Version"]);
      report_.firmware.push_back(std::move(row));
    }
  }

  // Whatever a rollup above it says, a part's own Warning or Critical shows. What is absent is not bad.
  void take_bad_parts() {
    for (const auto& [uri, body] : all_.bodies) {
      if (!body.ok()) continue;
      const json_view view = body.body();
      for (const json_view& alarm : view["TriggeredAlarms"].items()) {
        const std::string severity = alarm["Severity"].text().value_or("");
        if (severity == "Critical" || severity == "Warning") {
          report_.bad.push_back(uri + ": alarm " + alarm["Id"].text().value_or("?") + " " + severity);
        }
      }
      const status_words status = decode_status(view);
      const std::string type = view["@odata.type"].text().value_or("");
      if (type.starts_with("#LeakDetector.") || type.starts_with("#PowerSupply.") || status.absent())
        continue;
      if (status.health == "Critical" || status.health == "Warning")
        report_.bad.push_back(uri + ": " + status.health);
    }
  }

  void take_oddities() {
    for (const std::string& uri : all_.foreign)
      report_.oddities.push_back("link to another host, not followed: " + uri);
    if (all_.cut_short) report_.oddities.push_back("the walk was cut short at its limit of requests");
    if (all_.cut_short) unknown("the walk was cut short");
    for (const auto& [uri, body] : all_.bodies) {
      if (!body.ok()) {
        if (body.http == 200) report_.oddities.push_back(std::string(body.status.message()));
        continue;
      }
      const auto own = body.body().link();
      if (own && plain_uri(*own) != uri && uri.find('?') == std::string::npos) {
        report_.oddities.push_back(uri + " names itself " + *own);
      }
      if (!body.body()["error"].missing()) report_.oddities.push_back(uri + " has content and an error");
      const json_view health = body.body()["Status"]["Health"];
      if (health.is_null() && !decode_status(body.body()).absent())
        unknown(uri + " says nothing of its health");
      const members_seen list =
          decode_page(body.body()).is_collection ? members_in(all_, uri) : members_seen();
      // What runs on the parts (firmware, reports) is told by other means than its health.
      const bool parts = uri.find("/UpdateService") == std::string::npos &&
                         uri.find("/TelemetryService") == std::string::npos;
      if (parts) bodies_of(list, last_part(uri));
      if (list.readable && !list.why.empty() && uri.find('?') == std::string::npos)
        report_.oddities.push_back(list.why);
    }
  }

  void judge() {
    if (report_.systems.size() > 1) {
      report_.oddities.push_back(fmt::format("one machine is shown as {} systems; its parts are counted once",
                                             report_.systems.size()));
    }
    if (empty_processors_ && report_.processors.empty())
      unknown("processors are not shown (an empty list says nothing)");
    for (const inspected_part& one : report_.processors) {
      if (!one.absent && one.health == inspect_health::unknown)
        unknown(fmt::format("health of {} {}", one.kind, one.id));
    }
    for (const inspected_system& one : report_.systems) {
      if (one.power != "On") unknown("system " + one.id + " is not on");
    }
    if (systems_.uris.empty() && chassis_.uris.empty() && report_.pdus + report_.cdus == 0)
      unknown("nothing was shown");
    report_.health = !report_.bad.empty()       ? inspect_health::bad
                     : !report_.unknown.empty() ? inspect_health::unknown
                                                : inspect_health::good;
  }

  const crawled& all_;
  const std::string start_;
  inspect_report report_;
  json_view root_;
  members_seen systems_;
  members_seen chassis_;
  std::set<std::string> part_keys_;
  std::set<std::string> supply_keys_;
  std::set<std::string> sensor_uris_;
  std::set<std::string> detector_ids_;
  std::set<std::string> powered_by_;
  bool empty_processors_ = false;
};

}  // namespace

inspect_report conclude(const crawled& all, const std::string& start) {
  return concluding(all, start).run();
}

}  // namespace busbar::devices::redfish
