// The seams under the Redfish driver: HTTP exchanges and delayed calls. Nothing else in redfish/ touches
// sockets, threads or clocks, so that a whole driver runs in a test over an in-process device on one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace busbar::devices::redfish {

enum class http_method { get, post, patch, del };
std::string_view name_of(http_method method);  // GET, POST, PATCH, DELETE

using http_headers = std::vector<std::pair<std::string, std::string>>;

// One part of a multipart/form-data body: either data, or the content of the file at file_path.
struct http_part {
  std::string name;
  std::string content_type;
  std::string data;
  std::string file_path;
};

// An answer without an end (an event stream), taken as it comes. on_bytes gets the body of a 200, on the I/O thread;
// false ends the exchange. stop is set by the transport while the exchange is under way: it ends it, with the usual
// callback, and is called on the I/O thread.
struct http_flow {
  std::function<bool(std::string_view bytes)> on_bytes;
  std::function<void()> stop;
};

struct http_request {
  http_method method = http_method::get;
  std::string path;  // "/redfish/v1/Systems?$skip=50"
  http_headers headers;
  std::string body;  // JSON; unused when there are parts
  std::vector<http_part> parts;
  std::chrono::milliseconds timeout{10'000};  // a flow has none: who opened it watches its silence
  std::string pin;  // SHA-256 of the DER certificate, hex; empty: any certificate, and report it
  std::shared_ptr<http_flow> flow;  // null: the body is gathered
};

struct http_reply {
  int status = 0;
  http_headers headers;  // names in lower case
  std::string body;
  std::string certificate_sha256;  // what the peer showed; empty where there is no TLS
};

// What became of an exchange. pin_mismatch: nothing of the request was sent; reply.certificate_sha256 is the
// one seen.
enum class transport_error { none, unreachable, timeout, pin_mismatch, too_large };

struct http_outcome {
  transport_error error = transport_error::none;
  std::string detail;
  http_reply reply;
};

std::optional<std::string> header_of(const http_headers& headers, std::string_view lower_case_name);

using http_callback = std::function<void(http_outcome)>;

// Calls back exactly once for every send, within the request's timeout (a flow: when it has ended), on the I/O thread
// or inline from send.
class http_transport {
 public:
  virtual ~http_transport() = default;
  virtual void send(const std::string& address, http_request request, http_callback callback) = 0;
};

// Runs functions on the I/O thread. post: as soon as possible, from any thread, in order. after: once the
// time is over; callable on the I/O thread only. Whatever was given is run exactly once, at the latest when
// the loop ends.
class scheduler {
 public:
  virtual ~scheduler() = default;
  virtual void post(std::function<void()> work) = 0;
  virtual void after(std::chrono::milliseconds delay, std::function<void()> work) = 0;
};

}  // namespace busbar::devices::redfish
