"""Faults through the real programs: each is named with what was expected and seen, its tray stops, the others go on."""
import base64
import http.client
import json
import os
import re
import ssl

import harness

COMPUTE = ["c01", "c02", "c03", "c04"]


def hasten(site, **deadlines):
    """Shorter deadlines in the site's own baseline: what never comes is named sooner."""
    folder = site.sim_dir + "/site/baselines/"
    for name in os.listdir(folder):
        with open(folder + name, encoding="utf-8") as file:
            text = file.read()
        for step, wanted in deadlines.items():
            text, changed = re.subn(r"\b%s: \d+s" % step, "%s: %s" % (step, wanted), text)
            harness.check(changed == 1, "no deadline %s in %s" % (step, name))
        with open(folder + name, "w", encoding="utf-8") as file:
            file.write(text)


def failing(site, faults, wanted, state, deadlines=None):
    """A bring-up with faults (member, kind, options...); wanted: slot -> fault or (fault, expected, seen)."""
    for kind, target, *options in faults:
        site.fault(kind, "r01/" + target, *options)
    hasten(site, **(deadlines or {}))
    site.apply()
    site.bring_up(code=1)
    named(site, wanted)
    harness.equal(site.rack()["state"], state, "the rack")


def named(site, wanted):
    def all_stopped():
        nodes = site.nodes()
        return all(nodes[slot]["failure"] for slot in wanted) and nodes
    nodes = harness.until(all_stopped, "every faulty tray stops", 90)
    for slot, word in wanted.items():
        failure = nodes[slot]["failure"]
        fault, *values = [word] if isinstance(word, str) else word
        harness.equal(failure["fault"], fault, "fault of %s (%s)" % (slot, failure["message"]))
        harness.check(failure["message"] and failure["nextStep"] and failure["step"], "%s: failure without words: %r" % (slot, failure))
        if values:
            harness.equal((failure["expected"], failure["seen"]), tuple(values), "expected and seen of " + slot)
    others = {slot: one["failure"] for slot, one in nodes.items() if slot not in wanted and one["failure"]}
    harness.equal(others, {}, "trays without a fault that failed all the same")


def mended(site):
    """The faults go, each stopped tray is retried, and the rack reaches production."""
    site.clear()
    for slot, one in site.nodes().items():
        if one["failure"]:
            site.busbar_is(0, "node", "retry", "r01/" + slot, "--wait", "--yes", "--timeout", "90s")
    site.bring_up()
    harness.equal(site.rack()["state"], "production", "the rack after mending")
    harness.equal({slot: one["step"] for slot, one in site.nodes().items()}, dict.fromkeys(COMPUTE + ["s01"], "PRODUCTION"), "nodes")


def redfish(site, octets, method, path, body=None):
    """One request of a person with the factory login."""
    with open(site.sim_dir + "/site/factory.pw", encoding="utf-8") as file:
        password = file.read().strip()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.18." + octets, 8443, timeout=20, context=context)
    login = base64.b64encode(("root:" + password).encode()).decode()
    connection.request(method, path, body and json.dumps(body), {"Authorization": "Basic " + login})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def identity(programs):
    with harness.Site(programs) as site:
        failing(site, [("wrong_serial", "c01"), ("na_serial", "c02"), ("wrong_slot", "c03"), ("foreign_owner", "c04")],
                {"c01": ("IDENTITY_SERIAL_MISMATCH", "SN1801001", "SN1801001X"), "c02": ("IDENTITY_SERIAL_PLACEHOLDER", "SN1801002", '"NA"'),
                 "c03": ("IDENTITY_WRONG_SLOT", "c03", "c04"), "c04": "OWNED_ELSEWHERE"}, "cordoned")
        # Nothing was given to a tray that is not proven to be the declared one.
        touched = {row["device"] for row in site.journal() if row["act"] in ("account_create", "password_change")}
        harness.check(not touched & {"r01/" + slot for slot in COMPUTE}, "accounts changed on %r" % sorted(touched))
        status, text = redfish(site, "1.4", "DELETE", "/redfish/v1/AccountService/Accounts/busbar-deadbeef")
        harness.check(status in (200, 204), "the other Busbar's account could not be deleted: %d %s" % (status, text))
        mended(site)


def credentials(programs):
    with harness.Site(programs) as site:
        failing(site, [("factory_refused", "c01"), ("change_required", "c02"), ("duplicate_bmc", "c03")],
                {"c01": "CREDENTIAL_FACTORY_REFUSED", "c03": "BMC_UNREACHABLE", "c04": "IDENTITY_DUPLICATE"}, "cordoned",
                {"discovered": "10s"})  # c03 announces itself as c04: of c03 nothing is heard
        harness.until(lambda: site.nodes()["c02"]["step"] == "CREDENTIALED", "a demanded password change is made", 60)
        tries = [row for row in site.journal() if row["device"] == "r01/c01" and row["method"] == "POST" and row["status"] == 401]
        harness.check(len(tries) <= 3, "%d refused logins: near the lock-out" % len(tries))
        mended(site)
        changes = [row["device"] for row in site.journal() if row["act"] == "password_change" and row["status"] < 400]
        harness.equal(sorted(changes), sorted("r01/" + slot for slot in COMPUTE + ["s01", "p01", "m01"]), "password changes")


