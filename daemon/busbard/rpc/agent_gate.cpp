#include "daemon/busbard/rpc/agent_gate.hpp"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

#include "busbar/agent/agent.grpc.pb.h"
#include "daemon/agent/event_loop.hpp"
#include "daemon/agent/token.hpp"
#include "daemon/agent/x509.hpp"
#include "daemon/busbard/rpc/agent_token_book.hpp"
#include "daemon/busbard/rpc/agent_work_stream.hpp"

namespace busbar::rpc {
namespace {

using validation::agent_event;

constexpr int max_message_bytes = 256 * 1024;
constexpr int max_enrols_waiting = 256;

book_time now() {
  return {std::chrono::steady_clock::now(), std::chrono::duration_cast<std::chrono::seconds>(
                                                std::chrono::system_clock::now().time_since_epoch())
                                                .count()};
}

std::string peer_property(const grpc::CallbackServerContext& context, const char* name) {
  const auto identity = context.auth_context();
  if (!identity || !identity->IsPeerAuthenticated()) return {};
  const auto values = identity->FindPropertyValues(name);
  return values.size() == 1 ? std::string(values[0].data(), values[0].size()) : std::string();
}

grpc::Status to_grpc(const absl::Status& status) {
  return {static_cast<grpc::StatusCode>(status.raw_code()),
          std::string(status.message().data(), status.message().size())};
}

// Renamed into place so that a killed daemon leaves the old or the new text. Not synced on purpose: only a
// power loss can take it back, and that takes the booting hosts with it.
bool replace_file(const std::filesystem::path& path, const std::string& text) {
  const std::string fresh = path.string() + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return written && ::rename(fresh.c_str(), path.c_str()) == 0;
}

}  // namespace

class agent_gate::impl final : public agent::AgentGate::CallbackService, public agent_stream_host {
 public:
  impl(agent_gate_options options, agent_ca ca, validation::agent_sink sink)
      : options_(std::move(options)),
        ca_(std::move(ca)),
        sink_(std::move(sink)),
        book_(options_.token_life) {}
  ~impl() override { stop(std::chrono::seconds(2)); }

  absl::Status open();
  void stop(std::chrono::milliseconds grace);
  int port() const { return port_; }

  std::string issue_token(const std::string& member, const std::string& expected_serial);
  void revoke(const std::string& member);
  bool send(const std::string& member, agent::DaemonMessage message);
  bool connected(const std::string& member) const;

  grpc::ServerUnaryReactor* Enrol(grpc::CallbackServerContext* context, const agent::EnrolRequest* request,
                                  agent::EnrolResponse* response) override;
  grpc::ServerBidiReactor<agent::AgentMessage, agent::DaemonMessage>* Work(
      grpc::CallbackServerContext* context) override;

  grpc::Status admit(const std::shared_ptr<agent_work_stream>& stream, const agent::Hello& hello) override;
  void renew(const std::shared_ptr<agent_work_stream>& stream, const std::string& csr_pem) override;
  void forget(const agent_work_stream* stream) override;
  void emit(agent_event event) override { sink_(std::move(event)); }

 private:
  absl::Status read_book();
  void keep_book_locked();
  grpc::Status enrol(const agent::EnrolRequest& request, agent::EnrolResponse* response);
  void refuse(const std::string& member, const std::string& reason);
  void watch_hello(const std::shared_ptr<agent_work_stream>& stream);
  void watch_expiry(const std::weak_ptr<agent_work_stream>& weak);

  const agent_gate_options options_;
  const agent_ca ca_;
  const validation::agent_sink sink_;
  int port_ = 0;
  std::atomic<int> enrols_waiting_ = 0;
  std::atomic<bool> stopping_ = false;

  mutable std::mutex
      mutex_;  // held for map look-ups and the token file only, never while a stream or the sink is called
  agent_token_book book_;
  std::map<std::string, std::shared_ptr<agent_work_stream>> streams_;  // by member, admitted ones
  std::map<const agent_work_stream*, std::weak_ptr<agent_work_stream>> all_streams_;

