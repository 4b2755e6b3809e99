#include "actors/devices/redfish/curl_transport.hpp"

#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace busbar::devices::redfish {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

void initialise_curl_once() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

std::string certificate_digest(SSL* ssl) {
  X509* const certificate = ssl == nullptr ? nullptr : SSL_get1_peer_certificate(ssl);
  if (certificate == nullptr) return {};
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const bool good = X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1;
  X509_free(certificate);
  std::string hex;
  for (unsigned int i = 0; good && i < size; ++i) {
    constexpr std::string_view digits = "0123456789abcdef";
    hex += digits[digest[i] >> 4];
    hex += digits[digest[i] & 15];
  }
  return hex;
}

}  // namespace

// One exchange. Owned by the loop; libcurl holds its address.
struct transfer {
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  curl_mime* mime = nullptr;
  http_request request;
  http_callback callback;
  http_reply reply;
  std::size_t largest_body = 0;
  bool tls = true;
  bool wrong_pin = false;
  bool too_large = false;
  char error[CURL_ERROR_SIZE] = {};

  transfer() = default;
  transfer(const transfer&) = delete;
  transfer& operator=(const transfer&) = delete;
  ~transfer() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    if (mime != nullptr) curl_mime_free(mime);
  }
};

namespace {

std::size_t take_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<transfer*>(user);
  if (exchange.reply.body.size() + size * count > exchange.largest_body) {
    exchange.too_large = true;
    return 0;
  }
  exchange.reply.body.append(data, size * count);
  return size * count;
}

std::size_t take_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<transfer*>(user);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/"))
    exchange.reply.headers.clear();  // the headers before were of an interim answer
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front())) != 0)
    value.remove_prefix(1);
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back())) != 0)
    value.remove_suffix(1);
  if (exchange.reply.headers.size() < 200) exchange.reply.headers.emplace_back(std::move(name), value);
  return size * count;
}

// After the handshake (or on taking a kept connection), before a byte of the request.
int check_pin(void* user, char*, char*, int, int) {
  auto& exchange = *static_cast<transfer*>(user);
  if (!exchange.tls) return CURL_PREREQFUNC_OK;
  curl_tlssessioninfo* session = nullptr;
  SSL* ssl = nullptr;
  if (curl_easy_getinfo(exchange.easy, CURLINFO_TLS_SSL_PTR, &session) == CURLE_OK && session != nullptr &&
      session->backend == CURLSSLBACKEND_OPENSSL) {
    ssl = static_cast<SSL*>(session->internals);
  }
  exchange.reply.certificate_sha256 = certificate_digest(ssl);
  const std::string& seen = exchange.reply.certificate_sha256;
  exchange.wrong_pin = seen.empty() || (!exchange.request.pin.empty() && seen != exchange.request.pin);
  return exchange.wrong_pin ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

void add_parts(transfer& exchange) {
  exchange.mime = curl_mime_init(exchange.easy);
  for (const http_part& wanted : exchange.request.parts) {
    curl_mimepart* const part = curl_mime_addpart(exchange.mime);
    curl_mime_name(part, wanted.name.c_str());
    if (!wanted.content_type.empty()) curl_mime_type(part, wanted.content_type.c_str());
    if (wanted.file_path.empty()) {
      curl_mime_data(part, wanted.data.data(), wanted.data.size());
    } else {
      curl_mime_filedata(part, wanted.file_path.c_str());
    }
  }
  curl_easy_setopt(exchange.easy, CURLOPT_MIMEPOST, exchange.mime);
}

void set_method(transfer& exchange) {
  CURL* const easy = exchange.easy;
  const http_request& request = exchange.request;
  switch (request.method) {
    case http_method::get:
      curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
      return;
    case http_method::del:
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "DELETE");
      return;
    case http_method::patch:
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "PATCH");
      break;
    case http_method::post:
      curl_easy_setopt(easy, CURLOPT_POST, 1L);
      break;
  }
  if (!request.parts.empty()) return add_parts(exchange);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
}

constexpr long flow_buffer = 64 * 1024;

