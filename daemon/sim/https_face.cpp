#include "daemon/sim/https_face.hpp"

#include <pthread.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace busbar::sim {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;
using tls_context = std::shared_ptr<asio::ssl::context>;

constexpr std::uint64_t largest_body = 256ULL << 20;
constexpr auto handshake_limit = std::chrono::seconds(10);
constexpr auto idle_limit = std::chrono::minutes(10);
constexpr std::size_t most_event_streams = 10;
constexpr auto heartbeat_interval = std::chrono::seconds(1);
constexpr int receive_priority = 5;

tls_context make_context(const key_pair& certificate) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  context->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  context->use_certificate_chain(asio::buffer(certificate.pem));
  context->use_private_key(asio::buffer(certificate.pem), asio::ssl::context::pem);
  return context;
}

// Requests of one device; touched on the model loop only.
struct device_line {
  struct waiting {
    http_request request;
    std::function<void(http_reply)> answer;
  };
  std::string address;
  std::deque<waiting> queue;
  bool busy = false;
};

http_request to_request(http::request<http::string_body>& parsed, const std::string& peer, instant received) {
  http_request request;
  request.method = std::string(parsed.method_string());
  request.target = std::string(parsed.target());
  for (const auto& field : parsed) {
    std::string name(field.name_string());
    for (char& letter : name) {
      letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
    }
    request.headers[name] = std::string(field.value());
  }
  request.body = std::move(parsed.body());
  request.peer = peer;
  request.received = received;
  return request;
}

}  // namespace

class https_face::impl {
 public:
  impl(model_loop& loop, face_backend backend) : loop_(loop), backend_(std::move(backend)) {}

  absl::Status listen(const std::string& address, std::uint16_t port, const key_pair& certificate);
  std::uint16_t port_of(const std::string& address) const;
  void start();
  void stop();
  void replace_certificate(const std::string& address, const key_pair& certificate);
  void send_event(const std::string& address, const std::string& event, bool of_reports = false);

 private:
  class connection;
  struct listener {
    explicit listener(asio::io_context& io) : acceptor(io) {}
    tcp::acceptor acceptor;
    tls_context context;
    std::shared_ptr<device_line> line = std::make_shared<device_line>();
    std::vector<std::weak_ptr<connection>> streams;
    bool reports_under_way = false;  // receive thread: asked of the model, not sent yet
  };

  void beat();
  void send_reports(const std::string& address);
  void accept(listener& on);
  void admit(listener& on, tcp::socket socket);
  // Model loop: the device takes the next request when it is free.
  void enqueue(const std::shared_ptr<device_line>& line, device_line::waiting request);
  void serve_next(const std::shared_ptr<device_line>& line);

  model_loop& loop_;
  face_backend backend_;
  asio::io_context io_{1};
  std::map<std::string, std::unique_ptr<listener>> listeners_;
  asio::steady_timer heartbeat_{io_};
  std::thread thread_;
};

// One client connection; lives on the receive thread, kept alive by its own operations and by the request in
// the device.
class https_face::impl::connection : public std::enable_shared_from_this<connection> {
 public:
  connection(impl& owner, listener& on, tcp::socket socket)
      : owner_(owner), on_(on), context_(on.context), stream_(std::move(socket), *context_) {
    error_code ignored;
    const auto remote = beast::get_lowest_layer(stream_).socket().remote_endpoint(ignored);
    peer_ = remote.address().to_string() + ":" + std::to_string(remote.port());
  }

  void start() {
    beast::get_lowest_layer(stream_).expires_after(handshake_limit);
    stream_.async_handshake(asio::ssl::stream_base::server, [self = shared_from_this()](error_code failed) {
      if (!failed) {
        self->read();
      }
    });
  }

  void send_event(const std::string& event) {
    push("id: " + std::to_string(++last_event_) + "\ndata: " + event + "\n\n");
  }
  bool carries_reports() const { return reports_; }
  // A line that says nothing but that the stream lives.
  void send_heartbeat() { push(": alive\n\n"); }

 private:
  void push(std::string text) {
    const bool idle = events_.empty() && header_written_;
    events_.push_back(std::move(text));
    if (idle) {
      write_event();
    }
  }

