#include "daemon/cli/json_text.hpp"

#include <fmt/format.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace busbar::cli {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Timestamp;
using google::protobuf::util::TimeUtil;
using json = nlohmann::ordered_json;

json json_of(const Message& message);

template <class Known>
Known as(const Message& message) {
  Known copy;
  copy.CopyFrom(message);
  return copy;
}

json json_of_double(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// One value; index < 0 for a singular field.
json json_of_value(const Message& message, const FieldDescriptor& field, int index) {
  const auto* of = message.GetReflection();
  const bool one = index < 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return one ? of->GetString(message, &field) : of->GetRepeatedString(message, &field, index);
    case FieldDescriptor::CPPTYPE_ENUM:
      return (one ? of->GetEnum(message, &field) : of->GetRepeatedEnum(message, &field, index))->name();
    case FieldDescriptor::CPPTYPE_BOOL:
      return one ? of->GetBool(message, &field) : of->GetRepeatedBool(message, &field, index);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return json_of_double(one ? of->GetDouble(message, &field)
                                : of->GetRepeatedDouble(message, &field, index));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return json_of_double(one ? of->GetFloat(message, &field)
                                : of->GetRepeatedFloat(message, &field, index));
    case FieldDescriptor::CPPTYPE_INT32:
      return one ? of->GetInt32(message, &field) : of->GetRepeatedInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_UINT32:
      return one ? of->GetUInt32(message, &field) : of->GetRepeatedUInt32(message, &field, index);
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(one ? of->GetInt64(message, &field)
                                : of->GetRepeatedInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(one ? of->GetUInt64(message, &field)
                                : of->GetRepeatedUInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return json_of(one ? of->GetMessage(message, &field) : of->GetRepeatedMessage(message, &field, index));
  }
  return nullptr;
}

json json_of_field(const Message& message, const FieldDescriptor& field) {
  const auto* of = message.GetReflection();
  if (field.is_map()) {
    std::map<std::string, json> sorted;  // protobuf's own order is not stable
    for (int i = 0; i < of->FieldSize(message, &field); ++i) {
      const Message& entry = of->GetRepeatedMessage(message, &field, i);
      sorted[entry.GetReflection()->GetString(entry, field.message_type()->map_key())] =
          json_of_value(entry, *field.message_type()->map_value(), -1);
    }
    json map = json::object();
    for (auto& [key, value] : sorted) map[key] = std::move(value);
    return map;
  }
  if (field.is_repeated()) {
    json list = json::array();
    for (int i = 0; i < of->FieldSize(message, &field); ++i) list.push_back(json_of_value(message, field, i));
    return list;
  }
  if (field.has_presence() && !of->HasField(message, &field)) return nullptr;
  return json_of_value(message, field, -1);
}

json json_of(const Message& message) {
  if (message.GetDescriptor() == Timestamp::descriptor()) return TimeUtil::ToString(as<Timestamp>(message));
  if (message.GetDescriptor() == Duration::descriptor()) return TimeUtil::ToString(as<Duration>(message));
  json object = json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    object[field.json_name()] = json_of_field(message, field);
  }
  return object;
}

json envelope(const std::string& kind) {
  return json{{"apiVersion", "busbar.v1"}, {"kind", kind}};
}

// Plain where YAML reads a plain scalar back as the same text; else the JSON form, which is YAML too.
std::string yaml_scalar(const json& value) {
  if (!value.is_string()) return value.dump();
  const std::string& text = value.get_ref<const std::string&>();
  const bool plain =
      !text.empty() && ((text[0] >= 'A' && text[0] <= 'Z') || (text[0] >= 'a' && text[0] <= 'z')) &&
      text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./ ") ==
          std::string::npos &&
      text.back() != ' ';
  for (const std::string_view word :
       {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}) {
    if (text.size() == word.size() &&
        std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) { return (a | 0x20) == b; })) {
      return value.dump();
    }
  }
  return plain ? text : value.dump();
}

void write_yaml(const json& value, const std::string& indent, bool in_list, std::string& out) {
  bool first = in_list;  // the first line of a list's element stands behind its dash
  const auto lead = [&first, &indent] {
    const std::string text = first ? "" : indent;
    first = false;
    return text;
  };
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      out += lead() + yaml_scalar(key) + ":";
      if (item.is_structured() && !item.empty()) {
        out += "\n";
        write_yaml(item, indent + "  ", false, out);
      } else {
        out += " " + yaml_scalar(item) + "\n";
      }
    }
    return;
  }
  for (const json& item : value) {
    out += lead() + "- ";
    if (item.is_structured() && !item.empty()) {
      write_yaml(item, indent + "  ", true, out);
    } else {
      out += yaml_scalar(item) + "\n";
    }
  }
}

std::string written(const json& value, text_format format, bool one_line = false) {
  if (format == text_format::json)
    return value.dump(one_line ? -1 : 2, ' ', false, json::error_handler_t::replace) + "\n";
  std::string out;
  write_yaml(value, "", false, out);
  return out;
}

}  // namespace

std::string to_text(const Message& message, text_format format) {
  return written(json_of(message), format);
}

std::string list_text(const std::string& list_kind, const listing& all, text_format format) {
  json document = envelope(list_kind);
  document["items"] = json::array();
  for (const auto& item : all.items) document["items"].push_back(json_of(*item));
  document["position"] = all.positions.size() == 1 ? json_of(all.positions.begin()->second) : json(nullptr);
  document["positions"] = json::object();
  for (const auto& [instance, position] : all.positions) document["positions"][instance] = json_of(position);
  document["unreachable"] = json::array();
  for (const unreachable_daemon& silent : all.unreachable) {
    document["unreachable"].push_back({{"instance", silent.daemon.instance},
                                       {"endpoint", silent.daemon.target},
                                       {"message", silent.message}});
  }
  return written(document, format);
}

std::string change_text(const std::string& kind, const v1::WatchResponse& change, const Message& item,
                        text_format format) {
  json document = envelope(kind);
  document["item"] = json_of(item);
  document["initial"] = change.initial();
  document["deleted"] = change.deleted();
  document["position"] = json_of(change.position());
  return (format == text_format::yaml ? "---\n" : "") + written(document, format, true);
}

std::string item_text(const std::string& kind, const Message& item, text_format format) {
  json document = envelope(kind);
  document["item"] = json_of(item);
  return (format == text_format::yaml ? "---\n" : "") + written(document, format, true);
}

std::string object_text(const std::string& kind,
                        const std::vector<std::pair<std::string, std::string>>& fields, text_format format) {
  json document = envelope(kind);
  for (const auto& [key, value] : fields) document[key] = value;
  return written(document, format);
}

std::string scalar_text(const Message& message, const FieldDescriptor& field) {
  if (field.is_repeated()) {
    std::vector<std::string> texts;
    for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
      const json value = json_of_value(message, field, i);
      texts.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  const json value = json_of_field(message, field);
  if (value.is_null()) return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE ? "" : "unknown";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace busbar::cli
