// How a verb acts on what it names: asks where it is dangerous, sends one request a name, tells what came back.
// Shared by the files that have verbs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/cli/session.hpp"

namespace busbar::cli {

enum class danger { none, asks };
enum class reason { optional, needed };

using request_maker = std::function<std::unique_ptr<google::protobuf::Message>(v1::ActRequest)>;

// names are AIP names; the maker gets the act with its name filled in.
exit_code act_on(session& with, const std::string& method, const std::string& what, const std::vector<std::string>& names,
                 danger level, reason why, const request_maker& make);
// Those of the command line.
exit_code act_on_names(session& with, const std::string& method, const std::string& what, danger level, reason why,
                       const request_maker& make);

}  // namespace busbar::cli
