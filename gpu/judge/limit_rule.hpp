// One metric's rule against one value. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "busbar/journal/spec.pb.h"
#include "gpu/judge/suite_judge.hpp"

namespace busbar::gpu {

enum class finding { within, outside, undecided };

struct ruling {
  finding what = finding::undecided;
  std::string limit;  // in words, with the reason where undecided
};

// `limits` names whose limits apply; a limit under "" applies to all; under neither, there is none and
// nothing is decided.
ruling rule_on(const journal::MetricRule& rule, std::string_view probe,
               const std::map<std::string, std::string>& parameters, std::string_view limits,
               const measurement& seen);

// What the rule asks for, for a row that has no value to show.
std::string limit_in_words(const journal::MetricRule& rule, std::string_view limits);

}  // namespace busbar::gpu
