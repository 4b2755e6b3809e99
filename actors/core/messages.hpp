// What may travel between actors. Domain structs go as std::shared_ptr<const T>: no copy, immutable, and local to the process
// by nature (Busbar has no CAF network). Small plain values that are no pointer get a type id in the block below: append, never
// insert. CAF_ENABLE_TYPE_ID_CHECKS makes forgetting one a compile error.
#pragma once

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/type_id.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "actors/core/atoms.hpp"
#include "actors/core/command.hpp"
#include "actors/core/journal_batch.hpp"

namespace caf {

// Every pointer-to-const, once for all rooms.
template <class T>
struct allowed_unsafe_message_type<std::shared_ptr<const T>> : std::true_type {};

}  // namespace caf

namespace busbar::core {

// Health of an actor, as every actor answers to status_atom.
struct actor_status {
  bool ok = true;
  std::string detail;              // what is wrong, for people
  std::uint64_t handled = 0;       // messages or units of work so far
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& inspector, actor_status& status) {
  return inspector(caf::meta::type_name("actor_status"), status.ok, status.detail, status.handled);
}

using batch_ptr = std::shared_ptr<const journal_batch>;
using commit_ptr = std::shared_ptr<const commit_result>;
using command_ptr = std::shared_ptr<const command>;
using command_result_ptr = std::shared_ptr<const command_result>;

}  // namespace busbar::core

CAF_BEGIN_TYPE_ID_BLOCK(busbar, ::caf::first_custom_type_id)
CAF_ADD_TYPE_ID(busbar, (busbar::core::actor_status))
CAF_END_TYPE_ID_BLOCK(busbar)
