"""OpenStack's Redfish client takes a compute tray from off to on and reads what it is."""
import os
import sys
import warnings

# A CA bundle named in the environment would override verify=False.
for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
    os.environ.pop(name, None)

try:
    import sushy
    import sushy.auth
except ImportError:
    sys.exit(77)

from simulator import Simulator

warnings.filterwarnings("ignore")

with Simulator(sys.argv[1]) as sim:
    sim.shelves_on()
    url = "https://%s:8443/redfish/v1" % sim.host("1.1")
    root = sushy.Sushy(url, verify=False, auth=sushy.auth.SessionAuth("root", sim.password))
    system = root.get_system("/redfish/v1/Systems/System_0")
    assert system.power_state == sushy.POWER_STATE_OFF, system.power_state
    assert system.serial_number == "SN1801001", system.serial_number
    assert len(system.processors.get_members()) == 2
    assert system.memory_summary.size_gib == 16 * 96
    assert system.bios.attributes["SecureBoot"] == "Enabled"
    assert len(system.storage.get_members()[0].drives) == 4
    assert sushy.RESET_ON in system.get_allowed_reset_system_values()
    system.reset_system(sushy.RESET_ON)
    sim.wait_for("r01/c01/host", "OSRunning")
    system.refresh(force=True)
    assert system.power_state == sushy.POWER_STATE_ON, system.power_state
    chassis = root.get_chassis("/redfish/v1/Chassis/Chassis_0")
    assert chassis.power_state == sushy.POWER_STATE_ON
    manager = root.get_manager("/redfish/v1/Managers/BMC_0")
    assert manager.firmware_version == "25.07-2", manager.firmware_version
    inventory = root.get_update_service().firmware_inventory.get_members()
    assert len(inventory) == 10, len(inventory)
    switch = sushy.Sushy("https://%s:8443/redfish/v1" % sim.host("1.31"), verify=False,
                         auth=sushy.auth.BasicAuth("root", sim.password))
    assert switch.get_system("/redfish/v1/Systems/System_0").power_state == sushy.POWER_STATE_OFF
    shelf = sushy.Sushy("https://%s:8443/redfish/v1" % sim.host("1.51"), verify=False,
                        auth=sushy.auth.BasicAuth("root", sim.password))
    assert shelf.get_chassis("/redfish/v1/Chassis/PowerShelf_0").power_state == sushy.POWER_STATE_ON
    resets = [row for row in sim.journal() if row["act"] == "reset" and row["device"] == "r01/c01"]
    assert len(resets) == 1 and resets[0]["argument"] == "On", resets
print("walked")
