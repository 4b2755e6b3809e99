// A store in memory, for tests and simulated daemons. Holds what was acknowledged across a simulated crash when the same
// object is given to the next life.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>

#include "storage/store.hpp"

namespace busbar::storage {

class memory_store : public store {
 public:
  memory_store() = default;

  absl::Status write(const store_write& batch) override;
  absl::StatusOr<std::optional<std::string>> get(family where, std::string_view key) const override;
  absl::Status scan(family where, std::string_view from, std::string_view to, const visitor& visit) const override;
  absl::Status scan_back(family where, std::string_view from, std::string_view to,
                         const visitor& visit) const override;
  store_health health() const override;
  absl::Status probe() override;
  absl::Status close() override;

  // Tests: a full disk. Writes are refused, reads go on; clearing it lets the next probe() succeed.
  void fill_disk(bool full);
  // Tests: how many writes were synced so far.
  std::uint64_t syncs() const;
  // Tests: a disk as it would be found after a crash now.
  std::shared_ptr<memory_store> copy() const;

 private:
  using table = std::map<std::string, std::string, std::less<>>;

  mutable std::shared_mutex mutex_;
  std::array<table, families.size()> tables_;
  bool full_ = false;
  bool refusing_ = false;
  std::uint64_t syncs_ = 0;
};

}  // namespace busbar::storage
