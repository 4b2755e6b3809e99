#include "daemon/sim/redfish_reply.hpp"

#include <utility>

namespace busbar::sim {

http_reply json_reply(int status, const json& body) {
  http_reply reply;
  reply.status = status;
  reply.headers["Content-Type"] = "application/json";
  reply.headers["OData-Version"] = "4.0";
  reply.headers["Cache-Control"] = "no-store";
  reply.body = body.dump(1, ' ', false, json::error_handler_t::replace);
  return reply;
}

http_reply empty_reply(int status) {
  http_reply reply;
  reply.status = status;
  reply.headers["OData-Version"] = "4.0";
  return reply;
}

json extended_info(std::string_view message_id, std::string_view message, json arguments) {
  return json::array({{{"@odata.type", "#Message.v1_2_0.Message"},
                       {"MessageId", "Base.1.18." + std::string(message_id)},
                       {"Message", message},
                       {"MessageArgs", std::move(arguments)},
                       {"MessageSeverity", "Critical"},
                       {"Resolution", "See the message."}}});
}

http_reply error_reply(int status, std::string_view message_id, std::string_view message) {
  return json_reply(status, {{"error",
                              {{"code", "Base.1.18." + std::string(message_id)},
                               {"message", message},
                               {"@Message.ExtendedInfo", extended_info(message_id, message)}}}});
}

http_reply not_found(std::string_view path) {
  return error_reply(404, "ResourceNotFound",
                     "The requested resource named '" + std::string(path) + "' was not found.");
}

http_reply malformed() {
  return error_reply(400, "MalformedJSON",
                     "The request body submitted was malformed JSON and could not be parsed.");
}

http_reply not_allowed() {
  return error_reply(405, "OperationNotAllowed", "The HTTP method is not allowed on this resource.");
}

}  // namespace busbar::sim
