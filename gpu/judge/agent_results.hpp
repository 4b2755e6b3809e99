// From what agents sent to what the judge reads; header only, so that the judge itself links no wire.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "busbar/agent/agent.pb.h"
#include "gpu/judge/suite_judge.hpp"

namespace busbar::gpu {

inline measurement from_agent(const std::string& member, const agent::Measurement& sent) {
  measurement out;
  out.member = member;
  out.test = sent.test();
  out.gpu = sent.gpu();
  out.metric = sent.metric();
  if (sent.has_value()) out.value = sent.value();
  out.text = sent.text();
  out.unit = sent.unit();
  out.good = sent.quality() == agent::GOOD;
  return out;
}

// Results of other runs are left out: they belong to nothing here.
inline judgement judge_agents(const journal::Suite& suite, const std::string& run_id,
                              const std::vector<std::string>& members, std::uint32_t gpus_per_member,
                              const std::map<std::string, std::string>& limits_by_member,
                              const std::map<std::string, std::vector<agent::Measurement>>& measured) {
  judge_request request = {&suite, run_id, members, gpus_per_member, limits_by_member, {}};
  for (const auto& [member, sent] : measured) {
    for (const auto& one : sent) {
      if (one.run_id() == run_id) request.measured.push_back(from_agent(member, one));
    }
  }
  return judge(request);
}

}  // namespace busbar::gpu
