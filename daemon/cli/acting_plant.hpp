// The verbs of CDUs: cdu set|release. A person's set-points hold for a lease, then the plant's own go on from there.
#pragma once

#include "daemon/cli/session.hpp"

namespace busbar::cli {

exit_code cdu_set(session& with);
exit_code cdu_release(session& with);

}  // namespace busbar::cli
