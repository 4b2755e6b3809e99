#include "actors/devices/redfish/crawl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace busbar::devices::redfish {
namespace {

// Logs, credentials, registries and the like: nothing that inspection judges, and some of it is endless.
constexpr auto left_out = std::to_array<std::string_view>({"LogServices",
                                                           "Registries",
                                                           "JsonSchemas",
                                                           "Certificates",
                                                           "CertificateService",
                                                           "Accounts",
                                                           "Roles",
                                                           "Sessions",
                                                           "Subscriptions",
                                                           "Tasks",
                                                           "Jobs",
                                                           "SecureBoot",
                                                           "BootOptions",
                                                           "PCIeFunctions",
                                                           "NetworkDeviceFunctions",
                                                           "MetricDefinitions",
                                                           "MetricReportDefinitions",
                                                           "Actions",
                                                           "ErrorInjection",
                                                           "KeyService",
                                                           "Triggers",
                                                           "VirtualMedia",
                                                           "SSE",
                                                           "$metadata",
                                                           "odata"});

bool is_left_out(const std::string& uri) {
  std::size_t begin = 0;
  while (begin < uri.size()) {
    const std::size_t end = std::min(uri.find('/', begin), uri.size());
    const std::string_view part = std::string_view(uri).substr(begin, end - begin);
    if (std::find(left_out.begin(), left_out.end(), part) != left_out.end()) return true;
    begin = end + 1;
  }
  return false;
}

// Every link of a body, and what its lists carry inline.
class link_finder {
 public:
  link_finder(crawled& all, std::vector<std::string>& found) : all_(all), found_(found) {}

  void look(const json_document& document, json_view view, int depth) {
    if (depth > 12) return;
    if (view.is_array()) {
      for (const json_view& item : view.items()) look(document, item, depth + 1);
      return;
    }
    for (const auto& [key, value] : view.entries()) {
      if (key == "@odata.id" || key.ends_with("@odata.nextLink") || key == "DataSourceUri") {
        if (depth > 0 || key != "@odata.id") note(value);
        continue;
      }
      if (key == "Members") take_inline(document, value);
      look(document, value, depth + 1);
    }
  }

 private:
  void note(json_view value) {
    const auto text = value.text();
    if (!text) return;
    if (!text->starts_with("/") || text->starts_with("//")) {
      if (text->find("://") != std::string::npos) all_.foreign.insert(*text);
      return;
    }
    // A fragment names a row of a body; the body is what can be read.
    found_.push_back(plain_uri(text->substr(0, text->find('#'))));
  }

  void take_inline(const json_document& document, json_view members) {
    for (const json_view& member : members.items()) {
      const auto uri = member.link();
      if (!uri || member.size() <= 1) continue;
      fetched body;
      body.uri = plain_uri(*uri);
      body.http = 200;
      body.document = document.part(member);
      all_.bodies.emplace(body.uri, body);
    }
  }

  crawled& all_;
  std::vector<std::string>& found_;
};

}  // namespace

task<crawled_ptr> crawl(device_ptr on, std::string start, std::size_t request_limit) {
  const auto all = std::make_shared<crawled>();
  std::set<std::string> known{plain_uri(start)};
  std::vector<std::string> wave{plain_uri(start)};
  while (!wave.empty()) {
    all->requests += wave.size();
    std::vector<fetched> bodies = co_await fetch_all(on, wave, priority::telemetry);
    std::vector<std::string> found;
    link_finder finder(*all, found);
    bool device_failed = false;
    for (fetched& body : bodies) {
      device_failed = device_failed || body.device_failed();
      if (body.ok()) finder.look(body.document, body.body(), 0);
      const std::string uri = body.uri;
      all->bodies.insert_or_assign(uri, std::move(body));
    }
    wave.clear();
    if (device_failed) break;
    for (std::string& uri : found) {
      if (!uri.starts_with("/redfish") || is_left_out(uri) || all->bodies.count(uri) != 0) continue;
      if (!known.insert(uri).second) continue;
      if (all->requests + wave.size() >= request_limit) {
        all->cut_short = true;
        break;
      }
      wave.push_back(std::move(uri));
    }
  }
  co_return all;
}

const fetched* find_body(const crawled& all, const std::optional<std::string>& uri) {
  if (!uri) return nullptr;
  const auto found = all.bodies.find(plain_uri(*uri));
  return found == all.bodies.end() ? nullptr : &found->second;
}

members_seen members_in(const crawled& all, const std::optional<std::string>& uri) {
  members_seen seen;
  std::set<std::string> pages;
  std::set<std::string> unique;
  std::optional<std::string> next = uri;
  while (next && pages.insert(plain_uri(*next)).second) {
    const fetched* const page = find_body(all, next);
    if (page == nullptr || !page->ok()) {
      seen.why = page == nullptr ? *next + " was not read" : std::string(page->status.message());
      break;
    }
    const page_facts facts = decode_page(page->body());
    seen.readable = seen.readable || facts.is_collection;
    for (const std::string& member : facts.members) {
      if (unique.insert(plain_uri(member)).second) seen.uris.push_back(plain_uri(member));
    }
    if (facts.announced) seen.announced = std::max(seen.announced, *facts.announced);
    next = facts.next;
  }
  seen.announced = std::max(seen.announced, seen.uris.size());
  if (seen.why.empty() && seen.announced > seen.uris.size()) {
    seen.why = fmt::format("{} announces {} members and shows {}", *uri, seen.announced, seen.uris.size());
  }
  return seen;
}

}  // namespace busbar::devices::redfish
