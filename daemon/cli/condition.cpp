#include "daemon/cli/condition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "busbar/v1/busbar.pb.h"
#include "daemon/cli/table.hpp"

namespace busbar::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr std::string_view not_known = "unknown";

const Descriptor* type_of(const kind_info& of) {
  return google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName("busbar.v1." +
                                                                                   std::string(of.message));
}

const FieldDescriptor* field_of(const Descriptor& type, const std::string& name) {
  const FieldDescriptor* field = type.FindFieldByName(name);
  return field == nullptr ? type.FindFieldByCamelcaseName(name) : field;
}

// A single plain value at the path; step alone also finds status.step.
const FieldDescriptor* value_at(const Descriptor& top, std::string_view path) {
  const Descriptor* at = &top;
  bool first = true;
  for (;;) {
    const std::size_t dot = path.find('.');
    const std::string name(path.substr(0, dot));
    const FieldDescriptor* field = field_of(*at, name);
    if (const FieldDescriptor* status = at->FindFieldByName("status"); field == nullptr && first && status != nullptr)
      field = field_of(*status->message_type(), name);
    first = false;
    if (field == nullptr || field->is_repeated()) return nullptr;
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (dot == std::string_view::npos) return is_message ? nullptr : field;
    if (!is_message) return nullptr;
    at = field->message_type();
    path.remove_prefix(dot + 1);
  }
}

// HEALTH_GOOD and good are one word to a person.
std::string plain_word(const FieldDescriptor& field, std::string_view value) {
  std::string text = word(value);
  if (field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM) return text;
  const std::string prefix = word(field.enum_type()->name()) + "_";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

// Every word the field can hold; empty: any text.
std::vector<std::string> words_of(const Descriptor& top, const FieldDescriptor& field) {
  std::vector<std::string> words;
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return {"true", "false"};
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    for (int i = 0; i < field.enum_type()->value_count(); ++i)
      words.push_back(plain_word(field, field.enum_type()->value(i)->name()));
  } else if (&top == v1::Rack::descriptor() && field.name() == "state") {
    for (int i = 1; i < v1::RackStep::Value_ARRAYSIZE; ++i)
      words.push_back(word(v1::RackStep::Value_Name(static_cast<v1::RackStep::Value>(i))));
    for (const char* other : {"degraded", "cordoned", "troubleshooting", "shutting_down"}) words.emplace_back(other);
  } else if (&top == v1::Rack::descriptor() && field.name() == "ceiling") {
    words = {"production", "degraded", "cordoned"};
  }
  if (&top == v1::Valve::descriptor() && field.name() == "proof") words = {"none", "moving", "proven", "unproven", "failed"};
  if (&top == v1::Valve::descriptor() && field.name() == "mode") words = {"automatic", "manual", "fail_safe"};
  if (&top == v1::Valve::descriptor() && field.name() == "condition")
    words = {"sound", "sticking", "stuck", "drifting", "contradicted"};
  std::erase(words, not_known);  // nobody can wait for not knowing
  return words;
}

bool is_number(const FieldDescriptor& field) {
  return field.cpp_type() != FieldDescriptor::CPPTYPE_STRING && field.cpp_type() != FieldDescriptor::CPPTYPE_ENUM &&
         field.cpp_type() != FieldDescriptor::CPPTYPE_BOOL;
}

// Fields with words of their own first: they are what people wait for.
std::string known_fields(const Descriptor& top) {
  std::vector<std::string> worded;
  std::vector<std::string> others;
  const FieldDescriptor* status = top.FindFieldByName("status");
  for (const Descriptor* type : {status == nullptr ? nullptr : status->message_type(), &top}) {
    for (int i = 0; type != nullptr && i < type->field_count(); ++i) {
      const FieldDescriptor& field = *type->field(i);
      if (value_at(top, field.name()) != &field) continue;
      (words_of(top, field).empty() ? others : worded).push_back(field.name());
    }
  }
  worded.insert(worded.end(), others.begin(), others.end());
  return fmt::format("{}", fmt::join(worded, ", "));
}

// busbard says so of what it shows while its store takes no writes: what is stale is not known.
template <class Message>
bool is_old(const google::protobuf::Message& item) {
  if (item.GetDescriptor() != Message::descriptor()) return false;
  const auto& rows = static_cast<const Message&>(item).conditions();
  return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.type() == "MAY_BE_OLD"; });
}

bool may_be_old(const google::protobuf::Message& item) {
  return is_old<v1::Rack>(item) || is_old<v1::Node>(item) || is_old<v1::Shelf>(item) || is_old<v1::Valve>(item) || is_old<v1::Pdu>(item) || is_old<v1::Cdu>(item);
}

}  // namespace

std::string wrong_condition(const kind_info& of, const std::string& condition) {
  const Descriptor& top = *type_of(of);
  const std::size_t equals = condition.find('=');
  const std::string path = condition.substr(0, equals);
  if (equals == std::string::npos)
    return fmt::format("'{}' is no FIELD=VALUE; fields of a {}: {}", condition, of.singular, known_fields(top));
  const FieldDescriptor* field = value_at(top, path);
  if (field == nullptr)
    return fmt::format("a {} has no single value '{}'; it has: {}", of.singular, path, known_fields(top));
  const std::string wanted = plain_word(*field, condition.substr(equals + 1));
  const std::vector<std::string> words = words_of(top, *field);
  if (!words.empty() && std::find(words.begin(), words.end(), wanted) == words.end())
    return fmt::format("{} of a {} is never '{}'; it is one of: {}", path, of.singular, wanted, fmt::join(words, ", "));
  const bool numeric = !wanted.empty() && wanted.find_first_not_of("0123456789.-+e") == std::string::npos;
  if (is_number(*field) && !numeric)
    return fmt::format("{} of a {} is a number, which '{}' is not", path, of.singular, wanted);
  return {};
}

std::optional<bool> holds(const google::protobuf::Message& item, const std::string& condition) {
  if (may_be_old(item)) return std::nullopt;
  const std::size_t equals = condition.find('=');
  const FieldDescriptor* field = value_at(*item.GetDescriptor(), condition.substr(0, equals));
  if (field == nullptr) return std::nullopt;
  bool found = false;
  const std::string value = plain_word(*field, field_text(item, condition.substr(0, equals), found));
  if (!found || value == not_known) return std::nullopt;
  return value == plain_word(*field, condition.substr(equals + 1));
}

}  // namespace busbar::cli
