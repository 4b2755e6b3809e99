#!/usr/bin/python3
"""What can be checked of deploy/ without building anything: syntax, options, package list, units."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SCRIPTS = ("deploy/test", "deploy/bench", "deploy/quickstart", ".ci/run")


def run(*command, env=None):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=False, env=env)


def shell(code):
    return run("bash", "-euo", "pipefail", "-c", f"BUSBAR_ROOT={ROOT}; . deploy/lib.sh; {code}")


class Deploy(unittest.TestCase):
    def test_scripts_parse_and_are_executable(self):
        for script in SCRIPTS + ("deploy/lib.sh",):
            self.assertEqual(run("bash", "-n", script).stderr, "", script)
        for script in SCRIPTS:
            self.assertTrue(os.access(os.path.join(ROOT, script), os.X_OK), script)

    def test_help_works_and_an_unknown_option_is_usage(self):
        for script in SCRIPTS[:3]:
            helped = run(script, "--help")
            self.assertEqual((helped.returncode, helped.stderr), (0, ""), script)
            self.assertTrue(helped.stdout.startswith("usage: "), script)
            wrong = run(script, "--no-such-option")
            self.assertEqual((wrong.returncode, wrong.stdout), (2, ""), script)

    def test_packages_are_listed_by_section_and_once(self):
        sections = {name: shell(f"packages_of {name}").stdout.split() for name in ("build", "run", "test")}
        for name, packages in sections.items():
            self.assertGreater(len(packages), 2, name)
            self.assertEqual(len(packages), len(set(packages)), name)
            for package in packages:
                self.assertRegex(package, r"^[a-z0-9][a-z0-9+.-]+$")
        together = shell("packages_of build run test").stdout.split()
        self.assertEqual(set(together), set().union(*sections.values()))
        self.assertEqual(len(together), len(set(together)))

    def test_every_package_has_its_reason_in_the_readme(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            readme = file.read()
        for package in shell("packages_of build run test").stdout.split():
            self.assertIn(f"`{package}`", readme)

    def test_a_package_that_is_not_there_is_missing(self):
        self.assertEqual(shell("missing_of no-such-package-1").stdout.split(), ["no-such-package-1"])

    def test_quickstart_removes_no_folder_that_it_did_not_make(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "kept")
            with open(kept, "w", encoding="utf-8"):
                pass
            with open(os.path.join(ROOT, "deploy/quickstart"), encoding="utf-8") as file:
                text = file.read()
            prepare = re.search(r"^prepare_state\(\) \{.*?^\}", text, re.M | re.S).group(0)
            names = f"state_dir={folder} mark={folder}/.busbar-quickstart keep=no run_dir=x sim_dir=x log_dir=x; "
            refused = shell(names + prepare + "\nprepare_state")
            self.assertEqual(refused.returncode, 2)
            self.assertIn("not made by this script", refused.stderr)
            self.assertTrue(os.path.exists(kept))

    def test_an_unknown_benchmark_is_named(self):
        wrong = run("deploy/bench", "no_such_benchmark", "--no-install")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("no_such_benchmark", wrong.stderr)


@unittest.skipIf(shutil.which("systemd-analyze") is None, "systemd-analyze is not here")
class Units(unittest.TestCase):
    def test_systemd_accepts_the_units(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name in ("busbard@", "busbar-interlock@"):
                with open(os.path.join(ROOT, "deploy/systemd", name + ".service"), encoding="utf-8") as file:
                    text = file.read()
                # verify wants the program to be there; what is installed is not what is tested here.
                text = re.sub(r"^ExecStart=/usr/bin/busbar\S+", "ExecStart=/bin/true", text, flags=re.M)
                paths.append(os.path.join(folder, name + "r01.service"))
                with open(os.path.join(folder, name + ".service"), "w", encoding="utf-8") as file:
                    file.write(text)
                with open(paths[-1], "w", encoding="utf-8") as file:
                    file.write(text)
            checked = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *paths)
            self.assertEqual((checked.returncode, checked.stderr), (0, ""))


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)  # 77: ctest counts it as not run
