"""busbard and its interlock joined: what a trip does to the devices, what is shown of it, and the way back."""
import json

import harness

TRAYS = ["c01", "c02", "c03", "c04", "s01"]


def hosts_on(site):
    return sorted(slot for slot in TRAYS if site.truth("r01/%s/power" % slot) == "On")


def shelf_is(site):
    return "On" if site.truth("r01/p01/output_on") else "Off"


def valves_open(site):
    return {name: valve["open_percent"] for name, valve in site.truth("r01/m01")["valves"].items() if name in ("supply", "return")}


def condition(site, kind):
    found = [one for one in site.items("racks", "r01")[0]["conditions"] if one["type"] == kind]
    return found[0] if found else None


def story(site):
    """type -> messages of the rack's events that tell of the interlock, oldest first."""
    events = site.busbar_is(0, "events", "r01", "--all", "-o", "json").json()["items"]
    told = {}
    for event in sorted(events, key=lambda one: (int(one["position"]["revision"]), one.get("index") or 0)):
        told.setdefault(event["type"], []).append(event["message"])
    return told


def trips_of(site):
    return site.rack()["facts"].get("trips", "")


def armed_in_full(site):
    harness.until(lambda: "leaks of the rack and the CDU" in trips_of(site) and "not with this record" not in trips_of(site),
                  "the interlock's record names all that a trip needs; it says: " + trips_of(site), 60)


def is_down(site, cause):
    harness.until(lambda: not hosts_on(site), "every host is off", 30)
    harness.until(lambda: shelf_is(site) == "Off", "the shelf is cut", 30)
    harness.until(lambda: site.rack()["state"] == "emergency_off", "the rack is shown as tripped", 30)
    harness.until(lambda: "trip_closed" in story(site), "the trip's end is told", 60)
    harness.until(lambda: all(site.nodes()[slot]["power"]["observed"] == "OFF" for slot in TRAYS), "hosts are shown off", 60)
    told = story(site)
    harness.equal(len(told["trip_opened"]), 1, "trip_opened, told")
    harness.check(cause in told["trip_opened"][0], "the cause: " + told["trip_opened"][0])
    harness.check(len(told["trip_step_done"]) >= len(TRAYS) + 1, "steps told: %r" % told["trip_step_done"])
    harness.equal(len(told["trip_closed"]), 1, "trip_closed, told")
    harness.equal(site.rack()["failure"]["fault"], "TRIP_OPEN", "the rack's fault")
    harness.equal(condition(site, "TRIP_OPEN")["health"], "HEALTH_BAD", "the condition")
    refused = site.busbar_is(5, "rack", "bringup", "r01", "--wait", "--yes", "--timeout", "30s")
    harness.check("leak reset r01" in refused.err, "the refusal names no next step: " + refused.err)
    harness.equal(site.busbar("leak", "status", "r01").code, 1, "leak status under a trip")


def reset(site, seconds):
    harness.equal(site.busbar("leak", "reset", "r01").code, 2, "a reset without a reason")
    harness.until(lambda: site.busbar("leak", "reset", "r01", "--dry-run").code == 0, "a reset has nothing against it", 60)
    harness.until(lambda: site.busbar("leak", "reset", "r01", "--reason", "mended", "--yes").code == 0, "a person resets it", seconds)
    harness.until(lambda: condition(site, "TRIP_OPEN")["health"] == "HEALTH_GOOD", "no trip is open", 30)
    harness.check("trip_reset" in story(site), "the reset is not told")


def flow_lost_in_production(programs):
    """Both pumps stop: the rack goes down in order, busbard killed in the middle; mended and reset it comes up again."""
    with harness.Site(programs) as site:
        site.apply()
        site.bring_up()
        armed_in_full(site)
        harness.equal(site.items("controllers")[0]["status"]["step"], "PRODUCTION", "the rack controller")
        harness.equal(site.busbar("leak", "status", "r01").code, 0, "leak status in production")
        harness.equal(hosts_on(site), TRAYS, "hosts on after the bring-up")
        site.fault("pump", "cdu01", "--severity", "2")
        harness.until(lambda: len(hosts_on(site)) < len(TRAYS), "the interlock acts", 60)
        site.end("busbard-r01", hard=True)
        site.start_busbard("r01")
        is_down(site, "no flow")
        harness.check(all(percent > 99 for percent in valves_open(site).values()), "liquid was taken: %r" % valves_open(site))
        site.clear("pump", "cdu01")
        reset(site, 60)
        site.bring_up(seconds=200)
        harness.equal(site.rack()["state"], "production", "the rack after the reset")
        harness.equal(hosts_on(site), TRAYS, "hosts on again")


