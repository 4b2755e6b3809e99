#include "actors/devices/bmc.hpp"

#include <absl/strings/cord.h>

namespace busbar::devices {

namespace {
constexpr const char* withheld_mark = "busbar.act_withheld";
}  // namespace

absl::Status act_withheld() {
  absl::Status status = absl::AbortedError(
      "the act was withheld: its permit was taken back, or was too old, before the request left");
  status.SetPayload(withheld_mark, absl::Cord());
  return status;
}

bool is_withheld(const absl::Status& status) {
  return status.GetPayload(withheld_mark).has_value();
}

std::string_view redfish_name(reset_type type) {
  switch (type) {
    case reset_type::on:
      return "On";
    case reset_type::force_off:
      return "ForceOff";
    case reset_type::graceful_shutdown:
      return "GracefulShutdown";
    case reset_type::force_restart:
      return "ForceRestart";
    case reset_type::power_cycle:
      return "PowerCycle";
  }
  return "?";
}

}  // namespace busbar::devices
