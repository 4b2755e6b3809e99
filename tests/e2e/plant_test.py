"""The plant beside its racks: set-points that are read, leases, operators kept apart, and its death that changes nothing."""
import harness


def cdu(site):
    return site.items("cdus", "cdu01")[0]


def conditions(site, rack="r01"):
    return {row["type"]: row.get("health") for row in site.items("racks", rack)[0].get("conditions", [])}


def held(site):
    """What the CDU itself holds: its set-points, as its Redfish face says."""
    status = cdu(site)["status"]
    return status.get("supplySetPointC"), status.get("dpSetPointKpa")


def wait_for_demands(site):
    harness.until(lambda: all(row.get("until") for row in cdu(site)["status"].get("demands", [{}])), "every rack is heard", 30)
    harness.until(lambda: cdu(site)["status"].get("mode") == "automatic", "the CDU is read and commanded", 30)


def plant_killed_in_production(programs):
    """kill -9 of the plant's daemon: the CDU keeps its set-points, racks stay up and say PLANT_LOST; its next life adopts."""
    with harness.Site(programs, plant=True) as site:
        site.apply()
        site.bring_up()
        wait_for_demands(site)
        harness.check("PLANT_LOST" not in conditions(site), "PLANT_LOST while the plant answers")
        before = held(site)
        harness.check(all(value is not None for value in before), "the CDU's set-points are not read: %r" % (before,))
        site.end("busbard-plant1", hard=True)
        harness.until(lambda: conditions(site).get("PLANT_LOST") == "HEALTH_BAD", "the rack knows that its plant is gone", 30)
        harness.equal(site.rack()["state"], "production", "the rack without its plant")
        site.start_busbard("plant1", "plant")
        harness.until(lambda: "PLANT_LOST" not in conditions(site), "the rack hears its plant again", 30)
        wait_for_demands(site)
        after = held(site)
        harness.check(abs(after[0] - before[0]) < 0.5, "a restart moved the supply set-point: %r -> %r" % (before, after))
        harness.check(abs(after[1] - before[1]) < 5, "a restart moved the pressure at once: %r -> %r" % (before, after))


def overrides(programs):
    """Limits, two operators, a lease that lapses: each is refused or ends as it should, and the CDU is read to have it."""
    with harness.Site(programs, plant=True) as site:
        site.apply()
        wait_for_demands(site)
        done = site.busbar_is(2, "cdu", "set", "cdu01", "--supply", "60", "--reason", "too warm", "--yes")
        harness.check("45" in done.err, "the limit is not named: " + done.err)
        done = site.busbar_is(0, "cdu", "set", "cdu01", "--supply", "30", "--reason", "look", "--yes", "--dry-run")
        harness.check("nothing was done" in done.err, "a dry run that does not say so: " + done.err)
        harness.check(not cdu(site)["status"].get("lease"), "a dry run took a lease")
        site.busbar_is(0, "cdu", "set", "cdu01", "--supply", "30", "--dp", "70", "--lease", "20s", "--reason", "maintenance",
                       "--yes", "--wait", "--timeout", "60s")
        harness.equal(held(site), (30, 70), "what the CDU is read to hold")
        status = cdu(site)["status"]
        harness.equal(status["mode"], "manual", "the mode under a lease")
        harness.equal(status["lease"]["reason"], "maintenance", "the lease")
        harness.until(lambda: cdu(site)["status"].get("mode") == "automatic", "the lease lapses", 40)
        harness.check(abs(held(site)[0] - 30) < 1.0, "a lapse is no bump: %r" % (held(site),))
        done = site.busbar_is(5, "cdu", "release", "cdu01", "--yes")
        harness.check("nothing to release" in done.err, done.err)
        harness.equal(site.busbar("get", "cdus", "cdu77").code, 2, "an unknown CDU")


if __name__ == "__main__":
    harness.run([plant_killed_in_production, overrides])
