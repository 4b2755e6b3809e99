#!/usr/bin/python3
"""House rules that a compiler does not check. Run from anywhere: tests/lint/lint.py [--root DIR].
One line a finding (path:line: rule: text), exit 1 if there is any. Each rule has a bad sample in test_lint.py."""
import argparse
import os
import re
import subprocess
import sys

MAX_FILE, MAX_FUNCTION = 500, 60
# Who may include a header of this prefix, and in how many product files at most (None: no bound).
HEAVY = {
    "boost/beast": (r"^daemon/|^actors/devices/", 2),
    "boost/asio": (r"^daemon/|^actors/devices/", 4),
    "CLI/": (r"^daemon/cli/", 1),
    "rocksdb/": (r"^storage/", 4),
    "spdlog/": (r"^actors/core/log\.cpp$", 1),
    "yaml-cpp/": (r"^actors/manifest/", 3),
    "nlohmann/": (r"", 6),
    "curl/": (r"^(actors/devices|daemon/interlock)/", 4),
    "grpcpp/": (r"^daemon/(busbard|agent|cli|sim)/", None),
}
CAF_ALLOWED = re.compile(r"_actor\.(hpp|cpp)$|_interface\.hpp$|^actors/core/|^daemon/busbard/|^tests/")
PURE = re.compile(r"_(logic|table)(_test)?\.(hpp|cpp)$")
NO_CAF_ROOMS = re.compile(r"^(storage|fabric|gpu|actors/devices|daemon/interlock)/")
NO_WALL_CLOCK = re.compile(r"^(actors|storage|fabric|gpu)/")  # programs read it, on one side of a seam, and hand it in
CAPTURES_BY_NAME = re.compile(r"^(actors|daemon)/")  # where callbacks outlive their scope
# Both ends of the agent's wire share its birth, token and certificate code; nobody else looks into another program.
AGENT_WIRE = re.compile(r"^daemon/(busbard/rpc/agent_|sim/agent_face)")
TEXT_SUFFIXES = (".hpp", ".cpp", ".cu", ".cuh", ".def", ".proto", ".md", ".yaml", ".yml", ".txt", ".cmake", ".json", ".service")
MACHINE_PATH = re.compile(r"(?<![\w.:/-])/(?:root|work|workspace|builds|home/\w+|Users/\w+)/\w")

findings = []


def report(*finding):  # path, line, rule, text
    findings.append(finding)


