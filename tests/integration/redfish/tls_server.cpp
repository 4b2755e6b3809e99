#include "tests/integration/redfish/tls_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace busbar::test {
namespace {

struct identity {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
};

identity make_identity() {
  identity made;
  made.key = EVP_EC_gen("P-256");
  made.certificate = X509_new();
  X509_set_version(made.certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.certificate), 86400);
  X509_set_pubkey(made.certificate, made.key);
  X509_NAME* const name = X509_get_subject_name(made.certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("bmc"), -1, -1,
                             0);
  X509_set_issuer_name(made.certificate, name);
  X509_sign(made.certificate, made.key, EVP_sha256());
  return made;
}

std::string hex_digest(X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  X509_digest(certificate, EVP_sha256(), digest, &size);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

}  // namespace

std::string tls_server::ok(const std::string& body, const std::string& headers) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + headers + "\r\n" +
         body;
}

tls_server::tls_server(handler answer, int port) : answer_(std::move(answer)) {
  const identity made = make_identity();
  certificate_ = hex_digest(made.certificate);
  context_ = SSL_CTX_new(TLS_server_method());
  SSL_CTX_use_certificate(context_, made.certificate);
  SSL_CTX_use_PrivateKey(context_, made.key);
  X509_free(made.certificate);
  EVP_PKEY_free(made.key);

  listener_ = socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  bind(listener_, reinterpret_cast<const sockaddr*>(&where), sizeof where);
  listen(listener_, 16);
  socklen_t size = sizeof where;
  getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &size);
  port_ = ntohs(where.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

tls_server::~tls_server() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  close(listener_);
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    for (const int descriptor : open_) shutdown(descriptor, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
  SSL_CTX_free(context_);
}

void tls_server::accept_loop() {
  while (!stopping_) {
    const int descriptor = accept(listener_, nullptr, nullptr);
    if (descriptor < 0) return;
    ++connections_;
    const std::lock_guard lock(mutex_);
    open_.push_back(descriptor);
    threads_.emplace_back([this, descriptor] { serve(descriptor); });
  }
}

void tls_server::serve(int descriptor) {
  sigset_t pipe_only;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_only, nullptr);
  SSL* const ssl = SSL_new(context_);
  SSL_set_fd(ssl, descriptor);
  std::string buffer;
  bool silent = false;
  if (SSL_accept(ssl) == 1) {
    served_request request;
    while (read_request(ssl, buffer, request)) {
      const std::string answer = silent ? "" : answer_(request);
      silent = answer.empty();
      if (!silent && SSL_write(ssl, answer.data(), static_cast<int>(answer.size())) <= 0) break;
      request = {};
    }
  }
  SSL_free(ssl);
  const std::lock_guard lock(mutex_);
  open_.erase(std::find(open_.begin(), open_.end(), descriptor));
  close(descriptor);
}

bool tls_server::read_request(SSL* ssl, std::string& buffer, served_request& request) {
  std::size_t head_end = std::string::npos;
  std::size_t body_size = 0;
  while (true) {
    head_end = buffer.find("\r\n\r\n");
    if (head_end != std::string::npos) {
      std::istringstream head(buffer.substr(0, head_end));
      head >> request.method >> request.path;
      std::string line;
      std::getline(head, line);
      while (std::getline(head, line)) {
        const auto colon = line.find(':');
        if (colon == std::string::npos) continue;
        std::string name = line.substr(0, colon);
        std::transform(name.begin(), name.end(), name.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        std::string value = line.substr(colon + 1);
        value.erase(0, value.find_first_not_of(' '));
        while (!value.empty() && value.back() == '\r') value.pop_back();
        request.headers[name] = value;
      }
      const auto length = request.headers.find("content-length");
      body_size = length == request.headers.end() ? 0 : std::stoul(length->second);
      if (buffer.size() >= head_end + 4 + body_size) break;
    }
    char chunk[4096];
    const int got = SSL_read(ssl, chunk, sizeof chunk);
    if (got <= 0) return false;
    bytes_ += static_cast<std::size_t>(got);
    buffer.append(chunk, static_cast<std::size_t>(got));
  }
  request.body = buffer.substr(head_end + 4, body_size);
  buffer.erase(0, head_end + 4 + body_size);
  return true;
}

}  // namespace busbar::test
