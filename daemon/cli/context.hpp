// What a command line says, and the world that a command sees: both are given, so that a test can be the
// world.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/cli/client.hpp"
#include "daemon/cli/exit_code.hpp"
#include "daemon/cli/kinds.hpp"

namespace busbar::cli {

enum class output { table, wide, json, yaml, name };

struct options {
  std::string command;             // "get", "rack bringup", "manifest apply", ...
  std::string kind_word;           // nodes
  std::vector<std::string> names;  // as typed: names, host lists, files
  output format = output::table;
  bool watch = false;
  bool wait = false;
  bool dry_run = false;
  bool yes = false;
  std::chrono::nanoseconds timeout{0};                             // of the whole command; 0: a day
  std::chrono::nanoseconds call_timeout{std::chrono::seconds(5)};  // of one call
  std::string reason;
  std::string filter;
  std::string condition;  // wait --for step=PRODUCTION
  std::string from_step;
  std::string pin;
  std::string request_id;
  std::string etag;
  std::string members;
  std::optional<double> supply_c;   // cdu set
  std::optional<double> dp_kpa;
  std::optional<double> gpu_watts;      // power cap --gpu-watts
  bool off = false;                     // power cap --off
  std::optional<double> to_percent;     // valve set --to
  std::chrono::nanoseconds length{0};  // leak bypass --for, valve --lease
  bool end = false;                    // leak bypass --end
  std::chrono::nanoseconds since{std::chrono::minutes(10)};  // history: how far back
  std::chrono::nanoseconds step{0};                          // history: 0: every sample
  std::optional<std::size_t> limit;  // items shown; nothing: the newest 50 events, all of other kinds
  bool all = false;                  // every event
  std::string endpoint;
  tls_files tls;
  std::string user;  // bmc inspect
  std::string password_file;
};

struct context {
  std::ostream& out;  // data
  std::ostream& err;  // talk
  std::istream& in;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool in_is_terminal = false;
  std::size_t terminal_rows = 24;
  std::size_t terminal_columns = 100;
  std::filesystem::path run_dir = "/run/busbar";
  std::function<std::chrono::system_clock::time_point()> now = [] {
    return std::chrono::system_clock::now();
  };
};

// The program but for its process: parse, do, answer the exit code.
exit_code run(const std::vector<std::string>& arguments, context& world);

}  // namespace busbar::cli
