"""What busbard keeps and holds on to: closed folders, one daemon a store, a store that is gone, members in use."""
import os
import shutil
import stat
import subprocess

import harness
from operator_test import small_disk


def loose(folder):
    """Everything under the folder that others may touch; sockets and the folders above them have modes of their own."""
    found = []
    for where, folders, files in os.walk(folder):
        for name in [where] + [os.path.join(where, one) for one in folders + files]:
            mode = os.lstat(name).st_mode
            wanted = 0o700 if stat.S_ISDIR(mode) else 0o600
            if not stat.S_ISSOCK(mode) and stat.S_IMODE(mode) & ~wanted:
                found.append("%s %04o" % (name, stat.S_IMODE(mode)))
    return sorted(set(found))


def state_is_private(programs):
    """Store, evidence, agents, CA, mark, and the interlock's record and latches; a folder that was open is closed."""
    with harness.Site(programs) as site:
        site.apply()
        site.bring_up()
        var = site.folder + "/var/r01"
        for folder in (var + "/busbard", var + "/interlock"):
            harness.equal(loose(folder), [], "open to others under " + folder)
        for name in ("store/CURRENT", "journal_id", "busbard.lock"):
            harness.check(os.path.exists("%s/busbard/%s" % (var, name)), "no %s: the walk looked elsewhere" % name)
        run = "%s/r01" % site.run_dir
        harness.check(os.stat(run).st_mode & 0o005 == 0o005, "others cannot reach the sockets in " + run)
        site.end("busbard-r01")
        for where, folders, files in os.walk(var + "/busbard"):  # as a release that kept no umask left it
            for name in [where] + [os.path.join(where, one) for one in folders + files]:
                os.chmod(name, 0o755 if os.path.isdir(name) else 0o644)
        site.start_busbard("r01")
        harness.equal(loose(var + "/busbard"), [], "open to others after a start on an open folder")


def busbard(site, name, run_dir, state_dir, *options):
    """Runs a busbard of r01 until it ends by itself."""
    path = "%s/var/%s.yaml" % (site.folder, name)
    with open(site.folder + "/var/r01/busbard.yaml", encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith(("run_dir:", "state_dir:"))]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines + ["run_dir: %s\n" % run_dir, "state_dir: %s\n" % state_dir])
    return site.call(site.program("busbard"), "--config", path, *options)


def one_daemon_a_store(programs):
    """A second busbard on the state folder, or on the sockets, is told who is there; so is a second interlock."""
    with harness.Site(programs) as site:
        state, other = site.folder + "/var/r01/busbard", site.folder + "/other"
        pid = str(subprocess.check_output(["fuser", state + "/busbard.lock"], stderr=subprocess.DEVNULL, text=True).split()[0]) \
            if shutil.which("fuser") else ""
        for run_dir, state_dir, held in ((other + "/run", state, state), (site.run_dir, other + "/state", site.run_dir + "/r01")):
            second = busbard(site, "second", run_dir, state_dir)
            harness.equal(second.code, 5, "the end of a second busbard; it said: " + second.err)
            for word in (held, "instance r01", "process " + pid, "stop that one first"):
                harness.check(word in second.err, "no word of %r in %s" % (word, second.err))
            harness.check("rocksdb" not in second.err.lower() and "IO error" not in second.err, "the store's own words: " + second.err)
        twin = site.call(site.program("busbar-interlock"), "--instance", "r01", "--run-dir", other, "--state-dir",
                         site.folder + "/var", "--key-file", site.folder + "/var/r01/interlock.key")
        harness.equal(twin.code, 5, "the end of a second interlock; it said: " + twin.err)
        site.apply()


def store_gone(programs):
    """A store that is gone is not a first start: refused with the way out, begun anew only when told, and only once."""
    with harness.Site(programs) as site:
        site.apply()
        state = site.folder + "/var/r01/busbard"
        site.end("busbard-r01")
        os.rename(state + "/store", state + "/store.away")
        refused = busbard(site, "gone", site.run_dir, state)
        harness.equal(refused.code, 5, "the end of a busbard without its store; it said: " + refused.err)
        with open(state + "/journal_id", encoding="utf-8") as file:
            journal = file.read().strip()
        for word in ("--accept-empty-store", state + "/store", journal):
            harness.check(word in refused.err, "no word of %r in %s" % (word, refused.err))
        harness.check(not os.path.exists(state + "/store"), "a refused start made a store")
        os.rename(state + "/store.away", state + "/store")
        site.start_busbard("r01")
        harness.equal(len(site.nodes()), 5, "nodes of the store that was put back")
        site.end("busbard-r01")
        shutil.rmtree(state + "/store")
        site.launch("busbard-r01", site.program("busbard"), "--config", site.folder + "/var/r01/busbard.yaml", "--accept-empty-store")
        harness.until(lambda: site.alive("busbard-r01") and site.serves("r01"), "busbard answers on an empty store", 60)
        harness.equal(site.items("nodes"), [], "nodes of an empty store")
        site.end("busbard-r01")
        site.start_busbard("r01")