  std::unique_ptr<grpc::Server> server_;
  agent_client::event_loop loop_;  // last: its tasks use all of the above
};

absl::Status agent_gate::impl::read_book() {
  if (options_.state_dir.empty()) return absl::OkStatus();
  std::error_code failed;
  std::filesystem::create_directories(options_.state_dir, failed);
  const auto path = options_.state_dir / "agent-tokens";
  if (!std::filesystem::exists(path, failed)) return absl::OkStatus();
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return absl::DataLossError("cannot read " + path.string());
  return book_.parse(text.str(), now());
}

void agent_gate::impl::keep_book_locked() {
  if (options_.state_dir.empty()) return;
  // A full disk costs at most a repeated boot after a restart (the token is unknown then), never a wrong
  // admission.
  (void)replace_file(options_.state_dir / "agent-tokens", book_.to_text(now()));
}

absl::Status agent_gate::impl::open() {
  if (auto read = read_book(); !read.ok()) return read;
  const std::size_t colon = options_.endpoint.rfind(':');
  if (colon == std::string::npos)
    return absl::InvalidArgumentError("agent endpoint is not host:port: " + options_.endpoint);
  auto own = ca_.issue_server({options_.endpoint.substr(0, colon)});
  if (!own.ok()) return own.status();
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = ca_.certificate_pem();
  tls.pem_key_cert_pairs.push_back({own->key_pem, own->certificate_pem});
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options_.endpoint, grpc::SslServerCredentials(tls), &port_);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 4);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 8192);
  builder.SetMaxReceiveMessageSize(max_message_bytes);
  builder.SetMaxSendMessageSize(max_message_bytes);
  builder.SetResourceQuota(grpc::ResourceQuota("agents").Resize(64 * 1024 * 1024));
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (!server_ || port_ == 0)
    return absl::UnavailableError("cannot listen for agents on " + options_.endpoint);
  return absl::OkStatus();
}

void agent_gate::impl::stop(std::chrono::milliseconds grace) {
  if (stopping_.exchange(true)) return;
  std::vector<std::shared_ptr<agent_work_stream>> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, weak] : all_streams_) {
      if (auto stream = weak.lock()) open.push_back(std::move(stream));
    }
  }
  for (const auto& stream : open) {
    stream->silence();
    stream->close({grpc::StatusCode::UNAVAILABLE, "the rack daemon stops; come back"}, "");
  }
  open.clear();
  if (server_) {
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_->Wait();
  }
  loop_.stop();
}

std::string agent_gate::impl::issue_token(const std::string& member, const std::string& expected_serial) {
  std::string token = agent_client::make_token(ca_.sha256_hex());
  const std::lock_guard lock(mutex_);
  book_.issue(member, expected_serial, token, now());
  keep_book_locked();
  return token;
}

void agent_gate::impl::revoke(const std::string& member) {
  std::shared_ptr<agent_work_stream> stream;
  {
    const std::lock_guard lock(mutex_);
    book_.revoke(member);
    keep_book_locked();
    const auto found = streams_.find(member);
    if (found != streams_.end()) stream = found->second;
  }
  if (stream) stream->close({grpc::StatusCode::PERMISSION_DENIED, "revoked"}, "revoked");
}

bool agent_gate::impl::send(const std::string& member, agent::DaemonMessage message) {
  std::shared_ptr<agent_work_stream> stream;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(member);
    if (found == streams_.end()) return false;
    stream = found->second;
  }
  return stream->send(std::move(message));
}

bool agent_gate::impl::connected(const std::string& member) const {
  const std::lock_guard lock(mutex_);
  return streams_.count(member) != 0;
}

