// The one log of a program: key=value lines on stderr, with a syslog level prefix when stderr is journald's. Info is for
// changes of state only; secrets never come here. Safe from any thread; a line is written whole. spdlog stays behind log.cpp.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace busbar::core {

enum class log_level { debug, info, warning, error };

struct log_field {
  log_field(std::string_view key_in, std::string_view value_in) : key(key_in), value(value_in) {}
  log_field(std::string_view key_in, const std::string& value_in) : key(key_in), value(value_in) {}
  log_field(std::string_view key_in, const char* value_in) : key(key_in), value(value_in) {}
  log_field(std::string_view key_in, bool value_in) : key(key_in), value(value_in ? "true" : "false") {}
  log_field(std::string_view key_in, double value_in) : key(key_in), value(std::to_string(value_in)) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  log_field(std::string_view key_in, T value_in) : key(key_in), value(std::to_string(value_in)) {}

  std::string_view key;
  std::string value;
};
using log_fields = std::initializer_list<log_field>;

// Once, early in main: every later line carries role and instance. Before it, lines go out without them.
void log_open(std::string_view role, std::string_view instance, log_level least);
// Waits until what was logged is written.
void log_flush();

// event is a fixed word in snake_case (store_opened), what a person greps for.
void log(log_level level, std::string_view event, log_fields fields = {});
inline void log_info(std::string_view event, log_fields fields = {}) { log(log_level::info, event, fields); }
inline void log_warning(std::string_view event, log_fields fields = {}) { log(log_level::warning, event, fields); }
inline void log_error(std::string_view event, log_fields fields = {}) { log(log_level::error, event, fields); }

// One line without its end: event=... key=value. Values with spaces, quotes, '=' or control characters are quoted and escaped, so
// that foreign text can never forge a field or a line.
std::string render_log_line(std::string_view event, log_fields fields);

}  // namespace busbar::core
