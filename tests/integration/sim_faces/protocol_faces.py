"""The faces other than Redfish as programs see them that nobody here wrote: the CDU's registers by pymodbus and libmodbus,
the PDUs' outlets by net-snmp's tools under v2c and v3.

protocol_faces.py BUSBAR_SIM [LIBMODBUS_PEER]
"""
import shutil
import subprocess
import sys
import time

from simulator import Simulator

OUTLETS = {  # control, state, codes of (on, off) in each
    "1.81": (".1.3.6.1.4.1.13742.6.4.1.2.1.2.1.1", ".1.3.6.1.4.1.13742.6.4.1.2.1.3.1.1", ("1", "0"), ("7", "8")),
    "1.82": (".1.3.6.1.4.1.318.1.1.26.9.2.4.1.5.1", ".1.3.6.1.4.1.318.1.1.26.9.2.3.1.5.1", ("1", "2"), ("1", "2")),
}


def modbus(sim, peer):
    from pymodbus.client import ModbusTcpClient
    with ModbusTcpClient(sim.host("200.1"), port=5020, timeout=20) as client:
        inputs = client.read_input_registers(0, 19, slave=1).registers
        assert abs(inputs[3] * 0.1 - 60) < 3, inputs  # differential pressure, kPa
        assert abs(inputs[0] * 0.01 - 32) < 1, inputs  # supply, C
        settings = client.read_holding_registers(0, 8, slave=1).registers
        assert settings[0] == 320 and settings[1] == 600, settings
        assert not client.write_register(1, 450, slave=1).isError()
        assert client.write_register(1, 900, slave=1).isError()      # beyond 80 kPa
        assert client.write_register(200, 1, slave=1).isError()      # nothing there
        assert client.read_holding_registers(500, 1, slave=1).isError()
        assert client.read_holding_registers(1, 1, slave=1).registers == [450]
        sim.wait_for("cdu01/set_points/differential_pressure", 45.0)
        assert not client.write_registers(4, [700, 700], slave=1).isError()
        assert client.read_holding_registers(3, 1, slave=1).registers == [3]
        sim.wait_for("cdu01/pumps/1/mode", "Override")
        assert not client.write_register(3, 0, slave=1).isError()
        sim.wait_for("cdu01/pumps/1/mode", "Automatic")
        sim.ask("fault", "add", "modbus_exception", "cdu01")
        assert client.read_holding_registers(1, 1, slave=1).isError()
        sim.ask("fault", "clear", "modbus_exception")
        assert client.read_holding_registers(1, 1, slave=1).registers == [450]
        sim.ask("fault", "add", "modbus_late", "cdu01", "--severity", "0.5")
        began = time.monotonic()
        assert client.read_holding_registers(1, 1, slave=1).registers == [450]
        assert time.monotonic() - began >= 0.5
        sim.ask("fault", "clear", "modbus_late")
    if peer:
        words = subprocess.run([peer, "read", "5020", "0", "2", sim.host("200.1")], capture_output=True, text=True, timeout=30)
        assert words.stdout.split() == ["320", "450"], words
    rows = [row for row in sim.journal() if row.get("method") == "MODBUS"]
    assert [row["argument"] for row in rows][0] == "differential_pressure_set 45.0", rows


def snmp(sim):
    secret = open(sim.folder + "/site/pdu.pw").read().strip()
    ways = [["-v2c", "-c", secret],
            ["-v3", "-u", "pdu", "-l", "authPriv", "-a", "SHA", "-A", secret, "-x", "AES", "-X", secret]]

    def tool(name, way, octets, *words):
        return subprocess.run([name, *way, "-t", "5", "-r", "2", "-On", "-Oq", "-Ot", sim.host(octets) + ":1161", *words],
                              capture_output=True, text=True, timeout=60)

    for octets, (control, state, codes, shown) in OUTLETS.items():
        for way in ways:
            for on in (False, True):
                done = tool("snmpset", way, octets, control, "i", codes[0 if on else 1])
                assert done.returncode == 0, done
                sim.wait_for("r01/pdus/u0%s/1/on" % octets[-1], on)
                read = tool("snmpget", way, octets, state)
                assert read.stdout.split() == [state, shown[0 if on else 1]], read
            walk = tool("snmpbulkwalk", way, octets, ".1.3.6.1.4.1")
            assert walk.returncode == 0 and len(walk.stdout.splitlines()) >= 24, walk
        assert tool("snmpset", ways[0], octets, control, "i", "9").returncode != 0   # no such code
        assert tool("snmpset", ways[0], octets, state, "i", "1").returncode != 0     # not writable
        assert "No Such Instance" in tool("snmpget", ways[0], octets, state + ".9").stdout
    wrong = [["-v2c", "-c", "public"], ["-v3", "-u", "pdu", "-l", "noAuthNoPriv"]]
    for way in wrong:
        assert subprocess.run(["snmpget", *way, "-t", "1", "-r", "0", sim.host("1.81") + ":1161", OUTLETS["1.81"][1]],
                              capture_output=True, timeout=30).returncode != 0, way


with Simulator(sys.argv[1]) as sim:
    missing = [tool for tool in ("snmpget", "snmpset", "snmpbulkwalk") if shutil.which(tool) is None]
    try:
        import pymodbus  # noqa: F401
    except ImportError:
        missing.append("pymodbus")
    if missing:
        print("not run: without " + ", ".join(missing))
        sys.exit(77)
    modbus(sim, sys.argv[2] if len(sys.argv) > 2 else None)
    snmp(sim)
    refused = subprocess.run([sys.argv[1], "fault", "clear", "77", "--state-dir", sim.folder], capture_output=True, text=True)
    assert refused.returncode == 1 and "no fault 77" in refused.stderr, refused
print("held")
