"""Two racks of the quickstart's size, judged by what the simulator saw and is, not by the daemons' own word.

With --state-dir DIR of a running deploy/quickstart: checks that one. Else it brings two racks up itself.
"""
import argparse
import collections
import json
import os
import sys

import harness

COMPUTE, SWITCH, SHELF = 18, 9, 8


class Running:
    """A quickstart that someone else started."""

    def __init__(self, programs, state_dir):
        self.programs, self.state_dir = programs, state_dir

    call = harness.Site.call
    must = harness.Site.must
    busbar = harness.Site.busbar
    busbar_is = harness.Site.busbar_is
    items = harness.Site.items
    program = harness.Site.program
    sim = harness.Site.sim
    truth = harness.Site.truth
    journal = harness.Site.journal

    @property
    def sim_dir(self):
        return self.state_dir + "/sim"

    def environment(self):
        return {**os.environ, "BUSBAR_RUN_DIR": self.state_dir + "/run", "BUSBAR_SIM_STATE_DIR": self.sim_dir}


def check_truth(site, racks):
    on = {"compute": 0, "switch": 0}
    for rack in racks:
        truth = site.truth(rack)
        on["compute"] += truth["compute_on"]
        on["switch"] += truth["switch_on"]
        harness.check(truth["flow_lpm"] > 120, "%s: flow is %r L/min" % (rack, truth["flow_lpm"]))
        harness.equal(truth["shelves_on"], SHELF, "shelves on in " + rack)
    harness.equal(on, {"compute": COMPUTE * len(racks), "switch": SWITCH * len(racks)}, "hosts on")


def check_journal(site, racks):
    """For each tray: two accounts made, one password changed, and the firmware read back after the last change of it."""
    count, pushed, read_back = collections.Counter(), collections.defaultdict(list), collections.defaultdict(int)
    for row in site.journal():
        if row["status"] < 400:
            count[(row["device"], row["act"])] += 1
        if row["act"] == "update_push":
            pushed[row["device"]].append(row["number"])
        if row["method"] == "GET" and row["status"] == 200 and "/FirmwareInventory" in row["path"]:
            read_back[row["device"]] = row["number"]
    trays = ["%s/%s%02d" % (rack, kind, n + 1) for rack in racks for kind, most in (("c", COMPUTE), ("s", SWITCH), ("p", SHELF))
             for n in range(most)]
    for tray in trays:
        harness.equal((count[(tray, "account_create")], count[(tray, "password_change")]), (2, 1), "accounts and passwords of " + tray)
        if tray[4] != "p":
            harness.check(read_back[tray] > max(pushed[tray], default=0), "%s: firmware not read back after its last push" % tray)
    harness.check(sum(len(all_of) for all_of in pushed.values()) > 0, "no firmware was pushed at all")


def check_evidence(site, racks):
    """Each compute tray's suite stands in the events, with its evidence."""
    proved = set()
    for event in site.busbar_is(0, "events", "--limit", "100000", "-o", "json").json()["items"]:
        text = json.dumps(event)
        if "sha256:" in text and "suite" in text:
            proved.add(event["object"].replace("racks/", "").replace("nodes/", ""))
    wanted = {"%s/c%02d" % (rack, n + 1) for rack in racks for n in range(COMPUTE)}
    harness.check(wanted <= proved, "no suite with evidence in the events of: " + " ".join(sorted(wanted - proved)))


def check_all(site, racks):
    check_truth(site, racks)
    check_journal(site, racks)
    check_evidence(site, racks)


def two_racks(programs):
    with harness.Site(programs, sku="vr-nvl72", racks=2) as site:
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r[01-02]", "--wait", "--yes", "--timeout", "200s", seconds=230)
        check_all(site, site.racks)
        harness.equal([one["status"]["state"] for one in site.items("racks")], ["production"] * 2, "racks")


if __name__ == "__main__":
    if "--state-dir" in sys.argv:
        options = argparse.ArgumentParser(description=__doc__)
        options.add_argument("programs")
        options.add_argument("--state-dir", required=True)
        options.add_argument("--racks", type=int, default=2)
        given = options.parse_args()
        check_all(Running(os.path.abspath(given.programs), os.path.abspath(given.state_dir)),
                  ["r%02d" % (n + 1) for n in range(given.racks)])
        print("checked from outside: hosts, flow, accounts, firmware read-back, evidence")
    else:
        harness.run([two_racks])
