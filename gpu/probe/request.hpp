// The contract between the agent and a probe program. On stdin one JSON object:
//   {"probe":"matrix_burn","duration_s":10,"metrics":["gpu_temperature"],"parameters":{"size":"96"},"gpus":4,
//    "rank":0,"size":1,"peers":[]}
// On stdout JSON lines, nothing else: {"progress":0.5} and, one a result,
//   {"gpu":0,"metric":"hbm_copy","value":12.5,"unit":"GB/s","quality":"good"}   or "text" in place of
//   "value".
// Exit 0: the probe ran to its end (whatever it measured); else stderr says why not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace busbar::probe {

struct request {
  std::string probe;
  double duration_s = 0;
  std::vector<std::string> metrics;  // empty: all that the probe has
  std::map<std::string, std::string> parameters;
  std::uint32_t gpus = 1;  // devices of this tray
  std::uint32_t rank = 0;  // collectives: first rank of this tray
  std::uint32_t size = 0;  // collectives: ranks in all; 0 = this tray's devices
};

struct result {
  std::uint32_t gpu = 0;
  std::string metric;
  std::optional<double> value;
  std::string text;
  std::string unit;
};

// Empty and `error` filled where the text is not a request.
std::optional<request> parse_request(const std::string& text, std::string* error);
std::string to_line(const result& one);  // a value that is not finite becomes "bad" without a value
std::string progress_line(double fraction);

bool wants(const request& asked, const std::string& metric);
// A whole number within [least, most]; the parameter absent gives `otherwise`; nullopt where it is not such a
// number.
std::optional<std::uint64_t> number_parameter(const request& asked, const std::string& name,
                                              std::uint64_t otherwise, std::uint64_t least,
                                              std::uint64_t most);

}  // namespace busbar::probe
