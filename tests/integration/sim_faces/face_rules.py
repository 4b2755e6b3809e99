"""Rules of the HTTPS face: one request at a time a device, keep-alive, refused while a BMC is down, changed certificates,
leases, events, the control socket."""
import json
import socket
import ssl
import subprocess
import sys
import threading
import time

from simulator import Simulator


def fingerprint(sim, octets):
    return ssl.get_server_certificate((sim.host(octets), 8443))


with Simulator(sys.argv[1]) as sim:
    # A BMC without standby power does not shake hands.
    try:
        sim.request("1.1", "GET", "/redfish/v1")
        raise AssertionError("a dark BMC answered")
    except (ConnectionError, OSError):
        pass

    # Keep-alive: several requests on one connection.
    kept = sim.connect("1.51")
    for _ in range(5):
        status, _ = sim.request("1.51", "GET", "/redfish/v1/Chassis", connection=kept)
        assert status == 200
    kept.close()

    # One request at a time: with many clients, answers of one device never overlap in the order of its journal.
    def hammer():
        for _ in range(10):
            assert sim.request("1.51", "GET", "/redfish/v1/Chassis/PowerShelf_0")[0] == 200
    clients = [threading.Thread(target=hammer) for _ in range(4)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    # A row is written after its answer went out: the last one may come a moment later than the client's answer.
    rows = []
    for _ in range(100):
        rows = [row for row in sim.journal() if row["device"] == "r01/p01"]
        if len(rows) >= 45:
            break
        time.sleep(0.05)
    assert len(rows) == 45, len(rows)
    answered = [row["answered_ns"] for row in rows]
    assert answered == sorted(answered)
    assert all(row["received_ns"] <= row["answered_ns"] for row in rows)
    assert all(row["user"] == "root" and row["peer"] for row in rows)

    # The certificate stays until a fault changes it.
    pinned = fingerprint(sim, "1.51")
    assert fingerprint(sim, "1.51") == pinned
    sim.ask("fault", "add", "certificate_changed", "r01/p01")
    assert fingerprint(sim, "1.51") != pinned
    sim.ask("fault", "clear", "certificate_changed")
    assert fingerprint(sim, "1.51") == pinned

    # A duplicate BMC shows in the leases while the fault lasts.
    def macs():
        return [line.split()[1] for line in open(sim.folder + "/site/leases")]
    assert len(set(macs())) == len(macs())
    sim.ask("fault", "add", "duplicate_bmc", "r01/c01")
    assert macs().count("02:18:01:00:00:02") == 2
    sim.ask("fault", "clear")
    assert len(set(macs())) == len(macs())

    # Events reach an open stream.
    sim.shelves_on()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    stream = context.wrap_socket(socket.create_connection((sim.host("1.1"), 8443), timeout=20))
    import base64
    login = base64.b64encode(("root:" + sim.password).encode()).decode()
    stream.sendall(("GET /redfish/v1/EventService/SSE HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\n\r\n" % login).encode())
    seen = b""
    while b"\r\n\r\n" not in seen:
        seen += stream.recv(4096)
    assert b"200" in seen.split(b"\r\n")[0] and b"text/event-stream" in seen, seen
    sim.ask("fault", "add", "leak", "r01/c01/0_ColdPlate")
    while b"LeakDetectedCritical" not in seen:
        part = stream.recv(4096)
        assert part, seen
        seen += part
    stream.close()

    # The control socket refuses what it does not know; exit codes tell.
    def code(*words):
        return subprocess.run([sys.argv[1], *words], capture_output=True).returncode
    assert code("fault", "add", "no_such", "r01/c01", "--state-dir", sim.folder) == 1
    assert code("truth", "no/such", "--state-dir", sim.folder) == 1
    assert code("truth", "--state-dir", "/nowhere") == 7
    assert code("truth", "--no-such-option") == 2
    assert json.loads(sim.ask("fault", "list", "-o", "json"))[0]["kind"] == "leak"
print("held")
