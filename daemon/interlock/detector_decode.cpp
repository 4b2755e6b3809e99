#include "daemon/interlock/detector_decode.hpp"

#include <algorithm>

namespace busbar::interlock {
namespace {

using devices::redfish::json_document;
using devices::redfish::json_view;

std::optional<json_document> parse(std::string_view body) {
  if (body.size() > body_max) return std::nullopt;
  auto document = json_document::parse(body);
  if (!document.has_value() || !document->root().is_object()) return std::nullopt;
  return document;
}

std::optional<std::string> link_of(json_view object) {
  auto uri = object.link();
  if (!uri.has_value() || !is_plain_path(*uri)) return std::nullopt;
  return uri;
}

// Foreign text in a log line or a heartbeat: short and printable.
std::string shown(std::string_view text) {
  std::string clean(text.substr(0, 120));
  std::replace_if(
      clean.begin(), clean.end(), [](char each) { return each < ' ' || each > '~'; }, '?');
  return clean;
}

reading unknown(std::string detail) {
  return {.seen = DetectorReading::UNKNOWN, .detail = std::move(detail)};
}

}  // namespace

bool is_plain_path(std::string_view text) {
  if (text.empty() || text.front() != '/' || text.size() > 512 || text.substr(0, 2) == "//") return false;
  return std::all_of(text.begin(), text.end(),
                     [](char each) { return each > ' ' && each < '\x7f' && each != '\\'; });
}

std::optional<std::string> link_at(std::string_view body, const std::vector<std::string>& keys) {
  const auto document = parse(body);
  if (!document.has_value()) return std::nullopt;
  json_view at = document->root();
  for (const std::string& key : keys) at = at[key];
  return link_of(at);
}

std::optional<std::vector<std::string>> member_links(std::string_view body) {
  const auto document = parse(body);
  if (!document.has_value()) return std::nullopt;
  const json_view members = document->root()["Members"];
  if (!members.is_array()) return std::nullopt;
  std::vector<std::string> links;
  for (const json_view member : members.items()) {
    if (links.size() >= members_max) break;
    if (auto link = link_of(member); link.has_value()) links.push_back(std::move(*link));
  }
  return links;
}

reading decode_detector(std::string_view body, std::string_view expected_id, raw_leak raw,
                        std::string_view quirks) {
  const auto document = parse(body);
  if (!document.has_value()) return unknown("the body is no JSON object");
  return decode_detector(document->root(), expected_id, raw, quirks);
}

reading decode_detector(json_view body, std::string_view expected_id, raw_leak raw, std::string_view quirks) {
  const devices::detector_facts facts = devices::redfish::judge_detector(body, raw, quirks);
  if (facts.name != expected_id) return unknown("the body is of '" + shown(facts.name) + "'");
  // Spelled out, so that a verdict added to the journal's enum later is unknown here until somebody decides.
  if (facts.verdict == journal::Detector::DRY)
    return {.seen = DetectorReading::DRY, .detail = shown(facts.detail)};
  if (facts.verdict == journal::Detector::LEAK)
    return {.seen = DetectorReading::LEAK, .detail = shown(facts.detail)};
  return unknown(shown(facts.detail));
}

raw_leak decode_raw(std::string_view body) {
  const auto document = parse(body);
  return document.has_value() ? devices::redfish::decode_raw_leak(document->root()) : raw_leak::unreadable;
}

bool is_detector(std::string_view id, std::string_view name) {
  if (id == name) return true;
  constexpr std::string_view infix = "LeakDetector_";
  if (id.size() < infix.size() + name.size() || id.substr(id.size() - name.size()) != name) return false;
  return id.substr(id.size() - name.size() - infix.size(), infix.size()) == infix;
}

std::string_view last_segment(std::string_view uri) {
  while (!uri.empty() && uri.back() == '/') uri.remove_suffix(1);
  return uri.substr(uri.rfind('/') + 1);
}

}  // namespace busbar::interlock
