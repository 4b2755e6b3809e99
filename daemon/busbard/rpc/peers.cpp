#include "daemon/busbard/rpc/peers.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace busbar::rpc {
namespace {

constexpr std::size_t entry_bytes = 16384;   // of one passwd or group entry
constexpr std::size_t largest_entry = 1 << 20;
constexpr std::string_view number_prefix = "fd:";

bool holds(const std::vector<std::string>& names, std::string_view wanted) {
  return std::find(names.begin(), names.end(), wanted) != names.end();
}

std::optional<std::string> group_name(gid_t gid) {
  for (std::size_t size = entry_bytes; size <= largest_entry; size *= 4) {
    std::vector<char> buffer(size);
    group entry{};
    group* found = nullptr;
    const int error = getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found);
    if (error == ERANGE) continue;
    if (error != 0 || found == nullptr) return std::nullopt;
    return std::string(found->gr_name);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(role value) { return value == role::op ? "operator" : "viewer"; }

std::vector<std::string> system_groups_of(uid_t uid) {
  std::vector<char> buffer(entry_bytes);
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  int count = 64;
  std::vector<gid_t> ids(static_cast<std::size_t>(count));
  if (getgrouplist(found->pw_name, found->pw_gid, ids.data(), &count) < 0) {
    ids.resize(static_cast<std::size_t>(count));
    if (getgrouplist(found->pw_name, found->pw_gid, ids.data(), &count) < 0) return {};
  }
  ids.resize(static_cast<std::size_t>(count));
  std::vector<std::string> names;
  for (const gid_t id : ids) {
    if (auto name = group_name(id)) names.push_back(std::move(*name));
  }
  return names;
}

std::optional<caller> caller_of_uid(uid_t uid, uid_t own_uid, const group_source& groups) {
  const std::string name = "uid:" + std::to_string(uid);
  if (uid == 0 || uid == own_uid) return caller{name, role::op};
  const std::vector<std::string> names = groups(uid);
  if (holds(names, "busbar-operator")) return caller{name, role::op};
  if (holds(names, "busbar-viewer") || holds(names, "busbar-safety")) return caller{name, role::viewer};
  return std::nullopt;
}

std::optional<caller> caller_of_certificate(const std::string& common_name, const certificate_roles& roles) {
  if (common_name.empty()) return std::nullopt;
  if (holds(roles.operators, common_name)) return caller{"cn:" + common_name, role::op};
  if (holds(roles.viewers, common_name)) return caller{"cn:" + common_name, role::viewer};
  return std::nullopt;
}

int peer_table::admit(int socket, const caller& who) {
  const std::lock_guard lock(mutex_);
  int number = socket;
  while (number >= 0) {
    const auto known = by_number_.find(number);
    if (known == by_number_.end() || known->second == who) break;
    // Taken by another user once: the next free number above it.
    const int next = fcntl(socket, F_DUPFD_CLOEXEC, number + 1);
    if (number != socket) close(number);
    number = next;
  }
  if (number != socket) close(socket);
  if (number >= 0) by_number_.insert_or_assign(number, who);
  return number;
}

std::optional<caller> peer_table::find(std::string_view peer) const {
  if (!peer.starts_with(number_prefix)) return std::nullopt;
  peer.remove_prefix(number_prefix.size());
  int number = -1;
  const auto [end, error] = std::from_chars(peer.data(), peer.data() + peer.size(), number);
  if (error != std::errc() || end != peer.data() + peer.size()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto known = by_number_.find(number);
  if (known == by_number_.end()) return std::nullopt;
  return known->second;
}

}  // namespace busbar::rpc
