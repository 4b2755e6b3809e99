#include "gpu/judge/golden_table.hpp"

namespace busbar::gpu {
namespace {

struct golden_row {
  std::string_view limits;  // "" = any
  std::string_view probe;
  std::string_view metric;
  std::string_view parameters;  // name=value, in the order of names, joined by a comma
  std::string_view text;
};

constexpr golden_row golden_rows[] = {
    {"", "matrix_burn", "result_hash", "", "c6330a1df9039cf7"},  // size 96, seed 1
    {"", "matrix_burn", "result_hash", "size=96", "c6330a1df9039cf7"},
    {"", "training", "loss_curve", "", "72a2778065c2701c"},  // seed 1, 200 steps
    {"", "training", "loss_curve", "steps=200", "72a2778065c2701c"},
};

}  // namespace

std::optional<std::string_view> golden_text(std::string_view limits, std::string_view probe,
                                            std::string_view metric,
                                            const std::map<std::string, std::string>& parameters) {
  std::string joined;
  for (const auto& [name, value] : parameters) joined += (joined.empty() ? "" : ",") + name + "=" + value;
  const golden_row* any = nullptr;
  for (const auto& row : golden_rows) {
    if (row.probe != probe || row.metric != metric || row.parameters != joined) continue;
    if (row.limits == limits) return row.text;
    if (row.limits.empty()) any = &row;
  }
  return any != nullptr ? std::optional(any->text) : std::nullopt;
}

}  // namespace busbar::gpu