def rope_wet_during_a_bring_up(programs):
    """The operation ends with the trip's name; hosts off, shelf cut, valves closed, once each in the story; mended, it comes up."""
    with harness.Site(programs) as site:
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r01", "--yes")
        harness.until(lambda: hosts_on(site) == TRAYS, "every host is on", 120)
        armed_in_full(site)
        site.fault("leak", "cdu01/r01_rope")
        is_down(site, "leak")
        harness.until(lambda: all(percent <= 1 for percent in valves_open(site).values()), "the isolation valves are closed", 30)
        ended = [one for one in site.items("operations") if one["verb"] == "rack_bringup"]
        harness.equal((ended[0]["state"], ended[0]["error"]["fault"]), ("FAILED", "TRIP_OPEN"), "the bring-up")
        rope = [one for one in site.items("detectors", "r01") if one["name"].endswith("cdu01.rope")]
        harness.equal((rope[0]["verdict"], rope[0]["latched"]), ("LEAK", True), "the rope, as shown")
        harness.equal(site.busbar("leak", "reset", "r01", "--reason", "too early", "--yes").code, 5, "a reset while it is wet")
        acts = [row for row in site.journal() if row.get("act") == "reset" and row["argument"] == "ForceOff"]
        trays = [row["received_ns"] for row in acts if "/c" in row["device"] or "/s" in row["device"]]
        shelf = [row["received_ns"] for row in acts if "/p" in row["device"]]
        harness.check(max(trays[:len(TRAYS)]) < min(shelf), "the shelf was cut before the hosts were told off: %s" % json.dumps(acts[:12]))
        harness.check(all(row["user"].endswith("-il") for row in acts), "somebody else than the interlock turned off")
        site.clear("leak", "cdu01")
        reset(site, 150)
        site.busbar_is(0, "valve", "open", "r01/supply", "r01/return", "--reason", "mended", "--yes", "--wait", "--timeout", "60s")
        site.bring_up(seconds=200)
        harness.equal(site.rack()["state"], "production", "the rack after the reset")


def a_detector_is_bypassed(programs):
    """By a person, for a while: shown with owner and reason, nowhere dry; ended by a person."""
    with harness.Site(programs) as site:
        site.apply()
        site.bring_up()
        words = ["leak", "bypass", "r01/c02", "0_Manifold"]
        harness.equal(site.busbar(*words, "--reason", "cable").code, 2, "neither --for nor --end")
        harness.equal(site.busbar(*words, "--for", "9h", "--reason", "cable").code, 2, "longer than 8h")
        site.busbar_is(0, *words, "--for", "1h", "--reason", "cable ordered", "--yes")
        harness.until(lambda: (condition(site, "BYPASSED") or {}).get("health") == "HEALTH_UNKNOWN", "the bypass is shown", 30)
        row = [one for one in site.items("detectors", "r01") if one["name"].endswith("c02.0_Manifold")][0]
        harness.check("cable ordered" in row["bypass"] and row["bypassUntil"], "as shown: %r" % row)
        harness.equal(site.busbar("leak", "status", "r01").code, 1, "leak status beside a bypass")
        site.busbar_is(0, *words, "--end", "--reason", "mended", "--yes")
        harness.until(lambda: condition(site, "BYPASSED")["health"] == "HEALTH_GOOD", "it has ended", 30)
        harness.equal(site.rack()["state"], "production", "the rack")


if __name__ == "__main__":
    harness.run([flow_lost_in_production, rope_wet_during_a_bring_up, a_detector_is_bypassed])
