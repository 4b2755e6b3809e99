// The filter of lists: terms field=value joined by spaces, all must hold. A field is a dotted path in JSON or proto spelling; a
// value is the text of its JSON form (status.step=CONFIGURED). Of a repeated field one element must fit, of a map its key is
// the next part of the path. What is absent fits nothing.
#pragma once

#include <absl/status/statusor.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <string_view>
#include <vector>

namespace busbar::rpc {

class filter {
 public:
  // INVALID_ARGUMENT names the term that is wrong.
  static absl::StatusOr<filter> parse(std::string_view text, const google::protobuf::Descriptor* of);

  bool matches(const google::protobuf::Message& message) const;
  bool empty() const { return terms_.empty(); }

 private:
  struct part {
    const google::protobuf::FieldDescriptor* field;
    std::string map_key;
  };
  struct term {
    std::vector<part> path;
    std::string value;
  };
  static absl::StatusOr<term> parse_term(std::string_view text, const google::protobuf::Descriptor* of);
  static bool fits(const google::protobuf::Message& message, const term& wanted, std::size_t depth);

  std::vector<term> terms_;
};

}  // namespace busbar::rpc
