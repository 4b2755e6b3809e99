#include "daemon/cli/inspecting.hpp"

#include <fmt/format.h>

#include <future>
#include <optional>
#include <string_view>

#include "actors/core/regular_file.hpp"
#include "actors/devices/inspect.hpp"
#include "actors/devices/redfish/curl_transport.hpp"

namespace busbar::cli {
namespace {

constexpr auto longest_walk = std::chrono::minutes(10);

struct service_url {
  bool tls = true;
  std::string address;  // host:port
  std::string path;     // empty: the service root
};

std::optional<service_url> parse_url(std::string_view text) {
  service_url url;
  if (text.starts_with("http://")) {
    url.tls = false;
    text.remove_prefix(7);
  } else if (text.starts_with("https://")) {
    text.remove_prefix(8);
  } else if (text.find("://") != std::string_view::npos) {
    return std::nullopt;
  }
  const std::size_t slash = std::min(text.find('/'), text.size());
  url.address = text.substr(0, slash);
  url.path = text.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  if (url.address.empty() || url.address.find('@') != std::string::npos) return std::nullopt;  // no passwords in a URL
  const std::size_t bracket = url.address.rfind(']');
  if (url.address.find(':', bracket == std::string::npos ? 0 : bracket) == std::string::npos) {
    url.address += url.tls ? ":443" : ":80";
  }
  return url;
}

// Nothing when it is no regular file that can be read. The line's end is no part of a password.
std::optional<std::string> first_line_of(const std::string& path) {
  const auto content = core::read_regular_file(path, core::small_file_bytes);
  if (!content.ok() || content->empty()) return std::nullopt;
  std::string line = content->substr(0, content->find('\n'));
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

}  // namespace

exit_code bmc_inspect(const options& said, context& world) {
  const auto url = parse_url(said.names.front());
  if (!url) {
    world.err << fmt::format("busbar: '{}' is no URL of a BMC (https://HOST:PORT)\n", said.names.front());
    return exit_code::usage;
  }
  devices::inspect_options options;
  options.pin = said.pin;
  if (!url->path.empty()) options.start = url->path;
  if (!said.user.empty()) {
    const auto password = first_line_of(said.password_file);
    if (!password) {
      world.err << fmt::format("busbar: --user needs --password-file; '{}' cannot be read\n", said.password_file);
      return exit_code::usage;
    }
    options.login = devices::credentials{said.user, *password};
  }
  devices::redfish::curl_options io;
  io.tls = url->tls;
  // Shared with the callback, which the loop runs at its end even when nobody waits any more.
  const auto done = std::make_shared<std::promise<devices::inspect_report>>();
  auto reports = done->get_future();
  const auto loop = std::make_shared<devices::redfish::curl_transport>(io);
  devices::inspect(url->address, loop, loop, std::move(options),
                   [done](devices::inspect_report report) { done->set_value(std::move(report)); });
  const auto limit = said.timeout.count() > 0 ? said.timeout : std::chrono::nanoseconds(longest_walk);
  if (reports.wait_for(limit) != std::future_status::ready) {
    world.err << fmt::format("busbar: {}: not done within the time limit\n", url->address);
    return exit_code::timeout;
  }
  const devices::inspect_report report = reports.get();
  const bool for_programs = said.format == output::json || said.format == output::yaml;  // JSON is YAML
  world.out << (for_programs ? devices::render_json(report) + "\n" : devices::render_text(report));
  return static_cast<exit_code>(devices::exit_code(report));
}

}  // namespace busbar::cli
