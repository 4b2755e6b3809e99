"""kill -9 at moments chosen by a seed, and what must not be done twice."""
import collections
import random

import harness

# Per compute tray: 3 of its 10 components are old as delivered.
OLD = {"FW_BMC_0", "UEFI", "NIC_0"}
COMPUTE, SWITCH, SHELF = ["c01", "c02", "c03", "c04"], ["s01"], ["p01"]


def repeats(journal):
    """Every way in which the journal shows something done twice that must be done once."""
    bad = []
    count = collections.Counter((row["device"], row["act"], row["argument"]) for row in journal if row["status"] < 400)
    for tray in COMPUTE + SWITCH + SHELF:
        device = "r01/" + tray
        created = [argument for (where, act, argument), n in count.items() if where == device and act == "account_create"
                   for _ in range(n)]
        if len(created) != 2 or len(set(created)) != 2:
            bad.append("%s: accounts created %r, not two different ones" % (device, created))
        changed = sum(n for (where, act, _), n in count.items() if where == device and act == "password_change")
        if changed != 1:
            bad.append("%s: password changed %d times, not once" % (device, changed))
        pushed = {argument: n for (where, act, argument), n in count.items() if where == device and act == "update_push"}
        if pushed != ({component: 1 for component in OLD} if tray in COMPUTE else {}):
            bad.append("%s: components pushed %r" % (device, pushed))
        for act, argument in (("manager_reset", None), ("reset", "ForceRestart"), ("reset", "PowerCycle"), ("activate", None)):
            done = sum(n for (where, what, how), n in count.items() if where == device and what == act and argument in (None, how))
            if done > 1:
                bad.append("%s: %s %s %d times" % (device, act, argument or "", done))
        bad += blind_power_ons(device, [row for row in journal if row["device"] == device])
    return bad


def blind_power_ons(device, rows):
    """An On after an On or ForceOff, with no look at the power state between them."""
    bad, looked = [], True
    for row in rows:
        if row["act"] == "reset" and row["argument"] == "On":
            if not looked:
                bad.append("%s: On in request %d with no look at the power state after the last reset" % (device, row["number"]))
            looked = False
        elif row["act"] == "reset":
            looked = False
        elif row["method"] == "GET" and row["status"] == 200 and row["path"].rstrip("/").endswith(("/System_0", "/PowerShelf_0")):
            looked = True
    return bad


def in_production(site):
    nodes = site.nodes()
    harness.equal({slot: one["step"] for slot, one in nodes.items() if one["step"] != "PRODUCTION" or one["failure"]}, {},
                  "nodes not in production")
    harness.equal(site.rack()["state"], "production", "rack")
    harness.equal(site.truth("r01/compute_on"), 4, "compute hosts on")


def killed(programs, seed, kills):
    """One bring-up; busbard is killed at `kills` moments, each the k-th request after its start."""
    dice = random.Random(seed)
    with harness.Site(programs, seed=seed) as site:
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r01", "--yes")
        moments = sorted(dice.sample(range(20, 1000), kills))
        hit = []
        for moment in moments:
            row = site.follow(lambda seen, at=moment: seen["number"] >= at)
            # The request is on the wire or just answered: the daemon dies between the act and its record.
            site.end("busbard-r01", hard=True)
            hit.append("%d:%s" % (row["number"], row["act"] or "read"))
            site.start_busbard("r01")
        site.busbar_is(0, "wait", "racks", "r01", "--for", "state=production", "--timeout", "120s")
        in_production(site)
        bad = repeats(site.journal())
        harness.check(not bad, "seed %d, killed at %s:\n  %s" % (seed, " ".join(hit), "\n  ".join(bad)))


def busbard_killed_at_seeded_moments(programs):
    """Five moments of one bring-up."""
    killed(programs, 1, 5)


def busbard_killed_right_after_dangerous_acts(programs):
    """Death just after the request that must not be repeated reached the device: accounts, password, push, resets."""
    acts = [("r01/c01", "account_create"), ("r01/c02", "password_change"), ("r01/c03", "update_push"), ("r01/c04", "manager_reset"),
            ("r01/c01", "reset")]
    with harness.Site(programs, seed=7) as site:
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r01", "--yes")
        for device, act in acts:
            site.follow(lambda row, where=device, what=act: row["device"] == where and row["act"] == what)
            site.end("busbard-r01", hard=True)
            site.start_busbard("r01")
        site.busbar_is(0, "wait", "racks", "r01", "--for", "state=production", "--timeout", "120s")
        in_production(site)
        bad = repeats(site.journal())
        harness.check(not bad, "\n  ".join(bad))


def interlock_killed_in_mid_bring_up(programs):
    """No host goes on while the interlock is dead; the bring-up goes on once it is back."""
    with harness.Site(programs) as site:
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r01", "--yes")
        site.follow(lambda row: row["act"] == "password_change" and row["device"].startswith("r01/c"))
        site.end("interlock-r01", hard=True)
        dead_from = max(row["number"] for row in site.journal())
        harness.until(lambda: all("INTERLOCK" in word_of(one) for slot, one in site.nodes().items() if slot[0] == "c"),
                      "every compute tray waits for the interlock", 60)
        ons = [row for row in site.journal() if row["act"] == "reset" and row["argument"] == "On" and row["device"][4] != "p"
               and row["number"] > dead_from]
        harness.equal(ons, [], "power-ons without an interlock")
        harness.equal(site.truth("r01/compute_on"), 0, "compute hosts on without an interlock")
        site.start_interlock("r01")
        site.busbar_is(0, "wait", "racks", "r01", "--for", "state=production", "--timeout", "120s")
        in_production(site)


def word_of(status):
    return (status["waitsFor"] + " " + (status["failure"] or {}).get("fault", "")).upper()


if __name__ == "__main__":
    harness.run([busbard_killed_at_seeded_moments, busbard_killed_right_after_dangerous_acts, interlock_killed_in_mid_bring_up])
