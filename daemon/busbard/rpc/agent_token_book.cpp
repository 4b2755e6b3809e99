#include "daemon/busbard/rpc/agent_token_book.hpp"

#include <absl/strings/escaping.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "daemon/agent/x509.hpp"

namespace busbar::rpc {
namespace {

constexpr std::string_view file_header = "busbar agent tokens 1";

bool is_digest(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}
std::string from_dash(const std::string& text) {
  return text == "-" ? "" : text;
}

}  // namespace

bool is_member_name(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  };
  const auto slashes = std::count(text.begin(), text.end(), '/');
  return text.size() >= 3 && text.size() <= 64 && slashes == 1 && text.front() != '/' && text.back() != '/' &&
         std::all_of(text.begin(), text.end(), plain);
}

void agent_token_book::issue(const std::string& member, const std::string& expected_serial,
                             const std::string& token, const book_time& now) {
  row& mine = rows_[member];
  by_digest_.erase(mine.token_digest);
  mine = {agent_client::sha256_hex(token), expected_serial, "", now.monotonic + token_life_, false};
  by_digest_[mine.token_digest] = member;
}

agent_token_book::redemption agent_token_book::redeem(const std::string& token, const std::string& dmi_serial,
                                                      const std::string& key_digest, const book_time& now) {
  const auto known = by_digest_.find(agent_client::sha256_hex(token));
  if (known == by_digest_.end()) return {absl::UnauthenticatedError("the token is unknown here"), "", ""};
  const std::string member = known->second;
  row& mine = rows_[member];
  if (now.monotonic >= mine.expires) {
    return {absl::UnauthenticatedError("the token of " + member + " has expired"), member,
            mine.expected_serial};
  }
  if (!mine.used_by.empty() && mine.used_by != key_digest) {
    return {absl::UnauthenticatedError("the token of " + member + " was used already"), member,
            mine.expected_serial};
  }
  if (!mine.expected_serial.empty() && dmi_serial != mine.expected_serial) {
    by_digest_.erase(known);
    mine.token_digest.clear();
    return {absl::FailedPreconditionError("AGENT_SERIAL_MISMATCH: Redfish showed " + mine.expected_serial +
                                          ", the agent shows " + (dmi_serial.empty() ? "none" : dmi_serial)),
            member, mine.expected_serial};
  }
  mine.used_by = key_digest;
  return {absl::OkStatus(), member, mine.expected_serial};
}

void agent_token_book::revoke(const std::string& member) {
  row& mine = rows_[member];
  by_digest_.erase(mine.token_digest);
  mine = row{};
  mine.revoked = true;
}

bool agent_token_book::revoked(const std::string& member) const {
  const auto found = rows_.find(member);
  return found != rows_.end() && found->second.revoked;
}

std::optional<std::string> agent_token_book::expected_serial(const std::string& member) const {
  const auto found = rows_.find(member);
  if (found == rows_.end() || found->second.expected_serial.empty()) return std::nullopt;
  return found->second.expected_serial;
}

std::string agent_token_book::to_text(const book_time& now) const {
  std::string text = absl::StrCat(absl::string_view(file_header.data(), file_header.size()), "\n");
  for (const auto& [member, mine] : rows_) {
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(mine.expires - now.monotonic).count();
    const std::int64_t expires_wall_s = mine.token_digest.empty() ? 0 : now.wall_s + left;
    absl::StrAppend(&text, member, " ", or_dash(mine.token_digest), " ",
                    or_dash(absl::BytesToHexString(mine.expected_serial)), " ", or_dash(mine.used_by), " ",
                    expires_wall_s, " ", mine.revoked ? "revoked" : "open", "\n");
  }
  return text;
}

absl::Status agent_token_book::parse(const std::string& text, const book_time& now) {
  std::map<std::string, row> rows;
  std::map<std::string, std::string> by_digest;
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines.front() != file_header) return absl::DataLossError("agent tokens: the header is not ours");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty() && i + 1 == lines.size()) break;
    const std::vector<std::string> parts = absl::StrSplit(lines[i], ' ');
    std::int64_t expires_wall_s = 0;
    if (parts.size() != 6 || !is_member_name(parts[0]) || (parts[1] != "-" && !is_digest(parts[1])) ||
        (parts[3] != "-" && !is_digest(parts[3])) || !absl::SimpleAtoi(parts[4], &expires_wall_s) ||
        (parts[5] != "open" && parts[5] != "revoked")) {
      return absl::DataLossError(absl::StrCat("agent tokens: line ", i + 1, " is not ours"));
    }
    row mine;
    mine.token_digest = from_dash(parts[1]);
    mine.expected_serial = absl::HexStringToBytes(from_dash(parts[2]));
    mine.used_by = from_dash(parts[3]);
    mine.revoked = parts[5] == "revoked";
    // A wall clock that was set back must not make a token live longer than it ever could.
    const auto left = std::clamp<std::int64_t>(expires_wall_s - now.wall_s, 0, token_life_.count());
    mine.expires = now.monotonic + std::chrono::seconds(left);
    if (!mine.token_digest.empty()) by_digest[mine.token_digest] = parts[0];
    rows[parts[0]] = mine;
  }
  rows_ = std::move(rows);
  by_digest_ = std::move(by_digest);
  return absl::OkStatus();
}

}  // namespace busbar::rpc
