#include "daemon/cli/acting_plant.hpp"

#include <google/protobuf/util/time_util.h>

#include "busbar/v1/busbar.pb.h"
#include "daemon/cli/acting_parts.hpp"

namespace busbar::cli {

exit_code cdu_set(session& with) {
  if (!with.said().supply_c && !with.said().dp_kpa) {
    with.say("cdu set needs --supply CELSIUS or --dp KPA, or both");
    return exit_code::usage;
  }
  return act_on_names(with, "SetCdu", "setting", danger::asks, reason::needed, [&with](v1::ActRequest act) {
    auto request = std::make_unique<v1::SetCduRequest>();
    *request->mutable_act() = std::move(act);
    if (with.said().supply_c) request->set_supply_c(*with.said().supply_c);
    if (with.said().dp_kpa) request->set_dp_kpa(*with.said().dp_kpa);
    if (with.said().length.count() > 0)
      *request->mutable_lease() = google::protobuf::util::TimeUtil::NanosecondsToDuration(with.said().length.count());
    return request;
  });
}

exit_code cdu_release(session& with) {
  return act_on_names(with, "ReleaseCdu", "release", danger::none, reason::optional,
                      [](v1::ActRequest act) { return std::make_unique<v1::ActRequest>(std::move(act)); });
}

}  // namespace busbar::cli
