#include "tests/unit/devices/replay_tree.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace busbar::devices::redfish {

using nlohmann::json;

std::filesystem::path captures_folder() {
  const char* const set = std::getenv("BUSBAR_FIELD_DATA");
  const std::filesystem::path data = set != nullptr
                                         ? std::filesystem::path(set)
                                         : std::filesystem::path(BUSBAR_SOURCE_DIR) / "../shared/data";
  const std::filesystem::path folder = data / "redfish-captures";
  return std::filesystem::is_directory(folder) ? folder : std::filesystem::path();
}

std::vector<std::filesystem::path> all_captured_bodies() {
  std::vector<std::filesystem::path> all;
  if (captures_folder().empty()) return all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(captures_folder())) {
    if (entry.is_regular_file() && entry.path().extension() == ".json") all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

http_outcome replay(const std::filesystem::path& tree, const http_request& request) {
  http_outcome outcome;
  outcome.reply.status = 404;
  if (request.method != http_method::get) {
    outcome.reply.status = 405;
    return outcome;
  }
  std::string path = request.path;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::filesystem::path folder = tree / path.substr(1);
  if (std::filesystem::exists(folder / "custom.json")) {
    const json custom = json::parse(read_text(folder / "custom.json"));
    outcome.reply.status = custom.at("status").get<int>();
    outcome.reply.body = custom.at("body").get<std::string>();
    return outcome;
  }
  if (!std::filesystem::exists(folder / "index.json")) return outcome;
  outcome.reply.status = 200;
  outcome.reply.body = read_text(folder / "index.json");
  const json body = json::parse(outcome.reply.body, nullptr, false);
  if (!body.is_object() || body.size() != 1 || !body.contains("error")) return outcome;
  const auto said = [&outcome](const char* word) {
    return outcome.reply.body.find(word) != std::string::npos;
  };
  outcome.reply.status = said("ResourceNotFound") || said("ResourceMissingAtURI") ? 404
                         : said("InternalError") || said("GeneralError")          ? 500
                                                                                  : 400;
  return outcome;
}

}  // namespace busbar::devices::redfish
