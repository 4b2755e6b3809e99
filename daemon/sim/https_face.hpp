// HTTPS towards the network for many devices at once: one receive thread for all sockets (TLS, parsing, the
// receive stamp, real-time priority where the host allows it) and the model loop, on which requests are
// answered.
//
// Each device serves one request at a time, in the order of arrival, after its service time; the rest wait in
// the device.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/sim/certificate.hpp"
#include "daemon/sim/http_message.hpp"
#include "daemon/sim/model_loop.hpp"

namespace busbar::sim {

// How the face asks the model; every function is called on the model loop's thread.
struct face_backend {
  std::function<bool(const std::string& address)> reachable;
  std::function<instant(const std::string& address)> service_time;
  std::function<http_reply(const std::string& address, const http_request& request)> handle;
  // Optional, and called on the receive thread as the write of the reply to a journal's request begins, or that
  // of an event.
  std::function<void(std::uint64_t number, instant when)> written = nullptr;
  std::function<void(const std::string& address, const std::string& event, instant when)> event_written =
      nullptr;
  // Optional: the device's metric reports of now, for the event streams that carry them.
  std::function<std::vector<std::string>(const std::string& address)> reports = nullptr;
};

class https_face {
 public:
  https_face(model_loop& loop, face_backend backend);
  ~https_face();
  https_face(const https_face&) = delete;
  https_face& operator=(const https_face&) = delete;

  // Before start. Port 0: any free one; port_of tells which.
  absl::Status listen(const std::string& address, std::uint16_t port, const key_pair& certificate);
  std::uint16_t port_of(const std::string& address) const;
  void start();
  void stop();  // joins the receive thread; before the model loop stops

  // Thread-safe.
  void replace_certificate(const std::string& address, const key_pair& certificate);
  void send_event(const std::string& address, const std::string& event);

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace busbar::sim
