#include "daemon/busbard/rpc/filter.hpp"

#include <fmt/format.h>
#include <google/protobuf/reflection.h>

#include <optional>

namespace busbar::rpc {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

const FieldDescriptor* find_field(const Descriptor* of, const std::string& name) {
  if (const FieldDescriptor* field = of->FindFieldByName(name); field != nullptr) return field;
  for (int i = 0; i < of->field_count(); ++i) {
    if (of->field(i)->json_name() == name) return of->field(i);
  }
  return nullptr;
}

std::string_view take_until(std::string_view& text, char end) {
  const std::size_t place = text.find(end);
  const std::string_view first = text.substr(0, place);
  text.remove_prefix(place == std::string_view::npos ? text.size() : place + 1);
  return first;
}

// The text of a single value; index: of a repeated field, else -1.
std::string value_text(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection* reflection = message.GetReflection();
  const bool repeated = index >= 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(repeated ? reflection->GetRepeatedInt32(message, field, index) : reflection->GetInt32(message, field));
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(repeated ? reflection->GetRepeatedInt64(message, field, index) : reflection->GetInt64(message, field));
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(repeated ? reflection->GetRepeatedUInt32(message, field, index) : reflection->GetUInt32(message, field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(repeated ? reflection->GetRepeatedUInt64(message, field, index) : reflection->GetUInt64(message, field));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return fmt::format("{}", repeated ? reflection->GetRepeatedDouble(message, field, index) : reflection->GetDouble(message, field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return fmt::format("{}", repeated ? reflection->GetRepeatedFloat(message, field, index) : reflection->GetFloat(message, field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (repeated ? reflection->GetRepeatedBool(message, field, index) : reflection->GetBool(message, field)) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return (repeated ? reflection->GetRepeatedEnum(message, field, index) : reflection->GetEnum(message, field))->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return repeated ? reflection->GetRepeatedString(message, field, index) : reflection->GetString(message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE: break;
  }
  return {};
}

}  // namespace

absl::StatusOr<filter> filter::parse(std::string_view text, const Descriptor* of) {
  filter made;
  while (!text.empty()) {
    const std::string_view one = take_until(text, ' ');
    if (one.empty()) continue;
    absl::StatusOr<term> parsed = parse_term(one, of);
    if (!parsed.ok()) return parsed.status();
    made.terms_.push_back(*std::move(parsed));
  }
  return made;
}

absl::StatusOr<filter::term> filter::parse_term(std::string_view text, const Descriptor* of) {
  const auto wrong = [text](std::string_view why) {
    return absl::InvalidArgumentError(fmt::format("filter term '{}': {}", text, why));
  };
  std::string_view value = text;
  std::string_view path = take_until(value, '=');
  if (path.size() == text.size() || path.empty()) return wrong("is not field=value");
  term made;
  made.value = std::string(value);
  const Descriptor* at = of;
  while (!path.empty()) {
    if (at == nullptr) return wrong("goes on after a field that holds a plain value");
    const std::string name(take_until(path, '.'));
    const FieldDescriptor* field = find_field(at, name);
    if (field == nullptr) return wrong(fmt::format("{} has no field {}", at->name(), name));
    part next{field, {}};
    if (field->is_map()) {
      if (path.empty()) return wrong("a map needs a key");
      next.map_key = std::string(take_until(path, '.'));
      field = field->message_type()->map_value();
    }
    at = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE ? field->message_type() : nullptr;
    made.path.push_back(std::move(next));
  }
  if (at != nullptr) return wrong("names a message, not a value");
  return made;
}

bool filter::matches(const Message& message) const {
  for (const term& one : terms_) {
    if (!fits(message, one, 0)) return false;
  }
  return true;
}

bool filter::fits(const Message& message, const term& wanted, std::size_t depth) {
  const part& at = wanted.path[depth];
  const Reflection* reflection = message.GetReflection();
  const bool last = depth + 1 == wanted.path.size();
  if (at.field->is_map()) {
    const FieldDescriptor* key = at.field->message_type()->map_key();
    const FieldDescriptor* value = at.field->message_type()->map_value();
    for (int i = 0; i < reflection->FieldSize(message, at.field); ++i) {
      const Message& pair = reflection->GetRepeatedMessage(message, at.field, i);
      if (value_text(pair, key, -1) != at.map_key) continue;
      if (last) return value_text(pair, value, -1) == wanted.value;
      return fits(pair.GetReflection()->GetMessage(pair, value), wanted, depth + 1);
    }
    return false;
  }
  if (at.field->is_repeated()) {
    for (int i = 0; i < reflection->FieldSize(message, at.field); ++i) {
      const bool fit = last ? value_text(message, at.field, i) == wanted.value
                            : fits(reflection->GetRepeatedMessage(message, at.field, i), wanted, depth + 1);
      if (fit) return true;
    }
    return false;
  }
  if (at.field->has_presence() && !reflection->HasField(message, at.field)) return false;
  if (last) return value_text(message, at.field, -1) == wanted.value;
  return fits(reflection->GetMessage(message, at.field), wanted, depth + 1);
}

}  // namespace busbar::rpc
