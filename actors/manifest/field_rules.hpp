// What a key of a spec file must hold, beyond the type of its protobuf field: one table, read by the decoder.
#pragma once

#include <google/protobuf/descriptor.h>

#include <span>
#include <string_view>

#include "actors/manifest/values.hpp"

namespace busbar::manifest {

enum class number_rule { not_negative, positive, any };
enum class text_form { as_written, lower, canonical };  // canonical: True -> true, 87.50 -> 87.5

struct field_rule {
  std::string_view message;  // name within busbar.journal
  std::string_view key;      // as written in YAML
  bool required = false;
  check value = nullptr;  // of a text, or of each element of a list of texts
  check map_key = nullptr;
  number_rule number = number_rule::not_negative;
  text_form form = text_form::as_written;
};

std::span<const field_rule> rules_of(std::string_view message);
const field_rule& rule_of(std::string_view message,
                          std::string_view key);  // the empty rule when none stands in the table

// A message whose YAML form is its only field's: FirmwareRows is a list, Attributes a map. Null for every
// other message.
const google::protobuf::FieldDescriptor* transparent_field(const google::protobuf::Descriptor& type);

// YAML keys that spread over several fields: dp_kpa: [20, 120] and pcie: {generation: 6, width: 16}.
struct spread_key {
  std::string_view message;
  std::string_view key;
  std::string_view first_field;
  std::string_view second_field;
  std::string_view first_key;  // empty: a list of two
  std::string_view second_key;
};
const spread_key* spread_key_named(std::string_view message, std::string_view key);
bool is_reached_by_spread_key(std::string_view message, std::string_view field);

}  // namespace busbar::manifest
