// What Busbar asks of a rack PDU: outlets, whatever protocol and dialect it speaks. Plain classes: no CAF.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace busbar::devices {

enum class outlet_state { unknown, on, off };
std::string_view name_of(outlet_state state);

enum class outlet_act { on, off };
std::string_view name_of(outlet_act act);

struct outlet_facts {
  std::string id;  // as the PDU numbers it: "7", "A3"
  std::string name;
  outlet_state state = outlet_state::unknown;
  std::string raw_state;  // what the PDU said, when that is no known state
  std::optional<double> current_a;
  std::optional<double> power_w;
};

// One PDU. Answers come exactly once, on the driver's I/O thread.
class outlet_bank {
 public:
  virtual ~outlet_bank() = default;
  virtual void read(std::function<void(absl::StatusOr<std::vector<outlet_facts>>)> reply) = 0;
  // Asks only: an accepted request is no change of state. read() shows later whether it took; PDUs need up to
  // 20 s.
  virtual void ask(const std::string& outlet, outlet_act act, std::function<void(absl::Status)> reply) = 0;
};

}  // namespace busbar::devices
