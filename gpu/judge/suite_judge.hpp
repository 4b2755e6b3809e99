// What a suite's results are worth. Pure and fail-closed: a suite passes only if every declared member gave,
// for every one of its GPUs and every metric of every test, exactly one good value of the right kind and unit
// within a limit that is known. Whatever is missing, doubled, not a number, not good, unasked or without a
// limit makes INCOMPLETE; a good value outside its limit makes FAIL (also where other results are missing).
// An empty suite or no member is INCOMPLETE: nothing was proved.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "busbar/journal/spec.pb.h"
#include "busbar/journal/state.pb.h"

namespace busbar::gpu {

struct measurement {
  std::string member;
  std::string test;
  std::uint32_t gpu = 0;
  std::string metric;
  std::optional<double> value;
  std::string text;
  std::string unit;
  bool good = false;  // the engine vouches for it
};

struct judge_request {
  const journal::Suite* suite = nullptr;
  std::string run_id;
  std::vector<std::string> members;   // declared at the run's start
  std::uint32_t gpus_per_member = 0;  // of the SKU
  std::map<std::string, std::string>
      limits;  // by member: whose limits (a SKU's name, "reference"); absent = none apply
  std::vector<measurement> measured;  // of this run only
};

struct judgement {
  journal::SuiteResult result;              // failures: rows outside limits first, then what is incomplete
  std::vector<journal::MetricResult> rows;  // every expected result and every unasked one: the evidence
};

judgement judge(const judge_request& request);

// Canonical text of a judgement (JSON, one row a line): the same judgement gives the same bytes.
std::string evidence_text(const judgement& judged);

}  // namespace busbar::gpu
