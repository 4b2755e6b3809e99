// busbar-probe-reference: one request on stdin, result lines on stdout (see request.hpp). Dies with the agent
// that started it.
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "gpu/probe/reference.hpp"

int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string text((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>());
  std::string error;
  const auto asked = busbar::probe::parse_request(text, &error);
  if (!asked) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 2;
  }
  const auto print = [](const std::string& line) {
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
  };
  const busbar::probe::sink out = {
      [&print](const busbar::probe::result& one) { print(busbar::probe::to_line(one)); },
      [&print](double fraction) { print(busbar::probe::progress_line(fraction)); }};
  error = busbar::probe::run_reference(*asked, out);
  if (error.empty()) return std::ferror(stdout) == 0 ? 0 : 1;
  std::fprintf(stderr, "%s\n", error.c_str());
  return 1;
}
