#include "daemon/cli/word_table.hpp"

#include <array>

namespace busbar::cli {
namespace {

constexpr std::string_view see_rack = "busbar describe racks RACK; busbar events RACK";
constexpr std::string_view see_operation = "busbar describe ops OPERATION";
constexpr std::string_view see_endpoints = "busbar get endpoints -o wide";
constexpr std::string_view see_node = "busbar describe nodes NODE";

constexpr auto table = std::to_array<word_text>({
    {"FLOW_PROVEN", "condition of a rack",
     "Good: coolant flow and pressure have been in the manifest's band without a break. Bad: they are not, or nothing fresh "
     "is known of them; no host is powered on.",
     "Check CDU, valves and loop; see the readings: busbar describe racks RACK"},
    {"CDU_READ", "condition of a CDU",
     "Good: the plant reads it every second. Bad: it does not answer; it goes on by its own controller at the last set-points.",
     "Check its address, network and login: busbar describe cdus CDU"},
    {"SUPPLY_SET_POINT", "condition of a CDU",
     "Good: it is read to hold the supply temperature that was asked. Bad: it is not. Unknown: what it holds cannot be read.",
     "See what it says, and whether it takes orders from afar: busbar describe cdus CDU"},
    {"PRESSURE_SET_POINT", "condition of a CDU",
     "Good: it is read to hold the pressure that was asked. Bad: it is not. Unknown: what it holds cannot be read.",
     "See what it says, and whether it takes orders from afar: busbar describe cdus CDU"},
    {"CDU_HEALTH", "condition of a CDU", "What the CDU says of itself.", "Look at the CDU and its own alarms"},
    {"PUMPS", "condition of a CDU", "Good: as many pumps are read running as are declared. Bad: fewer.",
     "Mend the pump; the others carry its load meanwhile"},
    {"CDU_DETECTORS_DRY", "condition of a CDU",
     "Good: every leak detector of the CDU is read dry. Bad: one sees a leak. Unknown: one cannot be judged. Racks' interlocks watch "
     "their own and do not wait for this.",
     "busbar describe cdus CDU; busbar leak status RACK"},
    {"DEW_POINT", "condition of a CDU", "Bad: the supply is near the dew point of the room's air: water condenses on cold hoses.",
     "Dry the room, or raise the supply temperature: busbar cdu set CDU --supply C --reason TEXT"},
    {"RACK_DETECTORS_DRY", "condition of a rack",
     "Good: the rack's own leak detectors (rope, pan) are read dry. Bad: one is wet or unknown, which counts as wet for power.",
     see_rack},
    {"INTERLOCK_ARMED", "condition of a rack",
     "Good: busbar-interlock is alive and armed for the rack. Bad: it is not, or holds a latch; no host is powered on.",
     "Look at the log of busbar-interlock. A latched leak, once dry: busbar leak reset NAME --reason TEXT"},
    {"INTERLOCK_RECORD_REFUSED", "condition of a rack",
     "Good: the interlock holds what the manifest says. Bad: it refused the present arming record, because something would be removed "
     "or widened, or the record lacks a device; it goes on with the one that it holds.",
     "See what it says: busbar describe racks RACK. What removes or widens, only a person of busbar-safety may hand over"},
    {"INTERLOCK_REACHES", "condition of a rack",
     "Good: the interlock reads all that a trip needs. Bad: it does not reach a shelf, a rack controller or the CDU, so a trip may not "
     "cut, close or see what it should.",
     "Check power, cable and lease of what is named; busbar leak status RACK"},
    {"LEAK_SUSPECTED", "condition of a rack",
     "Bad: the coolant's pressure and level fall together and no detector sees a leak. It trips nothing and blocks nothing; a leak that "
     "no detector sees yet looks like this.",
     "Look at hoses and couplings of the rack and at the CDU's level; busbar leak status RACK"},
    {"BYPASSED", "condition of a rack",
     "Unknown: a person has taken a detector out of the interlock's judgement for a while. It neither trips nor blocks power-on.",
     "It ends by itself; before: busbar leak bypass MEMBER DETECTOR --end --reason TEXT"},
    {"INTERLOCK_RECORD_CURRENT", "condition of a rack",
     "Good: the interlock holds the arming record it had. Bad: it holds an older one or none, so its state folder was put back; "
     "no host is powered on until the rack has armed it anew.",
     "It mends itself within a minute; else look at the log and the disk of busbar-interlock"},
    {"INTERLOCK_LATCHES_KEPT", "condition of a rack",
     "Good: the interlock's latch file holds what was seen of it. Bad: it was put back, lost or is damaged, so what it had latched is "
     "not known; no host is powered on.",
     "Look at every tray for water, then: busbar leak reset \"RACK/*\" --reason TEXT"},

    {"AUTOMATIC", "mode of a valve or a CDU", "Nobody overrides it: its loop moves it, or it stays where it is.", ""},
    {"MANUAL", "mode of a valve or a CDU", "Somebody overrides it under a lease; loops leave it alone until the lease lapses.",
     "Who, why and until when: busbar describe valves VALVE"},
    {"FAIL_SAFE", "mode of a valve or a CDU",
     "It does not answer: it goes, or stays, where its fail position says, and what is shown of it is not known to be so now.",
     "See its controller: busbar describe controllers CONTROLLER"},
    {"MOVING", "proof of a valve's command", "Told, and not due yet by its stroke.", "busbar wait valves VALVE"},
    {"WAITING", "proof of an outlet's command", "Asked, and not read so yet; relays need up to 20 s.", "busbar describe pdus PDU"},
    {"PROVEN", "proof of a valve's or outlet's command", "Read back to be as told: position, and flow or current where there is a meter.", ""},
    {"UNPROVEN", "proof of a valve's or outlet's command",
     "Its time is over and it could not be read: whether it obeyed is not known. It is judged as soon as it is read.",
     "See why it does not answer before asking again"},
    {"SOUND", "condition of a valve", "It follows its commands in time.", ""},
    {"STICKING", "condition of a valve", "It moves late after a change of direction, or stops short: busbar explain VALVE_STICKING.", ""},
    {"STUCK", "condition of a valve", "Nothing followed a command: busbar explain VALVE_STUCK.", ""},
    {"DRIFTING", "condition of a valve", "It left its proven place without a command: busbar explain VALVE_DRIFTING.", ""},
    {"CONTRADICTED", "condition of a valve", "It says closed while liquid flows: busbar explain VALVE_CONTRADICTED.", ""},

    {"PENDING", "state of an operation, a member of one, a gate or a firmware component", "Not begun yet.", see_operation},
    {"RUNNING", "state of an operation or a suite", "Going on; it can be cancelled: busbar ops cancel OPERATION.",
     "busbar watch rack RACK"},
    {"SUCCEEDED", "state of an operation or a member of one", "Ended, and read back to be as asked.", ""},
    {"FAILED", "state of an operation, a member of one, a gate or a firmware component",
     "Ended otherwise: the fault and the message say why.", see_operation},
    {"CANCELLED", "state of an operation or a member of one",
     "Ended by a person or by a safety action; what had begun was brought to a safe place.", see_operation},
    {"UNKNOWN", "anything",
     "Not known: never read, too old, or not understood. Never taken for healthy, dry, zero or passed.", see_node},
    {"GOOD", "health, or quality of a reading", "Read and in order.", ""},
    {"BAD", "health, or quality of a reading",
     "Health: read, and not in order. Quality: the source gave something that is no value.", see_node},
    {"STALE", "quality of a reading", "Older than its source promises: it says nothing about now.", see_rack},

    {"COMPUTE_TRAY", "kind of a member", "A tray with CPUs and GPUs: c01 to c18.", "busbar get nodes"},
    {"SWITCH_TRAY", "kind of a member", "A tray with NVLink switches: s01 to s09.", "busbar get nodes"},
    {"POWER_SHELF", "kind of a member", "A shelf with supplies: p01 to p08.", "busbar get shelves"},
    {"RACK_CONTROLLER", "kind of a member", "The controller of the rack's valves, fed from the grid side: m01.",
     "busbar get controllers"},
    {"ON", "power of a host, or an outlet", "Read back on.", ""},
    {"OFF", "power of a host, or an outlet", "Read back off; of an outlet: and nothing flows.", ""},
    {"POWERING_ON", "power of a host", "The BMC says that it is going on.", see_node},
    {"POWERING_OFF", "power of a host", "The BMC says that it is going off.", see_node},
    {"DRY", "verdict of a leak detector", "Read dry by every trustworthy source of it.", ""},
    {"LEAK", "verdict of a leak detector", "A source says leak. Power is cut by busbar-interlock and latched.",
     "Mend the leak; once dry a person of busbar-safety resets the latch: busbar leak reset NAME --reason TEXT; then: busbar node "
     "retry NAME"},

    {"CURRENT", "state of a firmware component", "Reads back at the version the baseline wants.", ""},
    {"PUSHING", "state of a firmware component", "The image is on its way to the BMC.", "busbar diff nodes NODE"},
    {"PUSHED", "state of a firmware component", "The BMC has the image; it is not active yet.", "busbar diff nodes NODE"},
    {"ACTIVATING", "state of a firmware component", "What the baseline names (BMC reset, host restart) is going on.",
     "busbar diff nodes NODE"},
    {"NOT_REQUIRED", "a gate, a suite or a firmware component", "The manifest or the baseline asks for none.", ""},

    {"NOT_RUN", "verdict of a suite", "Never run since the last power-on: not a pass.", see_node},
    {"PASS", "verdict of a suite", "Every declared member gave every metric, inside its limits.", ""},
    {"FAIL", "verdict of a suite", "A metric is outside its limit.", see_node},
    {"INCOMPLETE", "verdict of a suite", "A declared member or metric gave no result: not a pass.", see_node},
    {"PASSED", "state of a gate", "Passed by all members that it asks.", ""},

    {"MATCHED", "state of an endpoint", "It belongs to exactly one row of the manifest.", ""},
    {"UNMATCHED", "state of an endpoint", "No row of the manifest names its MAC or address; nothing logs in.",
     "Correct the manifest, then: busbar manifest apply DIR"},
    {"WRONG_RACK", "state of an endpoint", "Another rack's manifest names its MAC.", see_endpoints},
    {"DUPLICATE", "state of an endpoint", "The same BMC answers at two addresses.", see_endpoints},
    {"OWNED_ELSEWHERE", "state of an endpoint", "Another Busbar has an account on it.", see_endpoints},
    {"UNREACHABLE", "an endpoint or a daemon",
     "It does not answer: nothing is known of what it holds, and nothing of that is shown as good.",
     "An endpoint: power, cable, lease of the BMC. A daemon: systemctl status busbard@INSTANCE"},

    {"SHUTTING_DOWN", "state of a rack", "A shutdown is going on: compute trays, switch trays, then shelves.",
     "busbar watch rack RACK"},
    {"TROUBLESHOOTING", "state of a rack", "A step could not be reached; the failure says why. Nothing is placed here.",
     see_rack},
});

}  // namespace

std::span<const word_text> word_texts() {
  return table;
}

}  // namespace busbar::cli
