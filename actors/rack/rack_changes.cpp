#include "actors/rack/rack_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "actors/node/node_logic.hpp"

namespace busbar::rack {
namespace {

std::string lower(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

// An account or a password of ours is on its BMC, or may be: an act on it is open.
bool is_taken_over(const journal::Node& member) {
  const journal::Access& access = member.access();
  return access.account_created() || access.factory_password_changed() ||
         access.interlock_account_created() || member.step() >= journal::CREDENTIALED ||
         member.intents_size() > 0;
}

std::string why_in_use(const journal::Node& member) {
  const journal::PowerState power = member.power().observed();
  if (member.step() >= journal::PRODUCTION) return "is in production";
  if (power == journal::POWER_OFF && member.power().wanted() != journal::POWER_ON) return {};
  if (power == journal::POWER_OFF) return "is being turned on";
  if (power != journal::POWER_UNKNOWN)
    return fmt::format("is not read off ({})", lower(journal::PowerState_Name(power)));
  if (member.power().wanted() == journal::POWER_ON) return "was told to turn on and is not read off";
  return is_taken_over(member) ? "is taken over and its power is unknown, which counts as on" : std::string();
}

std::string or_none(const std::string& text) {
  return text.empty() ? "(none)" : text;
}

// What of the row makes it another device, in words; empty: nothing.
std::string what_is_rekeyed(const journal::Node& member, const journal::Member& next) {
  const journal::Member& now = member.spec();
  if (now.kind() != next.kind()) return "is made another kind";
  if (now.bmc_mac() != next.bmc_mac())
    return fmt::format("gets bmc_mac {} in place of {}", or_none(next.bmc_mac()), or_none(now.bmc_mac()));
  const std::string& lives_at = member.identity().address();
  const bool same_place = lives_at == next.address() || lives_at.starts_with(next.address() + ":");
  // A fixed address may be written down for what already answers there, and left out where the MAC is the
  // key.
  const bool moved = next.address().empty() ? now.bmc_mac().empty() : !same_place;
  if (now.address() != next.address() && moved)
    return fmt::format("gets address {} in place of {}", or_none(next.address()),
                       or_none(now.address().empty() ? lives_at : now.address()));
  return {};
}

}  // namespace

bool is_same_member(const journal::Member& before, const journal::Member& after) {
  return before.kind() == after.kind() && before.bmc_mac() == after.bmc_mac() &&
         (!after.bmc_mac().empty() || before.address() == after.address());
}

absl::Status refuse_member_changes(const journal::RackSpec& next, const member_map& members) {
  const std::string& rack = next.manifest().rack();
  std::map<std::string, const journal::Member*> rows;
  std::map<std::string, std::string> slot_of_mac;
  for (const journal::Member& row : next.manifest().members()) {
    rows[fmt::format("{}/{}", rack, row.slot())] = &row;
    if (!row.bmc_mac().empty()) slot_of_mac[row.bmc_mac()] = row.slot();
  }
  std::string refused;
  for (const auto& [name, member] : members) {
    const auto row = rows.find(name);
    std::string change = row == rows.end() ? "is left out" : what_is_rekeyed(*member, *row->second);
    const auto elsewhere = slot_of_mac.find(member->spec().bmc_mac());
    if (!change.empty() && elsewhere != slot_of_mac.end() && elsewhere->second != member->spec().slot())
      change = fmt::format("moves to slot {}", elsewhere->second);
    const bool rack_is_up =
        std::any_of(members.begin(), members.end(), [](const auto& other) { return !is_off(*other.second); });
    std::string in_use = change.empty() ? std::string() : why_in_use(*member);
    if (!change.empty() && !node::is_switched(*member))
      in_use = rack_is_up ? "moves the valves of a rack that is not read off" : "";
    if (in_use.empty()) continue;
    refused += fmt::format("{}{} {} but {}", refused.empty() ? "" : "; ", name, change, in_use);
  }
  if (refused.empty()) return absl::OkStatus();
  return core::make_fault(
      core::fault::MEMBER_IN_USE,
      fmt::format(
          "{}; nothing was stored; first busbar rack shutdown {} --reason TEXT, then apply again when "
          "the member is read off (busbar explain {})",
          refused, rack, core::name_of(core::fault::MEMBER_IN_USE)));
}

}  // namespace busbar::rack
