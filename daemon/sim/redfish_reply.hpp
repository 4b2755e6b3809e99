// Replies in the shapes that Redfish gives them.
#pragma once

#include <string>
#include <string_view>

#include "daemon/sim/http_message.hpp"
#include "daemon/sim/json.hpp"

namespace busbar::sim {

http_reply json_reply(int status, const json& body);
http_reply empty_reply(int status);
// message_id without registry: ResourceNotFound.
http_reply error_reply(int status, std::string_view message_id, std::string_view message);
json extended_info(std::string_view message_id, std::string_view message, json arguments = json::array());
http_reply not_found(std::string_view path);
http_reply malformed();
http_reply not_allowed();

}  // namespace busbar::sim