  void read() {
    parser_.emplace();
    parser_->body_limit(largest_body);
    beast::get_lowest_layer(stream_).expires_after(idle_limit);
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](error_code failed, std::size_t) {
      if (failed) {
        self->close();
        return;
      }
      self->dispatch(monotonic_now());
    });
  }

  void dispatch(instant received) {
    auto parsed = parser_->release();
    keep_alive_ = parsed.keep_alive();
    version_ = parsed.version();
    is_head_ = parsed.method() == http::verb::head;
    device_line::waiting waiting{
        to_request(parsed, peer_, received), [self = shared_from_this()](http_reply reply) {
          asio::post(self->stream_.get_executor(),
                     [self, reply = std::move(reply)]() mutable { self->answer(std::move(reply)); });
        }};
    owner_.loop_.post([owner = &owner_, line = on_.line, waiting = std::move(waiting)]() mutable {
      owner->enqueue(line, std::move(waiting));
    });
  }

  void answer(http_reply reply) {
    if (reply.status == 0) {  // the BMC went away under the request
      close();
      return;
    }
    reports_ = reply.reports;
    if (reply.event_stream && !enter_streams()) {
      reply = http_reply{};
      reply.status = 503;
    }
    response_.emplace(static_cast<http::status>(reply.status), version_);
    for (const auto& [name, value] : reply.headers) {
      response_->set(name, value);
    }
    if (streaming_) {
      response_->keep_alive(false);
      serializer_.emplace(*response_);
      http::async_write_header(stream_, *serializer_,
                               [self = shared_from_this()](error_code failed, std::size_t) {
                                 if (!failed) {
                                   beast::get_lowest_layer(self->stream_).expires_never();
                                   self->header_written_ = true;
                                   if (!self->events_.empty()) {
                                     self->write_event();
                                   }
                                 }
                               });
      return;
    }
    response_->keep_alive(keep_alive_);
    response_->body() = is_head_ ? std::string() : std::move(reply.body);
    response_->prepare_payload();
    // Stamped as the write begins: whoever measures from here never measures too little.
    if (reply.number != 0 && owner_.backend_.written) {
      owner_.backend_.written(reply.number, monotonic_now());
    }
    http::async_write(stream_, *response_, [self = shared_from_this()](error_code failed, std::size_t) {
      if (failed || !self->keep_alive_) {
        self->close();
        return;
      }
      self->read();
    });
  }

  bool enter_streams() {
    std::erase_if(on_.streams, [](const std::weak_ptr<connection>& each) { return each.expired(); });
    if (on_.streams.size() >= most_event_streams) {
      return false;
    }
    on_.streams.push_back(weak_from_this());
    streaming_ = true;
    kept_ = shared_from_this();
    watch_for_close();
    return true;
  }

  // A client of an event stream sends nothing more; whatever is read is its end.
  void watch_for_close() {
    stream_.async_read_some(asio::buffer(&scrap_, 1), [self = shared_from_this()](error_code, std::size_t) {
      self->kept_.reset();
      self->close();
    });
  }

  void write_event() {
    if (owner_.backend_.event_written && !reports_ && events_.front().starts_with("id:")) {
      owner_.backend_.event_written(on_.line->address, events_.front(), monotonic_now());
    }
    asio::async_write(stream_, asio::buffer(events_.front()),
                      [self = shared_from_this()](error_code failed, std::size_t) {
                        self->events_.pop_front();
                        if (failed) {
                          self->kept_.reset();
                          self->close();
                        } else if (!self->events_.empty()) {
                          self->write_event();
                        }
                      });
  }

  void close() {
    error_code ignored;
    beast::get_lowest_layer(stream_).socket().shutdown(tcp::socket::shutdown_both, ignored);
    beast::get_lowest_layer(stream_).socket().close(ignored);
  }

  impl& owner_;
  listener& on_;
  tls_context context_;
  beast::ssl_stream<beast::tcp_stream> stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::string peer_;
  std::deque<std::string> events_;
  std::uint64_t last_event_ = 0;
  bool header_written_ = false;  // of an event stream; nothing is sent before it
  std::shared_ptr<connection> kept_;  // of an event stream: itself, until the client leaves
  unsigned version_ = 11;
  bool keep_alive_ = true;
  bool is_head_ = false;
  bool streaming_ = false;
  bool reports_ = false;  // the stream carries metric reports and nothing else
  char scrap_ = 0;
};

absl::Status https_face::impl::listen(const std::string& address, std::uint16_t port,
                                      const key_pair& certificate) {
  auto made = std::make_unique<listener>(io_);
  error_code failed;
  const auto ip = asio::ip::make_address(address, failed);
  if (failed) {
    return absl::InvalidArgumentError(address + " is no address");
  }
  made->acceptor.open(ip.is_v6() ? tcp::v6() : tcp::v4(), failed);
  made->acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
  made->acceptor.bind(tcp::endpoint(ip, port), failed);
  if (!failed) {
    made->acceptor.listen(asio::socket_base::max_listen_connections, failed);
  }
  if (failed) {
    return absl::UnavailableError("cannot listen on " + address + ":" + std::to_string(port) + ": " +
                                  failed.message());
  }
  made->context = make_context(certificate);
  made->line->address = address;
  listeners_[address] = std::move(made);
  return absl::OkStatus();
}

std::uint16_t https_face::impl::port_of(const std::string& address) const {
  const auto found = listeners_.find(address);
  return found == listeners_.end() ? std::uint16_t{0} : found->second->acceptor.local_endpoint().port();
}

