#include "gpu/probe/request.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace busbar::probe {

using json = nlohmann::json;

namespace {

bool small_count(const json& value, std::uint32_t* out) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 1u << 20) return false;
  *out = value.get<std::uint32_t>();
  return true;
}

bool read_field(const std::string& key, const json& value, request* out) {
  if (key == "probe") {
    if (!value.is_string()) return false;
    out->probe = value.get<std::string>();
  } else if (key == "duration_s") {
    if (!value.is_number()) return false;
    out->duration_s = value.get<double>();
    return std::isfinite(out->duration_s) && out->duration_s >= 0 && out->duration_s <= 86400;
  } else if (key == "gpus") {
    return small_count(value, &out->gpus) && out->gpus >= 1 && out->gpus <= 64;
  } else if (key == "rank") {
    return small_count(value, &out->rank);
  } else if (key == "size") {
    return small_count(value, &out->size);
  } else if (key == "metrics") {
    if (!value.is_array()) return false;
    for (const auto& metric : value) {
      if (!metric.is_string()) return false;
      out->metrics.push_back(metric.get<std::string>());
    }
  } else if (key == "parameters") {
    if (!value.is_object()) return false;
    for (const auto& [name, text] : value.items()) {
      if (!text.is_string()) return false;
      out->parameters[name] = text.get<std::string>();
    }
  } else {
    return key == "peers" && value.is_array();
  }
  return true;
}

}  // namespace

std::optional<request> parse_request(const std::string& text, std::string* error) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) {
    *error = "the request is not one JSON object";
    return std::nullopt;
  }
  request out;
  for (const auto& [key, value] : document.items()) {
    if (!read_field(key, value, &out)) {
      *error = "the request's field " + key + " is unknown or of a wrong type or range";
      return std::nullopt;
    }
  }
  if (out.probe.empty()) {
    *error = "the request names no probe";
    return std::nullopt;
  }
  return out;
}

std::string to_line(const result& one) {
  json line = {{"gpu", one.gpu}, {"metric", one.metric}, {"unit", one.unit}};
  const bool good = one.value ? std::isfinite(*one.value) : !one.text.empty();
  if (one.value && good) line["value"] = *one.value;
  if (!one.value && good) line["text"] = one.text;
  line["quality"] = good ? "good" : "bad";
  return line.dump() + "\n";
}

std::string progress_line(double fraction) {
  return json({{"progress", std::clamp(fraction, 0.0, 1.0)}}).dump() + "\n";
}

bool wants(const request& asked, const std::string& metric) {
  return asked.metrics.empty() ||
         std::find(asked.metrics.begin(), asked.metrics.end(), metric) != asked.metrics.end();
}

std::optional<std::uint64_t> number_parameter(const request& asked, const std::string& name,
                                              std::uint64_t otherwise, std::uint64_t least,
                                              std::uint64_t most) {
  const auto found = asked.parameters.find(name);
  if (found == asked.parameters.end()) return otherwise;
  std::uint64_t value = 0;
  const char* end = found->second.data() + found->second.size();
  const auto [stop, code] = std::from_chars(found->second.data(), end, value);
  if (code != std::errc() || stop != end || value < least || value > most) return std::nullopt;
  return value;
}

}  // namespace busbar::probe
