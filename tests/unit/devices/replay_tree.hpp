// Answers from a folder of captured bodies, as its README says: index.json is the body of a GET, a missing
// one is 404, a body with nothing but an error was an error answer, custom.json gives status and raw body.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "actors/devices/redfish/http_transport.hpp"

namespace busbar::devices::redfish {

// Empty where there is no field data.
std::filesystem::path captures_folder();
std::vector<std::filesystem::path> all_captured_bodies();
std::string read_text(const std::filesystem::path& path);

http_outcome replay(const std::filesystem::path& tree, const http_request& request);

}  // namespace busbar::devices::redfish
