#include "storage/migrations.hpp"

#include <fmt/format.h>

#include <array>

#include "actors/core/errors.hpp"
#include "storage/key_codec.hpp"

namespace busbar::storage {

absl::Status index_evidence(const store& before, store_write& write);  // journal_evidence.cpp

std::span<const migration> migrations() {
  static constexpr std::array steps{migration{2, "who names which evidence", &index_evidence}};
  return steps;
}

absl::Status migrate(store& below, std::span<const migration> steps, std::uint32_t newest) {
  const auto stored = below.get(family::meta, schema_key());
  if (!stored.ok()) return stored.status();
  if (!stored->has_value()) {
    store_write first;
    first.put(family::meta, schema_key(), encode_u64(newest));
    return below.write(first);
  }
  const auto number = decode_u64(**stored);
  if (!number.has_value()) return core::make_fault(core::fault::STORE_DAMAGED, "the schema number cannot be read");
  if (*number > newest) {
    return core::make_fault(core::fault::STORE_NEWER, fmt::format("the store has schema {}, this program knows up to {}; "
                                                                  "nothing was changed", *number, newest));
  }
  for (std::uint64_t at = *number; at < newest; ++at) {
    const migration* step = nullptr;
    for (const migration& candidate : steps) {
      if (candidate.to == at + 1) step = &candidate;
    }
    if (step == nullptr) {
      return core::make_fault(core::fault::STORE_DAMAGED, fmt::format("no step leads from schema {} to {}", at, at + 1));
    }
    store_write write;
    if (const absl::Status done = step->run(below, write); !done.ok()) return done;
    write.put(family::meta, schema_key(), encode_u64(at + 1));
    if (const absl::Status done = below.write(write); !done.ok()) return done;
  }
  return absl::OkStatus();
}

}  // namespace busbar::storage
