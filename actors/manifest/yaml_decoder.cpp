#include "actors/manifest/yaml_decoder.hpp"

#include <fmt/format.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/map_field.h>
#include <google/protobuf/reflection.h>

#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>

namespace busbar::manifest {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr std::size_t node_limit = 200'000;
constexpr unsigned attribute_depth_limit = 8;

std::string_view kind_of(const YAML::Node& node) {
  if (!node.IsDefined() || node.IsNull()) return "nothing";
  if (node.IsMap()) return "a map";
  if (node.IsSequence()) return "a list";
  return "a single value";
}

bool is_plain(const YAML::Node& scalar) {
  return scalar.Tag() != "!";
}  // yaml-cpp tags quoted scalars "!"

bool parse_number(std::string_view text, double& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string join(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

}  // namespace

std::string canonical_text(const YAML::Node& scalar) {
  const std::string& text = scalar.Scalar();
  if (!is_plain(scalar)) return text;
  const std::string lower = lower_case(text);
  if (lower == "true" || lower == "false") return lower;
  double value = 0;
  const bool fraction = text.find('.') != std::string::npos || lower.find('e') != std::string::npos;
  if (fraction && parse_number(text, value) && std::isfinite(value)) return fmt::format("{}", value);
  return text;
}

std::string to_text(const spec_error& error) {
  if (error.key_path.empty()) return fmt::format("{}: {}", error.file, error.message);
  return fmt::format("{}: {}: {}", error.file, error.key_path, error.message);
}

void yaml_decoder::report(std::string key_path, std::string message) {
  errors_.push_back({file_, std::move(key_path), std::move(message)});
}

bool yaml_decoder::within_limits() {
  if (++nodes_ == node_limit) report("", fmt::format("more than {} values: not read further", node_limit));
  return nodes_ < node_limit;
}

void yaml_decoder::decode_root(const YAML::Node& root, Message& message) {
  decode_message(root, message, "", true);
}

void yaml_decoder::decode_message(const YAML::Node& node, Message& message, const std::string& path,
                                  bool root) {
  if (!node.IsMap()) return report(path, fmt::format("expected a map, found {}", kind_of(node)));
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!within_limits()) return;
    if (!entry.first.IsScalar()) {
      report(path, "a key is not a text");
      continue;
    }
    const std::string& key = entry.first.Scalar();
    if (!seen.insert(key).second) {
      report(join(path, key), "the key is there twice");
      continue;
    }
    if (root && (key == "apiVersion" || key == "kind")) continue;
    decode_key(key, entry.second, message, path);
  }
  for (const field_rule& rule : rules_of(message.GetDescriptor()->name())) {
    const std::string key(rule.key);
    if (rule.required && !seen.contains(key)) report(join(path, key), "missing");
  }
}

void yaml_decoder::decode_key(const std::string& key, const YAML::Node& node, Message& message,
                              const std::string& path) {
  const std::string& type = message.GetDescriptor()->name();
  const std::string here = join(path, key);
  if (const spread_key* spread = spread_key_named(type, key))
    return decode_spread(node, message, *spread, here);
  const field* target = message.GetDescriptor()->FindFieldByName(key);
  if (target == nullptr || is_reached_by_spread_key(type, key)) {
    std::vector<std::string> known;
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const std::string& name = message.GetDescriptor()->field(i)->name();
      if (!is_reached_by_spread_key(type, name)) known.push_back(name);
    }
    return report(here, fmt::format("unknown key (known here: {})", fmt::join(known, ", ")));
  }
  const field_rule& rule = rule_of(type, key);
  if (target->is_map()) return decode_map(node, message, *target, rule, here);
  if (target->is_repeated()) return decode_list(node, message, *target, rule, here);
  if (target->cpp_type() == field::CPPTYPE_MESSAGE) {
    return decode_submessage(node, *message.GetReflection()->MutableMessage(&message, target), rule, here);
  }
  decode_scalar(node, message, *target, rule, here);
}

void yaml_decoder::decode_spread(const YAML::Node& node, Message& message, const spread_key& spread,
                                 const std::string& path) {
  const auto* type = message.GetDescriptor();
  const field& first = *type->FindFieldByName(std::string(spread.first_field));
  const field& second = *type->FindFieldByName(std::string(spread.second_field));
  const field_rule rule{};
  if (spread.first_key.empty()) {
    if (!node.IsSequence() || node.size() != 2)
      return report(path, "expected a list of two numbers [min, max]");
    decode_scalar(node[0], message, first, rule, path + "[0]");
    decode_scalar(node[1], message, second, rule, path + "[1]");
    return;
  }
  if (!node.IsMap()) return report(path, fmt::format("expected a map, found {}", kind_of(node)));
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!within_limits()) return;
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    const std::string here = join(path, key);
    if (!seen.insert(key).second) {
      report(here, "the key is there twice");
    } else if (key == spread.first_key) {
      decode_scalar(entry.second, message, first, rule, here);
    } else if (key == spread.second_key) {
      decode_scalar(entry.second, message, second, rule, here);
    } else {
      report(here, fmt::format("unknown key (known here: {}, {})", spread.first_key, spread.second_key));
    }
  }
}