grpc::ServerUnaryReactor* agent_gate::impl::Enrol(grpc::CallbackServerContext* context,
                                                  const agent::EnrolRequest* request,
                                                  agent::EnrolResponse* response) {
  auto* reactor = context->DefaultReactor();
  if (stopping_ || enrols_waiting_.fetch_add(1) >= max_enrols_waiting) {
    if (!stopping_) enrols_waiting_.fetch_sub(1);
    reactor->Finish({grpc::StatusCode::UNAVAILABLE, "not now; come back"});
    return reactor;
  }
  // Request and response live until Finish. The loop outlives the server, so the task always runs.
  const bool posted = loop_.post([this, reactor, request, response] {
    const grpc::Status status = enrol(*request, response);
    enrols_waiting_.fetch_sub(1);
    reactor->Finish(status);
  });
  if (!posted) reactor->Finish({grpc::StatusCode::UNAVAILABLE, "the rack daemon stops; come back"});
  return reactor;
}

grpc::Status agent_gate::impl::enrol(const agent::EnrolRequest& request, agent::EnrolResponse* response) {
  const auto key_digest = agent_client::csr_key_digest(request.csr_pem());
  if (!key_digest.ok()) return to_grpc(key_digest.status());
  agent_token_book::redemption redeemed;
  {
    const std::lock_guard lock(mutex_);
    redeemed = book_.redeem(request.token(), request.dmi_serial(), *key_digest, now());
    keep_book_locked();
  }
  if (!redeemed.status.ok()) {
    const auto grpc_status = to_grpc(redeemed.status);
    if (redeemed.status.code() == absl::StatusCode::kFailedPrecondition) {
      refuse(redeemed.member, grpc_status.error_message());
    }
    return grpc_status;
  }
  auto certificate = ca_.sign_client(request.csr_pem(), redeemed.member, options_.certificate_life);
  if (!certificate.ok()) return to_grpc(certificate.status());
  response->set_certificate_pem(*std::move(certificate));
  response->set_ca_pem(ca_.certificate_pem());
  return grpc::Status::OK;
}

grpc::ServerBidiReactor<agent::AgentMessage, agent::DaemonMessage>* agent_gate::impl::Work(
    grpc::CallbackServerContext* context) {
  const std::string member = peer_property(*context, GRPC_X509_CN_PROPERTY_NAME);
  const auto facts =
      agent_client::read_certificate(peer_property(*context, GRPC_X509_PEM_CERT_PROPERTY_NAME));
  auto stream = agent_work_stream::open(this, context, member, facts.ok() ? facts->not_after : 0,
                                        options_.stream_queue);
  auto* reactor = stream.get();
  if (!is_member_name(member) || !facts.ok()) {
    stream->close({grpc::StatusCode::UNAUTHENTICATED, "Work needs a certificate of this rack's CA"},
                  "no certificate");
    return reactor;
  }
  {
    const std::lock_guard lock(mutex_);
    all_streams_[reactor] = stream;
  }
  if (stopping_) {
    stream->close({grpc::StatusCode::UNAVAILABLE, "the rack daemon stops; come back"}, "");
  } else {
    watch_hello(stream);
  }
  return reactor;
}

grpc::Status agent_gate::impl::admit(const std::shared_ptr<agent_work_stream>& stream,
                                     const agent::Hello& hello) {
  std::shared_ptr<agent_work_stream> older;
  std::string expected;
  {
    const std::lock_guard lock(mutex_);
    if (book_.revoked(stream->member())) return {grpc::StatusCode::PERMISSION_DENIED, "revoked"};
    expected = book_.expected_serial(stream->member()).value_or("");
    if (expected.empty() || expected == hello.dmi_serial()) {
      older = std::exchange(streams_[stream->member()], stream);
      expected.clear();
    }
  }
  if (!expected.empty()) {
    const std::string reason = "AGENT_SERIAL_MISMATCH: Redfish showed " + expected + ", the agent shows " +
                               (hello.dmi_serial().empty() ? "none" : hello.dmi_serial());
    refuse(stream->member(), reason);
    return {grpc::StatusCode::FAILED_PRECONDITION, reason};
  }
  if (older) {
    older->announce_lost("replaced by a newer stream of this member");
    older->close({grpc::StatusCode::ABORTED, "replaced by a newer stream"}, "");
  }
  watch_expiry(stream);
  return grpc::Status::OK;
}

