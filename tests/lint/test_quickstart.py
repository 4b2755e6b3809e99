#!/usr/bin/python3
"""deploy/quickstart with stand-ins for the programs: order, cleaning up, the last line. The real ones run in tests/e2e."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PROGRAMS = ("busbar-sim", "busbard", "busbar-interlock", "busbar")
PRESETS = """{"version": 6, "configurePresets": [{"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev"}],
 "buildPresets": [{"name": "dev", "configurePreset": "dev"}]}"""
STAND_IN = r'''#!/usr/bin/python3
import json, os, signal, socket, sys
here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
name, words = os.path.basename(__file__), sys.argv[1:]

def note(text):
    with open(os.path.join(here, "notes"), "a") as file:
        file.write(text + "\n")

def option(key):
    return words[words.index(key) + 1]

def serve(path=None):
    note("start " + name)
    signal.signal(signal.SIGTERM, lambda *_: (note("stop " + name), os._exit(0)))
    if path:
        socket.socket(socket.AF_UNIX).bind(path)
    signal.pause()
    signal.pause()

if "new" in words:
    open(words[-1], "w").close()
elif name == "busbar-sim" and words[0] == "run":
    serve()
elif name == "busbar-interlock":
    serve(os.path.join(option("--run-dir"), option("--instance"), "interlock.sock"))
elif name == "busbard":
    serve(os.path.join(os.environ["BUSBAR_RUN_DIR"], option("--instance"), "busbard.sock"))
elif name == "busbar":
    note("busbar " + " ".join(words[:3]))
    failed = os.path.exists(os.path.join(here, "fail"))
    if words[0] == "rack" and failed:
        sys.exit(1)
    if words[0] == "get":
        step = "FIRMWARE_CURRENT" if failed else "PRODUCTION"
        member = {"status": {"step": step}}
        rack = {"status": {"state": "cordoned" if failed else "production", "gpus": 72}}
        counts = {"racks": [rack] * 2, "nodes": [member] * 54, "shelves": [{"status": {"step": "PRODUCTION"}}] * 16}
        print(json.dumps({"items": counts[words[1]]}))
'''


class Quickstart(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(os.path.join(ROOT, "deploy"), os.path.join(self.root, "deploy"))
        bin_dir = os.path.join(self.root, "build", "dev", "bin")
        os.makedirs(bin_dir)
        for name in PROGRAMS:
            self.write(os.path.join(bin_dir, name), STAND_IN)
            os.chmod(os.path.join(bin_dir, name), 0o755)
        targets = "".join(f"add_custom_target({name})\n" for name in PROGRAMS)
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\nproject(toy NONE)\n" + targets)
        self.write("CMakePresets.json", PRESETS)
        self.state = os.path.join(self.root, "state")

    def write(self, name, text):
        with open(os.path.join(self.root, name), "w", encoding="utf-8") as file:
            file.write(text)

    def notes(self):
        try:
            with open(os.path.join(self.root, "notes"), encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def start(self, *options):
        return subprocess.Popen([os.path.join(self.root, "deploy/quickstart"), "--no-install", "--state-dir", self.state, *options],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        out, err = process.communicate(timeout=50)
        return process.returncode, out, err

    def test_both_racks_come_up_and_the_last_line_says_so(self):
        code, out, err = self.finish(self.start("--exit"))
        self.assertEqual(code, 0, err)
        last = json.loads(out.rstrip().split("\n")[-1])
        self.assertGreaterEqual(last.pop("seconds"), 0)
        self.assertEqual(last, {"racks": 2, "production": 2, "nodes": 54, "shelves": 16, "gpus": 144})
        notes = self.notes()
        self.assertEqual(notes[:6], ["start busbar-sim", "start busbard"] + ["start busbar-interlock", "start busbard"] * 2)
        self.assertTrue(notes[6].startswith("busbar manifest apply"))
        self.assertEqual(notes[-6:], ["stop busbard", "stop busbar-interlock"] * 2 + ["stop busbard", "stop busbar-sim"])

    def test_a_rack_that_does_not_come_up_is_1_and_still_gives_the_line(self):
        self.write("fail", "")
        code, out, err = self.finish(self.start("--exit"))
        self.assertEqual(code, 1)
        self.assertIn("not everything reached production", err)
        last = json.loads(out.rstrip().split("\n")[-1])
        self.assertEqual((last["racks"], last["production"], last["nodes"]), (2, 0, 0))
        self.assertEqual(sum(note.startswith("stop ") for note in self.notes()), 6)

    def test_a_program_that_cannot_be_built_names_the_stage(self):
        self.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.25)\nproject(toy NONE)\n")
        code, _, err = self.finish(self.start("--exit"))
        self.assertEqual(code, 1)
        self.assertIn("stopped at: build", err)
        self.assertFalse(os.path.exists(self.state))

    def test_stays_until_interrupted_then_stops_all_and_runs_again_only_alone(self):
        process = self.start()
        end = time.monotonic() + 30
        while "busbar get shelves" not in " ".join(self.notes()) and time.monotonic() < end:
            time.sleep(0.05)
        refused, _, err = self.finish(self.start("--exit"))
        self.assertEqual(refused, 2)
        self.assertIn("already running", err)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        code, out, err = self.finish(process)
        self.assertEqual(code, 0, err)
        self.assertIn("export BUSBAR_RUN_DIR=", out)
        self.assertEqual(sum(note.startswith("stop ") for note in self.notes()), 6)

    def test_begins_from_dark_unless_told_to_keep(self):
        self.assertEqual(self.finish(self.start("--exit"))[0], 0)
        kept = os.path.join(self.state, "sim", "kept")
        self.write(kept, "")
        for rest in os.listdir(os.path.join(self.state, "run", "r01")):
            os.unlink(os.path.join(self.state, "run", "r01", rest))
        shutil.rmtree(os.path.join(self.state, "run"))
        self.assertEqual(self.finish(self.start("--exit", "--keep"))[0], 0)
        self.assertTrue(os.path.exists(kept))
        self.assertEqual(self.finish(self.start("--exit"))[0], 0)
        self.assertFalse(os.path.exists(kept))


if __name__ == "__main__":
    unittest.main()
