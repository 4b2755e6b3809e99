// The verbs that change something: manifest, rack, node, bmc, ops cancel.
#pragma once

#include "daemon/cli/session.hpp"

namespace busbar::cli {

exit_code manifest_apply(session& with);
exit_code manifest_diff(session& with);  // 1 when anything would change
exit_code rack_bringup(session& with);
exit_code rack_shutdown(session& with);
exit_code node_retry(session& with);
exit_code node_trust(session& with);
exit_code bmc_release(session& with);
exit_code bmc_unlock(session& with);
exit_code operation_cancel(session& with);

}  // namespace busbar::cli
