// busbar-sim replay: one captured tree behind HTTPS.
#include <pthread.h>

#include <csignal>
#include <iostream>

#include "daemon/sim/certificate.hpp"
#include "daemon/sim/https_face.hpp"
#include "daemon/sim/model_loop.hpp"
#include "daemon/sim/program/commands.hpp"
#include "daemon/sim/replay_tree.hpp"

namespace busbar::sim {

namespace {

int fail(int code, const std::string& why) {
  std::cerr << "busbar-sim: " << why << '\n';
  return code;
}

}  // namespace

int replay_command(const arguments& line) {
  const std::string listen = line.value("--listen", "127.0.0.1:0");
  const std::size_t colon = listen.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : whole_number(listen.substr(colon + 1));
  if (line.words.size() != 2 || !port || *port < 0 || *port > 65535) {
    return fail(exit_usage, "replay DIR --listen ADDRESS:PORT");
  }
  const auto tree = replay_tree::load(line.words[1]);
  if (!tree.ok()) {
    return fail(exit_false, std::string(tree.status().message()));
  }
  const std::string address = listen.substr(0, colon);
  const auto certificate = make_certificate("replay", address);
  if (!certificate.ok()) {
    return fail(exit_false, std::string(certificate.status().message()));
  }
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  model_loop loop;
  https_face face(
      loop, {[](const std::string&) { return true; }, [](const std::string&) { return instant{0}; },
             [&tree](const std::string&, const http_request& request) { return tree->handle(request); }});
  if (const absl::Status opened = face.listen(address, static_cast<std::uint16_t>(*port), *certificate);
      !opened.ok()) {
    return fail(exit_false, std::string(opened.message()));
  }
  loop.start();
  face.start();
  std::cout << "READY https://" << address << ":" << face.port_of(address) << " " << tree->size() << " bodies"
            << std::endl;
  int received = 0;
  sigwait(&ends, &received);
  face.stop();
  loop.stop();
  return exit_done;
}

}  // namespace busbar::sim
