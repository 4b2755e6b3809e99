"""What an operator does beside a bring-up: shut down, cancel, retry, bad files, unknown names, a full disk."""
import contextlib
import os
import shutil
import subprocess
import tempfile

import harness
from faults_test import COMPUTE


def shutdown_in_reverse(programs):
    """Compute, switches, shelf, each read back off; one tray's ForceOff takes effect late. Then up again."""
    with harness.Site(programs) as site:
        site.apply()
        site.bring_up()
        site.fault("off_ignored", "r01/c03", "--severity", "2")
        before = max(row["number"] for row in site.journal())
        site.busbar_is(0, "rack", "shutdown", "r01", "--wait", "--yes", "--timeout", "90s")
        offs = [row for row in site.journal() if row["number"] > before and row["act"] == "reset"
                and row["argument"] in ("ForceOff", "GracefulShutdown")]
        kinds = "".join(row["device"][4] for row in sorted(offs, key=lambda one: one["received_ns"]))
        harness.check(kinds.strip("c").strip("p") in ("s" * kinds.count("s"),) and kinds == "".join(sorted(kinds, key="csp".index)),
                      "offs not in the order compute, switch, shelf: " + kinds)
        harness.equal({row["device"] for row in offs}, {"r01/" + slot for slot in COMPUTE + ["s01", "p01"]}, "devices told to go off")
        harness.equal((site.truth("r01/compute_on"), site.truth("r01/switch_on"), site.truth("r01/shelves_on")), (0, 0, 0), "still on")
        read_back(site, before)
        site.clear()
        site.bring_up()
        harness.equal(site.rack()["state"], "production", "the rack after its second bring-up")


def read_back(site, before):
    """No host's power is taken by the shelf before that host was read after its off."""
    rows = sorted((row for row in site.journal() if row["number"] > before), key=lambda one: one["received_ns"])
    cut = next(row["received_ns"] for row in rows if row["device"] == "r01/p01" and row["act"] == "reset")
    for slot in COMPUTE + ["s01"]:
        mine = [row for row in rows if row["device"] == "r01/" + slot and row["received_ns"] < cut]
        off = next(row["received_ns"] for row in mine if row["act"] == "reset")
        harness.check(any(row["method"] == "GET" and row["path"].endswith("/System_0") and row["received_ns"] > off for row in mine),
                      slot + " was not read back before its shelf went off")


def cancel_and_go_on(programs):
    with harness.Site(programs) as site:
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r01", "--yes")
        site.follow(lambda row: row["act"] == "account_create")
        operation = next(one for one in site.busbar_is(0, "ops", "-o", "json").json()["items"] if one["verb"] == "rack_bringup")
        name = operation["name"].replace("racks/", "")
        site.busbar_is(0, "ops", "cancel", name, "--yes")
        harness.check(site.busbar("wait", "operations", name, "--timeout", "30s").code == 1, "a cancelled operation is no success")
        site.bring_up()
        harness.equal(site.rack()["state"], "production", "the rack")


def refusals(programs):
    """Bad files with all their errors at once, unknown names, a repeated request id."""
    with harness.Site(programs) as site:
        bad = site.folder + "/bad"
        shutil.copytree(site.sim_dir + "/site", bad)
        path = bad + "/manifests/r01.yaml"
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("site: lab", "sight: lab").replace("02:18:01:00:00:02", "02:18:01:00:00:01")
                       .replace("gates: [node, rack]", "gates: [node, moon]"))
        done = site.busbar_is(2, "manifest", "apply", bad, "--yes")
        for word in ("sight", "02:18:01:00:00:01", "moon", "r01.yaml"):
            harness.check(word in done.err + done.out, "no word of %r in:\n%s%s" % (word, done.out, done.err))
        harness.equal(site.items("nodes"), [], "nodes stored out of a bad manifest")
        site.apply()
        before = len(site.busbar_is(0, "ops", "-o", "json").json()["items"])
        for words in (["rack", "bringup", "r09"], ["node", "retry", "r01/c09"]):
            done = site.busbar(*words, "--yes")
            harness.check(done.code not in (0, 6), "%s gave %d" % (" ".join(words), done.code))
        harness.equal(len(site.busbar_is(0, "ops", "-o", "json").json()["items"]), before, "operations after refused requests")
        site.busbar_is(0, "rack", "bringup", "r01", "--yes", "--request-id", "once")
        site.busbar_is(0, "rack", "bringup", "r01", "--yes", "--request-id", "once")
        verbs = [one["verb"] for one in site.busbar_is(0, "ops", "-o", "json").json()["items"]]
        harness.equal(verbs.count("rack_bringup"), 1, "bring-ups out of one request id")
        harness.equal(site.busbar("rack", "shutdown", "r01", "--yes", "--request-id", "once").code, 5, "the same id with another body")


@contextlib.contextmanager
def small_disk(size):
    """A disk of its own; taken away again, as a host may see it where mounts are not apart."""
    folder = tempfile.mkdtemp(prefix="busbar-disk-")
    try:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", folder], check=False).returncode != 0:
            raise harness.NotRun("no small disk: this user may not mount one")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
    finally:
        os.rmdir(folder)


def disk_full(programs):
    """Loud and read-only while the disk is full; goes on by itself with room; what was acknowledged is still there."""
    with small_disk("96m") as folder:
        fill_and_free(programs, folder)


def fill_and_free(programs, folder):
    with harness.Site(programs, state_dirs={"r01": folder + "/busbard"}) as site:
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r01", "--yes")
        site.follow(lambda row: row["act"] == "password_change")
        with open(folder + "/ballast", "wb") as ballast:
            try:
                while True:
                    ballast.write(b"\0" * 65536)
                    ballast.flush()
            except OSError:
                pass  # full
        harness.until(lambda: "STORE_READ_ONLY" in site.busbar("rack", "bringup", "r01", "--yes").err or
                      "read_only" in site.log("busbard-r01"), "the full disk is said aloud", 90)
        harness.check(site.busbar("get", "nodes").code == 0, "reads stop when the disk is full")
        site.alive("busbard-r01")
        acknowledged = {one["name"] for one in site.busbar_is(0, "ops", "-o", "json").json()["items"]}
        os.unlink(folder + "/ballast")
        site.busbar_is(0, "wait", "racks", "r01", "--for", "state=production", "--timeout", "120s")
        site.end("busbard-r01", hard=True)
        site.start_busbard("r01")
        after = {one["name"] for one in site.busbar_is(0, "ops", "-o", "json").json()["items"]}
        harness.check(acknowledged <= after, "lost: %r" % (acknowledged - after))
        harness.equal(site.rack()["state"], "production", "the rack after a restart")


if __name__ == "__main__":
    harness.run([shutdown_in_reverse, cancel_and_go_on, refusals, disk_full])
