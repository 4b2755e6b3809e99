#include "actors/devices/outlet.hpp"

namespace busbar::devices {

std::string_view name_of(outlet_state state) {
  switch (state) {
    case outlet_state::unknown:
      return "unknown";
    case outlet_state::on:
      return "on";
    case outlet_state::off:
      return "off";
  }
  return "unknown";
}

std::string_view name_of(outlet_act act) {
  return act == outlet_act::on ? "on" : "off";
}

}  // namespace busbar::devices
