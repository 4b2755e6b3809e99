// The verbs that only look: get, describe, diff, events, ops, rack status.
#pragma once

#include "daemon/cli/session.hpp"

namespace busbar::cli {

exit_code get(session& with, const kind_info& of);
exit_code describe(session& with, const kind_info& of);
exit_code diff(session& with,
               const kind_info& of);   // 1 when anything differs from what is declared, 3 when unknown
exit_code rack_status(session& with);  // 1 unless all are in production and not unhealthy

// Items of these names (or all, where none is given), from every daemon that can hold them. A name nobody has
// is told and lowers the code.
listing gather(session& with, const kind_info& of, const std::vector<std::string>& names, exit_code& code);
// Before something is watched or waited for: 2 with the name that no daemon holds. A daemon that is silent may hold it.
exit_code check_names(session& with, const kind_info& of, const std::vector<std::string>& names);

}  // namespace busbar::cli