def blank(text):
    """The code with comments and literals blanked; line numbers and #include lines stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.S)

    def cover(match):
        word = match.group(0)
        keep = text[text.rfind("\n", 0, match.start()) + 1:match.start()].lstrip().startswith("#include")
        return word if keep and word[0] == '"' else re.sub(r"[^\n]", " ", word)

    return pattern.sub(cover, text)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def each(code, pattern, path, rule, text):
    for match in re.finditer(pattern, code, re.M):
        report(path, line_of(code, match.start()), rule, text)


def includes(code):
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^>"]+)[>"]', code, re.M):
        yield line_of(code, match.start()), match.group(1)


def check_dependencies(path, code):
    program = re.match(r"daemon/(\w+)/", path)
    for line, name in includes(code):
        if name.startswith("caf/"):
            if PURE.search(path) or NO_CAF_ROOMS.match(path) or not CAF_ALLOWED.search(path):
                report(path, line, "caf-room", f"{name}: CAF is not known here")
            if name == "caf/all.hpp":
                report(path, line, "caf-all", "include the narrow headers")
            if name.startswith("caf/test/") or name.startswith("caf/io/"):
                report(path, line, "caf-room", f"{name} is not used in this house")
        if re.search(r"_(actor|interface)\.hpp$", name) and (PURE.search(path) or NO_CAF_ROOMS.match(path)):
            report(path, line, "caf-room", f"{name} brings CAF in")
        other = re.match(r"daemon/(\w+)/", name)
        shared = other and other.group(1) == "agent" and AGENT_WIRE.match(path)
        if other and not shared and not path.startswith("tests/") and (not program or program.group(1) != other.group(1)):
            report(path, line, "daemon-room", f"{name}: nothing but tests looks into another program")
        if name.startswith("tests/") and not path.startswith("tests/"):
            report(path, line, "tests-room", f"{name}: product code knows no tests")
        if PURE.search(path) and not path.startswith("tests/") and re.match(r"storage/|fstream$|filesystem$|thread$|mutex$|sys/|unistd\.h", name):
            report(path, line, "pure-logic", f"{name}: logic does no I/O")
        if path.startswith("daemon/interlock/") and re.match(r"grpcpp/|rocksdb/|storage/", name):
            report(path, line, "interlock-room", f"{name}: the interlock leans on neither gRPC nor RocksDB")
    if PURE.search(path) and not path.startswith("tests/"):
        each(code, r"\w::now\(\)|\btime\(nullptr\)|\bclock_gettime\(", path, "pure-logic", "logic reads no clock")


def arguments_of(code, opening):
    """How many arguments stand in the parentheses that open at `opening`."""
    depth, count, seen = 0, 1, False
    for position in range(opening, len(code)):
        char = code[position]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return count if seen else 0
        elif char == "," and depth == 1:
            count += 1
        if depth >= 1 and position > opening and not char.isspace():
            seen = True
    return count


def check_actor_traps(path, code):
    if CAPTURES_BY_NAME.match(path) and not PURE.search(path):
        each(code, r"\[\s*[&=]\s*[,\]]", path, "default-capture", "capture by name; self by value")
    each(code, r"\bcaf::infinite\b", path, "caf-infinite", "every request has a finite timeout")
    each(code, r"\.await\(", path, "caf-await", "await strands urgent messages; use then")
    each(code, r"\bcaf::skip\b|set_default_handler\(\s*skip", path, "caf-skip", "skip strands urgent messages")
    if "#include <caf/" in code or path.endswith(("_actor.cpp", "_actor.hpp")):
        each(code, r"\b(sleep_for|sleep_until|usleep|nanosleep)\(", path, "actor-sleep", "nothing blocks in an actor")
        for match in re.finditer(r"\.then\(", code):
            if arguments_of(code, match.end() - 1) == 1:
                report(path, line_of(code, match.start()), "then-one-handler", "an error without a handler kills the actor")


def check_atoms(files):
    seen = {}
    for path, (raw, code) in files.items():
        for match in re.finditer(r'(?<!define )CAF_ADD_ATOM\([^"\n]*"([^"]*)"', raw):
            text, line = match.group(1), line_of(raw, match.start())
            if not re.fullmatch(r"[a-z]{1,10}", text):
                report(path, line, "atom-text", f'"{text}": at most 10 lower-case letters')
            if text in seen:
                report(path, line, "atom-twice", f'"{text}" is also at {seen[text]}: one type for two meanings')
            seen.setdefault(text, f"{path}:{line}")


def check_heavy(files):
    for prefix, (rooms, most) in HEAVY.items():
        users = []
        for path, (_, code) in files.items():
            lines = [line for line, name in includes(code) if name.startswith(prefix)]
            if not lines or path.startswith("tests/"):
                continue
            users.append(path)
            if not re.search(rooms, path):
                report(path, lines[0], "heavy-header", f"{prefix} is wrapped elsewhere")
        if most is not None and len(users) > most:
            report(users[-1], 1, "heavy-header", f"{prefix} in {len(users)} files, at most {most}: {', '.join(users)}")


def check_size(path, raw, code):
    lines = raw.count("\n")
    if lines > MAX_FILE:
        report(path, lines, "file-size", f"{lines} lines, at most {MAX_FILE}: a room is missing")
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code, flags=re.M)
    stack, head = [], 0  # of (is it a function, line, head)
    for position, char in enumerate(code):
        if char == "{":
            before = code[head:position].strip()
            inside = any(entry[0] for entry in stack)
            keyword = re.match(r"(namespace|class|struct|enum|union|extern)\b", before)
            function = not inside and not keyword and ")" in before and "=" not in before.split("(")[0]
            stack.append((function, line_of(code, position), before))
            head = position + 1
        elif char == "}" and stack:
            function, start, before = stack.pop()
            length = line_of(code, position) - start
            if function and length > MAX_FUNCTION:
                name = re.split(r"\(", before)[0].split()
                report(path, start, "function-size", f"{name[-1] if name else '?'}: {length} lines, at most {MAX_FUNCTION}")
            head = position + 1
        elif char == ";":
            head = position + 1


def check_cpp(path, raw, code):
    check_dependencies(path, code)
    check_size(path, raw, code)
    if not path.startswith("tests/"):
        check_actor_traps(path, code)
        if NO_WALL_CLOCK.match(path):
            each(code, r"\bsystem_clock::now\(", path, "wall-clock", "wall time is handed in")
    elif re.match(r"tests/(unit|sim|support)/", path):
        each(code, r"\b(sleep_for|sleep_until|usleep|nanosleep)\(", path, "test-sleep", "no sleep in a test; use the virtual clock")
    if path.endswith(".hpp"):
        each(code, r"^[ \t]*using namespace(?! std::\w*literals)", path, "using-namespace", "not in a header")
        if "#pragma once" not in code:
            report(path, 1, "pragma-once", "missing")


def check_text(path, raw):
    for number, line in enumerate(raw.split("\n"), 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))", line):
            report(path, number, "todo", "needs an issue number: TODO(#12)")
        if MACHINE_PATH.search(line):
            report(path, number, "machine-path", "a path of one developer's machine")


def check_links(root, paths):
    """Product binaries do not link the simulator."""
    makes = {}
    for path in paths:
        if path.endswith("CMakeLists.txt"):
            with open(os.path.join(root, path), encoding="utf-8") as file:
                makes[path] = re.sub(r"#[^\n]*", "", file.read())
    declared = r"(?:busbar_\w+|add_library|add_executable)\(\s*([\w-]+)"
    sim = [name for path in makes if path.startswith("daemon/sim/") for name in re.findall(declared, makes[path])]
    for path, text in makes.items():
        for name in sim if not path.startswith(("daemon/sim/", "tests/")) else ():
            each(text, rf"(?<![\w/-]){re.escape(name)}(?![\w/-])", path, "links-sim", f"{name} belongs to daemon/sim")


def tracked(root):
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode().split("\0")
    else:
        names = [os.path.relpath(os.path.join(folder, name), root) for folder, _, files in os.walk(root) for name in files]
    return sorted(name for name in names if name and os.path.isfile(os.path.join(root, name)) and not name.startswith("build/"))


def lint(root):
    findings.clear()
    paths, files = tracked(root), {}
    for path in paths:
        if not path.endswith(TEXT_SUFFIXES) or path.startswith("tests/data/"):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            raw = file.read()
        check_text(path, raw)
        if path.endswith((".hpp", ".cpp")):
            files[path] = (raw, blank(raw))
    for path, (raw, code) in files.items():
        check_cpp(path, raw, code)
    check_atoms(files)
    check_heavy(files)
    check_links(root, paths)
    return sorted(set(findings))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    found = lint(os.path.abspath(parser.parse_args().root))
    print("".join(f"{path}:{line}: {rule}: {text}\n" for path, line, rule, text in found), end="")
    print(f"lint: {len(found)} findings", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
