// Beside the store, the name of the journal it holds: a store that is gone or was exchanged is told from a first
// start. A text file `journal_id` in the state folder, written whole or not at all.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "storage/journal_log.hpp"

namespace busbar::storage {

// Before the store is opened (which would make one): STORE_MISSING if the mark names a journal and there is no
// store in store_directory.
absl::Status check_store_is_there(const std::string& mark_file, const std::string& store_directory);

// After it: STORE_MISSING if the store holds a journal that neither is the marked one nor comes from it.
absl::Status check_store_is_ours(const std::string& mark_file, const journal_log& log);

// Names this journal from now on; writes only when that is new.
absl::Status mark_journal(const std::string& mark_file, const journal_log& log);

}  // namespace busbar::storage
