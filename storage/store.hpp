// The store below the journal: ordered keys in a few families, written in atomic synced batches. Two implementations under one
// contract test (tests/unit/storage): memory_store for tests, rocks_store for disks. One writer; reads from any thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace busbar::storage {

// By life cycle. The order is that of `families`; names are on disk.
enum class family : std::uint8_t { meta, state, events, intents, audit, evidence, vault };
inline constexpr std::array families = {family::meta,  family::state,    family::events, family::intents,
                                        family::audit, family::evidence, family::vault};
std::string_view name_of(family where);

// Applied in order, all or nothing.
class store_write {
 public:
  enum class action : std::uint8_t { put, erase, erase_range };
  struct operation {
    action what;
    family where;
    std::string key;    // erase_range: first key
    std::string value;  // put: value; erase_range: end, exclusive
  };

  void put(family where, std::string key, std::string value) {
    operations_.push_back({action::put, where, std::move(key), std::move(value)});
  }
  void erase(family where, std::string key) { operations_.push_back({action::erase, where, std::move(key), {}}); }
  void erase_range(family where, std::string from, std::string to) {
    operations_.push_back({action::erase_range, where, std::move(from), std::move(to)});
  }

  const std::vector<operation>& operations() const { return operations_; }
  bool empty() const { return operations_.empty(); }
  // Forgets all after the first `count` operations.
  void truncate(std::size_t count) { operations_.resize(count, operation{action::erase, family::meta, {}, {}}); }

  bool safety = false;  // may use the room kept back for trips

 private:
  std::vector<operation> operations_;
};

// serving; shedding: below the low-water mark of free space, old events should go; read_only: writes are refused (space, or an
// error of the disk) until probe() succeeds; failed: stopped for good, a person must look, nothing is deleted.
enum class store_health { serving, shedding, read_only, failed };
std::string_view name_of(store_health health);

class store {
 public:
  // Return false to stop. Must not call the store it is called by.
  using visitor = std::function<bool(std::string_view key, std::string_view value)>;

  virtual ~store() = default;

  // Whole or not at all; on disk when it returns ok. STORE_READ_ONLY: refused, nothing of it will ever be visible to a reader
  // of this process. STORE_DAMAGED: stopped for good.
  virtual absl::Status write(const store_write& batch) = 0;
  // Not found is an empty optional, an error is an error.
  virtual absl::StatusOr<std::optional<std::string>> get(family where, std::string_view key) const = 0;
  // Keys in [from, to) in order; an empty `to` is the end of the family.
  virtual absl::Status scan(family where, std::string_view from, std::string_view to, const visitor& visit) const = 0;
  // The same, newest key first.
  virtual absl::Status scan_back(family where, std::string_view from, std::string_view to,
                                 const visitor& visit) const = 0;

  virtual store_health health() const = 0;
  // Tries to get out of read_only: repairs, then proves it by a synced write. Ok: serving again.
  virtual absl::Status probe() = 0;
  // Writer's thread, last call; ok means that everything acknowledged is on disk.
  virtual absl::Status close() = 0;
};

}  // namespace busbar::storage