def bytes_under(folder):
    """What every file but the lock's words holds, by path."""
    found = {}
    for where, _, files in os.walk(folder):
        for name in files:
            with open(os.path.join(where, name), "rb") as file:
                found[os.path.join(where, name)] = b"" if name == "busbard.lock" else file.read()
    return found


def no_room_at_start(programs):
    """A start on a full or read-only disk ends with a named error, leaves everything as it was, and goes on with room."""
    with small_disk("96m") as folder, harness.Site(programs, state_dirs={"r01": folder + "/busbard"}) as site:
        state = folder + "/busbard"
        site.apply()
        site.end("busbard-r01", hard=True)
        before = bytes_under(state)
        with open(folder + "/full", "wb") as full:
            full.write(b"\0" * (os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize))
        for words in (("bytes are free", "are needed"), ("read-only",)):
            refused = busbard(site, "full", site.run_dir, state)
            harness.equal(refused.code, 5, "the end of a busbard without room; it said: " + refused.err)
            for word in ("STORE_READ_ONLY", state, "nothing was started or changed") + words:
                harness.check(word in refused.err, "no word of %r in %s" % (word, refused.err))
            harness.check(bytes_under(state) == before, "a refused start changed the state folder")
            if "read-only" not in words:
                os.unlink(folder + "/full")
                subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
        site.start_busbard("r01")
        harness.equal(len(site.nodes()), 5, "nodes after a start with room")


def log_damaged(programs):
    """One flipped bit in the store's log is never silence: refused by name, gone on from only when a person accepts the loss."""
    with harness.Site(programs) as site:
        site.apply()
        state = site.folder + "/var/r01/busbard"
        site.end("busbard-r01", hard=True)
        log = max((state + "/store/" + name for name in os.listdir(state + "/store") if name.endswith(".log")), key=os.path.getsize)
        with open(log, "r+b") as file:
            file.seek(os.path.getsize(log) * 2 // 3)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 0x04]))
        before = bytes_under(state)
        refused = busbard(site, "damaged", site.run_dir, state)
        harness.equal(refused.code, 5, "the end of a busbard on a damaged log; it said: " + refused.err)
        for word in ("STORE_DAMAGED", log, "acknowledged", "--accept-lost-tail"):
            harness.check(word in refused.err, "no word of %r in %s" % (word, refused.err))
        harness.check(bytes_under(state) == before, "a refused start changed the state folder")
        with open(state + "/journal_id", encoding="utf-8") as file:
            parent = file.read()
        site.launch("busbard-r01", site.program("busbard"), "--config", site.folder + "/var/r01/busbard.yaml", "--accept-lost-tail")
        harness.until(lambda: site.alive("busbard-r01") and site.serves("r01"), "busbard answers after an accepted loss", 60)
        told = site.busbar_is(0, "events").out
        harness.check(os.path.basename(log) in told and "--accept-lost-tail" in told, "no word of what was accepted in:\n" + told)
        with open(state + "/journal_id", encoding="utf-8") as file:
            harness.check(file.read() != parent, "the journal kept its id")
        site.end("busbard-r01", hard=True)
        site.start_busbard("r01")


def members_in_use(programs):
    """A member in production is neither dropped nor re-keyed; what runs and what has ended is named."""
    with harness.Site(programs) as site:
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r01", "--yes")
        second = site.busbar_is(5, "rack", "bringup", "r01", "--yes")
        name = next(one["name"] for one in site.busbar_is(0, "ops", "-o", "json").json()["items"]
                    if one["verb"] == "rack_bringup").replace("racks/", "")
        harness.check("busbar ops cancel " + name in second.err, "no way to stop what runs in: " + second.err)
        site.busbar_is(0, "wait", "racks", "r01", "--for", "state=production", "--timeout", "150s")
        late = site.busbar_is(5, "ops", "cancel", name, "--yes")
        harness.check("SUCCEEDED" in late.err, "not how it ended: " + late.err)
        changed = site.folder + "/changed"
        shutil.copytree(site.sim_dir + "/site", changed)
        path = changed + "/manifests/r01.yaml"
        with open(path, encoding="utf-8") as file:
            text = file.read()
        harness.check("02:18:01:00:00:02" in text, "c02's MAC is not in the manifest")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("02:18:01:00:00:02", "02:18:01:00:0f:02"))
        before = site.nodes()["c02"]["step"]
        for words in (["--dry-run"], ["--yes"]):
            refused = site.busbar_is(5, "manifest", "apply", changed, *words)
            for word in ("MEMBER_IN_USE", "r01/c02", "busbar rack shutdown r01"):
                harness.check(word in refused.err + refused.out, "no word of %r in:\n%s%s" % (word, refused.out, refused.err))
        harness.equal(site.nodes()["c02"]["step"], before, "c02 after a refused manifest")
        site.busbar_is(0, "rack", "shutdown", "r01", "--wait", "--yes", "--timeout", "90s")
        site.busbar_is(0, "manifest", "apply", changed, "--yes")
        harness.equal(site.nodes()["c02"]["step"], "DECLARED", "c02 with another BMC")


