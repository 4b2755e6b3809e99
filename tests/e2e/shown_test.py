"""What is shown is so: power that is gone and detectors that nobody watches never stay good."""
import harness

TRAYS = ["c01", "c02", "c03", "c04", "s01"]


def hosts_on(site):
    return sorted(slot for slot in TRAYS if site.truth("r01/%s/power" % slot) == "On")


def interlock_is(site, code, *words):
    done = site.call(site.program("busbar-interlock"), *words, "--instance", "r01", "--run-dir", site.run_dir)
    harness.check(done.code == code, "busbar-interlock %s gave %d: %s%s" % (" ".join(words), done.code, done.out, done.err))
    return done


def emergency_stop(programs):
    """The interlock turns a rack in production off: shown off or unknown, tripped, and no bring-up is begun behind it."""
    with harness.Site(programs) as site:
        site.apply()
        site.bring_up()
        harness.equal(hosts_on(site), TRAYS, "hosts on after the bring-up")
        interlock_is(site, 0, "trip", "r01", "--reason", "test of the stop", "--yes")
        harness.until(lambda: not hosts_on(site), "the interlock turns every host off", 30)
        harness.until(lambda: all(site.nodes()[slot]["power"]["observed"] != "ON" for slot in TRAYS), "no host is shown on", 60)
        harness.until(lambda: site.rack()["state"] == "emergency_off", "the rack falls", 60)
        nodes = site.nodes()
        harness.check(all(nodes[slot]["health"] != "HEALTH_GOOD" for slot in TRAYS), "health: %r" % {s: nodes[s]["health"] for s in TRAYS})
        harness.check(site.busbar("wait", "racks", "r01", "--for", "state=production", "--timeout", "2s").code != 0, "wait gave 0")
        done = site.busbar("rack", "bringup", "r01", "--wait", "--yes", "--timeout", "5s")
        harness.equal(done.code, 5, "a bring-up behind a latched stop: " + done.out + done.err)
        harness.equal(hosts_on(site), [], "hosts on behind a latched stop")


def interlock_silent(programs):
    """Without the interlock nothing is shown dry or good and no bring-up succeeds; when it is heard again, all is as before."""
    with harness.Site(programs) as site:
        site.apply()
        site.bring_up()
        site.end("interlock-r01", hard=True)

        def seen(health, verdict):
            nodes = site.nodes()
            rows = [row.get("verdict", "UNKNOWN") for slot in TRAYS for row in nodes[slot]["detectors"]]
            return all(nodes[slot]["health"] == health for slot in TRAYS) and set(rows) == {verdict}
        harness.until(lambda: seen("HEALTH_UNKNOWN", "UNKNOWN"), "detectors and members are shown unknown", 30)
        harness.check("not heard" in site.nodes()["c01"]["waitsFor"], "no reason: %r" % site.nodes()["c01"]["waitsFor"])
        harness.check(site.rack()["health"] != "HEALTH_GOOD", "the rack is shown good")
        done = site.busbar("rack", "bringup", "r01", "--wait", "--yes", "--timeout", "60s")
        harness.equal(done.code, 1, "a bring-up without the interlock: " + done.out + done.err)
        site.start_interlock("r01")
        harness.until(lambda: seen("HEALTH_GOOD", "DRY"), "detectors and members are good again", 60)
        site.bring_up()
        harness.equal(site.rack()["state"], "production", "the rack")


if __name__ == "__main__":
    harness.run([emergency_stop, interlock_silent])
