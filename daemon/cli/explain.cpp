#include "daemon/cli/explain.hpp"

#include <absl/status/status.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "actors/core/errors.hpp"
#include "daemon/cli/exit_code.hpp"
#include "daemon/cli/explain_table.hpp"
#include "daemon/cli/table.hpp"

namespace busbar::cli {
namespace {

constexpr auto fault_names = std::to_array<std::string_view>({
#define BUSBAR_FAULT(name, ...) #name,
#include "actors/core/faults.def"
#undef BUSBAR_FAULT
});

using pairs = std::vector<std::pair<std::string, std::string>>;

struct meaning {
  std::string title;
  pairs fields;
};

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-') c = '_';
  }
  return result;
}

void add(pairs& fields, const char* key, std::string_view value) {
  if (!value.empty()) fields.emplace_back(key, value);
}

meaning meaning_of(const step_text& text) {
  meaning result{fmt::format("{} of a {}", text.step, text.subject), {}};
  add(result.fields, "seen", text.seen);
  if (!text.deadline.empty())
    add(result.fields, "deadline", fmt::format("deadlines.{} of the baseline", text.deadline));
  add(result.fields, "leadsTo", text.leads_to);
  add(result.fields, "faults", text.faults);
  add(result.fields, "operator", text.operators);
  return result;
}

meaning meaning_of(const core::fault_text& text) {
  meaning result{fmt::format("fault {}", text.name), {}};
  add(result.fields, "meaning", text.meaning);
  add(result.fields, "evidence", text.evidence);
  add(result.fields, "nextStep", text.next_step);
  add(result.fields, "commands", text.commands);
  add(result.fields, "status", absl::StatusCodeToString(text.status));
  const exit_code code = exit_code_of(static_cast<int>(text.status), text.name);
  add(result.fields, "exitCode", std::to_string(static_cast<int>(code)));
  return result;
}

// Words on lines of at most width characters, the later ones indented.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column > 0 && column + 1 + end > width) {
      out += "\n" + std::string(indent, ' ');
      column = 0;
    }
    if (column > 0) out += " ";
    out += text.substr(0, end);
    column += end + (column > 0 ? 1 : 0);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::vector<meaning> meanings_of(std::string_view name) {
  std::vector<meaning> found;
  const std::string wanted = upper(name);
  for (const step_text& text : step_texts()) {
    if (upper(text.step) == wanted) found.push_back(meaning_of(text));
  }
  if (const auto code = core::fault_named(wanted)) found.push_back(meaning_of(core::text_of(*code)));
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc{} && end == name.data() + name.size()) {
    for (const exit_text& text : exit_texts()) {
      if (static_cast<int>(text.code) != number) continue;
      found.push_back({fmt::format("exit code {}", number), {{"meaning", std::string(text.meaning)}}});
    }
  }
  for (int code = 0; code <= 16; ++code) {
    if (absl::StatusCodeToString(static_cast<absl::StatusCode>(code)) != wanted) continue;
    const exit_code exit = exit_code_of(code, "");
    found.push_back(
        {fmt::format("status {}", wanted), {{"exitCode", std::to_string(static_cast<int>(exit))}}});
  }
  return found;
}

}  // namespace

std::string explain_text(std::string_view name) {
  static const std::vector<std::pair<std::string_view, std::string_view>> labels{
      {"seen", "what must be seen"}, {"deadline", "deadline"},  {"leadsTo", "leads to"},
      {"faults", "ended by"},        {"operator", "you can"},   {"meaning", "meaning"},
      {"evidence", "evidence"},      {"nextStep", "next step"}, {"commands", "commands"},
      {"status", "status"},          {"exitCode", "exit code"}};
  std::string out;
  for (const meaning& one : meanings_of(name)) {
    if (!out.empty()) out += "\n";
    out += one.title + "\n";
    for (const auto& [key, value] : one.fields) {
      for (const auto& [known, label] : labels) {
        if (known == key) out += fmt::format("  {:<18} {}\n", label, wrapped(value, 88, 21));
      }
    }
  }
  return out;
}

std::string explain_text(std::string_view name, text_format format) {
  std::string out;
  for (const meaning& one : meanings_of(name)) {
    pairs fields{{"title", one.title}};
    fields.insert(fields.end(), one.fields.begin(), one.fields.end());
    if (format == text_format::yaml) out += "---\n";
    out += object_text("Explanation", fields, format);
  }
  return out;
}

std::string names_like(std::string_view name) {
  const std::string wanted = upper(name);
  std::set<std::string> found;
  for (const step_text& text : step_texts()) {
    if (wanted.empty() || upper(text.step).find(wanted) != std::string::npos)
      found.insert(std::string(text.step));
  }
  for (const std::string_view fault : fault_names) {
    if (wanted.empty() || fault.find(wanted) != std::string_view::npos) found.insert(std::string(fault));
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

}  // namespace busbar::cli
