#include "daemon/interlock/device_io.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace busbar::interlock {
namespace {

constexpr std::int64_t retry_first_ms = 250;
constexpr std::int64_t retry_last_ms = 5'000;
constexpr std::int64_t login_retry_first_ms =
    60'000;  // a refused login is not repeated fast: devices lock accounts out
constexpr std::int64_t login_retry_last_ms = 900'000;
constexpr std::size_t header_max = 2048;

std::string sha256_hex(X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) return {};
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

// "Name: value\r\n", name in any case.
bool take_header(std::string_view line, std::string_view name, std::string* value) {
  if (line.size() <= name.size() || line.size() > header_max || line[name.size()] != ':') return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(line[i])) != name[i]) return false;
  }
  line.remove_prefix(name.size() + 1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n' || line.back() == ' '))
    line.remove_suffix(1);
  *value = std::string(line);
  return true;
}

bool same_access(const ArmedDevice& left, const ArmedDevice& right) {
  return left.SerializeAsString() == right.SerializeAsString();
}

}  // namespace

struct device_io::multi {
  multi() : handle(curl_multi_init()) {
    curl_multi_setopt(handle, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    curl_multi_setopt(handle, CURLMOPT_MAXCONNECTS, static_cast<long>(devices_max));
    curl_multi_setopt(handle, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  }
  ~multi() { curl_multi_cleanup(handle); }
  multi(const multi&) = delete;
  multi& operator=(const multi&) = delete;
  CURLM* handle;
};

class device_io::connection {
 public:
  connection(ArmedDevice device, std::string stale_session, std::int64_t timeout_ms)
      : device_(device),
        walk_(std::move(device), std::move(stale_session)),
        easy_(curl_easy_init()),
        timeout_ms_(timeout_ms) {}
  ~connection() {
    curl_slist_free_all(headers_);
    curl_easy_cleanup(easy_);
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  const ArmedDevice& device() const { return device_; }
  const std::string& name() const { return device_.name(); }
  device_walk& walk() { return walk_; }
  CURL* easy() const { return easy_; }
  std::int64_t timeout_ms() const { return timeout_ms_; }

  // Sets the handle up for walk().next().
  void prepare() {
    const http_request request = walk_.next();
    response_ = {};
    error_[0] = '\0';
    pin_seen_.clear();
    set_transport_options();
    // A new pin must not ride on a connection that an old pin opened; the host's one place makes curl close
    // that one.
    curl_easy_setopt(easy_, CURLOPT_FRESH_CONNECT, std::exchange(first_, false) ? 1L : 0L);
    curl_slist_free_all(headers_);
    headers_ = curl_slist_append(nullptr, "Accept: application/json");
    headers_ = curl_slist_append(headers_, "Expect:");
    if (!request.token.empty())
      headers_ = curl_slist_append(headers_, ("X-Auth-Token: " + request.token).c_str());
    if (request.method == "POST") headers_ = curl_slist_append(headers_, "Content-Type: application/json");
    curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
    curl_easy_setopt(easy_, CURLOPT_URL, ("https://" + device_.address() + request.path).c_str());
    if (request.method == "POST") {
      curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE, static_cast<long>(request.body.size()));
      curl_easy_setopt(easy_, CURLOPT_COPYPOSTFIELDS, request.body.c_str());
    } else if (request.method == "DELETE") {
      curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, "DELETE");
    } else {
      curl_easy_setopt(easy_, CURLOPT_HTTPGET, 1L);
    }
  }

  http_response take_response() {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    response_.status = static_cast<int>(status);
    return std::move(response_);
  }

  bool wrong_pin() const { return !pin_seen_.empty() && pin_seen_ != device_.pin_sha256(); }
  std::string transport_error(int code) const {
    if (wrong_pin())
      return fmt::format("CERTIFICATE_CHANGED: expected {}, seen {}", device_.pin_sha256(), pin_seen_);
    return error_[0] != '\0' ? error_ : curl_easy_strerror(static_cast<CURLcode>(code));
  }

  bool busy = false;
  std::int64_t due_ms = 0;        // of the next request, when not busy
  std::int64_t started_ms = 0;    // of the request in flight
  std::int64_t poll_took_ms = 0;  // sum of the service times of the poll under way
  std::int64_t retry_ms = retry_first_ms;
  std::int64_t login_retry_ms = login_retry_first_ms;
  int failures = 0;  // in a row
  bool lost = true;  // the logic was told so

 private:
  void set_transport_options() {
    curl_easy_reset(easy_);  // the live connection stays in the multi handle
    curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
    curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_);
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
    curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_ms_));
    curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout_ms_));
    curl_easy_setopt(easy_, CURLOPT_MAXFILESIZE, static_cast<long>(body_max));
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &connection::on_body);
    curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &connection::on_header);
    curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
    // The pin alone decides: no certificate authority, no name, and no resumed session that would show no
    // certificate.
    curl_easy_setopt(easy_, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    curl_easy_setopt(easy_, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    curl_easy_setopt(easy_, CURLOPT_CAINFO, nullptr);
    curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(easy_, CURLOPT_SSL_CTX_FUNCTION, &connection::on_tls);
    curl_easy_setopt(easy_, CURLOPT_SSL_CTX_DATA, this);
  }

  static std::size_t on_body(const char* bytes, std::size_t size, std::size_t count, void* self) {
    std::string& body = static_cast<connection*>(self)->response_.body;
    if (body.size() + size * count > body_max) return 0;  // curl then ends the transfer as failed
    body.append(bytes, size * count);
    return size * count;
  }

  static std::size_t on_header(const char* bytes, std::size_t size, std::size_t count, void* self) {
    http_response& response = static_cast<connection*>(self)->response_;
    const std::string_view line(bytes, size * count);
    if (!take_header(line, "x-auth-token", &response.token))
      take_header(line, "location", &response.location);
    return size * count;
  }

  static CURLcode on_tls(CURL*, void* context, void* self) {
    SSL_CTX_set_cert_verify_callback(static_cast<SSL_CTX*>(context), &connection::on_certificate, self);
    return CURLE_OK;
  }

  static int on_certificate(X509_STORE_CTX* store, void* self) {
    auto* of = static_cast<connection*>(self);
    X509* leaf = X509_STORE_CTX_get0_cert(store);
    of->pin_seen_ = leaf == nullptr ? "none" : sha256_hex(leaf);
    const bool pinned = of->pin_seen_ == of->device_.pin_sha256();
    X509_STORE_CTX_set_error(store, pinned ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
    return pinned ? 1 : 0;
  }

  ArmedDevice device_;
  device_walk walk_;
  CURL* easy_;
  std::int64_t timeout_ms_;
  bool first_ = true;
  curl_slist* headers_ = nullptr;
  http_response response_;
  std::string pin_seen_;
  char error_[CURL_ERROR_SIZE] = {};
};

device_io::device_io(clock_ms clock, sink emit, std::function<std::int64_t(const std::string&)> interval)
    : clock_(std::move(clock)),
      emit_(std::move(emit)),
      interval_(std::move(interval)),
      multi_(std::make_unique<multi>()) {}

device_io::~device_io() {
  for (auto& [name, each] : connections_) {
    if (each->busy) curl_multi_remove_handle(multi_->handle, each->easy());
  }
}

void device_io::follow(const ArmingRecord* record) {
  std::map<std::string, std::unique_ptr<connection>> next;
  const limits set = record == nullptr ? limits{} : limits_of(*record);
  if (record != nullptr) {
    for (const ArmedDevice& device : record->devices()) {
      const auto old = connections_.find(device.name());
      if (old != connections_.end() && same_access(old->second->device(), device) &&
          old->second->timeout_ms() == set.request_timeout_ms) {
        next[device.name()] = std::move(old->second);
        connections_.erase(old);
        continue;
      }
      const auto session = sessions_.find(device.name());
      next[device.name()] = std::make_unique<connection>(
          device, session == sessions_.end() ? std::string() : session->second, set.request_timeout_ms);
    }
  }
  for (auto& [name, gone] : connections_) {
    if (gone->busy) curl_multi_remove_handle(multi_->handle, gone->easy());
  }
  connections_ = std::move(next);
}

bool device_io::sessions_changed() {
  return std::exchange(sessions_changed_, false);
}

void device_io::start_due(std::int64_t now_ms) {
  for (auto& [name, each] : connections_) {
    if (each->busy || each->due_ms > now_ms) continue;
    each->prepare();
    each->busy = true;
    each->started_ms = now_ms;
    curl_multi_add_handle(multi_->handle, each->easy());
  }
}

void device_io::turn() {
  start_due(clock_());
  int running = 0;
  curl_multi_perform(multi_->handle, &running);
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_->handle, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto code = static_cast<int>(message->data.result);
    CURL* easy = message->easy_handle;
    char* owner = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &owner);
    curl_multi_remove_handle(multi_->handle, easy);
    auto& of = *reinterpret_cast<connection*>(owner);
    of.busy = false;
    finished(of, code, clock_());
  }
}

