// A captured Redfish tree, served as it was captured: <tree>/<URI path>/index.json is the body of a GET on
// that URI.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>

#include "daemon/sim/http_message.hpp"

namespace busbar::sim {

class replay_tree {
 public:
  static absl::StatusOr<replay_tree> load(const std::string& folder);

  // A URI without a file: 404. Error bodies get a status that fits; custom.json its own; bodies that are no
  // JSON go out raw. Any login is accepted, nothing can be changed.
  http_reply handle(const http_request& request) const;
  std::size_t size() const { return replies_.size(); }

 private:
  std::map<std::string, http_reply, std::less<>> replies_;  // by path and query, without trailing slash
};

}  // namespace busbar::sim
