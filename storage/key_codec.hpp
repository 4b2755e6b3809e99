// Every key of the store, encoded here and nowhere else. Numbers are fixed-width big-endian, so that byte order is numeric order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/core/journal_batch.hpp"

namespace busbar::storage {

std::string encode_u64(std::uint64_t value);
std::optional<std::uint64_t> decode_u64(std::string_view bytes);

// state: kind (1 byte), name.
std::string state_key(core::object_kind kind, std::string_view name);
std::optional<std::pair<core::object_kind, std::string>> parse_state_key(std::string_view key);
// All objects of a kind: [first, second).
std::pair<std::string, std::string> state_range(core::object_kind kind);

// A state value: format (1 byte), revision (8), the object's bytes.
std::string state_value(std::uint64_t revision, std::string_view object);
struct parsed_state_value {
  std::uint64_t revision;
  std::string_view object;  // into the value
};
std::optional<parsed_state_value> parse_state_value(std::string_view value);

// events and audit: revision (8), index in the batch (4).
std::string event_key(std::uint64_t revision, std::uint32_t index);
std::optional<std::pair<std::uint64_t, std::uint32_t>> parse_event_key(std::string_view key);

// evidence: the content under its own name; beside it, under keys no name begins with, who has the name (journal_evidence.cpp).
bool is_evidence_name(std::string_view text);  // "sha256:<64 lower-case hex>"
std::string candidate_key(std::string_view name);
std::string name_of_candidate(std::string_view key);
std::pair<std::string, std::string> candidate_range();
std::string reference_key(std::string_view name, bool audit, std::string_view record_key);
std::pair<std::string, std::string> reference_range(std::string_view name);
// Every evidence name that the bytes hold, as serialised messages do; the same one once.
std::vector<std::string> evidence_named_in(std::string_view bytes);

// meta
std::string identity_key();
std::string head_key();
std::string schema_key();
std::string request_key(std::string_view request_id);
std::pair<std::string, std::string> request_range();

}  // namespace busbar::storage