void device_io::finished(connection& of, int curl_code, std::int64_t now_ms) {
  of.poll_took_ms += now_ms - of.started_ms;
  if (curl_code == CURLE_OK) return after_answer(of, of.walk().on(of.take_response()), now_ms);
  of.walk().on_transport_failure();
  of.poll_took_ms = 0;
  of.due_ms = now_ms + of.retry_ms;
  of.retry_ms = std::min(of.retry_ms * 2, retry_last_ms);
  ++of.failures;
  const std::string why = of.transport_error(curl_code);
  // One lost answer is bad luck and staleness judges it; another certificate, or three in a row, is a lost
  // device.
  if (of.wrong_pin() || of.failures >= 3 || !of.walk().logged_in()) return lose(of, why);
  emit_(poll_failed{of.name(), why});
}

void device_io::lose(connection& of, const std::string& why) {
  of.lost = true;
  emit_(device_lost{of.name(), why});
}

void device_io::after_answer(connection& of, device_walk::news news, std::int64_t now_ms) {
  of.due_ms = now_ms;
  switch (news) {
    case device_walk::news::none:
      return;
    case device_walk::news::logged_in:
      of.login_retry_ms = login_retry_first_ms;
      if (!of.walk().session_uri().empty()) {
        sessions_[of.name()] = of.walk().session_uri();
        sessions_changed_ = true;
      }
      of.poll_took_ms = 0;
      of.lost = false;
      return emit_(device_online{of.name()});
    case device_walk::news::poll_done: {
      of.failures = 0;
      of.retry_ms = retry_first_ms;
      const std::int64_t took = std::exchange(of.poll_took_ms, 0);
      if (std::exchange(of.lost, false)) emit_(device_online{of.name()});
      emit_(detectors_read{of.name(), of.walk().readings(), took});
      of.due_ms = now_ms + interval_(of.name());
      return;
    }
    case device_walk::news::session_lost:
      of.poll_took_ms = 0;
      return lose(of, of.walk().trouble());
    case device_walk::news::login_refused:
      of.due_ms = now_ms + of.login_retry_ms;
      of.login_retry_ms = std::min(of.login_retry_ms * 2, login_retry_last_ms);
      return lose(of, of.walk().trouble());
    case device_walk::news::failed:
      of.poll_took_ms = 0;
      of.due_ms = now_ms + of.retry_ms;
      of.retry_ms = std::min(of.retry_ms * 2, retry_last_ms);
      if (!of.walk().logged_in()) return lose(of, of.walk().trouble());
      return emit_(poll_failed{of.name(), of.walk().trouble()});
  }
}

void device_io::wait(std::vector<pollfd>* extra, std::int64_t limit_ms) {
  const std::int64_t now_ms = clock_();
  for (const auto& [name, each] : connections_) {
    if (!each->busy) limit_ms = std::min(limit_ms, each->due_ms - now_ms);
  }
  std::vector<curl_waitfd> fds;
  fds.reserve(extra->size());
  for (const pollfd& each : *extra) {
    // The bits of curl_waitfd are not those of poll().
    const int wanted = ((each.events & POLLIN) != 0 ? CURL_WAIT_POLLIN : 0) |
                       ((each.events & POLLOUT) != 0 ? CURL_WAIT_POLLOUT : 0);
    fds.push_back({each.fd, static_cast<short>(wanted), 0});
  }
  curl_multi_poll(multi_->handle, fds.data(), static_cast<unsigned int>(fds.size()),
                  static_cast<int>(std::max<std::int64_t>(0, limit_ms)), nullptr);
  for (std::size_t i = 0; i < fds.size(); ++i) (*extra)[i].revents = fds[i].revents;
}

}  // namespace busbar::interlock
