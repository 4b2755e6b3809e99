// `busbar bmc inspect URL`: walks a BMC with the product's own driver and needs no daemon.
#pragma once

#include "daemon/cli/context.hpp"

namespace busbar::cli {

exit_code bmc_inspect(const options& said, context& world);

}  // namespace busbar::cli
