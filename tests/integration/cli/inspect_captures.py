"""`busbar bmc inspect URL` against `busbar-sim replay DIR`, for every captured tree with a service root.

The tree is read here a second time, by other code, and what the program says is held against it: a part is shown as good only
where a body of that part says so, sensors are counted alike, the exit code is that of the health. Then each tree is served once
more with every word of health taken out: nothing at all may then be good, dry or done."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

busbar, simulator, captures = sys.argv[1:4]
CODES = {"good": 0, "bad": 1, "UNKNOWN": 3}
LIMIT_S = 60


def inspect(tree):
    """Exit code and report of one run, the two programs alone on a port of their own."""
    served = subprocess.Popen([simulator, "replay", tree, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        ready = served.stdout.readline().split()
        assert ready and ready[0] == "READY", (tree, ready)
        done = subprocess.run([busbar, "bmc", "inspect", ready[1], "-o", "json", "--timeout", "%ds" % LIMIT_S],
                              capture_output=True, text=True, timeout=2 * LIMIT_S, check=False)
    finally:
        served.terminate()
        served.wait(20)
    assert done.stderr == "", (tree, done.stderr)
    return done.returncode, json.loads(done.stdout)


def bodies(tree):
    """URI to body, of what is JSON."""
    found = {}
    for path, _, files in os.walk(tree):
        if "index.json" not in files:
            continue
        try:
            with open(os.path.join(path, "index.json"), encoding="utf-8") as body:
                found["/" + os.path.relpath(path, tree)] = json.load(body)
        except ValueError:
            continue
    return found


def objects(body, uri):
    """Every JSON object of a body, with the URI nearest to it."""
    if isinstance(body, dict):
        uri = body["@odata.id"] if isinstance(body.get("@odata.id"), str) else uri
        yield uri, body
        for value in body.values():
            yield from objects(value, uri)
    elif isinstance(body, list):
        for value in body:
            yield from objects(value, uri)


def healths(all_bodies):
    """What is said of the health of everything with a given Id, MemberId, serial or name: {id: {OK, Critical, ...}}."""
    said = collections.defaultdict(set)
    for uri, body in all_bodies.items():
        for at, item in objects(body, uri):
            status = item.get("Status")
            if not isinstance(status, dict) or not isinstance(status.get("Health"), str):
                continue
            names = {str(item[key]) for key in ("Id", "MemberId", "Name", "SerialNumber") if key in item}
            for name in names | {at.rstrip("/").rsplit("/", 1)[-1]}:
                said[name].add(status["Health"])
    return said


def check_parts(tree, report, all_bodies):
    said = healths(all_bodies)
    shown = 0
    for kind in ("systems", "processors", "asics", "supplies"):
        for part in report[kind]:
            assert part["health"] in ("good", "bad", "UNKNOWN", "absent"), (tree, part)
            if part["health"] == "good":
                assert "OK" in said[part["id"]], (tree, kind, part, said[part["id"]])
                shown += 1
            if part["health"] == "bad":
                assert said[part["id"]] & {"Warning", "Critical"}, (tree, kind, part, said[part["id"]])
    return shown


def check_detectors(tree, report, all_bodies):
    # A detector of its own body: dry only where that body says OK twice.
    states = {}
    for uri, body in all_bodies.items():
        for _, item in objects(body, uri):
            if "DetectorState" in item:
                key = str(item.get("Id") or item.get("MemberId"))
                states[key] = (item["DetectorState"], (item.get("Status") or {}).get("Health"))
    for detector in report["detectors"]:
        if detector["verdict"] == "dry" and not detector["aggregate"]:
            assert states.get(detector["id"]) == ("OK", "OK"), (tree, detector, states.get(detector["id"]))
        assert detector["verdict"] in ("dry", "leak", "unknown"), (tree, detector)


def check_sensors(tree, report, all_bodies):
    listed = set()
    for uri, body in all_bodies.items():
        if re.search(r"/Sensors$", uri) and isinstance(body, dict) and isinstance(body.get("Members"), list):
            listed |= {member["@odata.id"].rstrip("/") for member in body["Members"] if "@odata.id" in member}
    counted = report["sensors"]
    assert counted["read"] + counted["noValue"] + counted["noBody"] == counted["listed"], (tree, counted)
    read = {at.rstrip("/") for uri, body in all_bodies.items() for at, item in objects(body, uri)
            if "/Sensors/" in at and isinstance(item.get("Reading"), (int, float)) and not isinstance(item["Reading"], bool)}
    assert counted["read"] <= len(read), (tree, counted, len(read))
    assert counted["listed"] >= len(listed), (tree, counted, len(listed))


def without_health(value):
    """Every word of health, and of a leak detector's state, becomes null."""
    if isinstance(value, dict):
        return {key: None if key in ("Health", "HealthRollup", "DetectorState") else without_health(inner)
                for key, inner in value.items()}
    return [without_health(inner) for inner in value] if isinstance(value, list) else value


def write_without_health(tree, folder):
    for uri, body in bodies(tree).items():
        path = folder + uri
        os.makedirs(path)
        with open(os.path.join(path, "index.json"), "w", encoding="utf-8") as out:
            json.dump(without_health(body), out)


def check_without_health(tree):
    with tempfile.TemporaryDirectory() as folder:
        write_without_health(tree, folder)
        code, report = inspect(folder)
    assert code in (1, 3) and report["health"] != "good", (tree, code, report["health"])
    for kind in ("systems", "processors", "asics", "supplies"):
        for part in report[kind]:
            assert part["health"] != "good", (tree, kind, part)
    for detector in report["detectors"]:
        assert detector["verdict"] != "dry", (tree, detector)


def main():
    trees = 0
    good = 0
    for name in sorted(os.listdir(captures)):
        tree = os.path.join(captures, name)
        if not os.path.exists(os.path.join(tree, "redfish", "v1", "index.json")):
            continue
        trees += 1
        code, report = inspect(tree)
        assert report["reachable"] and code == CODES[report["health"]], (name, code, report["health"])
        all_bodies = bodies(tree)
        good += check_parts(name, report, all_bodies)
        check_detectors(name, report, all_bodies)
        check_sensors(name, report, all_bodies)
        check_without_health(tree)
        print("%-32s exit %d, %s" % (name, code, report["health"]), flush=True)
    assert trees >= 10 and good >= 20, (trees, good)


main()
