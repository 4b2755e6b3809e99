// A small HTTPS server for tests: a self-signed certificate of its own, one thread a connection, answers from
// a function.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_st SSL;

namespace busbar::test {

struct served_request {
  std::string method;
  std::string path;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

class tls_server {
 public:
  // Returns status line, headers and body as they go on the wire; an empty text: say nothing and keep the
  // connection open.
  using handler = std::function<std::string(const served_request&)>;
  explicit tls_server(handler answer, int port = 0);
  ~tls_server();
  tls_server(const tls_server&) = delete;
  tls_server& operator=(const tls_server&) = delete;

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  const std::string& certificate_sha256() const { return certificate_; }
  int connections() const { return connections_; }
  std::size_t bytes_read() const { return bytes_; }

  static std::string ok(const std::string& body, const std::string& headers = "");

 private:
  void accept_loop();
  void serve(int descriptor);
  bool read_request(SSL* ssl, std::string& buffer, served_request& request);

  handler answer_;
  SSL_CTX* context_ = nullptr;
  std::string certificate_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  std::atomic<std::size_t> bytes_ = 0;  // of requests, decrypted
  std::mutex mutex_;
  std::vector<int> open_;             // under mutex_
  std::vector<std::thread> threads_;  // under mutex_
  std::thread acceptor_;
};

}  // namespace busbar::test
