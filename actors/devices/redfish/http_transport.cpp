#include "actors/devices/redfish/http_transport.hpp"

namespace busbar::devices::redfish {

std::string_view name_of(http_method method) {
  switch (method) {
    case http_method::get:
      return "GET";
    case http_method::post:
      return "POST";
    case http_method::patch:
      return "PATCH";
    case http_method::del:
      return "DELETE";
  }
  return "?";
}

std::optional<std::string> header_of(const http_headers& headers, std::string_view lower_case_name) {
  for (const auto& [name, value] : headers) {
    if (name == lower_case_name) return value;
  }
  return std::nullopt;
}

}  // namespace busbar::devices::redfish
