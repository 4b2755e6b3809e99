// Reading a Redfish tree by its links: bodies, lists of bodies, paged collections, and changes with If-Match.
// Coroutines over a device; every failure is a status with its fault, and one unreadable body never ends the
// reading of the rest.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/devices/redfish/device.hpp"
#include "actors/devices/redfish/json.hpp"
#include "actors/devices/redfish/task.hpp"

namespace busbar::devices::redfish {

using device_ptr = std::shared_ptr<device>;

// A body, or why there is none. http is 0 when no answer came.
struct fetched {
  std::string uri;
  absl::Status status;
  int http = 0;
  json_document document;
  std::string etag;

  bool ok() const { return status.ok(); }
  json_view body() const { return document.root(); }
  // The device answered: it has no such resource.
  bool not_found() const { return http == 404; }
  // The device itself failed; to ask for more is pointless.
  bool device_failed() const { return !status.ok() && http == 0; }
};

struct listing {
  std::string uri;
  absl::Status status;  // of the first page
  int http = 0;
  std::vector<std::string> members;  // URIs, each once, in order
  std::vector<fetched>
      inlined;  // by index of members: bodies that came with the list; document empty otherwise
  std::optional<std::size_t> announced;
  bool complete = true;
  std::string incomplete_why;

  bool ok() const { return status.ok(); }
  bool device_failed() const { return !status.ok() && http == 0; }
};

// One page, decoded (pure). Members that are no links are counted as not shown.
struct page_facts {
  bool is_collection = false;
  std::vector<std::string> members;
  std::vector<json_view> bodies;  // by index; missing view where only a link came
  std::size_t unusable = 0;
  std::optional<std::size_t> announced;
  std::optional<std::string> next;
};
page_facts decode_page(json_view body);

// The path without a trailing slash and without a fragment.
std::string plain_uri(std::string uri);
// The last part of a path.
std::string last_part(const std::string& uri);

task<fetched> fetch(device_ptr on, std::string uri, priority urgency);
// In order of uris; the device's budget decides how many are under way at once.
task<std::vector<fetched>> fetch_all(device_ptr on, std::vector<std::string> uris, priority urgency);
// bodies: the bodies are wanted too, and come along where the device can expand.
enum class list_of { links, bodies };
task<listing> fetch_list(device_ptr on, std::string uri, priority urgency, list_of what = list_of::links);
// The bodies of a list: those that came inline, and the others fetched.
task<std::vector<fetched>> fetch_members(device_ptr on, listing list, priority urgency);

// Reads the object for its ETag, then changes it; once more if it changed between.
task<absl::Status> patch(device_ptr on, std::string uri, std::string body, priority urgency);
task<response> post(device_ptr on, std::string uri, std::string body, priority urgency);

}  // namespace busbar::devices::redfish
