#include "actors/manifest/spec_diff.hpp"

#include <fmt/format.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/message.h>

#include <chrono>

#include "actors/manifest/field_rules.hpp"
#include "actors/manifest/values.hpp"

namespace busbar::manifest {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using leaves = std::map<std::string, std::string>;

void flatten(const Message& message, const std::string& path, leaves& out);

std::string join(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

std::string scalar_text(const Message& message, const FieldDescriptor& field, int index) {
  const auto* reflection = message.GetReflection();
  const bool repeated = field.is_repeated();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    return repeated ? reflection->GetRepeatedString(message, &field, index)
                    : reflection->GetString(message, &field);
  }
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM)
    return lower_case(reflection->GetEnum(message, &field)->name());
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_UINT32)
    return std::to_string(reflection->GetUInt32(message, &field));
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32)
    return std::to_string(reflection->GetInt32(message, &field));
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL)
    return reflection->GetBool(message, &field) ? "true" : "";  // false is left out, as in the file
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE)
    return fmt::format("{}", reflection->GetDouble(message, &field));
  return {};
}

void flatten_submessage(const Message& message, const std::string& path, leaves& out) {
  if (message.GetDescriptor() == google::protobuf::Duration::descriptor()) {
    google::protobuf::Duration duration;
    duration.CopyFrom(message);
    out[path] =
        duration_text(std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos()));
    return;
  }
  flatten(message, path, out);
}

// What a row is known by: its slot, component, name or id; else its place.
std::string row_key(const Message& row, int index) {
  for (const char* key : {"slot", "component", "name", "id"}) {
    const FieldDescriptor* field = row.GetDescriptor()->FindFieldByName(key);
    if (field == nullptr) continue;
    const std::string text = scalar_text(row, *field, 0);
    if (!text.empty()) return text;
  }
  return std::to_string(index);
}

void flatten_repeated(const Message& message, const FieldDescriptor& field, const std::string& path,
                      leaves& out) {
  const auto* reflection = message.GetReflection();
  const int size = reflection->FieldSize(message, &field);
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    std::vector<std::string> texts;
    for (int i = 0; i < size; ++i) texts.push_back(scalar_text(message, field, i));
    if (size > 0) out[path] = fmt::format("[{}]", fmt::join(texts, ", "));
    return;
  }
  for (int i = 0; i < size; ++i) {
    const Message& element = reflection->GetRepeatedMessage(message, &field, i);
    if (!field.is_map()) {
      flatten_submessage(element, fmt::format("{}[{}]", path, row_key(element, i)), out);
      continue;
    }
    const std::string key = scalar_text(element, *field.message_type()->map_key(), 0);
    const std::string here = key.empty() ? path : join(path, key);
    const FieldDescriptor& value = *field.message_type()->map_value();
    if (value.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      flatten_submessage(element.GetReflection()->GetMessage(element, &value), here, out);
    } else {
      out[here] = scalar_text(element, value, 0);
    }
  }
}

void flatten(const Message& message, const std::string& path, leaves& out) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool transparent = transparent_field(*message.GetDescriptor()) == field;
    const std::string here = transparent ? path : join(path, field->name());
    if (field->is_repeated()) {
      flatten_repeated(message, *field, here, out);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      flatten_submessage(message.GetReflection()->GetMessage(message, field), here, out);
    } else {
      out[here] = scalar_text(message, *field, 0);
    }
  }
}

std::string or_none(const std::string& text) {
  return text.empty() ? "(none)" : text;
}

std::vector<spec_change> changes_of(const Message& before, const Message& after) {
  leaves old_leaves;
  leaves new_leaves;
  flatten(before, "", old_leaves);
  flatten(after, "", new_leaves);
  old_leaves.erase("digest");
  new_leaves.erase("digest");
  std::map<std::string, spec_change> found;
  for (const auto& [path, text] : old_leaves) found[path] = {path, text, ""};
  for (const auto& [path, text] : new_leaves) {
    found[path].key_path = path;
    found[path].after = text;
  }
  std::vector<spec_change> result;
  for (const auto& [path, change] : found) {
    if (change.before != change.after) result.push_back(change);
  }
  return result;
}

}  // namespace

std::vector<spec_change> changes(const journal::RackSpec& before, const journal::RackSpec& after) {
  return changes_of(before, after);
}

std::vector<spec_change> changes(const journal::PlantSpec& before, const journal::PlantSpec& after) {
  return changes_of(before, after);
}

std::map<std::string, std::string> diff(const journal::RackSpec& before, const journal::RackSpec& after) {
  std::map<std::string, std::string> result;
  for (const spec_change& change : changes(before, after)) {
    result[change.key_path] = fmt::format("{} -> {}", or_none(change.before), or_none(change.after));
  }
  return result;
}

}  // namespace busbar::manifest
