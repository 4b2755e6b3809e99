// One Redfish service: its queue, its budget and its one session. Lives on the I/O thread alone.
//
// At most two requests are in flight, safety before command before telemetry. After 5xx or a time-out the
// device is left alone for a while and served one request at a time until it has answered well again; reads
// are tried again, acts never are. A 401 leads to one new login, then to a fault; wrong logins are counted
// and stop before any lock-out. The session token is kept here and shown nowhere. Every submitted request is
// answered exactly once; close() answers all that is left.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/devices/bmc.hpp"
#include "actors/devices/redfish/http_transport.hpp"
#include "actors/devices/redfish/json.hpp"
#include "actors/devices/redfish/task.hpp"

namespace busbar::devices::redfish {

using std::chrono::milliseconds;

enum class priority { safety, command, telemetry };

struct device_options {
  milliseconds request_timeout{10'000};
  milliseconds upload_timeout{600'000};  // a firmware image
  int in_flight_limit = 2;
  int read_attempts = 3;             // of one GET, the first included
  milliseconds back_off_first{250};  // doubled up to back_off_last
  milliseconds back_off_last{4'000};
  int good_answers_to_recover = 4;  // until two requests are in flight again
  int wrong_logins_limit = 3;
};

struct request {
  http_method method = http_method::get;
  std::string uri;
  priority urgency = priority::telemetry;
  std::string body;
  std::vector<http_part> parts;
  std::string if_match;
  bool with_session = true;   // false: sent without token, and passes while a login is under way
  bool retry_login = true;    // false: a 401 is the answer
  std::string session_token;  // used in place of the current one (deletion of the old session)
  milliseconds timeout{0};    // 0: the device's own
  act_check still_allowed;    // asked as it leaves, each time; no: withheld. Empty: always
};

// status is not OK when no HTTP answer came (it carries the fault); else http is the answer's code, whatever
// that is.
struct response {
  absl::Status status;
  int http = 0;
  http_headers headers;
  std::string body;

  bool good() const { return status.ok() && http >= 200 && http < 300; }
};

// The one event stream. Every callback comes on the I/O thread.
struct stream_sink {
  std::function<void(std::string_view bytes)> bytes;
  std::function<void(response)> ended;  // exactly once, unless close_stream() ended it; http 0: no answer came
};

struct device_figures {
  std::uint64_t sent = 0;
  std::uint64_t failed = 0;  // no answer, or 5xx
  int in_flight_peak = 0;
};

class device : public std::enable_shared_from_this<device> {
 public:
  device(std::string address, std::shared_ptr<http_transport> transport, std::shared_ptr<scheduler> loop,
         device_options options);
  ~device();
  device(const device&) = delete;
  device& operator=(const device&) = delete;

  const std::string& address() const { return address_; }
  const device_options& options() const { return options_; }
  const device_figures& figures() const { return figures_; }

  void submit(request wanted, std::function<void(response)> reply);
  callback_of<response> send(request wanted);
  void close();
  bool closed() const { return closed_; }

  // Beside the budget of requests, with the session's token; without one it ends at once. One at a time: a new one
  // replaces the old. The driver sends no request for it and logs in for nothing.
  void open_stream(const std::string& uri, stream_sink sink);
  void close_stream();
  bool has_session() const { return !token_.empty() && !logging_in_; }
  // Whether the service root says that $expand=. works; lists then come with their bodies.
  void set_expands(bool expands) { expands_ = expands; }
  bool expands() const { return expands_; }

  // Empty: the next answer's certificate becomes the pin.
  void set_pin(std::string certificate_sha256) { pin_ = std::move(certificate_sha256); }
  const std::string& pin() const { return pin_; }

  // Replaces the session: the old one is deleted first, so that the device never holds two of ours.
  void log_in(credentials login, std::function<void(absl::StatusOr<session_facts>)> reply);
  callback_of<absl::StatusOr<session_facts>> log_in(credentials login);
  // The device has ended its sessions (manager reset): the next request logs in anew.
  void session_is_gone() {
    token_.clear();
    session_uri_.clear();
  }
  void password_changed(const credentials& account);
  const std::string& session_user() const { return login_.user; }
  const std::string& session_uri() const { return session_uri_; }
  // The account that must change its password first, as the device named it; else empty.
  const std::string& account_to_change() const { return account_to_change_; }
  // A reader that opens no session: each request carries its login. Nothing is left behind by a killed
  // process. A refusal counts as a wrong login.
  void use_basic(const credentials& reader);
  int wrong_logins() const;
  void forget_wrong_logins() { wrong_logins_.clear(); }
  void count_wrong_logins(std::map<std::string, int> so_far) { wrong_logins_ = std::move(so_far); }
  // Told of every session that the driver opened by itself after a 401.
  void on_session(std::function<void(session_facts)> listener) { listener_ = std::move(listener); }

 private:
  struct entry {
    request wanted;
    std::function<void(response)> reply;
    int attempts = 0;
    bool logged_in_for = false;  // a 401 of this request has led to a login already
  };

  void run(std::function<void()> work);
  void pump();
  std::shared_ptr<entry> next();
  void put_on_wire(const std::shared_ptr<entry>& item);
  void completed(std::uint64_t id, http_outcome outcome);
  bool try_again(const std::shared_ptr<entry>& item, const http_outcome& outcome);
  bool log_in_again(const std::shared_ptr<entry>& item, const http_outcome& outcome);
  void begin_login(const credentials& login, const std::function<void(absl::StatusOr<session_facts>)>& reply);
  void login_ended(const absl::StatusOr<session_facts>& result);
  void back_off();
  void all_well();
  void give(const std::shared_ptr<entry>& item, response answer);
  void fail_queued(const absl::Status& status);
  void stream_ended(std::uint64_t number, http_outcome outcome);
  absl::Status fault_for(const request& wanted, const http_outcome& outcome) const;
  absl::Status closed_fault() const;

  friend task<absl::StatusOr<session_facts>> open_session(std::shared_ptr<device> self, credentials login);

  const std::string address_;
  const std::shared_ptr<http_transport> transport_;
  const std::shared_ptr<scheduler> loop_;
  const device_options options_;
  device_figures figures_;

  std::array<std::deque<std::shared_ptr<entry>>, 3> queues_;  // by priority
  std::map<std::uint64_t, std::shared_ptr<entry>> in_flight_;
  std::uint64_t next_id_ = 1;
  int concurrency_;
  int good_answers_ = 0;
  milliseconds delay_{0};
  bool paused_ = false;
  int silent_ = 0;  // time-outs in a row
  bool closed_ = false;
  bool expands_ = false;

  std::shared_ptr<http_flow> flow_;  // of the event stream; null: there is none
  stream_sink stream_;
  std::uint64_t stream_number_ = 0;

  std::deque<std::function<void()>> ready_;
  bool draining_ = false;

  std::string pin_;
  credentials login_;  // of the session
  std::string basic_;  // Authorization header of a reader that opens no session
  std::string basic_user_;
  std::string token_;
  std::string session_uri_;
  std::string account_to_change_;
  bool logging_in_ = false;
  std::map<std::string, int> wrong_logins_;  // by user
  std::function<void(session_facts)> listener_;
};

// What a body says about an error: message ids and texts of @Message.ExtendedInfo, without registry prefixes.
struct extended_message {
  std::string id;  // ResourceAlreadyExists
  std::string text;
  std::vector<std::string> arguments;
};
std::vector<extended_message> messages_of(json_view body);
bool has_message(const std::string& body, std::string_view id);
std::string describe_error(const std::string& body);

// The fault for an HTTP answer that is none of 2xx (or for the transport's own).
absl::Status fault_of_answer(const device& on, const request& wanted, const response& answer);

}  // namespace busbar::devices::redfish
