// Who may be born: one row a member with the digest of its one-time token. Pure: the time is passed in,
// nothing is read or written. The gate owns one under its mutex and keeps its text form in the state folder.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace busbar::rpc {

// Deadlines run on the monotonic clock; the wall clock only carries them over a restart.
struct book_time {
  std::chrono::steady_clock::time_point monotonic;
  std::int64_t wall_s = 0;
};

class agent_token_book {
 public:
  struct redemption {
    absl::Status status;
    std::string member;  // known also where the serial is refused
    std::string expected_serial;
  };

  explicit agent_token_book(std::chrono::seconds token_life) : token_life_(token_life) {}

  // Replaces the member's earlier token and lifts its revocation.
  void issue(const std::string& member, const std::string& expected_serial, const std::string& token,
             const book_time& now);
  // Uses the token up. The same token with the same key is answered again until it expires: an agent whose
  // answer was lost is not stranded, and nobody else gains anything. A wrong serial uses it up too: it is in
  // the wrong hands.
  redemption redeem(const std::string& token, const std::string& dmi_serial, const std::string& key_digest,
                    const book_time& now);
  void revoke(const std::string& member);

  bool revoked(const std::string& member) const;
  // nullopt: this book knows nothing of the member (or Redfish showed no serial).
  std::optional<std::string> expected_serial(const std::string& member) const;

  // One line a member; parse() refuses the whole text if a line is not one of its own.
  std::string to_text(const book_time& now) const;
  absl::Status parse(const std::string& text, const book_time& now);

 private:
  struct row {
    std::string token_digest;  // hex; empty = no token can be redeemed
    std::string expected_serial;
    std::string used_by;  // digest of the key it was used with; empty = unused
    std::chrono::steady_clock::time_point expires;
    bool revoked = false;
  };

  std::chrono::seconds token_life_;
  std::map<std::string, row> rows_;               // by member
  std::map<std::string, std::string> by_digest_;  // token digest -> member
};

// "r01/c07": what a certificate's subject and a book's row may be.
bool is_member_name(const std::string& text);

}  // namespace busbar::rpc
