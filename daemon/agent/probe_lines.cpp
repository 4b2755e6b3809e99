#include "daemon/agent/probe_lines.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace busbar::agent_client {
namespace {

using json = nlohmann::json;

constexpr std::size_t longest_text = 4096;

absl::Status malformed(const std::string& what) {
  return absl::InvalidArgumentError("the probe wrote a line that is none of the contract: " + what);
}

bool short_text(const json& value, std::string* out) {
  if (!value.is_string()) return false;
  *out = value.get<std::string>();
  return out->size() <= longest_text;
}

absl::Status read_field(const std::string& key, const json& value, std::uint32_t gpus,
                        agent::Measurement* out) {
  std::string text;
  if (key == "gpu") {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= gpus) return malformed("gpu");
    out->set_gpu(value.get<std::uint32_t>());
  } else if (key == "value") {
    if (!value.is_number()) return malformed("value");
    out->set_value(value.get<double>());
  } else if (key == "metric" && short_text(value, &text) && !text.empty()) {
    out->set_metric(text);
  } else if (key == "text" && short_text(value, &text) && !text.empty()) {
    out->set_text(text);
  } else if (key == "unit" && short_text(value, &text)) {
    out->set_unit(text);
  } else if (key == "quality" && short_text(value, &text)) {
    out->set_quality(text == "good" ? agent::GOOD : text == "bad" ? agent::BAD : agent::QUALITY_UNSPECIFIED);
  } else {
    return malformed("field " + key);
  }
  return absl::OkStatus();
}

}  // namespace

std::string probe_request(const agent::Run& run, std::uint32_t gpus) {
  json out = {{"probe", run.probe()}, {"gpus", gpus}, {"rank", run.rank()}, {"size", run.size()}};
  out["duration_s"] = static_cast<double>(run.duration().seconds()) + run.duration().nanos() * 1e-9;
  out["metrics"] = json::array();
  for (const auto& metric : run.metrics()) out["metrics"].push_back(metric);
  out["peers"] = json::array();
  for (const auto& peer : run.peers()) out["peers"].push_back(peer);
  out["parameters"] = json::object();
  for (const auto& [name, value] : run.parameters()) out["parameters"][name] = value;
  // What is not UTF-8 becomes the replacement character: the program then refuses it as any other wrong
  // parameter.
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::StatusOr<probe_line> parse_probe_line(std::string_view line, std::uint32_t gpus) {
  const json document = json::parse(line.begin(), line.end(), nullptr, false);
  if (!document.is_object()) return malformed("not one JSON object");
  if (document.contains("progress")) {
    const auto& fraction = document["progress"];
    if (document.size() != 1 || !fraction.is_number()) return malformed("progress");
    const double value = fraction.get<double>();
    if (!(value >= 0 && value <= 1)) return malformed("progress");
    return probe_line(probe_progress{value});
  }
  for (const char* needed : {"gpu", "metric", "unit", "quality"}) {
    if (!document.contains(needed)) return malformed(std::string("no ") + needed);
  }
  if (document.contains("value") && document.contains("text")) return malformed("a value and a text at once");
  agent::Measurement out;
  for (const auto& [key, value] : document.items()) {
    if (auto read = read_field(key, value, gpus, &out); !read.ok()) return read;
  }
  if (!out.has_value() && out.text().empty() && out.quality() == agent::GOOD) out.set_quality(agent::BAD);
  return probe_line(std::move(out));
}

}  // namespace busbar::agent_client
