// One agent's open stream as a gRPC reactor. State under one mutex, which is never held while the host is
// called; events of the stream go out under a second one, so that a member's events keep their order when a
// newer stream replaces this one.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "actors/validation/agent_port.hpp"
#include "busbar/agent/agent.grpc.pb.h"

namespace busbar::rpc {

class agent_work_stream;

// The gate, as its streams see it. Called on gRPC threads.
class agent_stream_host {
 public:
  virtual ~agent_stream_host() = default;
  // OK: the stream is the member's only one from now on.
  virtual grpc::Status admit(const std::shared_ptr<agent_work_stream>& stream, const agent::Hello& hello) = 0;
  virtual void renew(const std::shared_ptr<agent_work_stream>& stream, const std::string& csr_pem) = 0;
  // Forget the stream if it is still the member's; connected() is false from then on.
  virtual void forget(const agent_work_stream* stream) = 0;
  virtual void emit(validation::agent_event event) = 0;
};

class agent_work_stream final : public grpc::ServerBidiReactor<agent::AgentMessage, agent::DaemonMessage> {
 public:
  // `member` comes from the client's certificate. The reactor owns itself until OnDone.
  static std::shared_ptr<agent_work_stream> open(agent_stream_host* host,
                                                 grpc::CallbackServerContext* context, std::string member,
                                                 std::int64_t valid_until_s, std::size_t queue_limit);

  const std::string& member() const { return member_; }
  std::int64_t valid_until_s() const;  // of the newest certificate given over this stream, Unix seconds
  void set_valid_until_s(std::int64_t unix_s);
  bool greeted() const;

  // False: the stream is ending, nothing was queued. A full queue ends it.
  bool send(agent::DaemonMessage message);
  // First call wins. Finishes the call and tells of the loss; thread-safe, never blocks.
  void close(const grpc::Status& status, const std::string& reason);
  // Tells of the loss once (if a hello was told) and lets no event of this stream out any more.
  void announce_lost(const std::string& reason);
  // No event at all any more, not even of the loss.
  void silence();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  agent_work_stream(agent_stream_host* host, grpc::CallbackServerContext* context, std::string member,
                    std::int64_t valid_until_s, std::size_t queue_limit);
  void handle(const agent::AgentMessage& message);
  void greet(const agent::Hello& hello);
  void emit(validation::agent_event event);
  validation::agent_event event_of(validation::agent_event::kind what) const;
  void read_next();
  void write_next_locked();
  void finish_locked();

  agent_stream_host* const host_;
  grpc::CallbackServerContext* const context_;  // valid until OnDone
  const std::string member_;
  const std::size_t queue_limit_;
  std::shared_ptr<agent_work_stream> self_;  // let go in OnDone
  agent::AgentMessage incoming_;             // one read is outstanding at a time
  std::string bye_;                          // read and written by the reading reaction only

  mutable std::mutex mutex_;
  std::deque<agent::DaemonMessage> queue_;
  agent::DaemonMessage outgoing_;  // lives until OnWriteDone
  bool writing_ = false;
  bool closing_ = false;
  bool finished_ = false;
  bool greeted_ = false;
  std::int64_t valid_until_s_ = 0;
  grpc::Status status_;

  std::mutex emit_mutex_;
  bool announced_ = false;
  bool silent_ = false;
};

}  // namespace busbar::rpc
