// The verbs of valves and of power: valve open|close|set|release, power on|off|cycle|cap.
#pragma once

#include "daemon/cli/session.hpp"

namespace busbar::cli {

exit_code valve_open(session& with);
exit_code valve_close(session& with);
exit_code valve_set(session& with);
exit_code valve_release(session& with);
exit_code power_on(session& with);
exit_code power_off(session& with);
exit_code power_cycle(session& with);
exit_code power_cap(session& with);

}  // namespace busbar::cli
