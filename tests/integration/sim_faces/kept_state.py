"""A restarted simulator keeps certificates, accounts, firmware and power states."""
import shutil
import ssl
import sys
import tempfile

from simulator import Simulator

folder = tempfile.mkdtemp(prefix="busbar-sim-")
try:
    with Simulator(sys.argv[1], folder=folder) as sim:
        sim.shelves_on()
        pin = ssl.get_server_certificate((sim.host("1.1"), 8443))
        status, text = sim.request("1.1", "PATCH", "/redfish/v1/AccountService/Accounts/root", {"Password": "a-new-secret"})
        assert status == 204, text
        first = len(sim.journal())
    with Simulator(sys.argv[1], folder=folder) as sim:
        sim.wait_for("r01/c01/bmc_alive", True)
        assert ssl.get_server_certificate((sim.host("1.1"), 8443)) == pin
        assert sim.request("1.1", "GET", "/redfish/v1/Chassis", password="a-new-secret")[0] == 200
        assert sim.request("1.1", "GET", "/redfish/v1/Chassis")[0] == 401
        assert len(sim.journal()) == first + 2
finally:
    shutil.rmtree(folder, ignore_errors=True)
print("kept")
