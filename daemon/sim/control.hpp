// The control socket of a running simulator: one JSON object a line in, one out. Owner: `busbar-sim run`.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace busbar::sim {

class control_server {
 public:
  // Called on the socket's own thread with a line; its answer goes back as a line.
  using handler = std::function<std::string(const std::string& line)>;

  control_server(std::string path, handler answer) : path_(std::move(path)), answer_(std::move(answer)) {}
  ~control_server() { stop(); }
  control_server(const control_server&) = delete;
  control_server& operator=(const control_server&) = delete;

  absl::Status start();
  void stop();

 private:
  void run();
  void serve(int client);

  std::string path_;
  handler answer_;
  int listener_ = -1;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// The client's side: one request, one answer.
absl::StatusOr<std::string> ask_simulator(const std::string& socket_path, const std::string& line);

}  // namespace busbar::sim
