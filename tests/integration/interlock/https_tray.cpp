#include "tests/integration/interlock/https_tray.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace busbar::interlock::test {
namespace {

using ssl_context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

// Makes a key and a certificate; *pin becomes the hex SHA-256 of its DER form.
ssl_context make_context(std::string* pin) {
  ssl_context context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
  X509_set_pubkey(certificate, key);
  const auto* name = reinterpret_cast<const unsigned char*>("tray");
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, name, -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  X509_sign(certificate, key, EVP_sha256());
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  X509_digest(certificate, EVP_sha256(), digest, &size);
  for (unsigned int i = 0; i < size; ++i) *pin += fmt::format("{:02x}", digest[i]);
  SSL_CTX_use_certificate(context.get(), certificate);
  SSL_CTX_use_PrivateKey(context.get(), key);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return context;
}

// One request of a kept-alive connection; false at its end.
bool read_request(SSL* tls, http_request* request) {
  std::string head;
  char byte = 0;
  while (head.size() < 16384 && (head.size() < 4 || head.compare(head.size() - 4, 4, "\r\n\r\n") != 0)) {
    if (SSL_read(tls, &byte, 1) != 1) return false;
    head += byte;
  }
  request->method = head.substr(0, head.find(' '));
  const auto path = head.find(' ') + 1;
  request->path = head.substr(path, head.find(' ', path) - path);
  const auto field = [&head](const std::string& name) {
    const auto at = head.find(name + ": ");
    return at == std::string::npos
               ? std::string()
               : head.substr(at + name.size() + 2, head.find("\r\n", at) - at - name.size() - 2);
  };
  request->token = field("X-Auth-Token");
  const std::string length = field("Content-Length");
  for (std::size_t left = length.empty() ? 0 : std::stoul(length); left > 0; --left) {
    if (SSL_read(tls, &byte, 1) != 1) return false;
    request->body += byte;
  }
  return true;
}

}  // namespace

struct https_tray::impl {
  impl() : context(make_context(&pin)) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that a killed program has left
    listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener, 16) != 0 ||
        ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no loopback port");
    }
    port = ntohs(address.sin_port);
    acceptor = std::thread([this] { accept_all(); });
  }

  ~impl() {
    {
      const std::lock_guard guard(mutex);
      stopping = true;
      stalled = false;
      for (const int fd : open) ::shutdown(fd, SHUT_RDWR);
    }
    changed.notify_all();
    ::shutdown(listener, SHUT_RDWR);
    acceptor.join();
    for (std::thread& each : threads) each.join();
    ::close(listener);
  }

  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      const std::lock_guard guard(mutex);
      if (stopping) {
        ::close(fd);
        return;
      }
      open.insert(fd);
      threads.emplace_back([this, fd] { serve(fd); });
    }
  }

  void serve(int fd) {
    SSL* tls = SSL_new(context.get());
    SSL_set_fd(tls, fd);
    http_request request;
    if (SSL_accept(tls) == 1) {
      while (read_request(tls, &request)) {
        const std::string answer = answer_to(request);
        if (SSL_write(tls, answer.data(), static_cast<int>(answer.size())) <= 0) break;
        request = {};
      }
    }
    SSL_free(tls);
    const std::lock_guard guard(mutex);
    open.erase(fd);
    ::close(fd);
  }

  std::string answer_to(const http_request& request) {
    std::unique_lock guard(mutex);
    changed.wait(guard,
                 [this, &request] { return !stalled && (stopping || held.empty() || request.path != held); });
    const http_response response = bodies.serve(request);
    std::string text =
        fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
                    response.status, response.status == 204 ? 0 : response.body.size());
    if (!response.token.empty())
      text += "X-Auth-Token: " + response.token + "\r\nLocation: " + response.location + "\r\n";
    return text + "\r\n" + (response.status == 204 ? "" : response.body);
  }

  std::string pin;
  ssl_context context;
  int listener = -1;
  int port = 0;
  std::mutex mutex;  // guards all below
  std::condition_variable changed;
  tray bodies;
  bool stalled = false;
  std::string held;
  bool stopping = false;
  std::set<int> open;
  std::vector<std::thread> threads;
  std::thread acceptor;
};

https_tray::https_tray() : impl_(std::make_unique<impl>()) {}
https_tray::~https_tray() = default;

ArmedDevice https_tray::device(const std::string& name) const {
  ArmedDevice device = make_device(name);
  device.set_address(fmt::format("127.0.0.1:{}", impl_->port));
  device.set_pin_sha256(impl_->pin);
  return device;
}

void https_tray::make_wet(const std::string& detector) {
  const std::lock_guard guard(impl_->mutex);
  impl_->bodies.say(detector, "Critical", "Enabled", "Critical");
  impl_->bodies.volts(detector, 0.4);
}

void https_tray::make_dry(const std::string& detector) {
  const std::lock_guard guard(impl_->mutex);
  impl_->bodies.say(detector, "OK", "Enabled", "OK");
  impl_->bodies.volts(detector, 1.74);
}

void https_tray::stall(bool on) {
  {
    const std::lock_guard guard(impl_->mutex);
    impl_->stalled = on;
  }
  impl_->changed.notify_all();
}

void https_tray::hold(const std::string& path) {
  {
    const std::lock_guard guard(impl_->mutex);
    impl_->held = path;
  }
  impl_->changed.notify_all();
}

std::size_t https_tray::connections() const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->threads.size();
}

void https_tray::ignore_off(bool on) {
  const std::lock_guard guard(impl_->mutex);
  impl_->bodies.ignores_off = on;
}

std::vector<http_request> https_tray::asked() const {
  const std::lock_guard guard(impl_->mutex);
  return impl_->bodies.asked;
}

}  // namespace busbar::interlock::test