void https_face::impl::start() {
  for (const auto& [address, each] : listeners_) {
    accept(*each);
  }
  beat();
  thread_ = std::thread([this] {
    sched_param priority{};
    priority.sched_priority = receive_priority;
    pthread_setschedparam(pthread_self(), SCHED_FIFO,
                          &priority);  // without the right to it: ordinary priority
    io_.run();
  });
}

void https_face::impl::beat() {
  heartbeat_.expires_after(heartbeat_interval);
  heartbeat_.async_wait([this](error_code failed) {
    if (failed) {
      return;
    }
    for (const auto& [address, each] : listeners_) {
      bool wants_reports = false;
      for (const auto& weak : each->streams) {
        if (const auto stream = weak.lock()) {
          stream->send_heartbeat();
          wants_reports = wants_reports || stream->carries_reports();
        }
      }
      if (wants_reports) {
        send_reports(address);
      }
    }
    beat();
  });
}

void https_face::impl::send_reports(const std::string& address) {
  const auto found = listeners_.find(address);
  // A model that is behind gets no more to do: a second without reports is better than a minute's backlog.
  if (!backend_.reports || found == listeners_.end() || std::exchange(found->second->reports_under_way, true)) {
    return;
  }
  loop_.post([this, address, on = found->second.get()] {
    for (const std::string& report : backend_.reports(address)) {
      send_event(address, report, true);
    }
    asio::post(io_, [on] { on->reports_under_way = false; });
  });
}

void https_face::impl::stop() {
  io_.stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void https_face::impl::accept(listener& on) {
  on.acceptor.async_accept([this, &on](error_code failed, tcp::socket socket) {
    if (failed == asio::error::operation_aborted) {
      return;
    }
    if (!failed) {
      admit(on, std::move(socket));
    }
    accept(on);
  });
}

// A BMC that is down answers with a reset, not with a handshake.
void https_face::impl::admit(listener& on, tcp::socket socket) {
  auto held = std::make_shared<tcp::socket>(std::move(socket));
  loop_.post([this, &on, held] {
    const bool up = backend_.reachable(on.line->address);
    asio::post(io_, [this, &on, held, up] {
      error_code ignored;
      if (up) {
        held->set_option(tcp::no_delay(true), ignored);
        std::make_shared<connection>(*this, on, std::move(*held))->start();
      } else {
        held->set_option(asio::socket_base::linger(true, 0), ignored);
        held->close(ignored);
      }
    });
  });
}

void https_face::impl::enqueue(const std::shared_ptr<device_line>& line, device_line::waiting request) {
  line->queue.push_back(std::move(request));
  if (!line->busy) {
    serve_next(line);
  }
}

void https_face::impl::serve_next(const std::shared_ptr<device_line>& line) {
  if (line->queue.empty()) {
    line->busy = false;
    return;
  }
  line->busy = true;
  auto finish = [this, line] {
    device_line::waiting next = std::move(line->queue.front());
    line->queue.pop_front();
    next.answer(backend_.handle(line->address, next.request));
    serve_next(line);
  };
  const instant takes = backend_.service_time(line->address);
  loop_.at(takes.count() == 0 ? instant{0} : monotonic_now() + takes, std::move(finish));
}

void https_face::impl::replace_certificate(const std::string& address, const key_pair& certificate) {
  asio::post(io_, [this, address, context = make_context(certificate)] {
    if (const auto found = listeners_.find(address); found != listeners_.end()) {
      found->second->context = context;
    }
  });
}

void https_face::impl::send_event(const std::string& address, const std::string& event, bool of_reports) {
  asio::post(io_, [this, address, event, of_reports] {
    const auto found = listeners_.find(address);
    if (found == listeners_.end()) {
      return;
    }
    for (const auto& each : found->second->streams) {
      if (const auto stream = each.lock(); stream && stream->carries_reports() == of_reports) {
        stream->send_event(event);
      }
    }
  });
}

https_face::https_face(model_loop& loop, face_backend backend)
    : impl_(std::make_unique<impl>(loop, std::move(backend))) {}
https_face::~https_face() {
  impl_->stop();
}
absl::Status https_face::listen(const std::string& address, std::uint16_t port, const key_pair& certificate) {
  return impl_->listen(address, port, certificate);
}
std::uint16_t https_face::port_of(const std::string& address) const {
  return impl_->port_of(address);
}
void https_face::start() {
  impl_->start();
}
void https_face::stop() {
  impl_->stop();
}
void https_face::replace_certificate(const std::string& address, const key_pair& certificate) {
  impl_->replace_certificate(address, certificate);
}
void https_face::send_event(const std::string& address, const std::string& event) {
  impl_->send_event(address, event);
}

}  // namespace busbar::sim
