#!/usr/bin/python3
"""Each rule of lint.py fires on its bad sample, at the right line, and stays silent on the good one."""
import os
import tempfile
import unittest

import lint

HEADER = "#pragma once\n"


def rules_of(files):
    """{path: text} -> [(rule, path, line)]"""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        return [(rule, path, line) for path, line, rule, _ in lint.lint(root)]


class LintRules(unittest.TestCase):
    def fires(self, rule, path, text, line=1, others=None):
        self.assertIn((rule, path, line), rules_of({path: text, **(others or {})}))

    def silent(self, path, text, others=None):
        self.assertEqual(rules_of({path: text, **(others or {})}), [])

    def test_caf_stays_in_its_rooms(self):
        include = "#include <caf/actor.hpp>\n"
        for path in ("actors/node/node_logic.cpp", "actors/core/supervisor_logic.cpp", "actors/node/node_table.cpp",
                     "storage/journal.cpp", "actors/devices/redfish/device.cpp", "gpu/judge/judge.cpp", "fabric/planner.cpp",
                     "daemon/interlock/main.cpp", "daemon/cli/main.cpp", "tests/unit/node/node_logic_test.cpp",
                     "actors/devices/redfish/x_actor.cpp"):
            self.fires("caf-room", path, include)
        for path in ("actors/node/node_actor.cpp", "actors/core/messages.cpp", "daemon/busbard/wiring.cpp", "tests/sim/leak.cpp",
                     "tests/support/deterministic.cpp", "tests/unit/core/journal_actor_test.cpp"):
            self.silent(path, include)

    def test_caf_does_not_come_in_by_the_back_door(self):
        self.fires("caf-room", "actors/node/node_logic.cpp", '#include "actors/node/node_actor.hpp"\n')
        self.fires("caf-room", "storage/journal.cpp", '\n#include "actors/core/journal_interface.hpp"\n', line=2)

    def test_caf_headers_are_narrow(self):
        self.fires("caf-all", "actors/node/node_actor.cpp", "#include <caf/all.hpp>\n")
        self.fires("caf-room", "tests/sim/x.cpp", "#include <caf/test/dsl.hpp>\n")

    def test_nothing_but_tests_looks_into_a_program(self):
        self.fires("daemon-room", "actors/rack/rack_actor.cpp", '#include "daemon/busbard/wiring.hpp"\n')
        self.fires("daemon-room", "daemon/busbard/main.cpp", '#include "daemon/sim/site.hpp"\n')
        self.fires("daemon-room", "daemon/cli/main.cpp", '#include "daemon/agent/token.hpp"\n')
        self.silent("daemon/sim/main.cpp", '#include "daemon/sim/site.hpp"\n')
        self.silent("daemon/busbard/rpc/agent_gate.cpp", '#include "daemon/agent/token.hpp"\n')
        self.silent("tests/e2e/x.cpp", '#include "daemon/sim/site.hpp"\n')
        self.fires("tests-room", "actors/rack/rack_actor.cpp", '#include "tests/support/explorer.hpp"\n')

    def test_product_programs_do_not_link_the_simulator(self):
        sim = {"daemon/sim/CMakeLists.txt": "busbar_library(sim_core)\nbusbar_program(busbar-sim DEPS sim_core)\n"}
        self.fires("links-sim", "daemon/busbard/CMakeLists.txt", "busbar_program(busbard DEPS rack\n sim_core)\n", 2, sim)
        self.silent("daemon/busbard/CMakeLists.txt", "busbar_program(busbard DEPS busbar # not sim_core\n)\n", sim)
        self.silent("tests/sim/CMakeLists.txt", "busbar_test(sim_x DEPS sim_core)\n", sim)

    def test_the_interlock_stands_alone(self):
        self.fires("interlock-room", "daemon/interlock/a.cpp", "#include <rocksdb/db.h>\n")
        self.fires("interlock-room", "daemon/interlock/a.cpp", '#include "storage/journal.hpp"\n')

    def test_logic_is_pure(self):
        self.fires("pure-logic", "actors/node/node_logic.cpp", "#include <fstream>\n")
        self.fires("pure-logic", "actors/node/node_logic.cpp", "void f() { auto t = std::chrono::steady_clock::now(); }\n")
        self.silent("actors/node/node_logic.cpp", "void f(time_point now);  // never steady_clock::now()\n")

    def test_default_captures(self):
        for capture in ("[&]", "[=]", "[&, x]", "[ = , this]"):
            self.fires("default-capture", "actors/node/node_actor.cpp", f"auto f = {capture}(int) {{}};\n")
        self.silent("actors/node/node_actor.cpp", "auto f = [self, &x](int) { a[0] = 1; };\n")

    def test_waits_that_strand_messages(self):
        self.fires("caf-infinite", "actors/node/node_actor.cpp", "auto t = caf::infinite;\n")
        self.fires("caf-await", "actors/node/node_actor.cpp", "void f() { r.await(a, b); }\n")
        self.fires("caf-skip", "actors/node/node_actor.cpp", "void f() { self->set_default_handler(caf::skip); }\n")
        self.silent("actors/node/node_actor.cpp", "// never caf::infinite, .await( or caf::skip\n")

    def test_sleeps(self):
        self.fires("actor-sleep", "actors/node/node_actor.cpp", "void f() { std::this_thread::sleep_for(1s); }\n")
        self.fires("test-sleep", "tests/unit/x/x_test.cpp", "void f() { usleep(5); }\n")
        self.silent("tests/e2e/x_test.cpp", "void f() { usleep(5); }\n")

    def test_a_request_has_two_handlers(self):
        one = "void f() {\n  self->request(a, 1s, x(1, 2))\n    .then([self](int a, int b) { g(a, b); });\n}\n"
        two = "void f() {\n  self->request(a, 1s)\n    .then([self](int a) { g(a, 1); }, [self](caf::error& e) { h(e); });\n}\n"
        self.fires("then-one-handler", "actors/node/node_actor.cpp", one, line=3)
        self.silent("actors/node/node_actor.cpp", two)

    def test_wall_clock(self):
        self.fires("wall-clock", "storage/journal.cpp", "auto t = std::chrono::system_clock::now();\n")
        self.silent("daemon/busbard/main.cpp", "auto t = std::chrono::system_clock::now();\n")

    def test_atoms(self):
        head = HEADER + "CAF_ADD_ATOM(busbar, busbar::atom, start, "
        for text in ("Start", "start_it", "muchtoolonger"):
            self.fires("atom-text", "actors/core/atoms.hpp", head + f'"{text}")\n', line=2)
        self.fires("atom-twice", "actors/core/atoms.hpp", head + '"start")\nCAF_ADD_ATOM(busbar, busbar::atom, go, "start")\n', line=3)
        self.silent("actors/core/atoms.hpp", head + '"start")\nCAF_ADD_ATOM(busbar, busbar::atom, go, "go")\n')

    def test_heavy_headers(self):
        self.fires("heavy-header", "actors/node/node_actor.cpp", "#include <grpcpp/grpcpp.h>\n")
        self.fires("heavy-header", "daemon/busbard/main.cpp", "#include <CLI/CLI.hpp>\n")
        five = {f"storage/s{i}.cpp": "#include <rocksdb/db.h>\n" for i in range(1, 6)}
        self.assertEqual(rules_of(five), [("heavy-header", "storage/s5.cpp", 1)])
        del five["storage/s1.cpp"]
        self.assertEqual(rules_of(five), [])

    def test_sizes(self):
        self.fires("file-size", "storage/a.cpp", "int a;\n" * 501, line=501)
        body = "  f();\n"
        self.fires("function-size", "storage/a.cpp", "namespace x {\nint f(int a) {\n" + body * 60 + "}\n}\n", line=2)
        self.silent("storage/a.cpp", "namespace x {\nint f(int a) {\n" + body * 59 + "}\n}\n")
        self.silent("storage/a.cpp", "namespace x {\nstruct s {\n" + "  void f() { g(); }\n" * 80 + "};\n}\n")
        self.silent("storage/a.cpp", "namespace x {\nconst char* f() {\n  return R\"(\n" + "}{\n" * 10 + ")\";\n}\n}\n")

    def test_headers(self):
        self.fires("pragma-once", "storage/a.hpp", "int a;\n")
        self.fires("using-namespace", "storage/a.hpp", HEADER + "using namespace std;\n", line=2)

    def test_texts(self):
        self.fires("todo", "README.md", "# Busbar\nTO" "DO: write\n", line=2)
        self.silent("storage/a.cpp", "int a;  // TO" "DO(#12): b\n")
        self.fires("machine-path", "deploy/docs/a.md", "see /ro" "ot/x\n")
        self.fires("machine-path", "deploy/docs/a.md", "see /ho" "me/anna/busbar\n")
        self.silent("deploy/docs/a.md", "https://example.org/work/x and /var/lib/busbar and deploy/work/x\n")


if __name__ == "__main__":
    unittest.main()
