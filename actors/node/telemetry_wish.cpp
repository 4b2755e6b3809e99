#include "actors/node/telemetry_wish.hpp"

namespace busbar::node {
namespace {

const char* key_of(journal::MemberKind kind) {
  if (kind == journal::COMPUTE_TRAY) return "compute_tray";
  if (kind == journal::SWITCH_TRAY) return "switch_tray";
  if (kind == journal::POWER_SHELF) return "power_shelf";
  if (kind == journal::RACK_CONTROLLER) return "rack_controller";
  return "";
}

}  // namespace

bool wants_telemetry(const journal::Node& node) {
  return node.step() >= journal::CREDENTIALED && node.hold() != journal::RELEASING &&
         node.hold() != journal::RELEASED;
}

std::vector<std::string> fast_reports(const journal::RackSpec& spec, journal::MemberKind kind) {
  const auto plan = spec.baseline().telemetry().find(key_of(kind));
  if (plan == spec.baseline().telemetry().end()) return {};
  return {plan->second.fast().begin(), plan->second.fast().end()};
}

}  // namespace busbar::node