void agent_gate::impl::renew(const std::shared_ptr<agent_work_stream>& stream, const std::string& csr_pem) {
  loop_.post([this, stream, csr_pem] {
    auto certificate = ca_.sign_client(csr_pem, stream->member(), options_.certificate_life);
    const auto facts = certificate.ok()
                           ? agent_client::read_certificate(*certificate)
                           : absl::StatusOr<agent_client::certificate_facts>(certificate.status());
    if (!facts.ok()) {
      stream->close(to_grpc(facts.status()),
                    "certificate not renewed: " + to_grpc(facts.status()).error_message());
      return;
    }
    agent::DaemonMessage message;
    message.mutable_renewed()->set_certificate_pem(*std::move(certificate));
    if (stream->send(std::move(message))) stream->set_valid_until_s(facts->not_after);
  });
}

void agent_gate::impl::forget(const agent_work_stream* stream) {
  std::shared_ptr<agent_work_stream> last;  // let go outside the lock
  const std::lock_guard lock(mutex_);
  all_streams_.erase(stream);
  const auto found = streams_.find(stream->member());
  if (found != streams_.end() && found->second.get() == stream) {
    last = std::move(found->second);
    streams_.erase(found);
  }
}

void agent_gate::impl::refuse(const std::string& member, const std::string& reason) {
  if (stopping_) return;
  agent_event event;
  event.what = agent_event::kind::refused;
  event.member = member;
  event.reason = reason;
  sink_(std::move(event));
}

void agent_gate::impl::watch_hello(const std::shared_ptr<agent_work_stream>& stream) {
  const std::weak_ptr<agent_work_stream> weak = stream;
  loop_.post_after(options_.hello_deadline, [weak] {
    const auto late = weak.lock();
    if (late && !late->greeted())
      late->close({grpc::StatusCode::DEADLINE_EXCEEDED, "no Hello in time"}, "no Hello");
  });
}

// A stream outlives its certificate only if it was renewed over it.
void agent_gate::impl::watch_expiry(const std::weak_ptr<agent_work_stream>& weak) {
  const auto stream = weak.lock();
  if (!stream) return;
  const std::int64_t left_s = stream->valid_until_s() - now().wall_s;
  if (left_s <= 0) {
    stream->close({grpc::StatusCode::UNAUTHENTICATED, "the certificate has expired"},
                  "the agent's certificate expired");
    return;
  }
  loop_.post_after(std::chrono::seconds(left_s), [this, weak] { watch_expiry(weak); });
}

agent_gate::agent_gate(std::unique_ptr<impl> inside) : impl_(std::move(inside)) {}
agent_gate::~agent_gate() = default;

absl::StatusOr<std::unique_ptr<agent_gate>> agent_gate::start(agent_gate_options options, agent_ca ca,
                                                              validation::agent_sink sink) {
  auto inside = std::make_unique<impl>(std::move(options), std::move(ca), std::move(sink));
  if (auto opened = inside->open(); !opened.ok()) return opened;
  return std::unique_ptr<agent_gate>(new agent_gate(std::move(inside)));
}

void agent_gate::stop(std::chrono::milliseconds grace) {
  impl_->stop(grace);
}
int agent_gate::port() const {
  return impl_->port();
}

std::string agent_gate::issue_token(const std::string& member, const std::string& expected_serial) {
  return impl_->issue_token(member, expected_serial);
}

void agent_gate::revoke(const std::string& member) {
  impl_->revoke(member);
}

bool agent_gate::run(const std::string& member, const agent::Run& run) {
  agent::DaemonMessage message;
  *message.mutable_run() = run;
  return impl_->send(member, std::move(message));
}

bool agent_gate::cancel(const std::string& member, const std::string& run_id) {
  agent::DaemonMessage message;
  message.mutable_cancel()->set_run_id(run_id);
  return impl_->send(member, std::move(message));
}

bool agent_gate::renew_lease(const std::string& member, const std::string& run_id) {
  agent::DaemonMessage message;
  message.mutable_lease_renew()->set_run_id(run_id);
  return impl_->send(member, std::move(message));
}

bool agent_gate::connected(const std::string& member) const {
  return impl_->connected(member);
}

}  // namespace busbar::rpc
