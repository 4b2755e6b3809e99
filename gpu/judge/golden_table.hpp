// The texts that `equal: golden` stands for. Whole-number arithmetic makes them the same on every engine; a
// row may still be given for one limits name alone. Data, checked against the reference probes in
// tests/unit/judge.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace busbar::gpu {

// nullopt: there is no golden value for this probe, metric and these parameters; nothing can be judged by it.
std::optional<std::string_view> golden_text(std::string_view limits, std::string_view probe,
                                            std::string_view metric,
                                            const std::map<std::string, std::string>& parameters);

}  // namespace busbar::gpu
