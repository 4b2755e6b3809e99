// Secrets at rest: AES-256-GCM, the name bound to the secret, the key outside the store. Nothing here logs or prints a secret;
// `secret` wipes its memory.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/core/journal_batch.hpp"
#include "storage/store.hpp"

namespace busbar::storage {

// Bytes that are wiped when they go. Moves, does not copy.
class secret {
 public:
  secret() = default;
  explicit secret(std::string_view bytes);
  explicit secret(std::string&& bytes);
  secret(secret&& other) noexcept;
  secret& operator=(secret&& other) noexcept;
  secret(const secret&) = delete;
  secret& operator=(const secret&) = delete;
  ~secret();

  // The one way to see it; for the place that hands it to a device.
  std::string_view reveal() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  void wipe();
  std::string bytes_;
};

class vault {
 public:
  // VAULT_KEY_REFUSED: missing, not 32 bytes, readable by others than its owner, or not the key this store's secrets were
  // sealed with.
  static absl::StatusOr<std::shared_ptr<vault>> open(std::shared_ptr<store> below, const std::string& key_file);
  ~vault();

  // Any thread: encrypts only. What it gives rides in a journal batch (journal_batch::secrets).
  absl::StatusOr<core::sealed_secret> seal(std::string_view name, std::string_view bytes) const;

  // In a synced write of its own; for the one thread that writes the store (before the journal actor runs, or in it).
  absl::Status put(std::string_view name, std::string_view bytes);
  absl::Status erase(std::string_view name);
  // Any thread. NOT_FOUND; VAULT_DAMAGED if it does not verify (changed, or moved from another name).
  absl::StatusOr<secret> get(std::string_view name) const;
  // Names only, in order.
  absl::StatusOr<std::vector<std::string>> list() const;

 private:
  vault(std::shared_ptr<store> below, secret key);
  const std::shared_ptr<store> store_;
  const secret key_;
};

// A fresh key file, mode 0600; ALREADY_EXISTS if there is one: a key is never overwritten.
absl::Status new_key(const std::string& path);

// 24 characters, each class (upper, lower, digit, symbol) at least twice, none that a shell, URI, JSON or YAML would trip over.
secret generate_password();

}  // namespace busbar::storage
