#include "actors/core/log.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>

namespace busbar::core {
namespace {

// systemd tells device:inode of its stream, so that a redirected stderr gets no journald prefixes.
bool stderr_is_journald() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat seen {};
  if (stream == nullptr || fstat(STDERR_FILENO, &seen) != 0) return false;
  return fmt::format("{}:{}", seen.st_dev, seen.st_ino) == stream;
}

struct log_output {
  std::mutex mutex;
  std::string identity;
  bool journald = stderr_is_journald();
  std::shared_ptr<spdlog::logger> logger = make(journald);

  // Under journald the time is journald's; elsewhere ours, in UTC.
  static std::shared_ptr<spdlog::logger> make(bool under_journald) {
    auto made = std::make_shared<spdlog::logger>("busbar", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_level(spdlog::level::info);
    made->set_pattern(under_journald ? "%v" : "time=%Y-%m-%dT%H:%M:%S.%eZ %v", spdlog::pattern_time_type::utc);
    return made;
  }
};

// Never destroyed: threads of foreign libraries may log while the program ends.
log_output& output() {
  static log_output& it = *new log_output;
  return it;
}

spdlog::level::level_enum level_of(log_level level) {
  switch (level) {
    case log_level::debug: return spdlog::level::debug;
    case log_level::info: return spdlog::level::info;
    case log_level::warning: return spdlog::level::warn;
    case log_level::error: return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string_view journald_prefix(log_level level) {
  switch (level) {
    case log_level::debug: return "<7>";
    case log_level::info: return "<6>";
    case log_level::warning: return "<4>";
    case log_level::error: return "<3>";
  }
  return "<3>";
}

std::string_view level_name(log_level level) {
  switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
  }
  return "error";
}

bool plain(std::string_view value) {
  if (value.empty()) return false;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f || c == '"' || c == '=' || c == '\\') return false;
  }
  return true;
}

void append_value(std::string& line, std::string_view value) {
  if (plain(value)) {
    line += value;
    return;
  }
  line += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += c;
    }
  }
  line += '"';
}

}  // namespace

void log_open(std::string_view role, std::string_view instance, log_level least) {
  log_output& out = output();
  const std::lock_guard lock(out.mutex);
  out.identity = fmt::format(" role={} instance={}", role, instance);
  out.logger->set_level(level_of(least));
}

void log_flush() { output().logger->flush(); }

void log(log_level level, std::string_view event, log_fields fields) {
  log_output& out = output();
  if (!out.logger->should_log(level_of(level))) return;
  std::string line;
  {
    const std::lock_guard lock(out.mutex);
    line = out.identity;
  }
  line = fmt::format("{}level={}{} {}", out.journald ? journald_prefix(level) : "", level_name(level), line,
                     render_log_line(event, fields));
  out.logger->log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
}

std::string render_log_line(std::string_view event, log_fields fields) {
  std::string line = "event=";
  append_value(line, event);
  for (const log_field& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    append_value(line, field.value);
  }
  return line;
}

}  // namespace busbar::core
