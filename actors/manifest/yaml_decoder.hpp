// One YAML document into one protobuf message, strictly and by reflection: keys are field names, every
// difference is an error with its key path, and decoding goes on after an error so that all come at once.
// Knows no kind of document.
#pragma once

#include <google/protobuf/message.h>
#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "actors/manifest/field_rules.hpp"
#include "actors/manifest/spec_error.hpp"

namespace busbar::manifest {

class yaml_decoder {
 public:
  yaml_decoder(std::string file, std::vector<spec_error>& errors) : file_(std::move(file)), errors_(errors) {}

  // The root is a map; the keys apiVersion and kind are the caller's.
  void decode_root(const YAML::Node& root, google::protobuf::Message& message);
  void report(std::string key_path, std::string message);

 private:
  using field = google::protobuf::FieldDescriptor;

  void decode_message(const YAML::Node& node, google::protobuf::Message& message, const std::string& path,
                      bool root);
  void decode_key(const std::string& key, const YAML::Node& node, google::protobuf::Message& message,
                  const std::string& path);
  void decode_spread(const YAML::Node& node, google::protobuf::Message& message, const spread_key& spread,
                     const std::string& path);
  void decode_map(const YAML::Node& node, google::protobuf::Message& message, const field& map,
                  const field_rule& rule, const std::string& path);
  void decode_list(const YAML::Node& node, google::protobuf::Message& message, const field& list,
                   const field_rule& rule, const std::string& path);
  void decode_attributes(const YAML::Node& node, google::protobuf::Message& message, const field& map,
                         const std::string& prefix, const std::string& path, unsigned depth);
  void decode_submessage(const YAML::Node& node, google::protobuf::Message& message, const field_rule& rule,
                         const std::string& path);
  void decode_duration(const YAML::Node& node, google::protobuf::Message& message, const field_rule& rule,
                       const std::string& path);
  // One scalar into a singular field, or appended to a repeated one.
  void decode_scalar(const YAML::Node& node, google::protobuf::Message& message, const field& target,
                     const field_rule& rule, const std::string& path);
  void check_text(std::string_view text, check rule, const std::string& path);
  bool number(const YAML::Node& node, const field_rule& rule, bool whole, const std::string& path,
              double& value);
  bool within_limits();

  std::string file_;
  std::vector<spec_error>& errors_;
  std::size_t nodes_ = 0;  // visited; aliases can make a small file a huge document
};

// Canonical text of a scalar: True -> true, 87.50 -> 87.5, everything quoted or not a number as it stands.
std::string canonical_text(const YAML::Node& scalar);

}  // namespace busbar::manifest
