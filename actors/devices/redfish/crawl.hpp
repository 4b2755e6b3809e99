// All of a service that inspection looks at, by following every link once. Read-only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/devices/inspect.hpp"
#include "actors/devices/redfish/walk.hpp"

namespace busbar::devices::redfish {

struct crawled {
  std::map<std::string, fetched> bodies;  // by plain URI; also the bodies that came inline in a list
  std::set<std::string> foreign;          // links to other hosts, not followed
  std::size_t requests = 0;
  bool cut_short = false;
};
using crawled_ptr = std::shared_ptr<crawled>;

task<crawled_ptr> crawl(device_ptr on, std::string start, std::size_t request_limit);

// The members of a collection over all its pages.
struct members_seen {
  bool readable = false;
  std::vector<std::string> uris;
  std::size_t announced = 0;
  std::string why;  // it is unreadable or short
};
members_seen members_in(const crawled& all, const std::optional<std::string>& uri);
const fetched* find_body(const crawled& all, const std::optional<std::string>& uri);

// Pure: what the bodies add up to.
inspect_report conclude(const crawled& all, const std::string& start);

}  // namespace busbar::devices::redfish
