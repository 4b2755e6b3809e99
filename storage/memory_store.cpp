#include "storage/memory_store.hpp"

#include <mutex>

#include "actors/core/errors.hpp"

namespace busbar::storage {
namespace {

std::size_t index_of(family where) { return static_cast<std::size_t>(where); }

absl::Status refusal() {
  return core::make_fault(core::fault::STORE_READ_ONLY, "write to the store in memory: the disk is full (simulated)");
}

}  // namespace

absl::Status memory_store::write(const store_write& batch) {
  const std::unique_lock lock(mutex_);
  if (full_) refusing_ = true;
  if (refusing_ && !batch.safety) return refusal();
  for (const store_write::operation& operation : batch.operations()) {
    table& rows = tables_[index_of(operation.where)];
    switch (operation.what) {
      case store_write::action::put: rows.insert_or_assign(operation.key, operation.value); break;
      case store_write::action::erase: rows.erase(operation.key); break;
      case store_write::action::erase_range:
        if (operation.key < operation.value) {
          rows.erase(rows.lower_bound(operation.key), rows.lower_bound(operation.value));
        }
        break;
    }
  }
  ++syncs_;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> memory_store::get(family where, std::string_view key) const {
  const std::shared_lock lock(mutex_);
  const table& rows = tables_[index_of(where)];
  const auto found = rows.find(key);
  if (found == rows.end()) return std::optional<std::string>();
  return std::optional<std::string>(found->second);
}

absl::Status memory_store::scan(family where, std::string_view from, std::string_view to,
                                const visitor& visit) const {
  const std::shared_lock lock(mutex_);
  const table& rows = tables_[index_of(where)];
  const auto end = to.empty() ? rows.end() : rows.lower_bound(to);
  for (auto row = rows.lower_bound(from); row != end && row != rows.end(); ++row) {
    if (!to.empty() && row->first >= to) break;
    if (!visit(row->first, row->second)) break;
  }
  return absl::OkStatus();
}

absl::Status memory_store::scan_back(family where, std::string_view from, std::string_view to,
                                     const visitor& visit) const {
  const std::shared_lock lock(mutex_);
  const table& rows = tables_[index_of(where)];
  auto row = to.empty() ? rows.end() : rows.lower_bound(to);
  while (row != rows.begin()) {
    --row;
    if (row->first < from) break;
    if (!visit(row->first, row->second)) break;
  }
  return absl::OkStatus();
}

store_health memory_store::health() const {
  const std::shared_lock lock(mutex_);
  return refusing_ ? store_health::read_only : store_health::serving;
}

absl::Status memory_store::probe() {
  const std::unique_lock lock(mutex_);
  if (full_) return refusal();
  refusing_ = false;
  return absl::OkStatus();
}

absl::Status memory_store::close() { return absl::OkStatus(); }

void memory_store::fill_disk(bool full) {
  const std::unique_lock lock(mutex_);
  full_ = full;
}

std::uint64_t memory_store::syncs() const {
  const std::shared_lock lock(mutex_);
  return syncs_;
}

std::shared_ptr<memory_store> memory_store::copy() const {
  const std::shared_lock lock(mutex_);
  auto other = std::make_shared<memory_store>();
  other->tables_ = tables_;
  return other;
}

}  // namespace busbar::storage
