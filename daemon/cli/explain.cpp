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
#include "daemon/cli/word_table.hpp"

namespace busbar::cli {
namespace {

constexpr auto fault_names = std::to_array<std::string_view>({
#define BUSBAR_FAULT(name, ...) #name,
#include "actors/core/faults.def"
#undef BUSBAR_FAULT
});

constexpr std::size_t longest_name = 64;  // of a word that could be meant

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

meaning meaning_of(const word_text& text) {
  meaning result{fmt::format("{}: {}", text.word, text.subject), {}};
  add(result.fields, "meaning", text.meaning);
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

// HEALTH_GOOD in JSON is good in a table.
std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : {"HEALTH_", "QUALITY_"}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

std::vector<std::string> all_names() {
  std::set<std::string> names;
  for (const step_text& text : step_texts()) names.insert(std::string(text.step));
  for (const word_text& text : word_texts()) names.insert(word(text.word));
  for (const std::string_view fault : fault_names) names.insert(std::string(fault));
  for (int code = 1; code <= 16; ++code)
    names.insert(absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
  return {names.begin(), names.end()};
}

// Insertions, deletions, changes and swaps of neighbours that make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t change = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

std::vector<meaning> meanings_of(std::string_view name) {
  std::vector<meaning> found;
  const std::string wanted = upper(name);
  for (const step_text& text : step_texts()) {
    if (upper(text.step) == wanted) found.push_back(meaning_of(text));
  }
  for (const word_text& text : word_texts()) {
    if (text.word == wanted || text.word == without_prefix(wanted)) found.push_back(meaning_of(text));
  }
  if (const auto code = core::fault_named(wanted)) found.push_back(meaning_of(core::text_of(*code)));
  if (wanted.ends_with('*')) {  // a family, as step texts name them
    for (const std::string_view fault : fault_names) {
      const auto code = fault.starts_with(wanted.substr(0, wanted.size() - 1)) ? core::fault_named(fault) : std::nullopt;
      if (code) found.push_back(meaning_of(core::text_of(*code)));
    }
  }
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
  const std::string wanted = upper(name).substr(0, longest_name);
  std::vector<std::string> found;
  for (const std::string& known : all_names()) {
    if (upper(known).find(wanted) != std::string::npos) found.push_back(known);
  }
  if (!found.empty()) return fmt::format("{}", fmt::join(found, ", "));
  std::size_t nearest = wanted.size() / 3 + 1;  // farther than that it is another word
  for (const std::string& known : all_names()) {
    const std::size_t far = distance(wanted, upper(known));
    if (far < nearest) found.clear();
    if (far <= nearest) found.push_back(known);
    nearest = std::min(nearest, far);
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

}  // namespace busbar::cli