void yaml_decoder::decode_map(const YAML::Node& node, Message& message, const field& map,
                              const field_rule& rule, const std::string& path) {
  const field& value = *map.message_type()->map_value();
  // min: 12 stands for "whatever the SKU": the key is empty then.
  if (node.IsScalar() && value.cpp_type() == field::CPPTYPE_DOUBLE) {
    Message* entry = message.GetReflection()->AddMessage(&message, &map);
    return decode_scalar(node, *entry, value, rule, path);
  }
  if (!node.IsMap()) return report(path, fmt::format("expected a map, found {}", kind_of(node)));
  std::set<std::string> seen;
  for (const auto& pair : node) {
    if (!within_limits()) return;
    if (!pair.first.IsScalar()) {
      report(path, "a key is not a text");
      continue;
    }
    const std::string& key = pair.first.Scalar();
    const std::string here = join(path, key);
    if (!seen.insert(key).second) {
      report(here, "the key is there twice");
      continue;
    }
    check_text(key, rule.map_key, here);
    Message* entry = message.GetReflection()->AddMessage(&message, &map);
    entry->GetReflection()->SetString(entry, map.message_type()->map_key(), key);
    if (value.cpp_type() == field::CPPTYPE_MESSAGE) {
      decode_submessage(pair.second, *entry->GetReflection()->MutableMessage(entry, &value), rule, here);
    } else {
      decode_scalar(pair.second, *entry, value, rule, here);
    }
  }
}

void yaml_decoder::decode_list(const YAML::Node& node, Message& message, const field& list,
                               const field_rule& rule, const std::string& path) {
  if (!node.IsSequence()) return report(path, fmt::format("expected a list, found {}", kind_of(node)));
  std::size_t index = 0;
  for (const YAML::Node& element : node) {
    if (!within_limits()) return;
    const std::string here = fmt::format("{}[{}]", path, index++);
    if (list.cpp_type() == field::CPPTYPE_MESSAGE) {
      // Added even when it is wrong, so that later checks speak of the same index.
      decode_submessage(element, *message.GetReflection()->AddMessage(&message, &list), rule, here);
    } else {
      decode_scalar(element, message, list, rule, here);
    }
  }
}

void yaml_decoder::decode_attributes(const YAML::Node& node, Message& message, const field& map,
                                     const std::string& prefix, const std::string& path, unsigned depth) {
  if (!node.IsMap() || depth > attribute_depth_limit) {
    return report(path, fmt::format("expected a map of at most {} levels, found {}", attribute_depth_limit,
                                    kind_of(node)));
  }
  std::set<std::string> seen;
  for (const auto& pair : node) {
    if (!within_limits()) return;
    const std::string key = pair.first.IsScalar() ? pair.first.Scalar() : "";
    const std::string here = join(path, key);
    if (key.empty() || !seen.insert(key).second) {
      report(here, key.empty() ? "a key is not a text" : "the key is there twice");
    } else if (pair.second.IsMap()) {
      decode_attributes(pair.second, message, map, join(prefix, key), here, depth + 1);
    } else if (pair.second.IsScalar()) {
      Message* entry = message.GetReflection()->AddMessage(&message, &map);
      entry->GetReflection()->SetString(entry, map.message_type()->map_key(), join(prefix, key));
      entry->GetReflection()->SetString(entry, map.message_type()->map_value(), canonical_text(pair.second));
    } else {
      report(here, fmt::format("expected a single value, found {}", kind_of(pair.second)));
    }
  }
}

void yaml_decoder::decode_submessage(const YAML::Node& node, Message& message, const field_rule& rule,
                                     const std::string& path) {
  if (message.GetDescriptor() == google::protobuf::Duration::descriptor()) {
    return decode_duration(node, message, rule, path);
  }
  const field* only = transparent_field(*message.GetDescriptor());
  if (only == nullptr) return decode_message(node, message, path, false);
  if (only->is_map()) return decode_attributes(node, message, *only, "", path, 1);
  decode_list(node, message, *only, rule, path);
}

