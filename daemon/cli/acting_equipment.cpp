#include "daemon/cli/acting_equipment.hpp"

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

#include "actors/manifest/names.hpp"
#include "busbar/v1/busbar.pb.h"
#include "daemon/cli/acting_parts.hpp"
#include "daemon/cli/host_list.hpp"

namespace busbar::cli {
namespace {

using google::protobuf::util::TimeUtil;

exit_code move_valve(session& with, const std::string& what, double percent, danger level) {
  return act_on_names(with, "SetValve", what, level, reason::needed, [&with, percent](v1::ActRequest act) {
    auto request = std::make_unique<v1::SetValveRequest>();
    *request->mutable_act() = std::move(act);
    request->set_opening_percent(percent);
    if (with.said().length.count() > 0)
      *request->mutable_lease() = TimeUtil::NanosecondsToDuration(with.said().length.count());
    return request;
  });
}

// r01/u01/3, r01/u01/[1-4] -> racks/r01/pdus/u01/3 ...: the outlet is no resource of its own, so the last
// part is cut off again where the request is made.
std::optional<std::vector<std::string>> outlet_names(session& with) {
  std::vector<std::string> names;
  for (const std::string& typed : with.said().names) {
    const auto expanded = expand_host_list(typed);
    for (const std::string& name : expanded.value_or(std::vector<std::string>{typed})) {
      const std::size_t cut = name.rfind('/');
      const auto pdu = cut == std::string::npos ? std::nullopt : manifest::long_name(name.substr(0, cut));
      if (!expanded || !pdu || pdu->find("/pdus/") == std::string::npos || cut + 1 == name.size()) {
        with.say(fmt::format("'{}' is no outlet (r01/u01/3, r01/u01/[1-4])", name));
        return std::nullopt;
      }
      names.push_back(*pdu + name.substr(cut));
    }
  }
  return names;
}

exit_code switch_outlets(session& with, const std::string& wish, danger level) {
  const auto names = outlet_names(with);
  if (!names) return exit_code::usage;
  return act_on(with, "SwitchOutlet", fmt::format("power {}", wish), *names, level, reason::needed,
                [&wish](v1::ActRequest act) {
                  auto request = std::make_unique<v1::SwitchOutletRequest>();
                  const std::size_t cut = act.name().rfind('/');
                  request->set_outlet(act.name().substr(cut + 1));
                  act.set_name(act.name().substr(0, cut));
                  *request->mutable_act() = std::move(act);
                  request->set_wish(wish);
                  return request;
                });
}

}  // namespace

exit_code valve_open(session& with) {
  return move_valve(with, "opening", 100, danger::none);
}

exit_code valve_close(session& with) {
  return move_valve(with, "closing", 0, danger::asks);
}

exit_code valve_set(session& with) {
  if (!with.said().to_percent) {
    with.say("valve set needs --to PERCENT: 0 is closed, 100 is open");
    return exit_code::usage;
  }
  return move_valve(with, "setting", *with.said().to_percent, danger::asks);
}

exit_code valve_release(session& with) {
  return act_on_names(with, "ReleaseValve", "release", danger::none, reason::needed,
                      [](v1::ActRequest act) { return std::make_unique<v1::ActRequest>(std::move(act)); });
}

exit_code power_cap(session& with) {
  if (with.said().gpu_watts.has_value() == with.said().off) {
    with.say("power cap needs --gpu-watts W, or --off to take the limit back");
    return exit_code::usage;
  }
  return act_on_names(with, "SetPowerCap", with.said().off ? "no power cap" : "power cap", danger::asks,
                      reason::needed, [&with](v1::ActRequest act) {
                        auto request = std::make_unique<v1::SetPowerCapRequest>();
                        *request->mutable_act() = std::move(act);
                        if (with.said().gpu_watts) request->set_gpu_watts(*with.said().gpu_watts);
                        if (with.said().length.count() > 0)
                          *request->mutable_lease() =
                              TimeUtil::NanosecondsToDuration(with.said().length.count());
                        return request;
                      });
}

exit_code power_on(session& with) {
  return switch_outlets(with, "on", danger::none);
}
exit_code power_off(session& with) {
  return switch_outlets(with, "off", danger::asks);
}
exit_code power_cycle(session& with) {
  return switch_outlets(with, "cycle", danger::asks);
}

}  // namespace busbar::cli
