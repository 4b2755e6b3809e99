// Commands that ask a running simulator: fault, truth, journal.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

#include "daemon/sim/control.hpp"
#include "daemon/sim/faults.hpp"
#include "daemon/sim/json.hpp"
#include "daemon/sim/program/commands.hpp"

namespace busbar::sim {

namespace {

constexpr auto follow_pause = std::chrono::milliseconds(100);

int fail(int code, const std::string& why) {
  std::cerr << "busbar-sim: " << why << '\n';
  return code;
}

std::string state_dir_of(const arguments& line) {
  const char* const named = std::getenv("BUSBAR_SIM_STATE_DIR");
  return line.value("--state-dir", named == nullptr ? "" : named);
}

bool wants_json(const arguments& line) {
  return line.value("-o", line.value("--output", "")) == "json";
}

// The answer's "result"; or an exit code.
int ask(const arguments& line, const json& request, json& result) {
  const std::string folder = state_dir_of(line);
  if (folder.empty()) {
    return fail(exit_usage, "--state-dir is missing");
  }
  const auto text = ask_simulator(folder + "/sim.sock", request.dump());
  if (!text.ok()) {
    return fail(exit_unreachable, std::string(text.status().message()));
  }
  const json answer = json::parse(*text, nullptr, false);
  if (!answer.is_object() || answer.contains("error")) {
    return fail(exit_false,
                answer.is_object() ? answer.at("error").get<std::string>() : "the answer is no JSON");
  }
  result = answer.at("result");
  return exit_done;
}

int add_fault(const arguments& line) {
  json request = {{"op", "fault_add"},
                  {"kind", line.words[2]},
                  {"target", line.words[3]},
                  {"value", line.value("--value", "")}};
  for (const char* const option : {"--at", "--for"}) {
    if (!line.has(option)) {
      continue;
    }
    const auto length = duration_of(line.value(option, ""));
    if (!length) {
      return fail(exit_usage, std::string(option) + " is no duration");
    }
    request[option + 2] = length->count();
  }
  if (line.has("--severity")) {
    char* end = nullptr;
    const std::string text = line.value("--severity", "");
    request["severity"] = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') {
      return fail(exit_usage, "--severity is no number");
    }
  }
  json result;
  const int code = ask(line, request, result);
  if (code == exit_done) {
    std::cout << result.dump() << '\n';
  }
  return code;
}

int list_faults(const arguments& line) {
  json rows;
  const int code = ask(line, {{"op", "fault_list"}}, rows);
  if (code != exit_done) {
    return code;
  }
  if (wants_json(line)) {
    std::cout << rows.dump(1) << '\n';
    return code;
  }
  std::printf("%-4s %-20s %-28s %-10s %s\n", "ID", "KIND", "TARGET", "SEVERITY", "IN FORCE");
  for (const json& row : rows) {
    std::printf("%-4llu %-20s %-28s %-10g %s\n", row.at("id").get<unsigned long long>(),
                row.at("kind").get<std::string>().c_str(), row.at("target").get<std::string>().c_str(),
                row.at("severity").get<double>(), row.at("in_force").get<bool>() ? "yes" : "no");
  }
  return code;
}

}  // namespace

int fault_command(const arguments& line) {
  const std::string verb = line.words.size() < 2 ? "" : line.words[1];
  if (verb == "kinds") {
    for (const fault_text& each : fault_table()) {
      std::cout << each.name << "\t" << each.meaning << '\n';
    }
    return exit_done;
  }
  if (verb == "add" && line.words.size() == 4) {
    return add_fault(line);
  }
  if (verb == "list" && line.words.size() == 2) {
    return list_faults(line);
  }
  if (verb == "clear" && line.words.size() <= 4) {
    json result;
    const int code = ask(line,
                         {{"op", "fault_clear"},
                          {"kind", line.words.size() > 2 ? line.words[2] : ""},
                          {"target", line.words.size() > 3 ? line.words[3] : ""}},
                         result);
    if (code == exit_done) {
      std::cout << result.dump() << '\n';
    }
    return code;
  }
  return fail(exit_usage,
              "fault add KIND TARGET, fault list, fault kinds, or fault clear [ID | KIND [TARGET]]");
}

int load_command(const arguments& line) {
  if (line.words.size() != 3) {
    return fail(exit_usage, "load PATTERN TARGET: on rNN, rNN/cNN or all; the pattern none ends it");
  }
  std::string pattern = line.words[1];
  for (char& letter : pattern) {
    letter = letter == '-' ? '_' : letter;
  }
  json result;
  const int code = ask(line, {{"op", "load"}, {"pattern", pattern}, {"target", line.words[2]}}, result);
  if (code == exit_done) {
    std::cout << result.dump() << '\n';
  }
  return code;
}

int truth_command(const arguments& line) {
  if (line.words.size() > 2) {
    return fail(exit_usage, "truth [PATH]");
  }
  json result;
  const int code = ask(line, {{"op", "truth"}, {"path", line.words.size() > 1 ? line.words[1] : ""}}, result);
  if (code == exit_done) {
    std::cout << result.dump(1) << '\n';
  }
  return code;
}

int journal_command(const arguments& line) {
  const std::string folder = state_dir_of(line);
  if (folder.empty() || line.words.size() != 1) {
    return fail(exit_usage, "journal [-f] --state-dir DIR");
  }
  std::ifstream in(folder + "/journal.jsonl");
  if (!in) {
    return fail(exit_unreachable, "no simulator has written " + folder + "/journal.jsonl");
  }
  std::string partial;
  while (true) {
    std::string text;
    while (std::getline(in, text) && !in.eof()) {
      const json row = wants_json(line) ? json() : json::parse(partial + text, nullptr, false);
      if (row.is_object()) {
        std::cout << row.value("received_ns", 0LL) << "  " << row.value("device", "") << "  "
                  << row.value("status", 0) << "  " << row.value("user", "-") << "  "
                  << row.value("method", "") << " " << row.value("path", "") << "  " << row.value("act", "")
                  << " " << row.value("argument", "") << '\n';
      } else {
        std::cout << partial << text << '\n';
      }
      partial.clear();
    }
    partial += text;  // a line that the writer has not ended yet
    if (!line.has("-f") || !std::cout.flush()) {
      return exit_done;
    }
    in.clear();
    std::this_thread::sleep_for(follow_pause);
  }
}

}  // namespace busbar::sim
