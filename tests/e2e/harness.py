"""The programs as a user runs them: a simulator, and a busbard and busbar-interlock for each of its racks.

Every test runs in a network, mount and process namespace of its own, so that parallel runs share no address and nothing outlives
the test; where the host permits none, a lock file puts the tests one after another. Waits watch what the programs say; the only
pauses are between two looks, and each wait has an end.
"""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

OWN = "BUSBAR_E2E_NAMESPACE"
SPACES = (["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"],
          ["--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"],
          ["--net", "--mount", "--fork"],
          ["--net", "--fork", "--kill-child"])  # a chroot, whose root is no mount of its own
NOT_RUN = 77  # ctest's SKIP_RETURN_CODE: counted, never called passed


def own_namespace():
    """Starts this script again in namespaces of its own; returns at once where it already is."""
    if os.environ.get(OWN) == "yes":
        return True
    unshare = shutil.which("unshare") or "/usr/bin/unshare"
    for spaces in SPACES:
        probe = [unshare, *spaces, "sh", "-c", "ip link set lo up"]
        if os.path.exists(unshare) and subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            script = 'ip link set lo up && exec "$@"'
            os.environ[OWN] = "yes"
            os.execv(unshare, [unshare, *spaces, "sh", "-c", script, "sh", sys.executable, *sys.argv])
    global lock  # held until the process ends
    lock = open(os.path.join(tempfile.gettempdir(), "busbar-e2e.lock"), "w", encoding="utf-8")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return False


class Answer:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def json(self):
        return json.loads(self.out)


class Failed(AssertionError):
    pass


class NotRun(Exception):
    """This host cannot run the test: counted, never called passed."""


def check(true, what):
    if not true:
        raise Failed(what)


def equal(seen, expected, what):
    check(seen == expected, "%s: expected %r, seen %r" % (what, expected, seen))


def until(look, what, seconds=60):
    """The first answer of look() that is true; looks again until it is, or until its time is up."""
    end = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        check(time.monotonic() < end, "not within %d s: %s" % (seconds, what))
        time.sleep(0.05)


