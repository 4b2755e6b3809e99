// The real I/O: one thread with libcurl's multi interface and its own timers for all devices of a daemon.
// TLS 1.2 or newer, connections kept alive, at most two a device and one for its event stream, redirects not followed. BMCs sign their own
// certificates, so the pin is the verification: it is compared in libcurl's pre-request callback, on new and
// on reused connections alike, before any header is written.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "actors/devices/redfish/http_transport.hpp"

namespace busbar::devices::redfish {

struct curl_options {
  std::chrono::milliseconds connect_timeout{5'000};
  std::size_t largest_body = 16 * 1024 * 1024;
  bool tls = true;  // false: plain HTTP, for replayed captures only
};

class curl_loop;

// send and post may be called from any thread. The destructor ends the thread after every callback has been
// called; after a stop everything that is still sent is answered unreachable at once.
class curl_transport : public http_transport, public scheduler {
 public:
  explicit curl_transport(curl_options options = {});
  ~curl_transport() override;
  curl_transport(const curl_transport&) = delete;
  curl_transport& operator=(const curl_transport&) = delete;

  void send(const std::string& address, http_request request, http_callback callback) override;
  void post(std::function<void()> work) override;
  void after(std::chrono::milliseconds delay, std::function<void()> work) override;

 private:
  std::shared_ptr<curl_loop> loop_;
};

}  // namespace busbar::devices::redfish
