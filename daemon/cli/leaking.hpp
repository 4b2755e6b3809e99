// Leaks: what is known of them, from the daemons; and what a person of group busbar-safety may say to the interlock itself, at its
// operator's socket on this host.
#pragma once

#include "daemon/cli/session.hpp"

namespace busbar::cli {

exit_code leak_status(session& with);
exit_code leak_reset(const options& said, context& world);
exit_code leak_bypass(const options& said, context& world);

}  // namespace busbar::cli
