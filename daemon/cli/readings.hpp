// The verbs about readings: get readings, watch readings, watch cooling, history.
#pragma once

#include "daemon/cli/session.hpp"

namespace busbar::cli {

exit_code get_readings(session& with);
exit_code watch_readings(session& with);
exit_code watch_cooling(session& with);
exit_code read_history(session& with);

}  // namespace busbar::cli
