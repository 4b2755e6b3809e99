"""A busbar-sim of a test's own: temporary state folder, a loopback network that no other test uses, ended with the test."""
import base64
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import time
import http.client


class Simulator:
    def __init__(self, binary, profile="instant", sku="vr-4x1", racks=1, folder=None, extra=()):
        self.binary = binary
        self.keep = folder is not None
        self.folder = folder or tempfile.mkdtemp(prefix="busbar-sim-")
        self.network = "127.%d" % (40 + os.getpid() % 200)
        self.process = subprocess.Popen(
            [binary, "run", "--state-dir", self.folder, "--profile", profile, "--sku", sku, "--racks", str(racks),
             "--network", self.network, *extra], stdout=subprocess.PIPE, text=True)
        ready = self.process.stdout.readline()
        assert ready.startswith("READY "), ready
        self.password = open(self.folder + "/site/factory.pw").read().strip()
        self.reader_password = open(self.folder + "/site/cdu01.pw").read().strip()

    def __enter__(self):
        return self

    def __exit__(self, failed, *unused):
        self.process.terminate()
        code = self.process.wait(20)
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        assert failed or code == 0, "busbar-sim ended with %d when it was told to stop" % code

    def host(self, octets):
        return self.network + "." + octets

    def ask(self, *words):
        done = subprocess.run([self.binary, *words, "--state-dir", self.folder], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def truth(self, path):
        return json.loads(self.ask("truth", path, "-o", "json"))

    def journal(self):
        return [json.loads(line) for line in self.ask("journal", "-o", "json").splitlines()]

    def connect(self, octets):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(self.host(octets), 8443, timeout=20, context=context)

    def request(self, octets, method, path, body=None, user="root", password=None, connection=None):
        opened = connection or self.connect(octets)
        login = base64.b64encode(("%s:%s" % (user, password or self.password)).encode()).decode()
        opened.request(method, path, json.dumps(body) if body is not None else None, {"Authorization": "Basic " + login})
        reply = opened.getresponse()
        text = reply.read().decode()
        if connection is None:
            opened.close()
        return reply.status, text

    def wait_for(self, path, wanted):
        """Bounded: the simulated plant gets there by itself or the test fails."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            seen = self.truth(path)
            if seen == wanted:
                return
            time.sleep(0.05)
        raise AssertionError("%s is %r, not %r" % (path, seen, wanted))

    def shelves_on(self):
        status, text = self.request("1.51", "POST", "/redfish/v1/Chassis/PowerShelf_0/Actions/Chassis.Reset", {"ResetType": "On"})
        assert status == 204, text
        self.wait_for("r01/c01/bmc_alive", True)
        self.wait_for("r01/s01/bmc_alive", True)
