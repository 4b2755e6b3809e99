#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "daemon/cli/context.hpp"

int main(int argc, char** argv) {
  busbar::cli::context world{.out = std::cout, .err = std::cerr, .in = std::cin};
  world.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  world.err_is_terminal = isatty(STDERR_FILENO) == 1;
  world.in_is_terminal = isatty(STDIN_FILENO) == 1;
  winsize size{};
  if (ioctl(world.out_is_terminal ? STDOUT_FILENO : STDERR_FILENO, TIOCGWINSZ, &size) == 0 &&
      size.ws_row > 2) {
    world.terminal_rows = size.ws_row;
    world.terminal_columns = size.ws_col;
  }
  if (const char* run_dir = std::getenv("BUSBAR_RUN_DIR"); run_dir != nullptr && *run_dir != '\0')
    world.run_dir = run_dir;
  const busbar::cli::exit_code code = busbar::cli::run({argv + 1, argv + argc}, world);
  std::cout.flush();
  // Data that did not reach its reader (a full disk behind a pipe) is no success.
  if (!std::cout && code == busbar::cli::exit_code::done)
    return static_cast<int>(busbar::cli::exit_code::unknown);
  return static_cast<int>(code);
}
