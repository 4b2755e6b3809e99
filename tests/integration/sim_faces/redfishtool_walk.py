"""DMTF's redfishtool reads every kind of device and turns a host on and off."""
import json
import os
import subprocess
import sys

from simulator import Simulator

tool = "/usr/bin/redfishtool"
if not os.path.exists(tool):
    sys.exit(77)

with Simulator(sys.argv[1]) as sim:
    def run(octets, *words, user="root", password=None, auth="Session"):
        done = subprocess.run([tool, "-r", sim.host(octets) + ":8443", "-S", "Always", "-A", auth, "-u", user,
                               "-p", password or sim.password, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout) if done.stdout.lstrip().startswith("{") else done.stdout

    sim.shelves_on()
    for octets, collections in {"1.1": ["Systems", "Chassis", "Managers"], "1.31": ["Systems", "Chassis", "Managers"],
                                "1.51": ["Chassis", "Managers"]}.items():
        assert run(octets, "root")["UUID"]
        for collection in collections:
            assert run(octets, collection)["Members@odata.count"] >= 1
        assert run(octets, "AccountService", "Accounts")["Members@odata.count"] == 1
    tray = run("1.1", "Systems", "-I", "System_0")
    assert tray["PowerState"] == "Off" and tray["SerialNumber"] == "SN1801001", tray
    run("1.1", "Systems", "-I", "System_0", "reset", "On")
    sim.wait_for("r01/c01/host", "OSRunning")
    assert run("1.1", "Systems", "-I", "System_0", auth="Basic")["PowerState"] == "On"
    run("1.1", "Systems", "-I", "System_0", "reset", "ForceOff")
    sim.wait_for("r01/c01/power", "Off")
    cdu = run("200.1", "raw", "GET", "/redfish/v1/ThermalEquipment/CDUs/1/SecondaryCoolantConnectors/r01", user="reader",
              password=sim.reader_password, auth="Basic")
    assert cdu["FlowLitersPerMinute"]["Reading"] > 24, cdu
    run("1.51", "AccountService", "adduser", "inspector", "a-long-secret", "ReadOnly")
    assert "inspector" in sim.truth("r01/p01/accounts")
    secrets = [row for row in sim.journal() if "a-long-secret" in json.dumps(row)]
    assert not secrets, secrets
print("walked")
