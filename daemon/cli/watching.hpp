// The verbs that stay: watch (and -w), wait, the live view of a bring-up.
#pragma once

#include "daemon/cli/live_view.hpp"
#include "daemon/cli/session.hpp"

namespace busbar::cli {

exit_code watch(session& with, const kind_info& of);
// 0 as soon as all named are as asked; 1 when one has ended otherwise; 3 when that cannot be known; 6 at the
// time limit.
exit_code wait(session& with, const kind_info& of);

// Waits for operations to end: SUCCEEDED 0, otherwise 1, still running at the time limit 6. On a terminal the
// live view is on stderr meanwhile. Daemons may come and go.
exit_code wait_for_operations(session& with, const std::vector<std::string>& names);

}  // namespace busbar::cli