def power(programs):
    with harness.Site(programs) as site:
        failing(site, [("leak", "c01/0_ColdPlate"), ("detector_fault", "c02"), ("reset_not_offered", "c03", "--value", "On")],
                {"c01": "POWER_LEAK_LATCHED", "c02": "POWER_DETECTOR_UNKNOWN", "c03": "POWER_RESET_NOT_OFFERED"}, "cordoned",
                {"staged": "20s"})
        for slot in ("c01", "c02", "c03"):
            harness.equal(site.truth("r01/%s/power" % slot), "Off", "power of " + slot)


def staging(programs):
    with harness.Site(programs) as site:
        failing(site, [("agent_silent", "c01"), ("wrong_agent_serial", "c02"), ("missing_gpu", "c03"), ("pcie_degraded", "c04")],
                {"c01": "AGENT_NOT_SEEN", "c02": "AGENT_SERIAL_MISMATCH", "c03": ("INVENTORY_MISSING", "4 gpu", "3"),
                 "c04": "INVENTORY_PCIE_DEGRADED"}, "cordoned", {"staged": "20s"})
        mended(site)


def firmware(programs):
    with harness.Site(programs) as site:
        failing(site, [("firmware_unchanged", "c01/UEFI"), ("firmware_refused", "c02/UEFI"), ("config_read_only", "c03"),
                       ("task_vanishes", "c04"), ("already_400", "c04")],
                {"c01": "FIRMWARE_UNCHANGED", "c02": "FIRMWARE_REFUSED", "c03": "CONFIG_READ_ONLY"}, "cordoned")
        mended(site)


def image_digest(programs):
    with harness.Site(programs) as site:
        path = site.sim_dir + "/site/fw/compute_tray-NIC_0.fwpkg"
        with open(path, "r+b") as file:
            file.seek(100)
            kept = file.read(1)
            file.seek(100)
            file.write(bytes([kept[0] ^ 1]))
        failing(site, [], dict.fromkeys(COMPUTE, "FIRMWARE_DIGEST"), "cordoned")
        pushed = [row["device"] for row in site.journal() if row["act"] == "update_push" and row["argument"] == "NIC_0"]
        harness.equal(pushed, [], "pushes of an image that is not the baseline's")
        with open(path, "r+b") as file:
            file.seek(100)
            file.write(kept)
        mended(site)


def bad_data(programs):
    """Slow, 5xx, wrong types, unknown words, half pages: that value is unknown, the rest lives."""
    with harness.Site(programs) as site:
        failing(site, [("unknown_enum", "c01", "--value", "LeakDetectors"), ("half_page", "c02", "--value", "Processors"),
                       ("string_for_number", "c03"), ("slow_bmc", "c04", "--severity", "3"), ("error_5xx", "s01", "--severity", "0.1")],
                {"c01": "POWER_DETECTOR_UNKNOWN", "c02": "INVENTORY_INCOMPLETE", "c03": "POWER_DETECTOR_UNKNOWN"}, "cordoned", {"staged": "20s", "inspected": "20s"})
        harness.equal(site.truth("r01/c01/power"), "Off", "power of a tray whose detectors say nothing known")
        site.alive("busbard-r01")
        mended(site)


def suite_below_limit(programs):
    """One tray of four measures too little: degraded, its tray named, exit 1."""
    with harness.Site(programs) as site:
        failing(site, [("slow_gpu", "c01/gpu2")], {"c01": "SUITE_BELOW_LIMIT"}, "degraded")
        rows = site.nodes()["c01"]["suite"]["failures"]
        harness.check(rows and all(row["gpu"] == 2 for row in rows), "failures: %r" % rows)
        harness.equal({slot: one["step"] for slot, one in site.nodes().items() if slot != "c01"},
                      dict.fromkeys(["c02", "c03", "c04", "s01"], "PRODUCTION"), "the others")
        mended(site)


def link_down(programs):
    """One NVLink of 288 is down: named with its GPU and count; the rack waits for it and goes on once it is mended."""
    with harness.Site(programs) as site:
        site.fault("link_down", "r01/c02/gpu1/nvlink3")
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r01", "--yes")
        harness.until(lambda: "r01/c02 GPU_1: 17 links up" in site.rack()["waitsFor"], "the missing link is named", 90)
        harness.equal(site.rack()["step"], "POWERED", "the rack's step")
        site.clear()
        site.busbar_is(0, "wait", "racks", "r01", "--for", "state=production", "--timeout", "90s")


if __name__ == "__main__":
    harness.run([identity, credentials, power, staging, firmware, image_digest, bad_data, suite_below_limit, link_down])
