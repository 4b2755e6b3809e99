#include "storage/store.hpp"

namespace busbar::storage {

std::string_view name_of(family where) {
  switch (where) {
    case family::meta: return "meta";
    case family::state: return "state";
    case family::events: return "events";
    case family::intents: return "intents";
    case family::audit: return "audit";
    case family::evidence: return "evidence";
    case family::vault: return "vault";
  }
  return "unknown";
}

std::string_view name_of(store_health health) {
  switch (health) {
    case store_health::serving: return "serving";
    case store_health::shedding: return "shedding";
    case store_health::read_only: return "read_only";
    case store_health::failed: return "failed";
  }
  return "unknown";
}

}  // namespace busbar::storage