def interlock_put_back(programs):
    """An older sealed record under the same key, as a disk put back brings it: seen, told, and replaced by a newer one."""
    with harness.Site(programs) as site:
        record = site.folder + "/var/r01/interlock/record.sealed"
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r01", "--yes")
        harness.until(lambda: os.path.exists(record), "the first arming record", 60)
        shutil.copy(record, site.folder + "/older")
        site.busbar_is(0, "wait", "racks", "r01", "--for", "state=production", "--timeout", "150s")
        for bring_back in (lambda: shutil.copy(site.folder + "/older", record), lambda: os.unlink(record)):
            before = generation(record)
            site.end("interlock-r01", hard=True)
            bring_back()
            site.start_interlock("r01")
            harness.until(lambda: generation(record) > before, "a newer record than before the roll-back", 60)
            told = site.busbar_is(0, "events").out
            harness.check("INTERLOCK_RECORD_CURRENT" in told, "no word of the roll-back in the events:\n" + told)
            harness.until(lambda: not [one for one in site.items("racks", "r01")[0]["conditions"]
                                       if one["type"].startswith("INTERLOCK_") and one["health"] != "HEALTH_GOOD"],
                          "the interlock's conditions are good again", 60)
        harness.equal(site.rack()["state"], "production", "the rack after two roll-backs")


def latches_put_back(programs):
    """A latch file of before an emergency stop lifts it not: told, and no host comes on until a person resets "*"."""
    with harness.Site(programs) as site:
        latches = site.folder + "/var/r01/interlock/latches.bin"
        site.apply()
        site.busbar_is(0, "rack", "bringup", "r01", "--yes")
        site.busbar_is(0, "wait", "racks", "r01", "--for", "state=production", "--timeout", "150s")
        shutil.copy(latches, site.folder + "/older")
        person = [site.program("busbar-interlock")]
        there = ["--instance", "r01", "--run-dir", site.run_dir, "--reason", "smoke"]
        harness.equal(site.call(*person, "trip", "r01", *there, "--yes").code, 0, "the emergency stop")
        done = lambda: "done, latched" in site.call(*person, "status", *there[:4]).out
        harness.until(done, "the trip is done", 30)
        harness.until(lambda: "an emergency stop of r01" in str(conditions(site, "INTERLOCK_ARMED")), "its cause is named", 30)
        site.end("interlock-r01", hard=True)
        shutil.copy(site.folder + "/older", latches)
        site.start_interlock("r01")
        harness.until(lambda: conditions(site, "INTERLOCK_LATCHES_KEPT"), "the roll-back is shown", 30)
        told = lambda: "latch file" in site.call(*person, "status", *there[:4]).out
        harness.until(told, "the interlock keeps its gates closed", 30)
        harness.equal(site.call(*person, "status", *there[:4]).code, 1, "a status over a lost latch")
        answer = lambda: site.call(*person, "reset", "*", *there)
        harness.until(lambda: answer().code == 0, "a person resets *", 30)
        harness.until(lambda: not conditions(site, "INTERLOCK_LATCHES_KEPT"), "the condition is good again", 30)


def conditions(site, kind):
    """Messages of the rack's conditions of this kind that are not good."""
    return [one["message"] for one in site.items("racks", "r01")[0]["conditions"]
            if one["type"] == kind and one["health"] != "HEALTH_GOOD"]


def generation(record):
    """Of a sealed record, out of its open header; 0: there is none."""
    if not os.path.exists(record):
        return 0
    with open(record, "rb") as file:
        return int.from_bytes(file.read(16)[8:], "big")


def faults_that_fit_nothing(programs):
    with harness.Site(programs) as site:
        for kind, target, words in (("link_down", "r01/c02/gpu1", "gpuN/nvlinkM"), ("psu", "r01/c02", "rNN/pNN"),
                                    ("pump", "cdu01/r01_rope", "as a whole"), ("leak", "r01/c02/gpu1", "0_ColdPlate")):
            refused = site.call(site.program("busbar-sim"), "fault", "add", kind, target, "--state-dir", site.sim_dir)
            harness.check(refused.code != 0 and words in refused.err + refused.out,
                          "%s on %s: %d %s%s" % (kind, target, refused.code, refused.out, refused.err))
        harness.equal(site.sim("fault", "list", "-o", "json").strip(), "[]", "faults put on")


if __name__ == "__main__":
    harness.run([state_is_private, one_daemon_a_store, store_gone, no_room_at_start, log_damaged, members_in_use, interlock_put_back, latches_put_back, faults_that_fit_nothing])