class Site:
    """One simulated site and the programs that run its racks."""

    def __init__(self, programs, sku="vr-4x1", profile="instant", racks=1, seed=1, state_dirs=None, plant=False):
        self.programs = programs
        self.racks = ["r%02d" % (n + 1) for n in range(racks)]
        self.arguments = ["--racks", str(racks), "--profile", profile, "--seed", str(seed), "--sku", sku]
        self.state_dirs = state_dirs or {}
        self.folder = tempfile.mkdtemp(prefix="bb-")
        self.run_dir, self.sim_dir = self.folder + "/run", self.folder + "/sim"
        self.plant = "plant1" if plant else None
        if plant:
            self.arguments += ["--plant", "unix:%s/plant1/busbard.sock" % self.run_dir]
        self.processes = {}  # name -> Popen, in order of start
        self.logs = {}
        self.ended = []      # (name, code) of programs that were ended on purpose

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, *unused):
        if kind is not None and kind is not KeyboardInterrupt:
            self.show_state()
        for name in reversed(list(self.processes)):
            self.end(name)
        if kind is not None and kind is not KeyboardInterrupt:
            self.show_logs()
        if os.environ.get("BUSBAR_E2E_KEEP"):
            print("kept: " + self.folder)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        os.makedirs(self.run_dir)
        self.start_sim()
        if self.plant:
            self.prepare(self.plant, "plant")
            self.start_busbard(self.plant, "plant")
        for rack in self.racks:
            self.prepare(rack)
            self.start_interlock(rack)
            self.start_busbard(rack)

    # --- programs -------------------------------------------------------------------------------------------------------------
    def program(self, name):
        return os.path.join(self.programs, name)

    def launch(self, name, *words):
        path = "%s/%s.log" % (self.folder, name)
        self.logs[name] = path
        with open(path, "ab") as log:
            # A session of its own: Ctrl-C reaches the test, which ends them in order.
            self.processes[name] = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment(),
                                                    start_new_session=True)

    def environment(self):
        return {**os.environ, "BUSBAR_RUN_DIR": self.run_dir, "BUSBAR_SIM_STATE_DIR": self.sim_dir}

    def end(self, name, hard=False):
        process = self.processes.pop(name, None)
        if process is None:
            return None
        process.send_signal(signal.SIGKILL if hard else signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
            print("%s did not stop in 20 s and was killed" % name, file=sys.stderr)
        return process.returncode

    def alive(self, name):
        code = self.processes[name].poll()
        check(code is None, "%s ended by itself with %r" % (name, code))
        return True

    def start_sim(self):
        self.launch("sim", self.program("busbar-sim"), "run", "--state-dir", self.sim_dir, *self.arguments)
        until(lambda: self.alive("sim") and "READY" in self.log("sim"), "the simulator is ready", 60)

    def prepare(self, rack, role="rack"):
        var = "%s/var/%s" % (self.folder, rack)
        os.makedirs(var, exist_ok=True)
        state = self.state_dirs.get(rack, var + "/busbard")
        os.makedirs(state, exist_ok=True)
        self.must(self.program("busbard"), "vault-key", "new", var + "/vault.key")
        self.must(self.program("busbar-interlock"), "key", "new", var + "/interlock.key")
        with open(var + "/busbard.yaml", "w", encoding="utf-8") as file:
            file.write("apiVersion: busbar.v1\nkind: Daemon\ninstance: %s\nrole: %s\nrun_dir: %s\nstate_dir: %s\n"
                       "site_dir: %s/site\nvault_key_file: %s/vault.key\n" % (rack, role, self.run_dir, state, self.sim_dir, var))

    def start_interlock(self, rack):
        var = "%s/var" % self.folder
        self.launch("interlock-" + rack, self.program("busbar-interlock"), "--instance", rack, "--run-dir", self.run_dir,
                    "--state-dir", var, "--key-file", "%s/%s/interlock.key" % (var, rack))
        until(lambda: self.alive("interlock-" + rack) and os.path.exists("%s/%s/interlock.sock" % (self.run_dir, rack)),
              "the interlock's socket", 30)

    def start_busbard(self, rack, role="rack"):
        self.launch("busbard-" + rack, self.program("busbard"), "--role", role, "--instance", rack, "--config",
                    "%s/var/%s/busbard.yaml" % (self.folder, rack))
        until(lambda: self.alive("busbard-" + rack) and self.serves(rack), "busbard of %s answers" % rack, 60)

    def serves(self, rack):
        return os.path.exists("%s/%s/busbard.sock" % (self.run_dir, rack)) and self.busbar("get", "daemons").code == 0

    def log(self, name):
        with open(self.logs[name], encoding="utf-8", errors="replace") as file:
            return file.read()

    def show_state(self):
        for words in (["get", "racks"], ["get", "nodes", "-o", "wide"], ["get", "shelves"], ["ops"]):
            print(self.busbar(*words, "--call-timeout", "2s").out, file=sys.stderr)
        if self.racks and os.environ.get("BUSBAR_E2E_KEEP"):
            with open(self.folder + "/nodes.json", "w", encoding="utf-8") as file:
                file.write(self.busbar("get", "nodes", "-o", "json", "--call-timeout", "2s").out)
            with open(self.folder + "/journal.json", "w", encoding="utf-8") as file:
                file.write(self.sim("journal", "-o", "json"))

    def show_logs(self, lines=25):
        for name in self.logs:
            print("--- %s\n%s" % (name, "\n".join(self.log(name).splitlines()[-lines:])), file=sys.stderr)

    # --- commands -------------------------------------------------------------------------------------------------------------
    def call(self, *words, seconds=120):
        return Answer(subprocess.run(words, capture_output=True, text=True, timeout=seconds, env=self.environment(),
                                     stdin=subprocess.DEVNULL, check=False))

    def must(self, *words, seconds=120):
        done = self.call(*words, seconds=seconds)
        check(done.code == 0, "%s gave %d: %s%s" % (" ".join(words), done.code, done.out, done.err))
        return done

    def busbar(self, *words, seconds=300):
        return self.call(self.program("busbar"), *words, seconds=seconds)

    def busbar_is(self, code, *words, seconds=300):
        done = self.busbar(*words, seconds=seconds)
        check(done.code == code, "busbar %s gave %d, not %d:\n%s%s" % (" ".join(words), done.code, code, done.out, done.err))
        return done

    def apply(self):
        return self.busbar_is(0, "manifest", "apply", self.sim_dir + "/site", "--yes")

    def bring_up(self, rack="r01", code=0, seconds=150):
        return self.busbar_is(code, "rack", "bringup", rack, "--wait", "--yes", "--timeout", "%ds" % seconds, seconds=seconds + 20)

    def items(self, kind, *names):
        return self.busbar_is(0, "get", kind, *names, "-o", "json").json()["items"]

    def nodes(self):
        """slot -> status; of all racks by rack/slot where there are several."""
        return {short(one["name"]) if len(self.racks) > 1 else one["spec"]["slot"]: one["status"] for one in self.items("nodes")}

    def rack(self, name="r01"):
        return self.items("racks", name)[0]["status"]

    # --- the simulator's side -----------------------------------------------------------------------------------------------------
    def sim(self, *words):
        return self.must(self.program("busbar-sim"), *words, "--state-dir", self.sim_dir).out

    def truth(self, path=""):
        return json.loads(self.sim("truth", *([path] if path else []), "-o", "json"))

    def fault(self, kind, target, *options):
        self.sim("fault", "add", kind, target, *options)

    def clear(self, *words):
        self.sim("fault", "clear", *words)

    def journal(self):
        return rows_of(self.sim("journal", "-o", "json"))

    def follow(self, wanted):
        """Follows the simulator's journal from its beginning until a row for which wanted(row) is true, and gives that row."""
        with subprocess.Popen([self.program("busbar-sim"), "journal", "-f", "-o", "json", "--state-dir", self.sim_dir],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as follower:
            try:
                for line in follower.stdout:
                    row = json.loads(line)
                    if wanted(row):
                        return row
                raise Failed("the simulator's journal ended")
            finally:
                follower.kill()


def rows_of(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def short(name):
    """racks/r01/nodes/c07 -> r01/c07"""
    words = name.split("/")
    return words[1] + "/" + words[3]


def run(tests):
    """tests: functions of one argument, the folder of the programs. argv: FOLDER [name...]"""
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print("usage: %s FOLDER_OF_PROGRAMS [test...]: %s" % (sys.argv[0], ", ".join(t.__name__ for t in tests)), file=sys.stderr)
        sys.exit(2)
    programs, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    known = {test.__name__: test for test in tests}
    if unknown := [name for name in wanted if name not in known]:
        print("no such test: " + " ".join(unknown), file=sys.stderr)
        sys.exit(2)
    own_namespace()
    bad, skipped = [], []
    for name, test in known.items():
        if wanted and name not in wanted:
            continue
        began = time.monotonic()
        try:
            test(programs)
            verdict = "passed"
        except NotRun as why:
            verdict = "NOT RUN"
            skipped.append(name)
            print("%s: %s" % (name, why), file=sys.stderr)
        except Exception as error:  # one failed test does not hide the others
            if not isinstance(error, Failed):
                traceback.print_exc()
            print("%s: %s" % (name, error), file=sys.stderr)
            verdict = "FAILED"
            bad.append(name)
        print("%-7s %s (%.1f s)" % (verdict, name, time.monotonic() - began), flush=True)
    sys.exit(1 if bad else NOT_RUN if skipped else 0)
