#include "storage/key_codec.hpp"

#include <algorithm>

namespace busbar::storage {
namespace {

constexpr char state_format = 1;
constexpr std::string_view request_prefix = "request/";
constexpr std::string_view evidence_prefix = "sha256:";
constexpr std::size_t evidence_name_size = evidence_prefix.size() + 64;
constexpr std::string_view candidate_prefix = "\1c";
constexpr std::string_view reference_prefix = "\1r";

template <class Number>
void append_number(std::string& out, Number value) {
  for (int shift = static_cast<int>(sizeof(Number) * 8) - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xff));
  }
}

template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    value = static_cast<Number>((value << 8) | static_cast<unsigned char>(bytes[offset + i]));
  }
  return value;
}

}  // namespace

std::string encode_u64(std::uint64_t value) {
  std::string out;
  append_number(out, value);
  return out;
}

std::optional<std::uint64_t> decode_u64(std::string_view bytes) {
  if (bytes.size() != sizeof(std::uint64_t)) return std::nullopt;
  return number_at<std::uint64_t>(bytes, 0);
}

std::string state_key(core::object_kind kind, std::string_view name) {
  std::string key;
  key.reserve(1 + name.size());
  key.push_back(static_cast<char>(kind));
  key.append(name);
  return key;
}

std::optional<std::pair<core::object_kind, std::string>> parse_state_key(std::string_view key) {
  if (key.size() < 2) return std::nullopt;
  const auto number = static_cast<std::uint8_t>(key[0]);
  if (number < static_cast<std::uint8_t>(core::object_kind::node) ||
      number > static_cast<std::uint8_t>(core::last_object_kind)) {
    return std::nullopt;
  }
  return std::pair(static_cast<core::object_kind>(number), std::string(key.substr(1)));
}

std::pair<std::string, std::string> state_range(core::object_kind kind) {
  const auto number = static_cast<char>(kind);
  return {std::string(1, number), std::string(1, static_cast<char>(number + 1))};
}

std::string state_value(std::uint64_t revision, std::string_view object) {
  std::string value;
  value.reserve(1 + sizeof(revision) + object.size());
  value.push_back(state_format);
  append_number(value, revision);
  value.append(object);
  return value;
}

std::optional<parsed_state_value> parse_state_value(std::string_view value) {
  constexpr std::size_t header = 1 + sizeof(std::uint64_t);
  if (value.size() < header || value[0] != state_format) return std::nullopt;
  return parsed_state_value{number_at<std::uint64_t>(value, 1), value.substr(header)};
}

std::string event_key(std::uint64_t revision, std::uint32_t index) {
  std::string key;
  key.reserve(sizeof(revision) + sizeof(index));
  append_number(key, revision);
  append_number(key, index);
  return key;
}

std::optional<std::pair<std::uint64_t, std::uint32_t>> parse_event_key(std::string_view key) {
  if (key.size() != sizeof(std::uint64_t) + sizeof(std::uint32_t)) return std::nullopt;
  return std::pair(number_at<std::uint64_t>(key, 0), number_at<std::uint32_t>(key, sizeof(std::uint64_t)));
}

bool is_evidence_name(std::string_view text) {
  return text.size() == evidence_name_size && text.starts_with(evidence_prefix) &&
         text.find_first_not_of("0123456789abcdef", evidence_prefix.size()) == std::string_view::npos;
}

std::string candidate_key(std::string_view name) { return std::string(candidate_prefix).append(name); }
std::string name_of_candidate(std::string_view key) { return std::string(key.substr(candidate_prefix.size())); }
std::pair<std::string, std::string> candidate_range() { return {std::string(candidate_prefix), "\1d"}; }

std::string reference_key(std::string_view name, bool audit, std::string_view record_key) {
  std::string key(reference_prefix);
  key.append(name);
  key.push_back(audit ? 'a' : 'e');
  key.append(record_key);
  return key;
}

std::pair<std::string, std::string> reference_range(std::string_view name) {
  std::string first(reference_prefix);
  first.append(name);
  return {first, first + "f"};
}

std::vector<std::string> evidence_named_in(std::string_view bytes) {
  std::vector<std::string> names;
  for (std::size_t at = 0; (at = bytes.find(evidence_prefix, at)) != std::string_view::npos; ++at) {
    const std::string_view name = bytes.substr(at, evidence_name_size);
    if (is_evidence_name(name) && std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

std::string identity_key() { return "identity"; }
std::string head_key() { return "head"; }
std::string schema_key() { return "schema_version"; }

std::string request_key(std::string_view request_id) {
  std::string key(request_prefix);
  key.append(request_id);
  return key;
}

std::pair<std::string, std::string> request_range() {
  std::string end(request_prefix);
  end.back() = static_cast<char>(end.back() + 1);
  return {std::string(request_prefix), end};
}

}  // namespace busbar::storage
