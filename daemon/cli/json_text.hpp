// Messages as text for programs. proto3 JSON with every field there: what is not set or not known is null,
// 64-bit numbers are strings, enumerations names, durations "3.5s". The envelope is fixed within v1.
#pragma once

#include <google/protobuf/message.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "busbar/v1/busbar.pb.h"
#include "daemon/cli/client.hpp"

namespace busbar::cli {

struct unreachable_daemon {
  endpoint daemon;
  std::string message;
};

// What a reader gathered from all daemons.
struct listing {
  std::vector<std::unique_ptr<google::protobuf::Message>> items;
  std::map<std::string, v1::Position> positions;  // by instance
  std::vector<unreachable_daemon> unreachable;
  bool more = false;  // a daemon holds more than was asked for
};

enum class text_format { json, yaml };

std::string to_text(const google::protobuf::Message& message, text_format format);
// {"apiVersion":"busbar.v1","kind":"NodeList","items":[...],"position":{...},...}: position is null unless
// exactly one daemon answered; positions has all of them, unreachable those that did not answer.
std::string list_text(const std::string& list_kind, const listing& all, text_format format);
// One line of JSON, or one YAML document, for a change of a watch.
std::string change_text(const std::string& kind, const v1::WatchResponse& change,
                        const google::protobuf::Message& item, text_format format);
// One line of JSON, or one YAML document, for one item of a stream.
std::string item_text(const std::string& kind, const google::protobuf::Message& item, text_format format);
// {"apiVersion","kind",...}: for results that are no list of resources.
std::string object_text(const std::string& kind,
                        const std::vector<std::pair<std::string, std::string>>& fields, text_format format);

// One scalar field as text for people: enumerations in words, times in UTC, "unknown" for an absent optional.
std::string scalar_text(const google::protobuf::Message& message,
                        const google::protobuf::FieldDescriptor& field);

}  // namespace busbar::cli
