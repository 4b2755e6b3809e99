#include "daemon/cli/explain_table.hpp"

#include <array>

namespace busbar::cli {
namespace {

constexpr std::string_view retry = "Mend what the failure names, then: busbar node retry NAME";
constexpr std::string_view retry_staged =
    "Mend what the failure names, then: busbar node retry NAME --from staged";
constexpr std::string_view see_shutdown = "busbar rack shutdown RACK --reason TEXT takes the rack down in order";
constexpr std::string_view see_members =
    "See which member holds it up: busbar watch rack RACK; mend and retry that member";

constexpr auto table = std::to_array<step_text>({
    {"compute tray", "declared", "A row of the manifest names it; nothing has answered yet.", "",
     "discovered", "", "Plug it in; see what answers: busbar get endpoints"},
    {"compute tray", "discovered",
     "An address with its MAC from a lease file, the neighbour table or a configured range; the service root "
     "answers. No login.",
     "discovered", "identified", "DEADLINE, BMC_UNREACHABLE, BMC_SLOW, IDENTITY_DUPLICATE",
     "Check power, cable and lease of the BMC: busbar get endpoints"},
    {"compute tray", "identified",
     "MAC (else the fixed address) selects one manifest row; one login with that row's factory credential, "
     "certificate pinned; "
     "serial, slot and SKU equal the row.",
     "identified", "credentialed",
     "IDENTITY_*, OWNED_ELSEWHERE, CREDENTIAL_FACTORY_REFUSED, CREDENTIAL_LOCKED_OUT, CERTIFICATE_CHANGED, "
     "SESSION_LIMIT",
     "Correct the manifest or the rack, then: busbar node retry NAME. New certificate: busbar node trust "
     "NAME --pin SHA256 --reason TEXT"},
    {"compute tray", "credentialed",
     "Busbar's own account logs in; the interlock's account stands; the factory password is changed; all are "
     "in the vault.",
     "credentialed", "staged", "CREDENTIAL_*, OWNED_ELSEWHERE, BMC_FORBIDDEN, SESSION_LIMIT, STORE_READ_ONLY",
     "busbar node retry NAME; give the BMC back: busbar bmc release NAME --reason TEXT"},
    {"compute tray", "staged",
     "Host power allowed (detectors known dry, flow proven, interlock armed, power budget); boot-once to the "
     "staging image read "
     "back; this boot's agent reports.",
     "staged", "inspected", "POWER_*, BOOT_TIMEOUT, AGENT_NOT_SEEN, AGENT_SERIAL_MISMATCH, DEADLINE",
     retry_staged},
    {"compute tray", "inspected",
     "The hardware equals the SKU: GPUs, CPUs, DIMMs, NICs, DPU, drives, PCIe width and generation.",
     "inspected", "firmware_current", "INVENTORY_*, BMC_BAD_DATA",
     "Reseat or replace the part, then: busbar node retry NAME --from inspected"},
    {"compute tray", "firmware_current",
     "Each component reads back at the baseline's version after activation; image digests were checked "
     "before the first byte.",
     "firmware", "configured", "FIRMWARE_*, BMC_UNREACHABLE, DEADLINE",
     "See the component: busbar diff nodes NAME; then: busbar node retry NAME --from firmware_current"},
    {"compute tray", "configured",
     "BIOS, device configuration and detector reactions read back equal to the baseline.", "configured",
     "validated", "CONFIG_DRIFT, CONFIG_READ_ONLY, POWER_OFF_NOT_CONFIRMED, BOOT_TIMEOUT",
     "See the drift: busbar diff nodes NAME; then: busbar node retry NAME --from configured"},
    {"compute tray", "validated",
     "The node suite passed: every GPU gave every metric, inside its limits. Begins after the rack's "
     "nvlink_ready.",
     "validated", "ready", "SUITE_BELOW_LIMIT, SUITE_INCOMPLETE, AGENT_LOST",
     "See the metrics: busbar describe nodes NAME; then: busbar node retry NAME --from validated"},
    {"compute tray", "ready", "All that the tray itself must show is shown; the rack's gates are still open.",
     "ready", "production", "DEADLINE", "See what the rack waits for: busbar get racks"},
    {"compute tray", "production", "The rack's gates are passed.", "production", "", "DEADLINE",
     "busbar rack shutdown RACK --reason TEXT takes it down in order"},

    {"switch tray", "declared", "A row of the manifest names it; nothing has answered yet.", "", "discovered",
     "", "Plug it in"},
    {"switch tray", "discovered", "Its BMC's address is announced and the service root answers. No login.",
     "discovered", "identified", "DEADLINE, BMC_UNREACHABLE, BMC_SLOW, IDENTITY_DUPLICATE",
     "busbar get endpoints"},
    {"switch tray", "identified",
     "One manifest row, one login, certificate pinned; serial and slot equal the row.", "identified",
     "credentialed", "IDENTITY_*, OWNED_ELSEWHERE, CREDENTIAL_*, CERTIFICATE_CHANGED", retry},
    {"switch tray", "credentialed",
     "Busbar's own account logs in; the interlock's stands; the factory password is changed.", "credentialed",
     "staged", "CREDENTIAL_*, OWNED_ELSEWHERE, STORE_READ_ONLY", retry},
    {"switch tray", "staged", "Host power allowed and read back on. No agent, no staging image.", "staged",
     "inspected", "POWER_*, DEADLINE", retry},
    {"switch tray", "inspected", "ASICs and ports equal the SKU.", "inspected", "firmware_current",
     "INVENTORY_*, BMC_BAD_DATA", retry},
    {"switch tray", "firmware_current",
     "Each component reads back at the baseline; one version on all switch trays.", "firmware", "configured",
     "FIRMWARE_*", retry},
    {"switch tray", "configured",
     "Device configuration and detector reactions read back equal to the baseline.", "configured", "validated",
     "CONFIG_*", retry},
    {"switch tray", "validated", "Nothing is measured on the tray itself: the rack suite measures through it.", "validated",
     "ready", "DEADLINE", "busbar get racks"},
    {"switch tray", "ready", "Its part is done; the rack's gates are still open.", "ready", "production", "DEADLINE",
     "busbar get racks"},
    {"switch tray", "production", "The rack's gates are passed.", "production", "", "DEADLINE", see_shutdown},

    {"power shelf", "declared", "A row of the manifest names it; nothing has answered yet.", "", "discovered", "",
     "Plug it in; see what answers: busbar get endpoints"},
    {"power shelf", "discovered", "Its controller's address is announced and the service root answers.",
     "discovered", "identified", "DEADLINE, BMC_UNREACHABLE", "busbar get endpoints"},
    {"power shelf", "identified", "One manifest row, one login, certificate pinned; serial equals the row.",
     "identified", "credentialed", "IDENTITY_*, CREDENTIAL_*, CERTIFICATE_CHANGED", retry},
    {"power shelf", "credentialed",
     "Busbar's own account logs in; the factory password is changed; all are in the vault.", "credentialed",
     "staged", "CREDENTIAL_*, OWNED_ELSEWHERE", retry},
    {"power shelf", "staged", "The shelf is read back on.", "shelf_on", "inspected", "POWER_*, DEADLINE", retry},
    {"power shelf", "inspected", "PSUs and their ratings equal the SKU.", "inspected", "firmware_current",
     "INVENTORY_*", retry},
    {"power shelf", "firmware_current",
     "Each component reads back at the baseline; no rows show NOT_REQUIRED.", "firmware", "configured",
     "FIRMWARE_*", retry},
    {"power shelf", "configured", "Device configuration reads back equal to the baseline.", "configured", "validated",
     "CONFIG_*", retry},
    {"power shelf", "validated", "Nothing is measured on the shelf itself.", "validated", "ready", "DEADLINE",
     "busbar get racks"},
    {"power shelf", "ready", "Its part is done; the rack's gates are still open.", "ready", "production", "DEADLINE",
     "busbar get racks"},
    {"power shelf", "production", "The rack's gates are passed.", "production", "", "DEADLINE", see_shutdown},

    {"rack controller", "declared", "A row of the manifest names it; nothing has answered yet.", "", "discovered", "",
     "Plug it in; see what answers: busbar get endpoints"},
    {"rack controller", "discovered", "Its address is announced and the service root answers. It needs no shelf.", "discovered",
     "identified", "DEADLINE, BMC_UNREACHABLE", "busbar get endpoints"},
    {"rack controller", "identified", "One manifest row, one login, certificate pinned; serial equals the row.", "identified",
     "credentialed", "IDENTITY_*, CREDENTIAL_*, CERTIFICATE_CHANGED", retry},
    {"rack controller", "credentialed",
     "Busbar's own account logs in; the interlock's account stands, and its record names the valves; all are in the vault.",
     "credentialed", "staged", "CREDENTIAL_*, OWNED_ELSEWHERE, POWER_INTERLOCK_NOT_ARMED", retry},
    {"rack controller", "staged", "Nothing is turned on: it is fed from the grid side.", "staged", "inspected", "DEADLINE", retry},
    {"rack controller", "inspected", "It shows every valve that the manifest puts behind it.", "inspected", "firmware_current",
     "INVENTORY_*", "Correct the manifest or the controller, then: busbar node retry NAME --from inspected"},
    {"rack controller", "firmware_current", "Each component reads back at the baseline; no rows show NOT_REQUIRED.", "firmware",
     "configured", "FIRMWARE_*", retry},
    {"rack controller", "configured", "Device configuration reads back equal to the baseline.", "configured", "validated",
     "CONFIG_*", retry},
    {"rack controller", "validated", "Nothing is measured on it.", "validated", "ready", "DEADLINE", "busbar get racks"},
    {"rack controller", "ready", "Its part is done; the rack's gates are still open.", "ready", "production", "DEADLINE",
     "busbar get racks"},
    {"rack controller", "production", "The rack's gates are passed. A shutdown leaves it as it is.", "production", "", "DEADLINE",
     see_shutdown},

    {"rack", "planned", "The manifest is applied; no bring-up has reached anything yet.", "", "standby", "",
     "busbar rack bringup RACK"},
    {"rack", "standby",
     "All declared shelves credentialed, the CDU readable, rack-level detectors known dry, no latch, "
     "interlock armed for the rack.",
     "standby", "ingested", "POWER_LEAK_LATCHED, POWER_DETECTOR_UNKNOWN, POWER_INTERLOCK_NOT_ARMED, DEADLINE",
     see_members},
    {"rack", "ingested",
     "Every tray not failed is credentialed or further; at least compute_min compute and all switch trays "
     "not failed.",
     "ingested", "cooled", "IDENTITY_*, CREDENTIAL_*, DEADLINE", see_members},
    {"rack", "cooled", "Flow above the minimum for 10 s, pressure in band.", "cooled", "powered",
     "POWER_FLOW_NOT_PROVEN, DEADLINE", "Check CDU, valves and loop: busbar describe racks RACK"},
    {"rack", "powered", "Every tray not failed reads back on (compute: staged).", "powered", "nvlink_ready",
     "POWER_*, BOOT_TIMEOUT, DEADLINE", see_members},
    {"rack", "nvlink_ready",
     "Switch and compute trays configured; one fabric primary, partition as declared, one clique id, link "
     "counts "
     "equal to the SKU, read from both sides.",
     "nvlink_ready", "node_validated", "NVLINK_*, DEADLINE", see_members},
    {"rack", "node_validated", "Every compute tray not failed is validated.", "node_validated", "rack_validated",
     "SUITE_*, DEADLINE", see_members},
    {"rack", "rack_validated",
     "The rack suite passed in a run declared for its members; a member without a complete result is never a "
     "pass.",
     "rack_validated", "production or degraded", "SUITE_*, AGENT_LOST, DEADLINE",
     "busbar describe racks RACK; busbar rack bringup RACK"},
    {"rack", "production", "All gates that the manifest names are passed, for all compute trays of the SKU.",
     "production", "", "", "busbar rack shutdown RACK --reason TEXT"},
    {"rack", "degraded", "Validated for compute_min or more, but not all, compute trays.", "", "production",
     "", "Mend and retry the failed members, then: busbar rack bringup RACK"},
    {"rack", "cordoned", "Fewer than compute_min compute trays are validated: nothing is placed here.", "",
     "production", "", "Mend and retry the failed members, then: busbar rack bringup RACK"},

    {"tray", "troubleshooting", "A step ended in a named failure; the tray stays as it is.", "",
     "the step that failed", "", retry},
    {"tray", "emergency_off",
     "The interlock latched a leak: the tray is not turned on, and its power is unknown until it is read again.", "",
     "staged", "POWER_LEAK_LATCHED",
     "Find and mend the cause; when the detectors are dry a person of busbar-safety resets the latch: "
     "busbar leak reset NAME --reason TEXT; then: busbar node retry NAME"},
    {"rack", "emergency_off",
     "The interlock tripped the rack: every tray off, then the shelves; after a leak its valves closed. It stays so until a person "
     "resets the trip.",
     "", "standby", "TRIP_OPEN",
     "Find and mend the cause; once the trip is done and dry: busbar leak reset RACK --reason TEXT; then: busbar rack bringup RACK"},
});

}  // namespace

std::span<const step_text> step_texts() {
  return table;
}

}  // namespace busbar::cli