void set_up(transfer& exchange, const std::string& address, const curl_options& options) {
  CURL* const easy = exchange.easy;
  const std::string url = (options.tls ? "https://" : "http://") + address + exchange.request.path;
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &exchange);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange.error);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, options.tls ? "https" : "http");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);  // the pin verifies, in check_pin
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  const bool flows = exchange.request.flow != nullptr;
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                   flows ? 0L : static_cast<long>(exchange.request.timeout.count()));
  if (flows) curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, flow_buffer);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(std::min(options.connect_timeout, exchange.request.timeout).count()));
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &take_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &check_pin);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, &exchange);
  for (const auto& [name, value] : exchange.request.headers) {
    exchange.headers = curl_slist_append(exchange.headers, (name + ": " + value).c_str());
  }
  exchange.headers = curl_slist_append(exchange.headers, "Expect:");  // BMCs are bad at 100-continue
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange.headers);
  set_method(exchange);
}

http_outcome outcome_of(transfer& exchange, CURLcode code) {
  http_outcome outcome;
  outcome.reply = std::move(exchange.reply);
  outcome.detail = exchange.error[0] != '\0' ? exchange.error : curl_easy_strerror(code);
  long status = 0;
  curl_easy_getinfo(exchange.easy, CURLINFO_RESPONSE_CODE, &status);
  outcome.reply.status = static_cast<int>(status);
  if (code == CURLE_OK) {
    outcome.error = transport_error::none;
  } else if (exchange.wrong_pin) {
    outcome.error = outcome.reply.certificate_sha256.empty() ? transport_error::unreachable
                                                             : transport_error::pin_mismatch;
    outcome.detail = "the certificate is not the pinned one";
  } else if (exchange.too_large) {
    outcome.error = transport_error::too_large;
    outcome.detail = "the limit is " + std::to_string(exchange.largest_body) + " bytes";
  } else if (code == CURLE_OPERATION_TIMEDOUT) {
    // A connection that was never made is an unreachable device; one that was made and is silent is a slow
    // one.
    curl_off_t connected_us = 0;
    curl_easy_getinfo(exchange.easy, CURLINFO_APPCONNECT_TIME_T, &connected_us);
    if (!exchange.tls) curl_easy_getinfo(exchange.easy, CURLINFO_CONNECT_TIME_T, &connected_us);
    outcome.error = connected_us > 0 ? transport_error::timeout : transport_error::unreachable;
  } else {
    outcome.error = transport_error::unreachable;
  }
  return outcome;
}

}  // namespace

