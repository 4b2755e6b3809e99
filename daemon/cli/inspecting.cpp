#include "daemon/cli/inspecting.hpp"

#if __has_include("actors/devices/inspect.hpp")
#error "link it"
#endif

namespace busbar::cli {

exit_code bmc_inspect(const options& said, context& world) {
  world.err << "busbar: " << said.names.front() << ": this build cannot inspect a BMC\n";
  return exit_code::usage;
}

}  // namespace busbar::cli