void yaml_decoder::decode_duration(const YAML::Node& node, Message& message, const field_rule& rule,
                                   const std::string& path) {
  const auto parsed = node.IsScalar() ? parse_duration(node.Scalar()) : std::nullopt;
  if (!parsed) {
    const std::string found =
        node.IsScalar() ? fmt::format("'{}'", node.Scalar()) : std::string(kind_of(node));
    return report(path, fmt::format("{} is not a duration (200ms, 120s, 10m, 3h)", found));
  }
  if (rule.number == number_rule::positive && parsed->count() == 0)
    return report(path, "must be greater than zero");
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*parsed);
  google::protobuf::Duration duration;
  duration.set_seconds(seconds.count());
  duration.set_nanos(static_cast<std::int32_t>((*parsed - seconds).count()));
  message.CopyFrom(duration);
}

bool yaml_decoder::number(const YAML::Node& node, const field_rule& rule, bool whole, const std::string& path,
                          double& value) {
  if (!node.IsScalar() || !is_plain(node) || !parse_number(node.Scalar(), value) || !std::isfinite(value)) {
    const std::string found =
        node.IsScalar() ? fmt::format("'{}'", node.Scalar()) : std::string(kind_of(node));
    report(path, fmt::format("expected a number, found {}", found));
  } else if (rule.number != number_rule::any && value < 0) {
    report(path, fmt::format("{} is negative", node.Scalar()));
  } else if (rule.number == number_rule::positive && value == 0) {
    report(path, "must be greater than zero");
  } else if (whole && (value != std::floor(value) || value > std::numeric_limits<std::uint32_t>::max())) {
    report(path, fmt::format("{} is not a whole number in range", node.Scalar()));
  } else {
    return true;
  }
  return false;
}

void yaml_decoder::decode_scalar(const YAML::Node& node, Message& message, const field& target,
                                 const field_rule& rule, const std::string& path) {
  const auto* reflection = message.GetReflection();
  double value = 0;
  if (target.cpp_type() == field::CPPTYPE_STRING) {
    if (!node.IsScalar()) return report(path, fmt::format("expected a text, found {}", kind_of(node)));
    std::string text = rule.form == text_form::canonical ? canonical_text(node) : node.Scalar();
    check_text(text, rule.value, path);
    if (rule.form == text_form::lower) text = lower_case(text);
    if (target.is_repeated()) return reflection->AddString(&message, &target, std::move(text));
    return reflection->SetString(&message, &target, std::move(text));
  }
  if (target.cpp_type() == field::CPPTYPE_DOUBLE) {
    if (number(node, rule, false, path, value)) reflection->SetDouble(&message, &target, value);
    return;
  }
  if (target.cpp_type() == field::CPPTYPE_UINT32) {
    if (number(node, rule, true, path, value)) {
      reflection->SetUInt32(&message, &target, static_cast<std::uint32_t>(value));
    }
    return;
  }
  if (target.cpp_type() == field::CPPTYPE_INT32) {
    if (!number(node, rule, false, path, value)) return;
    if (value != std::floor(value) || std::abs(value) > std::numeric_limits<std::int32_t>::max())
      return report(path, fmt::format("{} is not a whole number in range", node.Scalar()));
    return reflection->SetInt32(&message, &target, static_cast<std::int32_t>(value));
  }
  if (target.cpp_type() == field::CPPTYPE_BOOL) {
    const std::string text = canonical_text(node);
    if (text != "true" && text != "false") return report(path, fmt::format("'{}' is neither true nor false", node.Scalar()));
    return reflection->SetBool(&message, &target, text == "true");
  }
  if (target.cpp_type() == field::CPPTYPE_ENUM) {
    std::vector<std::string> names;
    for (int i = 1; i < target.enum_type()->value_count(); ++i) {
      const auto* candidate = target.enum_type()->value(i);
      names.push_back(lower_case(candidate->name()));
      if (node.IsScalar() && node.Scalar() == names.back())
        return reflection->SetEnum(&message, &target, candidate);
    }
    const std::string found =
        node.IsScalar() ? fmt::format("'{}'", node.Scalar()) : std::string(kind_of(node));
    return report(path, fmt::format("{} is not one of: {}", found, fmt::join(names, ", ")));
  }
  report(path, "this build cannot read this field");  // a field type that no spec message has today
}

void yaml_decoder::check_text(std::string_view text, check rule, const std::string& path) {
  if (rule == nullptr) return;
  if (const complaint wrong = rule(text)) report(path, fmt::format("'{}' is not {}", text, *wrong));
}

}  // namespace busbar::manifest
