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


PROJECT = """cmake_minimum_required(VERSION 3.25)
project(toy NONE)
enable_testing()
add_custom_target(cafree_tests)
add_test(NAME passes COMMAND true)
set_tests_properties(passes PROPERTIES LABELS cafree)
add_test(NAME other COMMAND sh -c "exit $CODE")
set_tests_properties(other PROPERTIES SKIP_RETURN_CODE 77)
"""
PRESETS = """{"version": 6,
 "configurePresets": [{"name": "dev", "generator": "Ninja", "binaryDir": "${sourceDir}/build/dev"},
                      {"name": "asan", "generator": "Ninja", "binaryDir": "${sourceDir}/build/asan"}],
 "buildPresets": [{"name": "dev", "configurePreset": "dev"}, {"name": "asan", "configurePreset": "asan"}]}"""


class Toy(unittest.TestCase):
    """The scripts on a project of two tests, of which the second passes, fails or cannot run."""

    def run_in_toy(self, code, *command):
        with tempfile.TemporaryDirectory() as root:
            for folder in ("deploy", ".ci"):
                shutil.copytree(os.path.join(ROOT, folder), os.path.join(root, folder))
            for name, text in (("CMakeLists.txt", PROJECT.replace("$CODE", str(code))), ("CMakePresets.json", PRESETS)):
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            done = subprocess.run([os.path.join(root, command[0]), "--no-install", *command[1:]], cwd=root, capture_output=True,
                                  text=True, timeout=50, check=False)
            return done.returncode, done.stdout, done.stderr

    def test_all_passed_is_0_and_ends_with_the_summary(self):
        code, out, err = self.run_in_toy(0, "deploy/test")
        self.assertEqual(code, 0, err)
        self.assertIn("NOT RUN: 0", err)
        self.assertRegex(out.rstrip().split("\n\n")[-2], "^100% tests passed, 0 tests failed out of 2$|^Label Time")
        self.assertRegex(out.rstrip().split("\n")[-1], "^Total Test time")

    def test_a_failed_test_is_1(self):
        code, out, _ = self.run_in_toy(5, "deploy/test", "--allow-not-run")
        self.assertEqual(code, 1)
        self.assertIn("50% tests passed, 1 tests failed out of 2", out)

    def test_what_could_not_run_is_counted_and_is_3_unless_allowed(self):
        code, _, err = self.run_in_toy(77, "deploy/test")
        self.assertEqual(code, 3)
        self.assertIn("NOT RUN: 1", err)
        code, _, err = self.run_in_toy(77, "deploy/test", "--allow-not-run")
        self.assertEqual(code, 0)
        self.assertIn("NOT RUN: 1", err)

    def test_ci_ends_with_the_summary_of_all_tests(self):
        code, out, err = self.run_in_toy(77, ".ci/run")
        self.assertEqual(code, 0, err)
        self.assertIn("tests passed, 0 tests failed out of 1\n", out)  # under the sanitizers: the CAF-free one
        self.assertIn("tests passed, 0 tests failed out of 2\n", out.split("from deploy/test:")[-1])

    def test_ci_fails_with_a_failed_test(self):
        self.assertEqual(self.run_in_toy(5, ".ci/run")[0], 1)


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
