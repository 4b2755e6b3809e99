#include "daemon/sim/replay_tree.hpp"

#include <absl/status/status.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/sim/json.hpp"
#include "daemon/sim/redfish_reply.hpp"

namespace busbar::sim {

namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// %24skip=50 is $skip=50: clients write both.
std::string decoded(std::string_view target) {
  std::string text;
  for (std::size_t at = 0; at < target.size(); ++at) {
    const auto digit = [](char letter) {
      return letter >= '0' && letter <= '9'                     ? letter - '0'
             : (letter | 0x20) >= 'a' && (letter | 0x20) <= 'f' ? (letter | 0x20) - 'a' + 10
                                                                : -1;
    };
    if (target[at] == '%' && at + 2 < target.size() && digit(target[at + 1]) >= 0 &&
        digit(target[at + 2]) >= 0) {
      text.push_back(static_cast<char>(digit(target[at + 1]) * 16 + digit(target[at + 2])));
      at += 2;
    } else {
      text.push_back(target[at]);
    }
  }
  return text;
}

std::string without_slash(std::string text) {
  while (text.size() > 1 && text.back() == '/') {
    text.pop_back();
  }
  return text;
}

// The captures keep no status: a body of nothing but an error was an error.
int status_of(const std::string& text) {
  const json body = json::parse(text, nullptr, false);
  if (!body.is_object() || body.size() != 1 || !body.contains("error")) {
    return 200;
  }
  for (const char* const word : {"ResourceNotFound", "ResourceMissingAtURI"}) {
    if (text.find(word) != std::string::npos) {
      return 404;
    }
  }
  for (const char* const word : {"InternalError", "GeneralError"}) {
    if (text.find(word) != std::string::npos) {
      return 500;
    }
  }
  return 400;
}

}  // namespace

absl::StatusOr<replay_tree> replay_tree::load(const std::string& folder) {
  std::error_code failed;
  replay_tree tree;
  for (const auto& entry : fs::recursive_directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename();
    if (!entry.is_regular_file() || (name != "index.json" && name != "custom.json")) {
      continue;
    }
    const std::string uri =
        without_slash("/" + fs::relative(entry.path().parent_path(), folder).generic_string());
    http_reply reply;
    reply.body = read_text(entry.path());
    reply.status = status_of(reply.body);
    reply.headers["Content-Type"] = "application/json";
    if (name == "custom.json") {
      const json custom = json::parse(reply.body, nullptr, false);
      if (!custom.is_object() || !custom.contains("status") || !custom.contains("body")) {
        return absl::DataLossError(entry.path().string() + " needs status and body");
      }
      reply.status = custom.at("status").get<int>();
      reply.body = custom.at("body").get<std::string>();
      if (!reply.body.starts_with("{")) {
        reply.headers["Content-Type"] = "text/html";
      }
    }
    tree.replies_[uri] = std::move(reply);
  }
  if (failed) {
    return absl::NotFoundError("cannot read " + folder + ": " + failed.message());
  }
  if (tree.replies_.empty()) {
    return absl::NotFoundError(folder + " holds no captured body");
  }
  return tree;
}

http_reply replay_tree::handle(const http_request& request) const {
  if (request.method == "POST" && request.target.find("/Sessions") != std::string::npos) {
    http_reply reply = json_reply(
        201, {{"@odata.id", "/redfish/v1/SessionService/Sessions/1"}, {"Id", "1"}, {"Name", "User Session"}});
    reply.headers["Location"] = "/redfish/v1/SessionService/Sessions/1";
    reply.headers["X-Auth-Token"] = "replay";
    return reply;
  }
  if (request.method == "DELETE" && request.target.find("/Sessions/") != std::string::npos) {
    return empty_reply(204);
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return not_allowed();
  }
  const std::string target = decoded(request.target);
  const std::string query = target.find('?') == std::string::npos ? "" : target.substr(target.find('?'));
  const std::string path = without_slash(target.substr(0, target.find_first_of("?#")));
  if (const auto with_query = replies_.find(path + query); !query.empty() && with_query != replies_.end()) {
    return with_query->second;
  }
  const auto found = replies_.find(path);
  return found == replies_.end() ? not_found(path) : found->second;
}

}  // namespace busbar::sim
