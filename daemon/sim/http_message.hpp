// What passes between a transport (HTTPS face, in-process test transport) and a device model.
#pragma once

#include <chrono>
#include <map>
#include <string>

namespace busbar::sim {

// Monotonic nanoseconds. The model never reads a clock: every call says what time it is.
using instant = std::chrono::nanoseconds;

using header_map = std::map<std::string, std::string, std::less<>>;  // names in lower case

struct http_request {
  std::string method;
  std::string target;  // path and query as sent
  header_map headers;
  std::string body;
  std::string peer;     // address:port of the client
  instant received{0};  // CLOCK_MONOTONIC at the wire; 0: the `now` of the call
};

struct http_reply {
  int status = 200;
  header_map headers;  // names as sent (Location, X-Auth-Token, ETag)
  std::string body;
  std::uint64_t number = 0;  // of the request in the journal; 0: none
  bool event_stream = false;  // the connection stays open and carries server-sent events
  bool reports = false;       // of an event stream: it carries the metric reports, each second, and no other event
};

}  // namespace busbar::sim
