#include "gpu/judge/limit_rule.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "gpu/judge/golden_table.hpp"

namespace busbar::gpu {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

// nullopt: no limit of that kind. `missing`: there is one, but not for these limits.
std::optional<double> bound(const google::protobuf::Map<std::string, double>& bounds, std::string_view limits,
                            bool* missing) {
  if (bounds.empty()) return std::nullopt;
  auto found = bounds.find(std::string(limits));
  if (found == bounds.end()) found = bounds.find("");
  if (found == bounds.end()) {
    *missing = true;
    return std::nullopt;
  }
  return found->second;
}

std::optional<double> as_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool unit_fits(const std::string& wanted, const std::string& seen) {
  if (wanted.empty() || wanted == "1") return seen.empty() || seen == "1";
  return wanted == seen;
}

ruling undecided(std::string why) {
  return {finding::undecided, std::move(why)};
}

ruling rule_equal(const journal::MetricRule& rule, std::string_view probe,
                  const std::map<std::string, std::string>& parameters, std::string_view limits,
                  const measurement& seen) {
  if (rule.equal() == "golden") {
    const auto golden = golden_text(limits, probe, rule.name(), parameters);
    if (!golden) return undecided("= golden, but no golden value is known for this probe and its parameters");
    const std::string words = "= golden " + std::string(*golden);
    if (seen.value || seen.text.empty()) return undecided(words + ", seen is no text");
    return {seen.text == *golden ? finding::within : finding::outside, words};
  }
  const std::string words = "= " + rule.equal();
  if (const auto wanted = as_number(rule.equal())) {
    if (!seen.value || !seen.text.empty()) return undecided(words + ", seen is no number");
    return {*seen.value == *wanted ? finding::within : finding::outside, words};
  }
  if (seen.value || seen.text.empty()) return undecided(words + ", seen is no text");
  return {seen.text == rule.equal() ? finding::within : finding::outside, words};
}

}  // namespace

std::string limit_in_words(const journal::MetricRule& rule, std::string_view limits) {
  bool missing = false;
  const auto least = bound(rule.min(), limits, &missing);
  const auto most = bound(rule.max(), limits, &missing);
  std::string words;
  if (least) words += ">= " + number(*least);
  if (most) words += (words.empty() ? "<= " : " and <= ") + number(*most);
  if (!rule.equal().empty()) words += (words.empty() ? "= " : " and = ") + rule.equal();
  if (missing || words.empty())
    words += words.empty() ? "no limit named " + std::string(limits)
                           : " (and one not named " + std::string(limits) + ")";
  return words;
}

ruling rule_on(const journal::MetricRule& rule, std::string_view probe,
               const std::map<std::string, std::string>& parameters, std::string_view limits,
               const measurement& seen) {
  if (!unit_fits(rule.unit(), seen.unit)) {
    return undecided("unit " + (rule.unit().empty() ? "none" : rule.unit()) + " wanted, " +
                     (seen.unit.empty() ? "none" : seen.unit) + " seen");
  }
  bool missing = false;
  const auto least = bound(rule.min(), limits, &missing);
  const auto most = bound(rule.max(), limits, &missing);
  if (missing || (!least && !most && rule.equal().empty())) return undecided(limit_in_words(rule, limits));
  if ((least && !std::isfinite(*least)) || (most && !std::isfinite(*most)))
    return undecided("the limit is not a number");
  ruling out = {finding::within, ""};
  if (!rule.equal().empty()) out = rule_equal(rule, probe, parameters, limits, seen);
  if (!least && !most) return out;
  if (out.what == finding::undecided) return out;
  if (!seen.value || !seen.text.empty())
    return undecided(limit_in_words(rule, limits) + ", seen is no number");
  const bool inside = (!least || *seen.value >= *least) && (!most || *seen.value <= *most);
  if (!inside) out.what = finding::outside;
  out.limit = limit_in_words(rule, limits);
  return out;
}

}  // namespace busbar::gpu
