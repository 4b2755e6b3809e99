#include "daemon/agent/gate_calls.hpp"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_callback.h>

#include <chrono>
#include <deque>
#include <utility>

#include "busbar/agent/agent.grpc.pb.h"
#include "daemon/agent/x509.hpp"

namespace busbar::agent_client {
namespace {

constexpr int max_message_bytes = 256 * 1024;
constexpr std::chrono::seconds enrol_deadline(10);

std::string text_of(grpc::string_ref ref) {
  return {ref.data(), ref.size()};
}

// Recognises the gate before the agent holds any certificate: by the CA digest out of the token.
class pinned_ca final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit pinned_ca(std::string digest) : digest_(std::move(digest)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request,
              std::function<void(grpc::Status)>, grpc::Status* verdict) override {
    const auto ca =
        verify_server_chain(text_of(request->peer_cert()), text_of(request->peer_cert_full_chain()), digest_);
    *verdict = ca.ok()
                   ? grpc::Status::OK
                   : grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                  std::string(ca.status().message().data(), ca.status().message().size()));
    return true;  // decided at once
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string digest_;
};

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // one agent, one connection
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);             // the session backs off by itself
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetMaxReceiveMessageSize(max_message_bytes);
  arguments.SetMaxSendMessageSize(max_message_bytes);
  return arguments;
}

call_end end_of(const grpc::Status& status) {
  const auto code = status.error_code();
  const bool refused =
      code == grpc::StatusCode::UNAUTHENTICATED || code == grpc::StatusCode::PERMISSION_DENIED ||
      code == grpc::StatusCode::FAILED_PRECONDITION || code == grpc::StatusCode::INVALID_ARGUMENT;
  const auto outcome = status.ok() ? call_outcome::ok
                       : refused   ? call_outcome::refused
                                   : call_outcome::unreachable;
  return {outcome, status.error_message()};
}

struct enrol_call {
  grpc::ClientContext context;
  agent::EnrolRequest request;
  agent::EnrolResponse response;
  std::unique_ptr<agent::AgentGate::Stub> stub;
};

// The stream itself; owns itself until OnDone. Everything but the reactions runs on the loop; one hold keeps
// the call usable from there until the loop has seen that reading ended.
class work_reactor final : public grpc::ClientBidiReactor<agent::AgentMessage, agent::DaemonMessage>,
                           public std::enable_shared_from_this<work_reactor> {
 public:
  work_reactor(event_loop& loop, work_call::callbacks report) : loop_(loop), report_(std::move(report)) {}

  void begin(std::unique_ptr<agent::AgentGate::Stub> stub) {
    self_ = shared_from_this();
    stub_ = std::move(stub);
    stub_->async()->Work(&context_, this);
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }

  void send(agent::AgentMessage message) {
    if (reading_ended_ || leaving_) return;
    queue_.push_back(std::move(message));
    write_next();
  }

  void leave() {
    leaving_ = true;
    write_next();
  }

  void cut() { context_.TryCancel(); }
  void mute() { report_ = {}; }

  void OnReadInitialMetadataDone(bool ok) override {
    if (!ok) return;
    loop_.post([me = shared_from_this()] {
      const auto open =
          me->report_.open;  // a copy: the callback may let go of the call and with it of its own functions
      if (open) open();
    });
  }

  void OnReadDone(bool ok) override {
    if (ok) {
      loop_.post([me = shared_from_this(), message = std::move(incoming_)]() mutable {
        const auto deliver = me->report_.message;
        if (deliver) deliver(std::move(message));
      });
      incoming_.Clear();
      StartRead(&incoming_);
      return;
    }
    const bool posted = loop_.post([me = shared_from_this()] {
      me->reading_ended_ = true;
      me->RemoveHold();
    });
    if (!posted) RemoveHold();
  }

  void OnWriteDone(bool) override {  // a failed write shows in OnDone too
    loop_.post([me = shared_from_this()] {
      me->writing_ = false;
      me->write_next();
    });
  }

  void OnDone(const grpc::Status& status) override {
    // The last reference goes to the loop: gRPC 1.51 joins its callback threads when the last channel dies,
    // so a channel must never be let go on one of them.
    loop_.post([me = std::move(self_), end = end_of(status)] {
      const auto report = std::move(me->report_);
      me->report_ = {};
      if (report.closed) report.closed(end);
    });
  }

 private:
  void write_next() {
    if (writing_ || reading_ended_ || done_writing_) return;
    if (!queue_.empty()) {
      writing_ = true;
      outgoing_ = std::move(queue_.front());
      queue_.pop_front();
      StartWrite(&outgoing_);
    } else if (leaving_) {
      done_writing_ = true;
      StartWritesDone();
    }
  }

  event_loop& loop_;
  work_call::callbacks report_;
  std::unique_ptr<agent::AgentGate::Stub> stub_;
  grpc::ClientContext context_;
  std::shared_ptr<work_reactor> self_;
  agent::DaemonMessage incoming_;  // reading reaction only
  agent::AgentMessage outgoing_;   // lives until OnWriteDone
  std::deque<agent::AgentMessage> queue_;
  bool writing_ = false;
  bool leaving_ = false;
  bool done_writing_ = false;
  bool reading_ended_ = false;
};

