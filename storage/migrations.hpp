// The schema of the store, by number. A release opens what is as old or older and carries it forward step by step; it never
// touches what is newer.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "storage/store.hpp"

namespace busbar::storage {

// Brings a store from `to` - 1 to `to`: adds its changes to `write`, which also carries the new number, so that a step is
// done whole or not at all.
struct migration {
  std::uint32_t to;
  std::string_view what;
  absl::Status (*run)(const store& before, store_write& write);
};

inline constexpr std::uint32_t schema_version = 2;
std::span<const migration> migrations();

// An empty store gets the newest number. STORE_NEWER, STORE_DAMAGED.
absl::Status migrate(store& below, std::span<const migration> steps, std::uint32_t newest);

}  // namespace busbar::storage
