#include "gpu/judge/suite_judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>
#include <tuple>

#include "gpu/judge/limit_rule.hpp"

namespace busbar::gpu {
namespace {

using journal::SuiteResult;
using slot = std::tuple<std::string, std::string, std::uint32_t, std::string>;  // test, member, GPU, metric

struct case_at_hand {
  const journal::SuiteTest* test;
  const journal::MetricRule* rule;
  std::map<std::string, std::string> parameters;
};

struct tally {
  std::vector<journal::MetricResult> outside;
  std::vector<journal::MetricResult> incomplete;
  std::uint32_t complete = 0;
};

journal::MetricResult row_for(const std::string& test, const std::string& member, std::uint32_t gpu,
                              const std::string& metric) {
  journal::MetricResult row;
  row.set_test(test);
  row.set_member(member);
  row.set_gpu(gpu);
  row.set_metric(metric);
  return row;
}

void show(const measurement& seen, journal::MetricResult& row) {
  row.set_unit(seen.unit);
  row.set_text(seen.text);
  if (seen.value) row.set_value(*seen.value);
}

// The one row of an expected result.
journal::MetricResult decide(const case_at_hand& one, const std::string& limits, const std::string& member,
                             std::uint32_t gpu, const std::vector<const measurement*>& seen, finding* found) {
  auto row = row_for(one.test->name(), member, gpu, one.rule->name());
  row.set_unit(one.rule->unit());
  *found = finding::undecided;
  const std::string words = limit_in_words(*one.rule, limits);
  if (seen.empty()) {
    row.set_limit(words + "; no result");
    return row;
  }
  show(*seen.front(), row);
  if (seen.size() > 1) {
    row.set_limit(words + "; " + std::to_string(seen.size()) + " results where one is asked for");
    return row;
  }
  const measurement& only = *seen.front();
  if (!only.good) {
    row.set_limit(words + "; the engine does not vouch for the value");
    return row;
  }
  if (only.value && !std::isfinite(*only.value)) {
    row.clear_value();
    row.set_limit(words + "; the value is not a number");
    return row;
  }
  if (!only.value && only.text.empty()) {
    row.set_limit(words + "; the result has no value");
    return row;
  }
  const ruling decided = rule_on(*one.rule, one.test->probe(), one.parameters, limits, only);
  *found = decided.what;
  row.set_limit(decided.limit);
  row.set_passed(decided.what == finding::within);
  return row;
}

bool repeats_itself(const journal::Suite& suite) {
  std::set<std::string> tests;
  for (const auto& test : suite.tests()) {
    if (test.name().empty() || !tests.insert(test.name()).second || test.metrics().empty()) return true;
    std::set<std::string> metrics;
    for (const auto& rule : test.metrics()) {
      if (rule.name().empty() || !metrics.insert(rule.name()).second) return true;
    }
  }
  return false;
}

void judge_expected(const judge_request& request, std::map<slot, std::vector<const measurement*>>& seen,
                    judgement& out, tally& counts) {
  for (const auto& test : request.suite->tests()) {
    const std::map<std::string, std::string> parameters(test.parameters().begin(), test.parameters().end());
    for (const auto& rule : test.metrics()) {
      const case_at_hand one = {&test, &rule, parameters};
      for (const auto& member : request.members) {
        const auto named = request.limits.find(member);
        const std::string limits = named == request.limits.end() ? "" : named->second;
        for (std::uint32_t gpu = 0; gpu < request.gpus_per_member; ++gpu) {
          const auto here = seen.extract(slot{test.name(), member, gpu, rule.name()});
          finding found = finding::undecided;
          auto row = decide(one, limits, member, gpu,
                            here.empty() ? std::vector<const measurement*>() : here.mapped(), &found);
          if (found != finding::undecided) ++counts.complete;
          if (found == finding::outside) counts.outside.push_back(row);
          if (found == finding::undecided) counts.incomplete.push_back(row);
          out.rows.push_back(std::move(row));
        }
      }
    }
  }
}

}  // namespace

judgement judge(const judge_request& request) {
  judgement out;
  out.result.set_run_id(request.run_id);
  const std::set<std::string> distinct(request.members.begin(), request.members.end());
  for (const auto& member : request.members) out.result.add_members(member);
  out.result.set_verdict(SuiteResult::INCOMPLETE);
  if (request.suite == nullptr) return out;
  out.result.set_suite(request.suite->name());

  std::map<slot, std::vector<const measurement*>> seen;
  for (const auto& one : request.measured) seen[{one.test, one.member, one.gpu, one.metric}].push_back(&one);
  tally counts;
  judge_expected(request, seen, out, counts);
  const auto expected = static_cast<std::uint32_t>(out.rows.size());
  for (const auto& [where, unasked] : seen) {  // what is left belongs to nothing that was asked
    auto row = row_for(std::get<0>(where), std::get<1>(where), std::get<2>(where), std::get<3>(where));
    show(*unasked.front(), row);
    if (row.has_value() && !std::isfinite(row.value())) row.clear_value();
    row.set_limit("a result that was not asked for");
    counts.incomplete.push_back(row);
    out.rows.push_back(std::move(row));
  }
  out.result.set_expected(expected);
  out.result.set_results(counts.complete);
  for (const auto& row : counts.outside) *out.result.add_failures() = row;
  for (const auto& row : counts.incomplete) *out.result.add_failures() = row;
  const bool whole = expected > 0 && counts.complete == expected && counts.incomplete.empty() &&
                     distinct.size() == request.members.size() && !repeats_itself(*request.suite);
  if (!counts.outside.empty()) {
    out.result.set_verdict(SuiteResult::FAIL);
  } else if (whole) {
    out.result.set_verdict(SuiteResult::PASS);
  }
  return out;
}

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string row_text(const journal::MetricResult& row) {
  std::string value = "null";
  if (row.has_value()) {
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", row.value());
    value = text;
  }
  return "{\"test\":" + quoted(row.test()) + ",\"member\":" + quoted(row.member()) +
         ",\"gpu\":" + std::to_string(row.gpu()) + ",\"metric\":" + quoted(row.metric()) +
         ",\"value\":" + value + ",\"text\":" + quoted(row.text()) + ",\"unit\":" + quoted(row.unit()) +
         ",\"limit\":" + quoted(row.limit()) + ",\"passed\":" + (row.passed() ? "true" : "false") + "}";
}

}  // namespace

std::string evidence_text(const judgement& judged) {
  const auto& result = judged.result;
  std::string out = "{\"kind\":\"SuiteEvidence\",\"run\":" + quoted(result.run_id()) +
                    ",\"suite\":" + quoted(result.suite()) +
                    ",\"verdict\":" + quoted(SuiteResult::Verdict_Name(result.verdict())) +
                    ",\"results\":" + std::to_string(result.results()) +
                    ",\"expected\":" + std::to_string(result.expected()) + ",\"members\":[";
  for (int i = 0; i < result.members_size(); ++i) out += (i == 0 ? "" : ",") + quoted(result.members(i));
  out += "],\"rows\":[";
  for (std::size_t i = 0; i < judged.rows.size(); ++i)
    out += (i == 0 ? "\n" : ",\n") + row_text(judged.rows[i]);
  return out + "\n]}\n";
}

}  // namespace busbar::gpu