class work_handle final : public work_call {
 public:
  explicit work_handle(std::shared_ptr<work_reactor> reactor) : reactor_(std::move(reactor)) {}
  ~work_handle() override {
    reactor_->mute();
    reactor_->cut();
  }
  void send(agent::AgentMessage message) override { reactor_->send(std::move(message)); }
  void leave() override { reactor_->leave(); }
  void cut() override { reactor_->cut(); }

 private:
  std::shared_ptr<work_reactor> reactor_;
};

}  // namespace

void enrol(event_loop& loop, const std::string& endpoint, const std::string& ca_sha256_hex,
           const agent::EnrolRequest& request, std::function<void(call_end, agent::EnrolResponse)> done) {
  grpc::experimental::TlsChannelCredentialsOptions tls;
  tls.set_verify_server_certs(false);  // the verifier does all of it: chain, purpose, name and the pinned CA
  tls.set_check_call_host(false);
  tls.set_certificate_verifier(
      grpc::experimental::ExternalCertificateVerifier::Create<pinned_ca>(ca_sha256_hex));
  const auto channel =
      grpc::CreateCustomChannel(endpoint, grpc::experimental::TlsCredentials(tls), channel_arguments());
  auto call = std::make_shared<enrol_call>();
  call->request = request;
  call->stub = agent::AgentGate::NewStub(channel);
  call->context.set_deadline(std::chrono::system_clock::now() + enrol_deadline);
  auto& wire = *call;
  // Call and channel are moved on to the loop to die there (see work_reactor::OnDone).
  wire.stub->async()->Enrol(
      &wire.context, &wire.request, &wire.response,
      [call = std::move(call), &loop, done = std::move(done)](const grpc::Status& status) mutable {
        loop.post([call = std::move(call), done = std::move(done), end = end_of(status)] {
          done(end, call->response);
        });
      });
}

std::unique_ptr<work_call> work_call::start(event_loop& loop, const std::string& endpoint,
                                            const identity& mine, callbacks report) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = mine.ca_pem;
  tls.pem_private_key = mine.key_pem;
  tls.pem_cert_chain = mine.certificate_pem;
  auto arguments = channel_arguments();
  arguments.SetSslTargetNameOverride(std::string(gate_server_name));
  const auto channel = grpc::CreateCustomChannel(endpoint, grpc::SslCredentials(tls), arguments);
  auto reactor = std::make_shared<work_reactor>(loop, std::move(report));
  reactor->begin(agent::AgentGate::NewStub(channel));
  return std::make_unique<work_handle>(std::move(reactor));
}

}  // namespace busbar::agent_client