// What the thread owns. Shared with the handle, so that a handle given up on the I/O thread itself leaves no
// dangling loop.
class curl_loop {
 public:
  explicit curl_loop(curl_options options) : options_(options) {
    initialise_curl_once();
    multi_ = curl_multi_init();
    curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, 3L);  // two requests and the event stream
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 256L);
  }
  ~curl_loop() { curl_multi_cleanup(multi_); }
  curl_loop(const curl_loop&) = delete;
  curl_loop& operator=(const curl_loop&) = delete;

  void post(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(work));
    }
    curl_multi_wakeup(multi_);
  }

  void after(milliseconds delay, std::function<void()> work) {
    timers_.emplace(steady_clock::now() + (stopping_ ? milliseconds(0) : delay), std::move(work));
  }

  void stop() {
    stopping_ = true;
    curl_multi_wakeup(multi_);
  }

  void begin(const std::string& address, http_request request, http_callback callback) {
    auto exchange = std::make_unique<transfer>();
    exchange->easy = curl_easy_init();
    exchange->request = std::move(request);
    exchange->callback = std::move(callback);
    exchange->largest_body = options_.largest_body;
    exchange->tls = options_.tls;
    if (exchange->easy == nullptr || stopping_) return refuse(*exchange);
    set_up(*exchange, address, options_);
    CURL* const easy = exchange->easy;
    if (exchange->request.flow != nullptr) {
      exchange->request.flow->stop = [this, easy] { finish(easy, CURLE_ABORTED_BY_CALLBACK); };
    }
    if (curl_multi_add_handle(multi_, easy) != CURLM_OK) return refuse(*exchange);
    if (exchange->request.flow != nullptr) flows_.push_back(easy);
    transfers_.emplace(easy, std::move(exchange));
  }

  void run() {
    // OpenSSL writes to sockets that the peer may have closed; with NOSIGNAL libcurl leaves SIGPIPE to us.
    sigset_t pipe_only;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, nullptr);
    while (true) {
      const bool worked = run_posted() | run_due();
      int running = 0;
      curl_multi_perform(multi_, &running);
      hand_over_flows();
      finish_transfers();
      if (stopping_) {
        abandon_transfers();
        if (!worked && idle()) return;
        continue;
      }
      curl_multi_poll(multi_, nullptr, 0, wait_ms(), nullptr);
    }
  }

 private:
  static void refuse(const transfer& exchange) {
    if (exchange.request.flow != nullptr) exchange.request.flow->stop = nullptr;
    http_outcome outcome;
    outcome.error = transport_error::unreachable;
    outcome.detail = "the I/O loop is stopping";
    exchange.callback(std::move(outcome));
  }

  bool run_posted() {
    std::vector<std::function<void()>> work;
    {
      const std::lock_guard lock(mutex_);
      work.swap(posted_);
    }
    for (const auto& one : work) one();
    return !work.empty();
  }

  bool run_due() {
    bool any = false;
    while (!timers_.empty() && (stopping_ || timers_.begin()->first <= steady_clock::now())) {
      const auto work = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      work();
      any = true;
    }
    return any;
  }

  int wait_ms() {
    {
      const std::lock_guard lock(mutex_);
      if (!posted_.empty()) return 0;
    }
    if (timers_.empty()) return 60'000;
    const auto left = std::chrono::ceil<milliseconds>(timers_.begin()->first - steady_clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 60'000));
  }

  bool idle() {
    const std::lock_guard lock(mutex_);
    return posted_.empty() && timers_.empty() && transfers_.empty();
  }

  void finish_transfers() {
    int left = 0;
    while (CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
      if (message->msg == CURLMSG_DONE) finish(message->easy_handle, message->data.result);
    }
  }

  // Outside of libcurl's own calls, so that whoever gets the bytes may send, stop and open as it likes.
  void hand_over_flows() {
    const std::vector<CURL*> flows = flows_;
    for (CURL* const easy : flows) {
      const auto found = transfers_.find(easy);
      if (found == transfers_.end() || found->second->reply.body.empty()) continue;
      transfer& exchange = *found->second;
      long status = 0;
      curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
      if (status != 200) continue;  // the body of an error is gathered
      const auto flow = exchange.request.flow;
      bytes_.swap(exchange.reply.body);
      exchange.reply.body.clear();
      const bool go_on = flow->on_bytes(bytes_);
      bytes_.clear();
      if (!go_on && transfers_.contains(easy)) finish(easy, CURLE_ABORTED_BY_CALLBACK);
    }
  }

  void abandon_transfers() {
    while (!transfers_.empty()) finish(transfers_.begin()->first, CURLE_ABORTED_BY_CALLBACK);
  }

  void finish(CURL* easy, CURLcode code) {
    const auto found = transfers_.find(easy);
    if (found == transfers_.end()) return;
    const auto exchange = std::move(found->second);
    transfers_.erase(found);
    curl_multi_remove_handle(multi_, easy);
    if (exchange->request.flow != nullptr) {
      exchange->request.flow->stop = nullptr;
      std::erase(flows_, easy);
    }
    exchange->callback(outcome_of(*exchange, code));
  }

  const curl_options options_;
  CURLM* multi_ = nullptr;
  std::map<CURL*, std::unique_ptr<transfer>> transfers_;                   // I/O thread
  std::vector<CURL*> flows_;                                               // I/O thread; among transfers_
  std::string bytes_;                                                      // being handed over
  std::multimap<steady_clock::time_point, std::function<void()>> timers_;  // I/O thread
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // under mutex_

 public:
  std::thread thread;
};

curl_transport::curl_transport(curl_options options) : loop_(std::make_shared<curl_loop>(options)) {
  loop_->thread = std::thread([loop = loop_] { loop->run(); });
}

curl_transport::~curl_transport() {
  loop_->stop();
  // The last driver may let go of the transport on the I/O thread itself; the thread then ends by itself.
  if (loop_->thread.get_id() == std::this_thread::get_id()) {
    loop_->thread.detach();
  } else {
    loop_->thread.join();
  }
}

void curl_transport::send(const std::string& address, http_request request, http_callback callback) {
  if (std::this_thread::get_id() == loop_->thread.get_id()) {
    return loop_->begin(address, std::move(request), std::move(callback));
  }
  auto shared = std::make_shared<http_request>(std::move(request));
  loop_->post([loop = loop_.get(), address, shared, callback] {
    loop->begin(address, std::move(*shared), callback);
  });
}

void curl_transport::post(std::function<void()> work) {
  loop_->post(std::move(work));
}

void curl_transport::after(milliseconds delay, std::function<void()> work) {
  loop_->after(delay, std::move(work));
}

}  // namespace busbar::devices::redfish
