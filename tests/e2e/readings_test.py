"""Readings as a person sees them: they come, they are kept, they come again after the daemon was killed, and what stops is stale."""
import harness


def readings(site, *names):
    """name -> reading, by the short name."""
    items = site.busbar_is(0, "get", "readings", *names, "-o", "json").json()["items"]
    return {one["name"].replace("racks/", "", 1).replace("/nodes/", "/").replace("/shelves/", "/"): one["reading"] for one in items}


def good(site, names):
    known = readings(site)
    return all(known.get(name, {}).get("quality") == "QUALITY_GOOD" and known[name]["value"] is not None for name in names)


RACK = ["r01/flow", "r01/dp", "r01/supply_temperature", "r01/return_temperature", "r01/power"]
MEMBERS = ["r01/c01/inlet_temperature", "r01/c04/gpu3/power", "r01/s01/power", "r01/p01/psu1/output_power"]


def readings_come_and_come_again(programs):
    """Of the CDU and every kind of member; with units; kept; again after a kill -9; through the live view; and the history has them."""
    with harness.Site(programs) as site:
        site.apply()
        site.bring_up()
        harness.until(lambda: good(site, RACK + MEMBERS), "readings of the rack and its members", 60)
        known = readings(site)
        harness.equal([known[name]["unit"] for name in RACK], ["L/min", "kPa", "Cel", "Cel", "W"], "units")
        harness.equal(known["r01/c01/gpu0/nvlink0/up"]["value"], 1.0, "a link that is up")
        harness.check(known["r01/power"]["value"] > 1000, "power of a rack that runs: %r" % known["r01/power"])
        harness.check(len(known) > 1500, "%d points" % len(known))
        harness.equal(len(readings(site, "r01/c02")), len([name for name in known if name.startswith("r01/c02/")]), "points under r01/c02")
        done = site.busbar("get", "readings", "r01/no_such")
        harness.equal(done.code, 2, "a name that nobody knows: " + done.out + done.err)
        view = site.busbar("watch", "cooling", "r01", "--timeout", "3s")
        harness.equal(view.code, 6, "the live view: " + view.out + view.err)
        harness.check("flow" in view.out and "L/min" in view.out, "no readings in: " + view.out)
        harness.until(lambda: len(site.busbar_is(0, "history", "r01/flow", "--since", "1m", "-o", "json").json()["item"]["samples"]) > 3,
                      "samples of the flow", 30)
        site.end("busbard-r01", hard=True)
        site.start_busbard("r01")
        harness.until(lambda: good(site, RACK + MEMBERS), "readings again after the kill", 60)
        harness.check(len(site.busbar_is(0, "history", "r01/flow", "--since", "10m", "-o", "json").json()["item"]["samples"]) > 3,
                      "the history after the kill")


def what_stops_is_stale(programs):
    """The CDU goes silent: its readings turn stale, those of the trays go on."""
    with harness.Site(programs) as site:
        site.apply()
        harness.until(lambda: good(site, RACK[:4]), "readings of the CDU", 60)
        site.fault("error_5xx", "cdu01")

        def stale():
            known = readings(site, "r01/flow", "r01/dp")
            return all(known[name]["quality"] == "QUALITY_STALE" for name in ("r01/flow", "r01/dp"))
        harness.until(stale, "the CDU's readings are stale", 60)
        site.clear("error_5xx", "cdu01")
        harness.until(lambda: good(site, RACK[:4]), "readings of the CDU again", 60)


if __name__ == "__main__":
    harness.run([readings_come_and_come_again, what_stops_is_stale])
