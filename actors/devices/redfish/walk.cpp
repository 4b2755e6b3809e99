#include "actors/devices/redfish/walk.hpp"

#include <fmt/format.h>

#include <set>

#include "actors/core/errors.hpp"

namespace busbar::devices::redfish {

using core::fault;
using core::make_fault;

namespace {

// More pages than any device has; what goes on longer goes round.
constexpr std::size_t page_limit = 1'000;

request read_of(const std::string& uri, priority urgency) {
  request wanted;
  wanted.uri = uri;
  wanted.urgency = urgency;
  return wanted;
}

fetched decode_answer(const device& on, const request& wanted, const response& answer) {
  fetched result;
  result.uri = wanted.uri;
  result.http = answer.http;
  if (!answer.good()) {
    result.status = fault_of_answer(on, wanted, answer);
    return result;
  }
  auto document = json_document::parse(answer.body);
  if (!document || !document->root().is_object()) {
    result.status = make_fault(
        fault::BMC_BAD_DATA,
        fmt::format("GET {} on {} answered {} with a body that is no JSON object ({} bytes: {:?})",
                    wanted.uri, on.address(), answer.http, answer.body.size(), answer.body.substr(0, 60)));
    return result;
  }
  const json_view root = document->root();
  if (root.size() == 1 && !root["error"].missing()) {
    result.status = make_fault(
        fault::BMC_BAD_DATA, fmt::format("GET {} on {} answered {} with nothing but an error ({})",
                                         wanted.uri, on.address(), answer.http, describe_error(answer.body)));
    return result;
  }
  result.etag = header_of(answer.headers, "etag").value_or(root["@odata.etag"].text().value_or(""));
  result.document = *document;
  return result;
}

void mark_incomplete(listing& list, std::string why) {
  list.complete = false;
  if (list.incomplete_why.empty()) list.incomplete_why = std::move(why);
}

void take_page(listing& list, std::set<std::string>& seen, const page_facts& page,
               const json_document& document) {
  for (std::size_t i = 0; i < page.members.size(); ++i) {
    if (!seen.insert(plain_uri(page.members[i])).second) continue;
    list.members.push_back(page.members[i]);
    fetched body;
    body.uri = page.members[i];
    if (!page.bodies[i].missing()) {
      body.http = 200;
      body.document = document.part(page.bodies[i]);
    }
    list.inlined.push_back(std::move(body));
  }
  if (page.unusable > 0)
    mark_incomplete(list, fmt::format("{} lists {} members without a link", list.uri, page.unusable));
  if (page.announced) list.announced = page.announced;
}

}  // namespace

std::string plain_uri(std::string uri) {
  if (const auto fragment = uri.find('#'); fragment != std::string::npos && fragment > 0) {
    // "/Power#/PowerSupplies/0" names a row: it stays; only an empty fragment goes.
    if (fragment + 1 == uri.size()) uri.resize(fragment);
  }
  while (uri.size() > 1 && uri.back() == '/') uri.pop_back();
  return uri;
}

std::string last_part(const std::string& uri) {
  const std::string plain = plain_uri(uri);
  return plain.substr(plain.rfind('/') == std::string::npos ? 0 : plain.rfind('/') + 1);
}

page_facts decode_page(json_view body) {
  page_facts page;
  const json_view members = body["Members"];
  page.is_collection = members.is_array() || !body["Members@odata.count"].missing();
  for (const json_view& member : members.items()) {
    const auto uri = member.link();
    if (!uri) {
      ++page.unusable;
      continue;
    }
    page.members.push_back(*uri);
    page.bodies.push_back(member.size() > 1 ? member : json_view());
  }
  if (const auto count = body["Members@odata.count"].integer(); count && *count >= 0) {
    page.announced = static_cast<std::size_t>(*count);
  }
  page.next = body["Members@odata.nextLink"].text();
  if (!page.next) page.next = body["@odata.nextLink"].text();
  return page;
}

task<fetched> fetch(device_ptr on, std::string uri, priority urgency) {
  const request wanted = read_of(uri, urgency);
  const response answer = co_await on->send(wanted);
  co_return decode_answer(*on, wanted, answer);
}

task<std::vector<fetched>> fetch_all(device_ptr on, std::vector<std::string> uris, priority urgency) {
  if (uris.empty()) co_return std::vector<fetched>();
  struct gathering {
    std::vector<fetched> results;
    std::size_t left = 0;
    std::function<void(bool)> then;
  };
  const auto state = std::make_shared<gathering>();
  state->results.resize(uris.size());
  state->left = uris.size();
  callback_of<bool> all([on, uris, urgency, state](std::function<void(bool)> then) {
    state->then = std::move(then);
    for (std::size_t i = 0; i < uris.size(); ++i) {
      const request wanted = read_of(uris[i], urgency);
      on->submit(wanted, [on, wanted, state, i](const response& answer) {
        state->results[i] = decode_answer(*on, wanted, answer);
        if (--state->left == 0) std::exchange(state->then, nullptr)(true);
      });
    }
  });
  const bool done = co_await all;
  (void)done;
  co_return std::move(state->results);
}

task<listing> fetch_list(device_ptr on, std::string uri, priority urgency, list_of what) {
  listing list;
  list.uri = uri;
  std::set<std::string> pages;
  std::set<std::string> seen;
  const bool expand = what == list_of::bodies && on->expands() && uri.find('?') == std::string::npos;
  std::string next = expand ? uri + "?$expand=.($levels=1)" : uri;
  while (!next.empty()) {
    if (!pages.insert(plain_uri(next)).second || pages.size() > page_limit) {
      mark_incomplete(list, fmt::format("the pages of {} go round: {} comes again", uri, next));
      break;
    }
    const fetched page = co_await fetch(on, next, urgency);
    if (!page.ok() && expand && pages.size() == 1 && !page.device_failed() && !page.not_found()) {
      next = uri;  // it promised more than it can
      continue;
    }
    if (!page.ok()) {
      if (list.members.empty()) {
        list.status = page.status;
        list.http = page.http;
      }
      mark_incomplete(list, std::string(page.status.message()));
      break;
    }
    list.http = page.http;
    const page_facts facts = decode_page(page.body());
    if (!facts.is_collection && list.members.empty()) {
      list.status =
          make_fault(fault::BMC_BAD_DATA, fmt::format("{} on {} is no collection", uri, on->address()));
      mark_incomplete(list, std::string(list.status.message()));
      break;
    }
    take_page(list, seen, facts, page.document);
    next = facts.next.value_or("");
  }
  if (list.announced && *list.announced > list.members.size()) {
    mark_incomplete(
        list, fmt::format("{} announces {} members and shows {}", uri, *list.announced, list.members.size()));
  }
  co_return list;
}

task<std::vector<fetched>> fetch_members(device_ptr on, listing list, priority urgency) {
  std::vector<std::string> missing;
  for (const fetched& member : list.inlined) {
    if (member.http == 0) missing.push_back(member.uri);
  }
  std::vector<fetched> bodies = co_await fetch_all(on, missing, urgency);
  std::size_t taken = 0;
  for (fetched& member : list.inlined) {
    if (member.http == 0) member = std::move(bodies[taken++]);
  }
  co_return std::move(list.inlined);
}

task<absl::Status> patch(device_ptr on, std::string uri, std::string body, priority urgency) {
  request wanted;
  wanted.method = http_method::patch;
  wanted.uri = uri;
  wanted.urgency = urgency;
  wanted.body = body;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const fetched before = co_await fetch(on, uri, urgency);
    if (before.device_failed()) co_return before.status;
    wanted.if_match = before.etag;  // empty where the device gives none, or does not show the object
    const response answer = co_await on->send(wanted);
    if (answer.good()) co_return absl::OkStatus();
    if (answer.status.ok() && answer.http == 412 && attempt == 0) continue;
    co_return fault_of_answer(*on, wanted, answer);
  }
  co_return make_fault(fault::BMC_BAD_DATA,
                       fmt::format("PATCH {} on {}: its ETag changes with every read", uri, on->address()));
}

task<response> post(device_ptr on, std::string uri, std::string body, priority urgency) {
  request wanted;
  wanted.method = http_method::post;
  wanted.uri = uri;
  wanted.urgency = urgency;
  wanted.body = body.empty() ? "{}" : body;
  const response answer = co_await on->send(wanted);
  co_return answer;
}

}  // namespace busbar::devices::redfish
