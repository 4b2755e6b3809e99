#include "daemon/interlock/curl_lane.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <utility>

#include "daemon/interlock/record_rules.hpp"

namespace busbar::interlock {
namespace {

constexpr std::size_t header_max = 2048;
constexpr int ready_max = 64;  // sockets taken a turn; the rest are taken by the next

std::int64_t steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

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

}  // namespace

struct lane::impl {
  impl(ArmedDevice device, std::int64_t timeout_ms)
      : device_(std::move(device)), easy_(curl_easy_init()), timeout_ms_(timeout_ms) {}
  ~impl() {
    curl_slist_free_all(headers_);
    curl_easy_cleanup(easy_);
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  void prepare(const http_request& request, lane* self) {
    response_ = {};
    error_[0] = '\0';
    pin_seen_.clear();
    set_transport_options();
    curl_easy_setopt(easy_, CURLOPT_PRIVATE, self);
    // A new pin must not ride on a connection that an old pin opened; the host's one place in the pool makes
    // curl close that one.
    curl_easy_setopt(easy_, CURLOPT_FRESH_CONNECT, std::exchange(first_, false) ? 1L : 0L);
    curl_slist_free_all(headers_);
    headers_ = curl_slist_append(nullptr, sink ? "Accept: text/event-stream" : "Accept: application/json");
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

  bool wrong_pin() const { return !pin_seen_.empty() && pin_seen_ != device_.pin_sha256(); }

  void set_transport_options() {
    curl_easy_reset(easy_);  // the live connection stays in the multi handle
    curl_easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_);
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "https");
    curl_easy_setopt(easy_, CURLOPT_PROXY, "");
    curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy_, CURLOPT_TCP_NODELAY, 1L);
    // An event stream has no end; whether it lives is judged by its heartbeats.
    curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, sink ? 0L : static_cast<long>(timeout_ms_));
    curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(timeout_ms_));
    if (!sink) curl_easy_setopt(easy_, CURLOPT_MAXFILESIZE, static_cast<long>(body_max));
    curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &impl::on_body);
    curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &impl::on_header);
    curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
    // The pin alone decides: no certificate authority, no name, and no resumed session that would show no
    // certificate.
    curl_easy_setopt(easy_, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    curl_easy_setopt(easy_, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    curl_easy_setopt(easy_, CURLOPT_CAINFO, nullptr);
    curl_easy_setopt(easy_, CURLOPT_CAPATH, nullptr);
    curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(easy_, CURLOPT_SSL_CTX_FUNCTION, &impl::on_tls);
    curl_easy_setopt(easy_, CURLOPT_SSL_CTX_DATA, this);
  }

  static std::size_t on_body(const char* bytes, std::size_t size, std::size_t count, void* self) {
    auto* of = static_cast<impl*>(self);
    if (of->sink) {
      long status = 0;
      curl_easy_getinfo(of->easy_, CURLINFO_RESPONSE_CODE, &status);
      if (status == 200) of->sink({bytes, size * count});  // an error's body is no event
      return size * count;
    }
    std::string& body = of->response_.body;
    if (body.size() + size * count > body_max) return 0;  // curl then ends the transfer as failed
    body.append(bytes, size * count);
    return size * count;
  }

  static std::size_t on_header(const char* bytes, std::size_t size, std::size_t count, void* self) {
    http_response& response = static_cast<impl*>(self)->response_;
    const std::string_view line(bytes, size * count);
    if (!take_header(line, "x-auth-token", &response.token))
      take_header(line, "location", &response.location);
    return size * count;
  }

  static CURLcode on_tls(CURL*, void* context, void* self) {
    SSL_CTX_set_cert_verify_callback(static_cast<SSL_CTX*>(context), &impl::on_certificate, self);
    return CURLE_OK;
  }

  static int on_certificate(X509_STORE_CTX* store, void* self) {
    auto* of = static_cast<impl*>(self);
    X509* leaf = X509_STORE_CTX_get0_cert(store);
    of->pin_seen_ = leaf == nullptr ? "none" : sha256_hex(leaf);
    const bool pinned = of->pin_seen_ == of->device_.pin_sha256();
    X509_STORE_CTX_set_error(store, pinned ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
    return pinned ? 1 : 0;
  }

  ArmedDevice device_;
  CURL* easy_;
  std::int64_t timeout_ms_;
  std::function<void(std::string_view)> sink;
  bool first_ = true;
  curl_slist* headers_ = nullptr;
  http_response response_;
  std::string pin_seen_;
  char error_[CURL_ERROR_SIZE] = {};
};

lane::lane(const ArmedDevice& device, std::int64_t timeout_ms, void* owner)
    : owner_(owner), impl_(std::make_unique<impl>(device, timeout_ms)) {}
lane::~lane() = default;

void lane::on_chunk(std::function<void(std::string_view)> sink) {
  impl_->sink = std::move(sink);
}

http_response lane::take_response() {
  long status = 0;
  curl_easy_getinfo(impl_->easy_, CURLINFO_RESPONSE_CODE, &status);
  impl_->response_.status = static_cast<int>(status);
  return std::move(impl_->response_);
}

bool lane::wrong_pin() const {
  return impl_->wrong_pin();
}

std::string lane::transport_error(int code) const {
  if (wrong_pin()) {
    return fmt::format("CERTIFICATE_CHANGED: expected {}, seen {}", impl_->device_.pin_sha256(),
                       impl_->pin_seen_);
  }
  return impl_->error_[0] != '\0' ? impl_->error_ : curl_easy_strerror(static_cast<CURLcode>(code));
}

// Only sockets on which something happened, and timers that are due, are looked at: a turn costs what has
// come, not how many devices there are.
struct lane_pool::impl {
  impl() : handle(curl_multi_init()), ready(::epoll_create1(EPOLL_CLOEXEC)) {
    curl_multi_setopt(handle, CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    curl_multi_setopt(handle, CURLMOPT_MAXCONNECTS, static_cast<long>(devices_max));
    curl_multi_setopt(handle, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
    curl_multi_setopt(handle, CURLMOPT_SOCKETFUNCTION, &impl::on_socket);
    curl_multi_setopt(handle, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(handle, CURLMOPT_TIMERFUNCTION, &impl::on_timer);
    curl_multi_setopt(handle, CURLMOPT_TIMERDATA, this);
  }
  ~impl() {
    curl_multi_cleanup(handle);
    ::close(ready);
  }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  static int on_socket(CURL*, curl_socket_t fd, int what, void* self, void*) {
    const int set = static_cast<impl*>(self)->ready;
    epoll_event wanted{};
    wanted.data.fd = fd;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) wanted.events |= EPOLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) wanted.events |= EPOLLOUT;
    if (what == CURL_POLL_REMOVE)
      ::epoll_ctl(set, EPOLL_CTL_DEL, fd, &wanted);  // closed already: gone by itself
    else if (::epoll_ctl(set, EPOLL_CTL_MOD, fd, &wanted) != 0)
      ::epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted);
    return 0;
  }

  static int on_timer(CURLM*, long wait_ms, void* self) {
    static_cast<impl*>(self)->timer_ms = wait_ms < 0 ? INT64_MAX : steady_ms() + wait_ms;
    return 0;
  }

  void run_timer() {
    if (timer_ms > steady_ms()) return;
    timer_ms = INT64_MAX;
    int running = 0;
    curl_multi_socket_action(handle, CURL_SOCKET_TIMEOUT, 0, &running);
  }

  void run_ready() {
    std::array<epoll_event, ready_max> events{};
    const int count = ::epoll_wait(ready, events.data(), ready_max, 0);
    for (int i = 0; i < count; ++i) {
      const epoll_event& each = events[static_cast<std::size_t>(i)];
      const int what = ((each.events & (EPOLLIN | EPOLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
                       ((each.events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                       ((each.events & EPOLLERR) != 0 ? CURL_CSELECT_ERR : 0);
      int running = 0;
      curl_multi_socket_action(handle, each.data.fd, what, &running);
    }
  }

  CURLM* handle;
  int ready;                          // epoll set of the sockets that curl watches
  std::int64_t timer_ms = INT64_MAX;  // of steady_ms()
};

lane_pool::lane_pool() : impl_(std::make_unique<impl>()) {}
lane_pool::~lane_pool() = default;

void lane_pool::start(lane& on, const http_request& request) {
  on.impl_->prepare(request, &on);
  on.busy_ = true;
  curl_multi_add_handle(impl_->handle, on.impl_->easy_);
}

void lane_pool::abandon(lane& on) {
  if (!std::exchange(on.busy_, false)) return;
  curl_multi_remove_handle(impl_->handle, on.impl_->easy_);
}

void lane_pool::push() {
  impl_->run_timer();
}

void lane_pool::turn(const std::function<void(lane& of, int code)>& finished) {
  push();
  impl_->run_ready();
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(impl_->handle, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto code = static_cast<int>(message->data.result);
    CURL* easy = message->easy_handle;
    char* owner = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &owner);
    curl_multi_remove_handle(impl_->handle, easy);
    auto& of = *reinterpret_cast<lane*>(owner);
    of.busy_ = false;
    finished(of, code);
  }
}

void lane_pool::wait(std::vector<pollfd>* extra, std::int64_t limit_ms,
                     const std::vector<const lane_pool*>& pools) {
  const std::int64_t now_ms = steady_ms();
  const std::size_t own = extra->size();
  for (const lane_pool* each : pools) {
    extra->push_back({each->impl_->ready, POLLIN, 0});
    limit_ms = std::min(limit_ms, each->impl_->timer_ms - now_ms);
  }
  // A due time of another clock may lie far ahead: an hour is for ever here.
  ::poll(extra->data(), extra->size(), static_cast<int>(std::clamp<std::int64_t>(limit_ms, 0, 3'600'000)));
  extra->resize(own);
}

}  // namespace busbar::interlock
